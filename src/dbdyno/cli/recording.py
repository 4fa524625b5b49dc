"""`dyno init replay`: a recording of a log, which the workload `replay` plays."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from dbdyno.errors import UserError
from dbdyno.report.words.numbers import plural
from dbdyno.report.words.safe import json_text
from dbdyno.sql_logs.digest import Dialect
from dbdyno.sql_logs.read import log_of
from dbdyno.sql_logs.record import record
from dbdyno.sql_logs.recording import About
from dbdyno.sql_logs.seen import LogReading

SHOWN_MOST = 10


class Made(About):
    """What `dyno init replay` made: the file, and what it says of itself."""

    output: str


def main(
    sources: tuple[Path, ...],
    database: str,
    reading: LogReading,
    output: Path,
    as_json: bool,
) -> None:
    if output.exists():
        raise UserError(f"{output} is there already", "give another name with --output")
    log = log_of(sources, reading)
    about = record(log, ", ".join(source.name for source in sources), output, database)
    _require_one_database(about, log.kind.dialect, output)
    if as_json:
        made = Made(output=str(output), **dict(about))
        click.echo(json_text(made))
    else:
        click.echo("\n".join([*log.notes, *_lines(about, output)]))


def _require_one_database(about: About, dialect: Dialect, output: Path) -> None:
    """A session of PostgreSQL cannot change its database, and a replay has one URL."""
    named = [name for name in about.databases if name]
    if dialect is Dialect.POSTGRESQL and len(named) > 1:
        output.unlink()
        raise UserError(
            f"the log holds statements of several databases: {', '.join(named)}",
            f"record one of them: --database {named[0]}",
        )


def _lines(about: About, output: Path) -> list[str]:
    """What the recording holds, what it does not, and what comes next."""
    lines = [
        f"{output}: {plural(about.count, 'statement')} of {plural(about.sessions, 'session')} in "
        f"{about.length_s:,.1f} s, at most {about.open_most:,} of them open at a time"
    ]
    counts = Counter(about.left_out).most_common()
    lines += [f"  left out: {count:,} {what}" for what, count in counts[:SHOWN_MOST]]
    if len(counts) > SHOWN_MOST:
        lines.append(f"  and {plural(len(counts) - SHOWN_MOST, 'kind')} more: --json lists them all")
    if about.whole_seconds:
        lines.append(
            "  the log has whole seconds alone: statements of one second are spread over it in their order"
        )
    if len(about.databases) > 1:
        lines.append(f"  databases: {', '.join(filter(None, about.databases))}")
    lines.append("  play it on a copy of the data as they were when the log began, each time on a fresh one")
    lines.append(f"  then: dyno load run replay --file {output} --url URL")
    return lines
