"""The general log of MariaDB and MySQL: a line for each command of a connection, those of all connections
among each other. A statement's further lines follow its first. It does not tell how long anything took.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dbdyno.traffic.seen import Seen
from dbdyno.traffic.slow_log import OPENED, OPENED_REST

COMMANDS = (
    "Sleep|Quit|Init DB|Query|Field List|Create DB|Drop DB|Refresh|Shutdown|Statistics|Processlist|Connect"
    "|Kill|Debug|Ping|Time|Delayed insert|Change user|Binlog Dump|Table Dump|Connect Out|Register Slave"
    "|Register Replica|Prepare|Execute|Long Data|Close stmt|Reset stmt|Set option|Fetch|Daemon|Bulk execute"
    "|Reset connection|Error"
)
COMMAND = re.compile(
    r"(?:\d{6} {1,2}\d{1,2}:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*)?\s+(?:\d+)\s"
    rf"({COMMANDS})(?:\t(.*)|\s*)"
)
EXECUTED = ("Query", "Execute")


def begins(line: str) -> bool:
    """Whether a command of a general log begins here."""
    return COMMAND.fullmatch(line) is not None


def statements(lines: Iterable[tuple[int, str]]) -> Iterator[Seen]:
    """What was executed, in the order of the log."""
    command, body, start = "", list[str](), 0
    for number, line in lines:
        if OPENED.match(line) or OPENED_REST.match(line):
            continue
        if found := COMMAND.fullmatch(line):
            yield from _ended(command, body, start)
            command, body, start = found[1], [found[2] or ""], number
        else:
            body.append(line)
    yield from _ended(command, body, start)


def _ended(command: str, body: list[str], start: int) -> Iterator[Seen]:
    text = "\n".join(body).strip().removesuffix(";").strip()
    if command in EXECUTED and text:
        yield Seen(text, start)
    elif command:
        yield Seen("", start, rest=f"command {command}")
