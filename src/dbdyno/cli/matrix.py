"""`dyno matrix`: the same variants under several loads, a run for each."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.analyse.matrix import matrix, unlike
from dbdyno.begin.stored_run import analysed
from dbdyno.begin.stored_study import study_of
from dbdyno.begin.timed import require_timed
from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import format_of, format_options
from dbdyno.cli.options import store_option
from dbdyno.cli.patience import waiting
from dbdyno.errors import UserError
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import plural


@click.command()
@click.argument("runs", nargs=-1, required=True)
@format_options
@store_option
def command(
    runs: tuple[str, ...], form: str | None, as_json: bool, output: Path | None, store: str | None
) -> None:
    """Put runs of the same variants under different loads beside each other: what does each gain where?

    Each of the RUNS has a baseline of its own, and ratios are variant / baseline of the same run. The report
    has a column for each load, and says which cell is the best and which is the worst.
    """
    form = format_of(form, as_json, output)
    with Store(store_url(store)) as opened:
        found = [opened.run(name) for name in runs]
        for run in found:
            require_timed(study_of(run), "a matrix")
        with waiting(f"analysing {plural(len(found), 'run')}"):
            analyses = [analysed(study_of(run), run, opened.records(run.run)) for run in found]
    names = [run.run for run in found]
    if len(set(names)) < len(names):
        raise UserError("a run is named twice", "name each run once; see: dyno runs")
    if difference := unlike(analyses):
        raise UserError(
            f"these runs are not of the same variants: {difference}",
            "name runs whose studies differ in the workload alone",
        )
    result = matrix(analyses)
    deliver("matrix", result, form, output)
