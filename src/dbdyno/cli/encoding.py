"""Output where letters beyond ASCII cannot be shown: each is written in letters that can."""

from __future__ import annotations

import codecs
import io
import sys
import unicodedata

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


def speak_any_encoding() -> None:
    """Lets standard output and standard error take every text, whatever their encoding can show."""
    codecs.register_error("dyno.ascii", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="dyno.ascii")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_letter_in_ascii, error.object[error.start : error.end])), error.end


def _letter_in_ascii(letter: str) -> str:
    if letter in IN_ASCII:
        return IN_ASCII[letter]
    return unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"
