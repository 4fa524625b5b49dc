"""`dyno verify`: checks a published folder on any machine, without a database."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.exit_codes import NOT_CHECKED
from dbdyno.cli.patience import waiting
from dbdyno.cli.terminal import terminal
from dbdyno.publish.folder import read_folder
from dbdyno.publish.making import public_key
from dbdyno.publish.verified import Fault, Verification, VerificationAnswer, verified
from dbdyno.report.words import safe

STATES = {True: ("holds", "green"), False: ("BROKEN", "bold red"), None: ("not checked", "yellow")}
WORDS = {
    Fault.SIGNATURE: "the signature does not hold",
    Fault.FILES: "the folder is not as it was published",
    Fault.CONTENTS: "its files do not follow from each other",
}


def main(folder: Path, key: Path | None, as_json: bool) -> None:
    trusted = public_key(key) if key is not None else None
    contents, strange = read_folder(folder)
    with waiting(f"checking {folder}"):
        found = verified(str(folder), contents, strange, trusted)
    if as_json:
        click.echo(safe.json_text(found))
    else:
        _print(found, terminal())
    if found.fault is not None:
        click.echo(f"exit code {found.fault.value}, {WORDS[found.fault]}", err=True)
        sys.exit(found.fault.value)
    if found.answer is VerificationAnswer.NOT_CHECKED:
        click.echo(f"exit code {NOT_CHECKED}, not all was checked", err=True)
        sys.exit(NOT_CHECKED)


def _first_line(found: Verification) -> str:
    """The answer, of what was checked alone."""
    if found.fault is not None:
        return f"BROKEN: {WORDS[found.fault]}"
    if found.unchecked:
        return f"Not all was checked: {', '.join(found.unchecked)}. What was checked holds."
    if found.trusted:
        return f"Holds: all was checked, by the key {found.signed_by}."
    return "Holds. Whose folder it is was not checked: name the key by --key."


def _print(found: Verification, console: Console) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    for check in found.checks:
        state, style = STATES[check.holds]
        table.add_row(Text(state, style=style), Text(safe.clean(check.name)), Text(safe.clean(check.detail)))
    console.print(Text(safe.clean(_first_line(found)), style="bold"))
    console.print(table)
    if found.notes:
        console.print("\nA reader should know:")
    for note in found.notes:
        console.print(Text(f"  {safe.clean(note)}"))
