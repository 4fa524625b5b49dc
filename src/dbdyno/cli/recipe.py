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
from dbdyno.deploy.deployment import Deployment
from dbdyno.deploy.evidence import evidence_page
from dbdyno.deploy.files import (
    RecipeFile,
    ansible_role,
    by_hand,
    files_beside,
    files_for_host,
    read_recipe_folder,
    require_absent,
    tuned_profile,
    write_recipe_folder,
)
from dbdyno.deploy.made import (
    Contents,
    build_with_key,
    chosen_variant,
    deployment_of,
    measured_record,
    production_of,
)
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine
from dbdyno.errors import UserError
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.layers.source import key_in
from dbdyno.prepare_run.stored_run import analysis_of
from dbdyno.prepare_run.stored_study import require_measured
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.report.words import safe
from dbdyno.study.designs import of_build

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
        deployment, engine, build = _made(opened, found, variant, any_verdict)
    given = {"service": service, "configuration": configuration and configuration.rstrip("/")}
    given = {name: value for name, value in given.items() if value is not None}
    deployment = deployment.but(**given, whole=whole)
    files = _files(deployment, engine, build, also)
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


def _made(store: Store, run: Run, name: str | None, any_verdict: bool) -> tuple[Deployment, Engine, Contents]:
    """The recipe, and the files of its build."""
    analysis, records = analysis_of(store, run), store.records(run.run)
    if name is not None:
        name = chosen([each.name for each in analysis.variants], name)
    variant = chosen_variant(analysis, name, any_verdict)
    if ENGINE_FACTOR in variant.changed:
        told = f"{safe.clean(variant.name)} runs another engine than the baseline, which no recipe installs"
        hint = "upgrade the server, and take the recipe of a run whose baseline is that engine"
        raise UserError(told, hint)
    engine = registry.engine(analysis.study.engine.engine)
    deployment = deployment_of(analysis, records, variant, engine)
    levels = {**analysis.study.settings, **variant.levels}
    key = key_in(measured_record(records, variant).evidence)
    build = build_with_key(engine, levels, key, analysis.study.folder)
    if build is None:
        return deployment, engine, {}
    facts = build[0].but(changed=any(map(of_build, variant.changed)))
    return deployment.but(build=facts), engine, build[1]


def _files(
    deployment: Deployment, engine: Engine, build: Contents, also: tuple[str, ...]
) -> list[RecipeFile]:
    production = production_of(engine)
    for_host = files_for_host(deployment, production)
    evidence = evidence_page(deployment, by_hand(deployment, for_host), engine.title)
    files = [*for_host, *files_beside(deployment, production, for_host)]
    files += [
        RecipeFile("EVIDENCE.md", evidence.encode()),
        *(RecipeFile(name, text) for name, text in build.items()),
    ]
    if TUNED in also:
        files += tuned_profile(deployment)
    if ANSIBLE in also:
        files += ansible_role(for_host, deployment.service)
    return files


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
        cells = (finding.factor, finding.wanted, finding.found)
        table.add_row(state, *(Text(safe.clean(cell)) for cell in cells))
    console.print(table)
    _print_lines("Why:", [f"{one.factor}: {one.reason}" for one in found.findings if one.reason], console)
    different = [
        f"{each.factor}: measured with {each.wanted}, here {each.found}"
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
