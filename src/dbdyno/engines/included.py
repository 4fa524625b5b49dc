"""The lines that a server reads: those of its configuration file, and of included files in their place."""

from __future__ import annotations

import errno
import hashlib
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from dbdyno.engines.line import Include, Line, NoConfiguration
from dbdyno.frozen import IncludedFile
from dbdyno.passwords import without_passwords

DEPTH_MOST = 10
"""How deep MariaDB, MySQL and PostgreSQL follow includes."""
CHARACTERS_MOST = 1 << 20
"""A file of settings is a short text."""

SECRET = (
    r"(?<![\w.-])[\w.-]*(?:password|passwd|pwd|passphrase(?:_command)?|secret(?:[-_](?:key|id))?"
    r"|access[-_]key|filekey|token|sst[-_]auth)"
)
"""How the names of secrets end."""
QUOTE = r"(?:''|\\')"
"""A quote within a text in quotes."""
ESCAPED = rf"\\\\(?:{QUOTE}|\\\\|[^'\n])|\\[^'\n]"
"""A character whose meaning a connection's backslash, which is written twice, or the file's own takes."""
WORD = rf"""(?:{ESCAPED}|{QUOTE}|[^\s'"\\]|"(?=\S))"""
KEPT_BEFORE_SECRETS = (
    # An option: all of its line, also in a comment.
    re.compile(
        rf"^([ \t#;]*{SECRET}(?:[ \t]*=[ \t]*(?=\S)|[ \t]+(?=[^\s=#]))).+$", re.IGNORECASE | re.MULTILINE
    ),
    # Within the text of a connection, or of a command.
    re.compile(
        rf"""({SECRET}[ \t]*=[ \t]*)"""
        rf"""(?:{QUOTE}(?:{ESCAPED}|[^'\\\n])*{QUOTE}?|(?:'[^'\n]*'|"[^"\n]*"){WORD}*|{WORD}+)""",
        re.IGNORECASE,
    ),
    # A URL.
    re.compile(r"(://[^\s:/@]*:)[^\s/]*(?=@)"),
)
"""Each matches a secret; its group is what stands before it."""

Parse = Callable[[str], list[Line]]
"""The lines of one file's text that concern the server."""


class Follower:
    """Reads a configuration file and what it includes. `files` are those that were read, the first one first.

    No text that is kept holds a secret, because it goes into a store.
    """

    def __init__(self, parse: Parse) -> None:
        self._parse = parse
        self.files: list[IncludedFile] = []

    def lines(self, name: str, folder: Path) -> list[Line]:
        """All lines in the order in which a server reads them. `name` counts from the folder. Raises OSError
        and UnicodeDecodeError where the file itself cannot be read."""
        return list(self._lines(_resolved(folder, name), (), name))

    def _lines(self, file: Path, above: tuple[Path, ...], name: str) -> Iterator[Line]:
        text = _text(file)
        digest, kept = hashlib.sha256(text.encode()).hexdigest(), without_secrets(text)
        self.files.append(IncludedFile(path=name, text=kept, digest=digest))
        for line in self._parse(kept):
            if line.fatal and not above:
                raise NoConfiguration(line.fatal, "mend the file, or name another")
            here = replace(line, file=name) if above else line
            if line.include is None:
                yield here
            else:
                yield from self._included(here, line.include, (*above, file))

    def _included(self, line: Line, include: Include, above: tuple[Path, ...]) -> Iterator[Line]:
        """The lines of the files that a line leads to; the line itself, with why, if one cannot be read."""
        try:
            files = _files(include, above[-1].parent)
        except OSError as error:
            yield replace(line, untaken=_why(error))
            return
        for file in files:
            try:
                if why := _refused(file, above):
                    yield replace(line, untaken=why)
                else:
                    yield from self._lines(file, above, _name(file, above[0].parent))
            except OSError as error:
                yield replace(line, untaken=_why(error))
            except UnicodeDecodeError:
                yield replace(line, untaken=f"{file.name} is not a text in UTF-8")
            except NoConfiguration as refused:
                yield replace(line, untaken=f"{file.name}: {refused}")


def without_secrets(text: str) -> str:
    """A file's text with *** in the place of each secret."""
    for secret in KEPT_BEFORE_SECRETS:
        text = secret.sub(r"\1***", text)
    return without_passwords(text)


def _resolved(folder: Path, path: str) -> Path:
    """Where a path leads. Raises OSError where that is nowhere."""
    try:
        return (folder / Path(path).expanduser()).resolve()
    except (RuntimeError, ValueError) as error:
        # Symbolic links in a circle, a home that nobody has, a zero byte.
        raise OSError(errno.EINVAL, str(error), path) from None


def _text(file: Path) -> str:
    """The text of a file. Raises OSError for a pipe or a device, which may not end, and for a large file."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(file))
    with file.open(encoding="utf-8") as opened:
        text = opened.read(CHARACTERS_MOST + 1)
    if len(text) > CHARACTERS_MOST:
        raise OSError(errno.EFBIG, "it is larger than 1 MiB", str(file))
    return text


def _refused(file: Path, above: tuple[Path, ...]) -> str:
    if file in above:
        return f"{file.name} is being read already, so this line leads in a circle"
    return f"a server follows no more than {DEPTH_MOST} includes in a row" if len(above) > DEPTH_MOST else ""


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{error.filename} is not on this machine: copy it here, or write what matters of it here"
    return f"{error.filename} cannot be read: {error.strerror}"


def _files(include: Include, folder: Path) -> list[Path]:
    """A relative path counts from the folder of the file that holds it. A folder's files come by name."""
    place = _resolved(folder, include.path)
    if not include.ending:
        return [place]
    found = [file for file in place.iterdir() if file.name.endswith(include.ending) and file.is_file()]
    return [file.resolve() for file in sorted(found) if not file.name.startswith(".")]


def _name(file: Path, folder: Path) -> str:
    """The path from the first file's folder, where the file lies in there."""
    return str(file.relative_to(folder) if file.is_relative_to(folder) else file)
