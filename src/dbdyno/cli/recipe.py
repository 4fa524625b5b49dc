"""`dyno recipe`: a variant as a folder that puts it into production, and a server held against it."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.begin.stored_run import analysis_of
from dbdyno.begin.stored_study import require_measured
from dbdyno.cli.formats import write
from dbdyno.cli.options import json_option, store_option
from dbdyno.cli.server_url import VARIABLE, ServerUrl
from dbdyno.cli.stored_run import chosen, run_to_read
from dbdyno.cli.terminal import terminal
from dbdyno.deploy import ansible, tuned
from dbdyno.deploy.built import Contents, build_of
from dbdyno.deploy.check import Checked, State, checked
from dbdyno.deploy.deployment import Deployment
from dbdyno.deploy.evidence import page
from dbdyno.deploy.files import File, by_hand, files_beside, files_for_host
from dbdyno.deploy.folder import read_folder, require_free, write_folder
from dbdyno.deploy.made import chosen_variant, deployment_of, measured_record, production_of
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine
from dbdyno.errors import UserError
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.layers.source import key_in
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import LAST, Store
from dbdyno.report.words import safe
from dbdyno.study.builds import of_build

TUNED, ANSIBLE = "tuned", "ansible"
MISSING = {
    TUNED: "no profile of TuneD: the recipe sets no value of the kernel",
    ANSIBLE: "no role of Ansible: no file of the recipe has a place on a host",
}
STYLES = {State.IN_EFFECT: "green", State.DIFFERS: "bold red", State.UNKNOWN: "yellow"}
DIFFERS_CODE = 1


class _RunOrVerb(click.Group):
    """What is no verb is a run, of which the recipe is written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        asks_help = bool(args) and args[0] in ctx.help_option_names
        if not asks_help and (not args or args[0].startswith("-")):
            args = [LAST, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return "write", self.commands["write"], args


@click.group(cls=_RunOrVerb)
def command() -> None:
    """Write a variant of a finished run as a recipe for production, or compare a running server with one.

    \b
      dyno recipe RUN                        the same as: dyno recipe write RUN
      dyno recipe check FOLDER --url URL     which levels are not in effect?
    """


@command.command("write")
@click.argument("run", default=LAST)
@click.option(
    "--variant", help="Its name or its number in the report. Default: the fastest of those that helped."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="The folder to write. Default: recipe-RUN, here."
)
@click.option("--any-verdict", is_flag=True, help="Take also a variant that is not shown to be faster.")
@click.option("--whole", is_flag=True, help="Write also the levels that variant and baseline share.")
@click.option("--service", help="The systemd unit of the server. Default: that of Debian's package.")
@click.option(
    "--configuration", help="The folder of the server's settings. Default: that of Debian's package."
)
@click.option(
    "--with",
    "also",
    type=click.Choice([TUNED, ANSIBLE]),
    multiple=True,
    help="Write also a profile for TuneD, or a role for Ansible.",
)
@store_option
def write_command(
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
    """Write a variant as a folder for production.

    Without RUN the latest run is taken. EVIDENCE.md in the folder says what each change gains and costs.
    """
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
        _require_finished(opened, found)
        folder = output or Path(f"recipe-{found.run}")
        require_free(folder)
        deployment, engine, build = _made(opened, found, variant, any_verdict)
    given = {"service": service, "configuration": configuration and configuration.rstrip("/")}
    given = {name: value for name, value in given.items() if value is not None}
    deployment = deployment.but(**given, whole=whole)
    files = _files(deployment, engine, build, also)
    write_folder(folder, files)
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
    build = build_of(engine, levels, key, analysis.study.folder)
    if build is None:
        return deployment, engine, {}
    facts = build[0].but(changed=any(map(of_build, variant.changed)))
    return deployment.but(build=facts), engine, build[1]


def _files(deployment: Deployment, engine: Engine, build: Contents, also: tuple[str, ...]) -> list[File]:
    production = production_of(engine)
    for_host = files_for_host(deployment, production)
    evidence = page(deployment, by_hand(deployment, for_host), engine.title)
    files = [*for_host, *files_beside(deployment, production, for_host)]
    files += [File("EVIDENCE.md", evidence.encode()), *(File(name, text) for name, text in build.items())]
    if TUNED in also:
        files += tuned.profile(deployment)
    if ANSIBLE in also:
        files += ansible.role(for_host, deployment.service)
    return files


def _tell_missing(also: tuple[str, ...], files: list[File]) -> None:
    """Names the forms that were asked for and have nothing to hold."""
    for form in also:
        if not any(file.name.startswith(f"{form}/") for file in files):
            click.echo(MISSING[form], err=True)


@command.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--url",
    type=ServerUrl(),
    envvar=VARIABLE,
    required=True,
    help="The URL of the server, as for `dyno load`. Default: DYNO_URL.",
)
@click.option(
    "--pid",
    "process_id",
    type=click.IntRange(1),
    help="The process of the server, if the URL does not lead to it.",
)
@json_option
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Also write JSON into this file.")
def check_command(folder: Path, url: str, process_id: int | None, as_json: bool, output: Path | None) -> None:
    """Say which levels of a recipe are not in effect on a running server.

    FOLDER is the folder of the recipe. The exit code is 1 if a level differs.
    """
    deployment = read_folder(folder)
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
