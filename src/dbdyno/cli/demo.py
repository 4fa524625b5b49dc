"""`dyno demo`: the first study from beginning to end, wherever Dyno is installed."""

from __future__ import annotations

import math
import sys

import click

from dbdyno.cli.patience import patient
from dbdyno.cli.preferences import FOREVER
from dbdyno.cli.verbs.measure import run
from dbdyno.engines import registry
from dbdyno.prepare_run.first_study import DEMO, study_file_named
from dbdyno.prepare_run.study_here import study_at

NEXT = """
What next:
  dyno report --format html -o report.html    the same run as a page, with all evidence
  dyno init mariadb -o mine.toml              a study of your own, to change and dyno run"""


def main(mirror: str, wait_s: float) -> None:
    """Measures each variant until its verdict stands, in as many blocks as the study says at most."""
    path = study_file_named(DEMO)
    study = study_at(path)
    with patient() as patience:
        registry.engine(study.engine.engine).obtaining.fetch(study.engine.version, mirror, patience.tell)
    wait = FOREVER if math.isinf(wait_s) else f"{wait_s:g}s"
    asked = [str(path), "--until=margin", f"--blocks={study.blocks}", f"--wait={wait}"]
    try:
        run.main(asked, prog_name="dyno run", standalone_mode=False)
    except SystemExit as ended:
        if not ended.code:
            click.echo(NEXT)
        sys.exit(ended.code)
