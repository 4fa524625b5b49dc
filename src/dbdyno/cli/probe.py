"""`dyno probe`: what this host offers, found by doing it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click
from rich.text import Text

from dbdyno.cli.options import json_option
from dbdyno.cli.terminal import terminal
from dbdyno.driver import _driver
from dbdyno.frozen import Frozen
from dbdyno.host.facts import Host
from dbdyno.host.fingerprint import fingerprint
from dbdyno.host.journal import open_journal
from dbdyno.host.probe import Finding, probe
from dbdyno.report.words.safe import json_text


class ProbeDocument(Frozen):
    """A probe as `--json` prints it. The fingerprint holds null for what cannot be read."""

    fingerprint: Host
    findings: tuple[Finding, ...]


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Find out what this host is and offers, by doing each thing and restoring it.

    Takes a few seconds. As root it can tell more; without, it says what needs root.
    """
    with open_journal() as journal:
        ring = json.loads(_driver.capabilities())["io_uring"]
        findings = tuple(probe(journal, "" if ring["available"] else ring["why"]))
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
