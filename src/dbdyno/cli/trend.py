"""`dyno trend`: one study over many of its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dbdyno.analyse import Axis
from dbdyno.analyse.trend import Omission, trend
from dbdyno.cli.compare import require_one_study
from dbdyno.cli.deliver import deliver
from dbdyno.cli.formats import format_of
from dbdyno.cli.patience import waiting
from dbdyno.errors import UserError
from dbdyno.findings.trend import omitted
from dbdyno.prepare_run.stored_run import latest, on_axis, sorted_out, with_ratio
from dbdyno.prepare_run.stored_study import asked_of, require_measured
from dbdyno.prepare_run.study_here import catalogue
from dbdyno.records.place import store_url
from dbdyno.records.run import RunSummary
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import plural
from dbdyno.study import Study, read_study

STUDY_ENDING = ".toml"


def main(
    named: tuple[str, ...],
    by: str,
    limit: int,
    age_s: float | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    store: str | None,
) -> None:
    form = format_of(form, as_json, output)
    with Store(store_url(store)) as opened:
        study, found, left_out = _runs_of(opened, named)
        found = latest(found, age_s, limit, left_out)
        with waiting(f"reading {plural(len(found), 'run')}"):
            shown = on_axis(Axis(by), with_ratio(opened, found, left_out), left_out)
        place = opened.place
    if not shown:
        missing = omitted(+left_out)
        raise UserError(
            f'no finished run of "{study.title}" with a ratio in {place}',
            f"left out: {missing}" if missing else "dyno run STUDY",
        )
    made = trend(study, shown, left_out, Axis(by))
    deliver("trend", made, form, output)


def _runs_of(store: Store, named: Sequence[str]) -> tuple[Study, list[RunSummary], Counter[Omission]]:
    """The study that was named, its finished runs, the latest first, and what is left out of them. Raises
    UserError where the names do not belong together."""
    summaries = store.runs()
    if named[0].endswith(STUDY_ENDING):
        if named[1:]:
            raise UserError("a study was named, and something beside it", "give one study, or runs alone")
        study = read_study(named[0], catalogue(ask_engines=False))
    else:
        first, *others = [store.run(name) for name in named]
        for one in (first, *others):
            require_measured(one)
        for other in others:
            require_one_study(first, other)
        study = asked_of(first)
        if others:
            chosen = {run.run for run in (first, *others)}
            summaries = [summary for summary in summaries if summary.run.run in chosen]
    return study, *sorted_out(study, summaries)
