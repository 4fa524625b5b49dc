"""The slow log of MariaDB and MySQL.

An entry is a head of lines that begin with `#`, then perhaps `use DATABASE;` and `SET timestamp=...;`,
then the statement, of one line or more, or `# administrator command: ...`. The server writes three lines of
its own when it opens the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dbdyno.traffic.seen import Seen

BEGINS = re.compile(r"# (Time: |User@Host: )")
HEAD = re.compile(
    r"#$|# (Time: |User@Host: |Thread_id: |Query_time: |Rows_affected: |Full_scan: |Filesort: |Tmp_|QC_"
    r"|Bytes_|Schema: |Log_slow_rate_|Pages_|Stored.routine|explain:|No InnoDB|InnoDB_| )"
)
QUERY_TIME = re.compile(r"# Query_time: (\d+(?:\.\d+)?)")
ADMINISTRATOR = re.compile(r"# administrator command: (\w[\w ]*)")
CONTEXT = re.compile(r"(use [^;]+|SET (timestamp|insert_id|last_insert_id)=\d[^;]*);$")
OPENED = re.compile(r".*, Version: .* started with:$")
OPENED_REST = re.compile(r"(Tcp port: |TCP Port: |Time\s+Id\s+Command\s+Argument)")


def begins(line: str) -> bool:
    """Whether an entry of a slow log begins here."""
    return BEGINS.match(line) is not None


def statements(lines: Iterable[tuple[int, str]]) -> Iterator[Seen]:
    """The statements of a slow log; one whose entry was cut off before it is left out."""
    took_s, body, start, in_head = None, list[str](), 0, False
    for number, line in lines:
        if OPENED.match(line) or OPENED_REST.match(line):
            continue
        if begins(line) and not in_head:
            yield from _ended(body, start, took_s)
            took_s, body, in_head = None, [], True
        elif in_head and not HEAD.match(line):
            in_head, start = False, number
        if in_head:
            found = QUERY_TIME.match(line)
            took_s = float(found[1]) if found else took_s
        elif start:
            body.append(line)
    yield from _ended(body, start, took_s)


def _ended(body: list[str], start: int, took_s: float | None) -> Iterator[Seen]:
    """The statement of an entry, behind what sets its context."""
    skipped = 0
    while skipped < len(body) and CONTEXT.match(body[skipped]):
        skipped += 1
    text = "\n".join(body[skipped:]).strip().removesuffix(";").strip()
    if command := ADMINISTRATOR.match(text):
        yield Seen("", start, took_s, rest=f"command {command[1]}")
    elif text:
        yield Seen(text, start + skipped, took_s)
