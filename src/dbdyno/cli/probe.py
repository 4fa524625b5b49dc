"""`dyno probe`: what this host offers, found by doing it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.text import Text

from dbdyno.begin.platform_probe import probe_platform
from dbdyno.cli.terminal import tell, terminal
from dbdyno.driver import _driver
from dbdyno.errors import UserError
from dbdyno.frozen import Frozen
from dbdyno.host.fingerprint import Host, fingerprint
from dbdyno.host.journal import open_journal
from dbdyno.host.probe import Finding, probe
from dbdyno.report.words.safe import json_text


class ProbeDocument(Frozen):
    """A probe as `--json` prints it. The fingerprint holds null for what cannot be read."""

    fingerprint: Host
    findings: tuple[Finding, ...]


def main(as_json: bool, platform: str | None, programs: tuple[Path, ...]) -> None:
    if programs and platform is None:
        raise UserError("--program is compiled for an architecture", "give --platform ARCHITECTURE")
    with open_journal() as journal:
        if platform is not None:
            _show(probe_platform(platform, programs, journal, tell), as_json)
            return
        ring = json.loads(_driver.capabilities())["io_uring"]
        _show(probe(journal, "" if ring["available"] else ring["why"]), as_json)


def _show(found: Iterable[Finding], as_json: bool) -> None:
    findings = tuple(found)
    if as_json:
        told = ProbeDocument(fingerprint=fingerprint(), findings=findings)
        click.echo(json_text(told))
        return
    _print(findings)


def _print(findings: Sequence[Finding]) -> None:
    """A line each, never folded: what was seen reads on to the right."""
    console = terminal(soft_wrap=True)
    names = max(len(finding.name) for finding in findings)
    answers = max(len(finding.answer) for finding in findings)
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            console.print(Text(group, style="bold"))
        why = f"{finding.detail}; {finding.remedy}" if finding.remedy else finding.detail
        style = {"yes": "green", "no": "yellow"}.get(finding.answer, "")
        answer = Text(finding.answer.ljust(answers), style=style)
        console.print(Text.assemble("  ", finding.name.ljust(names), "  ", answer, "  ", why))
