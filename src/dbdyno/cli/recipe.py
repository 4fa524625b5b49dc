"""`dyno recipe`: a variant as a folder that puts it into production, and a server held against it."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.formats import write
from dbdyno.cli.stored_run import chosen, run_to_read
from dbdyno.cli.terminal import terminal
from dbdyno.cli.verbs.keep import ANSIBLE, TUNED
from dbdyno.deploy.check import Checked, State, checked
from dbdyno.deploy.files import RecipeFile, read_recipe_folder, require_absent, write_recipe_folder
from dbdyno.deploy.made import recipe_files, recipe_made
from dbdyno.engines import registry
from dbdyno.errors import UserError
from dbdyno.frozen import level_shown
from dbdyno.prepare_run.stored_run import analysis_of
from dbdyno.prepare_run.stored_study import require_measured
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.report.words import safe

MISSING = {
    TUNED: "no profile of TuneD: the recipe sets no value of the kernel",
    ANSIBLE: "no role of Ansible: no file of the recipe has a place on a host",
}
STYLES = {State.IN_EFFECT: "green", State.DIFFERS: "bold red", State.UNKNOWN: "yellow"}
DIFFERS_CODE = 1


def write_recipe(
    run: str,
    variant: str | None,
    output: Path | None,
    any_verdict: bool,
    whole: bool,
    service: str | None,
    configuration: str | None,
    also: tuple[str, ...],
    store: str | None,
) -> None:
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
        _require_finished(opened, found)
        folder = output or Path(f"recipe-{found.run}")
        require_absent(folder)
        analysis, records = analysis_of(opened, found), opened.records(found.run)
    if variant is not None:
        variant = chosen([each.name for each in analysis.variants], variant)
    made = recipe_made(analysis, records, variant, any_verdict)
    given = {"service": service, "configuration": configuration and configuration.rstrip("/")}
    given = {name: value for name, value in given.items() if value is not None}
    deployment = made.deployment.but(**given, whole=whole)
    files = recipe_files(deployment, made.engine, made.build, tuned=TUNED in also, role=ANSIBLE in also)
    write_recipe_folder(folder, files)
    _tell_missing(also, files)
    click.echo(f"{folder}: {safe.clean(deployment.variant)}")
    if deployment.given_up:
        click.echo(f"  it gives up {deployment.promises}: see the top of EVIDENCE.md", err=True)
    click.echo(f"  read {folder}/EVIDENCE.md, then on the server's host: {folder}/apply", err=True)


def _require_finished(store: Store, run: Run) -> None:
    """Raises UserError for a run that has trials left, and for one whose setups Dyno does not know."""
    require_measured(run)
    if run.run in {each.run for each in store.unfinished_runs()}:
        raise UserError(f"run {run.run} is not finished", f"go on with it: dyno run --resume {run.run}")


def _tell_missing(also: tuple[str, ...], files: list[RecipeFile]) -> None:
    """Names the forms that were asked for and have nothing to hold."""
    for form in also:
        if not any(file.name.startswith(f"{form}/") for file in files):
            click.echo(MISSING[form], err=True)


def check(folder: Path, url: str, process_id: int | None, as_json: bool, output: Path | None) -> None:
    deployment = read_recipe_folder(folder)
    found = checked(deployment, registry.engine(deployment.engine), url, process_id)
    if output is not None:
        write(output, safe.json_text(found) + "\n")
    if as_json:
        click.echo(safe.json_text(found))
    else:
        _print(found, terminal())
    sys.exit(DIFFERS_CODE if found.differing else 0)


def _print(found: Checked, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for head in ("", "level", "recipe", "here"):
        table.add_column(head, overflow="fold")
    for finding in found.findings:
        state = Text(finding.state.value, style=STYLES[finding.state])
        found_here = "" if finding.state is State.UNKNOWN else level_shown(finding.found)
        cells = (finding.factor, level_shown(finding.wanted), found_here)
        table.add_row(state, *(Text(safe.clean(cell)) for cell in cells))
    console.print(table)
    _print_lines("Why:", [f"{one.factor}: {one.reason}" for one in found.findings if one.reason], console)
    different = [
        f"{each.factor}: measured with {level_shown(each.wanted)}, here {level_shown(each.found)}"
        for each in found.conditions
        if each.state is State.DIFFERS
    ]
    title = "The gain was measured with other levels of these, which the recipe leaves alone:"
    _print_lines(title, different, console)
    counts = {state: sum(each.state is state for each in found.findings) for state in State}
    told = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    console.print(f"\n{safe.clean(found.version)} beside run {found.run}: {told}", markup=False)


def _print_lines(title: str, lines: list[str], console: Console) -> None:
    if lines:
        console.print(f"\n{title}")
    for line in lines:
        console.print(Text(f"  {safe.clean(line)}"))
