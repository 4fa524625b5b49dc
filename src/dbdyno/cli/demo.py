"""`dyno demo`: the first study from beginning to end, wherever Dyno is installed."""

from __future__ import annotations

import math

import click

from dbdyno.begin.examples import DEMO, study_of
from dbdyno.begin.study_file import study_at
from dbdyno.cli import run
from dbdyno.cli.options import WaitingCommand, mirror_option, wait_option
from dbdyno.cli.patience import patient
from dbdyno.cli.preferences import FOREVER
from dbdyno.engines import registry


@click.command(cls=WaitingCommand)
@mirror_option
@wait_option
def command(mirror: str, wait_s: float) -> None:
    """Carry out a first study in less than three minutes: Firebird embedded, no server, no root.

    What the engine lacks is fetched into Dyno's own cache first. `dyno init --example quickstart` writes the
    same study as a file of yours, to change it.
    """
    path = study_of(DEMO)
    engine = study_at(path).engine
    with patient() as patience:
        registry.engine(engine.engine).obtaining.fetch(engine.version, mirror, patience.tell)
    wait = FOREVER if math.isinf(wait_s) else f"{wait_s:g}s"
    run.command.main([str(path), f"--wait={wait}"], prog_name="dyno run", standalone_mode=False)
