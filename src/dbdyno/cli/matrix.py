"""`dyno matrix`: the same variants under several loads, a run for each."""

from __future__ import annotations

from pathlib import Path

from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import format_of
from dbdyno.cli.patience import waiting
from dbdyno.errors import UserError
from dbdyno.findings.matrix import matrix, unlike
from dbdyno.prepare_run.adapted import require_timed
from dbdyno.prepare_run.stored_run import analysed
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import plural


def main(
    runs: tuple[str, ...], form: str | None, as_json: bool, output: Path | None, store: str | None
) -> None:
    form = format_of(form, as_json, output)
    with Store(store_url(store)) as opened:
        found = [opened.run(name) for name in runs]
        for run in found:
            require_timed(study_of(run), "dyno matrix")
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
