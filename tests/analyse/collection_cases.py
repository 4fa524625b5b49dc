"""What the tests of collection share with others."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.analyse import Analysis
from dbdyno.analyse.museum import Museum, collection, run_of_museum
from dbdyno.findings import analyse
from tests.analyse.factory import (
    STARTED_UNIX_S,
    Change,
    a_run,
    a_study,
    records_of,
)

CACHE = {"config.page_cache": ["2k", "64k"]}


LEVEL = "config.page_cache=64k"


def ran(day: int, ratio: float = 1.0, change: Change | None = None) -> Analysis:
    """A run of that day, in which the cache of 64k was so much faster, or ended otherwise."""
    study = a_study(CACHE)
    run = a_run(study).but(run=f"day-{day}", created_unix_s=STARTED_UNIX_S + 86_400.0 * day)
    records = records_of(study, {LEVEL: ratio}, {LEVEL: change} if change else None, seed=day)
    return analyse(study, run, [record.but(run=run.run) for record in records])


def museum_of(analyses: Sequence[Analysis], unread: Sequence[str] = ()) -> Museum:
    """The museum of runs that were analysed."""
    return collection([run_of_museum(one) for one in analyses], unread)
