"""What a log does not tell of a statement, and how a server is made to tell it."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.sql_logs.formats import FORMATS, LogFormat
from dbdyno.sql_logs.groups import Group, Traffic

SLOW_LEAST_S = 0.05
"""Of a log in which no statement was faster than this, the server probably left the faster ones out."""


@dataclass(frozen=True)
class Lack:
    """Something that is missing, and how to get it."""

    what: str
    remedy: str


def lacks_of(group: Group, traffic: Traffic) -> tuple[Lack, ...]:
    """What is missing of the statements of a digest."""
    told = _format(traffic)
    found = [
        (group.cut, "the end of its text", "give the log as a whole, with the part that follows"),
        (group.unknown > 0, f"the values of $1 and its like{_of(group.unknown, group)}", told.for_values),
        (group.untimed > 0, f"its time{_of(group.untimed, group)}", told.for_times),
        (not group.database, "its database", told.for_databases),
    ]
    return tuple(Lack(what, remedy) for is_so, what, remedy in found if is_so)


def lacks_of_all(traffic: Traffic) -> tuple[Lack, ...]:
    """What is missing of the log itself."""
    if traffic.least_s is None or traffic.least_s < SLOW_LEAST_S:
        return ()
    what = (
        f"faster statements, it seems: none took less than {traffic.least_s * 1000:,.0f} ms, so the shares"
        " are those of slow statements alone"
    )
    return (Lack(what, _format(traffic).for_statements),)


def _of(count: int, group: Group) -> str:
    return "" if count == group.count else f" ({count:,} of {group.count:,} times)"


def _format(traffic: Traffic) -> LogFormat:
    return next(each for each in FORMATS if each.name == traffic.kind)
