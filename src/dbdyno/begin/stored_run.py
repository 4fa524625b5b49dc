"""The analysis of a run of the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from dbdyno.analyse import Analysis
from dbdyno.analyse.analysis import Given
from dbdyno.begin.kept_columns import given
from dbdyno.begin.losses import given_up_by, with_losses
from dbdyno.begin.stored_study import asked_of, require_speeds, study_of
from dbdyno.errors import UserError
from dbdyno.findings import analyse
from dbdyno.host.cache import Tell
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study import Design, Study


def analysis_of(store: Store, run: Run) -> Analysis:
    """The analysis of a run's records. Raises UserError where it has none yet, and for a soak."""
    require_speeds(run)
    return analysed(study_of(run), run, some_of(store.records(run.run), run))


def analysis_to_read(store: Store, run: Run) -> Analysis:
    """The same, but of a long run that is over its trials are read from the store while they are told."""
    require_speeds(run)
    study = study_of(run)
    if study.design is Design.SEARCH:
        # It looks at its records in many ways, and has few.
        return analysis_of(store, run)
    found = given(store, run)
    return analysed(study, run, found if isinstance(found, Given) else some_of(found, run))


def some_of(records: Sequence[Record], run: Run) -> Sequence[Record]:
    """The records of a run. Raises UserError where it has none yet."""
    if not records:
        raise UserError(f"run {run.run} has no trial yet", f"dyno run --resume {run.run}")
    return records


def analysed(study: Study, run: Run, records: Sequence[Record] | Given) -> Analysis:
    """The analysis of a run. Of a run that was stored without what its variants give up, it is looked up, and
    of a search, whose candidates nobody knows before."""
    if study.design is Design.SEARCH:
        # Here, because few runs search.
        from dbdyno.findings.searched import with_given_up

        return with_given_up(analyse(study, run, records), partial(given_up_by, study))
    return analyse(study, with_losses(study, run), records)


def tell_unknown(runs: Iterable[Run], tell: Tell) -> None:
    """Says of runs of earlier versions, which kept no files, that what these said is not known."""
    for run in runs:
        if run.files is not None or run.of_logs or not asked_of(run).names_files:
            continue
        told = f"run {run.run} was made by a Dyno that kept no files: whether it asked the same is not known"
        tell(told)
