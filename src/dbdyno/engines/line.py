"""One line of an engine's configuration file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbdyno.frozen import Level

OF_DYNO = "Dyno sets this itself, so that the server stays private"
OTHER_FILE = "Dyno does not follow this line: write what matters of the other file into this one"
A_PATH = "it is a path of the server that the file was written for"
A_PROGRAM = "it lets the server run a program or open files of its host, which a run refuses"
NOT_SHOWN = "no variable of the server shows it, so nothing would prove it"
UNREADABLE = "Dyno does not understand this line"


class NoConfiguration(ValueError):
    """A text that no server would take as its configuration file, and what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Include:
    """What a line leads to: a file or, with an `ending`, all files of a folder whose names end so."""

    path: str
    ending: str = ""


@dataclass(frozen=True)
class Line:
    """A line that concerns the server. `untaken` says why it is no setting for a study, and `include` leads
    to other files; the other lines set `name` to `level`. `file` holds the line where that is not the file
    that the study names. A `fatal` line keeps the server from reading on, and says why: a file that is not
    included is then refused.
    """

    number: int
    text: str
    name: str = ""
    level: Level = True
    untaken: str = ""
    include: Include | None = None
    file: str = ""
    fatal: str = ""


def unquoted(value: str) -> str:
    """A value without its quotes, or up to the comment that follows it."""
    quoted = re.match(r"""\s*(['"])(.*?)\1\s*(#.*)?$""", value)
    return quoted[2] if quoted else value.split("#", 1)[0].strip()


def is_path(level: Level) -> bool:
    return isinstance(level, str) and level.startswith(("/", "~", "./", "../"))
