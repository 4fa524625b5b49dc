"""What may reach a terminal: letters that its encoding can show, and no control that is not Dyno's own."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TextIO, cast

from dbdyno.errors import DynoError, remedy

STDERR = 2

IN_ASCII = {
    "×": "x",
    "±": "+/-",
    "·": "*",
    "–": "-",
    "—": "-",
    "−": "-",
    "→": "->",
    "←": "<-",
    "’": "'",
    "“": '"',
    "”": '"',
    "▲": "^",
    "▼": "v",
    "≡": "=",
    "✗": "x",
    "⊘": "0",
    "∞": "inf",
    "⏎": "|",
}
"""What Dyno itself prints; an accented letter loses its accent, and all else becomes a question mark."""


_CONTROL = r"\x00-\x08\x0b-\x1f\x7f"
_C1 = r"\x80-\x9f"
_NO_CHARACTERS = "".join(f"\\U{plane:04x}fffe\\U{plane:04x}ffff" for plane in range(17))
_MISLEADING = rf"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufdd0-\ufdef{_NO_CHARACTERS}"
"""What turns the direction of text, separators of lines, and noncharacters."""
_CONTROLS = re.compile(f"[{_CONTROL}{_C1}]")
_STEERING = re.compile(f"[{_CONTROL}{_C1}{_MISLEADING}]")
_OWN = re.compile(rf"(\r|\x1b\[[0-9;:]*m|\x1b\[(?:\?25[lh]|1A|2K))|[{_CONTROL}{_C1}{_MISLEADING}]")
"""Colours, and how a progress bar is drawn anew."""
SHOWN = "\N{REPLACEMENT CHARACTER}"


def plain(text: str) -> str:
    """Text of somebody else, a server's error say, without anything that steers a terminal."""
    return _STEERING.sub(SHOWN, text)


class _Output(io.TextIOWrapper):
    """A stream to people or programs. Whatever text reaches it is data, so it steers nothing: a colour in it
    may be a server's."""

    refused = _STEERING

    def write(self, text: str, /) -> int:
        self.write_as_it_is(self.refused.sub(SHOWN, text))
        return len(text)

    def write_as_it_is(self, text: str) -> None:
        with self._complaining():
            super().write(text)

    def flush(self) -> None:
        with self._complaining():
            super().flush()

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        """Says of what is written to nobody's use that it is lost. What is lost of messages nobody can be
        told."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            # What is left in the buffer must not fail once more when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if self.fileno() != STDERR:
                raise DynoError(
                    f"standard output cannot be written: {error.strerror}",
                    remedy(error) or "send the output elsewhere",
                ) from None


class _Own:
    """The same stream for those few who write colours of Dyno's own, around text that is `plain` already."""

    def __init__(self, output: _Output) -> None:
        self._output = output

    def write(self, text: str) -> int:
        self._output.write_as_it_is(_OWN.sub(lambda found: found[1] or SHOWN, text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)


def own(name: Literal["stdout", "stderr"]) -> TextIO:
    """A standard stream that lets Dyno's own colours pass. No text from outside may go there unless it is
    `plain`."""
    stream: TextIO = getattr(sys, name)
    return cast(TextIO, _Own(stream)) if isinstance(stream, _Output) else stream


def open_what_is_closed() -> None:
    """Gives a standard stream that whoever started Dyno has closed, as `<&-` does, to nobody: it would be the
    next file that is opened, and what is written there would go into that file."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest that is free, so this one: those below it are open by now.
            os.open(os.devnull, os.O_WRONLY if descriptor else os.O_RDONLY)
            os.set_inheritable(descriptor, True)
        if getattr(sys, name) is None:
            stream = open(descriptor, "w" if descriptor else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def speak_any_encoding() -> None:
    """Lets standard output and standard error take every text, whatever their encoding can show, and keeps
    from a terminal what a server, a log or a name would do to it."""
    codecs.register_error("dyno.ascii", _in_ascii)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper):
            continue
        # Programs that read standard output get all letters as they are.
        data = name == "stdout" and not stream.isatty()
        guarded = _guarded(stream, _CONTROLS if data else _STEERING)
        setattr(sys, name, guarded)
        # Whoever asks for the terminal's width asks the stream that the interpreter began with.
        setattr(sys, f"__{name}__", guarded)


def _guarded(stream: io.TextIOWrapper, refused: re.Pattern[str]) -> _Output:
    encoding, buffered_by_line, through = stream.encoding, stream.line_buffering, stream.write_through
    guarded = _Output(
        stream.detach(),
        encoding,
        errors="dyno.ascii",
        line_buffering=buffered_by_line,
        write_through=through,
    )
    guarded.refused = refused
    return guarded


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_letter_in_ascii, error.object[error.start : error.end])), error.end


def _letter_in_ascii(letter: str) -> str:
    if letter in IN_ASCII:
        return IN_ASCII[letter]
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"
