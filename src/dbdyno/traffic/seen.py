"""A statement as a log tells of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """A statement that was executed `times`, in `took_s` all together, or None where the log does not tell.
    `line` is where it begins; `rest` names what is no statement (a command of the protocol)."""

    text: str
    line: int
    took_s: float | None = None
    times: int = 1
    rest: str = ""
