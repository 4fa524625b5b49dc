"""`dyno probe`: what this host offers, found by doing it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import click
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbdyno.cli.terminal import tell, terminal
from dbdyno.driver import _driver
from dbdyno.errors import UserError
from dbdyno.frozen import Frozen
from dbdyno.host.fingerprint import Host, fingerprint
from dbdyno.host.journal import open_journal
from dbdyno.host.probe import ProbeFinding, probe
from dbdyno.prepare_run.platform_probe import probe_platform
from dbdyno.report.words.safe import json_text

NAME_COLUMNS, ANSWER_COLUMNS = 23, 5
"""Wide enough for most names, and for yes, no and short numbers: what was seen needs the rest of the line."""


class ProbeDocument(Frozen):
    """A probe as `--json` prints it. The fingerprint holds null for what cannot be read."""

    fingerprint: Host
    findings: tuple[ProbeFinding, ...]


def main(as_json: bool, platform: str | None, programs: tuple[Path, ...]) -> None:
    if programs and platform is None:
        raise UserError("--program is compiled for an architecture", "give --platform ARCHITECTURE")
    with open_journal() as journal:
        if platform is not None:
            _show(probe_platform(platform, programs, journal, tell), as_json)
            return
        ring = json.loads(_driver.capabilities())["io_uring"]
        _show(probe(journal, "" if ring["available"] else ring["why"]), as_json)


def _show(found: Iterable[ProbeFinding], as_json: bool) -> None:
    findings = tuple(found)
    if as_json:
        told = ProbeDocument(fingerprint=fingerprint(), findings=findings)
        click.echo(json_text(told))
        return
    _print(findings)


def _print(findings: Sequence[ProbeFinding]) -> None:
    """A row each: what was seen is folded within its column, and an answer that is long stands before it."""
    console = terminal()
    for group, of_group in groupby(findings, lambda finding: finding.group):
        console.print(Text(group, style="bold"))
        rows = Table.grid(padding=(0, 2, 0, 0))
        rows.add_column(width=NAME_COLUMNS)
        rows.add_column(width=ANSWER_COLUMNS)
        rows.add_column(overflow="fold")
        for finding in of_group:
            why = f"{finding.detail}; {finding.remedy}" if finding.remedy else finding.detail
            style = {"yes": "green", "no": "yellow"}.get(finding.answer, "")
            answer = Text(finding.answer, style=style)
            if len(finding.answer) > ANSWER_COLUMNS:
                answer, why = Text(), f"{finding.answer}: {why}" if why else finding.answer
            rows.add_row(Text(finding.name), answer, Text(why))
        console.print(Padding(rows, (0, 0, 0, 2)))
