"""One line of an engine's configuration file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbdyno.frozen import Level

OF_DYNO = "Dyno sets this itself, so that the server stays private"
OTHER_FILE = "Dyno reads one file alone: write what matters of the other into it"
A_PATH = "it is a path of the server that the file was written for"
NOT_SHOWN = "no variable of the server shows it, so nothing would prove it"
UNREADABLE = "Dyno does not understand this line"


@dataclass(frozen=True)
class Line:
    """A line that concerns the server. `untaken` says why it is no setting for a study; the others set `name`
    to `level`.
    """

    number: int
    text: str
    name: str = ""
    level: Level = True
    untaken: str = ""


def unquoted(value: str) -> str:
    """A value without its quotes, or up to the comment that follows it."""
    quoted = re.match(r"""\s*(['"])(.*?)\1\s*(#.*)?$""", value)
    return quoted[2] if quoted else value.split("#", 1)[0].strip()


def is_path(level: Level) -> bool:
    return isinstance(level, str) and level.startswith(("/", "~", "./", "../"))
