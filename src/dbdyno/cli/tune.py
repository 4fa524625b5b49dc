"""`dyno tune`: searches for the setup to deploy, confirms it, and takes back what does not contribute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbdyno.cli.options import refuse_both
from dbdyno.cli.terminal import tell
from dbdyno.cli.verbs.measure import run
from dbdyno.errors import UserError
from dbdyno.host.writers import Allowed
from dbdyno.kinds.search import study_on, suggested
from dbdyno.prepare_run.checked import require_sound
from dbdyno.prepare_run.study_here import study_at
from dbdyno.study import Design


def main(
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
        run,
        study=study_on(study, read, other, store, tell) if other is not None else study,
        fleet=fleet,
        budget_s=budget_s,
        devices=devices,
        allowed_paths=allowed_paths,
        wait_s=wait_s,
        store=store,
        **options,
    )
