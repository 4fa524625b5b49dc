"""`dyno tune`: searches for the setup to deploy, confirms it, and takes back what does not contribute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbdyno.begin.checked import require_sound
from dbdyno.begin.on_other import study_on
from dbdyno.begin.study_file import study_at
from dbdyno.begin.suggested import suggested
from dbdyno.cli import run as run_verb
from dbdyno.cli.exit_codes import fail_on_option
from dbdyno.cli.formats import verdict_format_options
from dbdyno.cli.options import (
    WaitingCommand,
    budget_option,
    calibration_option,
    devices_option,
    name_option,
    note_option,
    paths_option,
    quiet_option,
    refuse_both,
    store_option,
    wait_option,
)
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.host.allowed import Allowed
from dbdyno.study import Design


@click.command(cls=WaitingCommand)
@click.argument("study", type=click.Path(path_type=Path))
@budget_option
@click.option(
    "--suggest",
    is_flag=True,
    help="Run the baseline once and print the [factors] that this load depends on, for the study.",
)
@click.option(
    "--on",
    "other",
    metavar="WORKLOAD",
    help="Measure the winner of the study's latest search on another workload, for which it was not tuned. "
    'Options of it follow its name: --on "point_select table_size=100000 clients=16".',
)
@click.option(
    "--fleet",
    metavar="HOSTS|tag:TAG",
    help="Confirm the winner of the study's latest search on these hosts of the store's fleet: it and the "
    "baseline in all blocks on each. With --on, on that workload.",
)
@click.option("--seed", type=int, help="Draw the candidates from this seed, not the study's or a random one.")
@name_option
@note_option
@calibration_option
@devices_option
@paths_option
@wait_option
@quiet_option
@store_option
@verdict_format_options
@fail_on_option
@click.pass_context
def command(
    context: click.Context,
    /,
    study: Path,
    suggest: bool,
    other: str | None,
    fleet: str | None,
    budget_s: float | None,
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    wait_s: float,
    store: str | None,
    **options: Any,
) -> None:
    """Search for the best variant of STUDY, whose design is `search`, in the time that it gives.

    The best candidates are confirmed in blocks of their own, and only that gives a verdict. Then each change
    of the winner is taken back in turn, so that it keeps the changes that carry its gain and no others.
    Finished trials are kept whatever happens: `dyno run --resume` goes on where it stopped.
    """
    allowed = Allowed.of(devices, allowed_paths)
    read = study_at(study, allowed=allowed)
    if read.design is not Design.SEARCH:
        raise UserError(
            f"{study} has the design `{read.design}`, which searches nothing",
            'write design = "search", or carry it out: dyno run STUDY',
        )
    refuse_both("--on", other, budget=budget_s, suggest=suggest or None)
    refuse_both("--fleet", fleet, budget=budget_s, suggest=suggest or None)
    refuse_both("--suggest", suggest or None, budget=budget_s)
    if suggest:
        require_sound(read, tell, allowed=allowed)
        click.echo(suggested(read, allowed, wait_s, tell), nl=False)
        return
    if fleet is not None and other is None:
        # The winner is measured on its own load.
        other = read.workload.name
    context.invoke(
        run_verb.command,
        study=study_on(study, read, other, store, tell) if other is not None else study,
        fleet=fleet,
        budget_s=budget_s,
        devices=devices,
        allowed_paths=allowed_paths,
        wait_s=wait_s,
        store=store,
        **options,
    )
