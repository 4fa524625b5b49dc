"""The general log of MariaDB and MySQL: a line for each command of a connection, those of all connections
among each other. A statement's further lines follow its first. It does not tell how long anything took.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dbdyno.traffic.clock import moment_s
from dbdyno.traffic.lines import Body
from dbdyno.traffic.seen import Seen
from dbdyno.traffic.slow_log import OPENED, OPENED_REST

COMMANDS = (
    "Sleep|Quit|Init DB|Query|Field List|Create DB|Drop DB|Refresh|Shutdown|Statistics|Processlist|Connect"
    "|Kill|Debug|Ping|Time|Delayed insert|Change user|Binlog Dump|Table Dump|Connect Out|Register Slave"
    "|Register Replica|Prepare|Execute|Long Data|Close stmt|Reset stmt|Set option|Fetch|Daemon|Bulk execute"
    "|Reset connection|Error"
)
COMMAND = re.compile(
    r"(\d{6} {1,2}\d{1,2}:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*)?\s+(\d+)\s"
    rf"({COMMANDS})(?:\t(.*)|\s*)"
)
EXECUTED = ("Query", "Execute")
CONNECTED = re.compile(r"\S* on (\S*)(?: using .*)?")
USE = re.compile(r"use\s+`?([^;`]+)`?\s*;?\s*", re.IGNORECASE)


def begins(line: str) -> bool:
    """Whether a command of a general log begins here."""
    return COMMAND.fullmatch(line) is not None


@dataclass
class _Command:
    """A command of a connection, with what was written of it so far."""

    name: str
    session: str
    at_s: float | None
    body: Body
    start: int

    @property
    def text(self) -> str:
        return "\n".join(self.body).strip().removesuffix(";").strip()

    @property
    def database(self) -> str | None:
        """The one that this command chooses; None where it chooses none."""
        if self.name == "Init DB":
            return self.text
        if self.name in ("Connect", "Change user"):
            found = CONNECTED.fullmatch(self.text)
        else:
            found = USE.fullmatch(self.text) if self.name in EXECUTED else None
        return found[1] if found else None

    def seen(self, database: str) -> Seen:
        executed = self.name in EXECUTED and bool(self.text)
        return Seen(
            self.text if executed else "",
            self.start,
            rest="" if executed else f"command {self.name}",
            session=self.session,
            at_s=self.at_s,
            database=database,
        )


def statements(lines: Iterable[tuple[int, str]]) -> Iterator[Seen]:
    """What was executed, in the order of the log."""
    databases: dict[str, str] = {}
    for command in _commands(lines):
        chosen = command.database
        if chosen is not None:
            databases[command.session] = chosen
        yield command.seen(databases.get(command.session, ""))
        if command.name == "Quit":
            databases.pop(command.session, None)


def _commands(lines: Iterable[tuple[int, str]]) -> Iterator[_Command]:
    """The commands. MariaDB writes the time only where it differs from the line before."""
    command: _Command | None = None
    at_s: float | None = None
    for number, line in lines:
        if OPENED.match(line) or OPENED_REST.match(line):
            continue
        if found := COMMAND.fullmatch(line):
            if command:
                yield command
            at_s = moment_s(found[1]) if found[1] else at_s
            command = _Command(found[3], found[2], at_s, Body(found[4] or ""), number)
        elif command:
            command.body.append(line)
    if command:
        yield command
