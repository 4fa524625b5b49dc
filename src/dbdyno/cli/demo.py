"""`dyno demo`: the first study from beginning to end, wherever Dyno is installed."""

from __future__ import annotations

import click

from dbdyno.begin.examples import DEMO, study_of
from dbdyno.begin.study_file import study_at
from dbdyno.cli import run
from dbdyno.cli.options import mirror_option
from dbdyno.cli.terminal import tell
from dbdyno.engines import registry


@click.command()
@mirror_option
def command(mirror: str) -> None:
    """Carry out a first study in less than three minutes: Firebird embedded, no server, no root.

    What the engine lacks is fetched into Dyno's own cache first. `dyno init --example quickstart` writes the
    same study as a file of yours, to change it.
    """
    path = study_of(DEMO)
    engine = study_at(path).engine
    registry.engine(engine.engine).obtaining.fetch(engine.version, mirror, tell)
    run.command.main([str(path)], prog_name="dyno run", standalone_mode=False)
