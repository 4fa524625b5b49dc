"""A statement as a log tells of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Seen:
    """A statement that was executed `times`, in `took_s` all together, or None where the log does not tell.
    `line` is where it begins; `rest` names what is no statement (a command of the protocol).

    `session` is the connection, as the log names it, and `database` the one that it was in; both are empty
    where the log does not tell. `at_s` is when the statement began, in seconds since 1970; a log without a
    time zone counts as UTC, so differences are right. `bound` tells that the values of `$1` were put into the
    text, as texts in quotes whatever their type. `file` is empty where there is one alone. `rows` were sent
    and `affected` changed, None where the log does not tell; `failed` says that it ended in an error.
    """

    text: str
    line: int
    took_s: float | None = None
    times: int = 1
    rest: str = ""
    session: str = ""
    at_s: float | None = None
    database: str = ""
    bound: bool = False
    file: str = ""
    rows: int | None = None
    affected: int | None = None
    failed: bool = False
