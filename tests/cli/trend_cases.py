"""What the tests of trend share with others."""

from __future__ import annotations

import time
from typing import Any

from dbdyno.prepare_run.study_here import catalogue
from dbdyno.records.place import store_url
from dbdyno.records.run import ComparisonRun, ImportedRun, of_kind
from dbdyno.records.store import Store
from dbdyno.study import parse_study
from tests.analyse.factory import a_run, records_of
from tests.study_texts import STUDY

DAY_S = 86_400.0


NOW = time.time()


def keep(
    name: str, text: str = STUDY, days_ago: float = 1.0, path: str = "study.toml", finished: bool = True,
    ratio: float = 1.5, kind: type[ComparisonRun] | type[ImportedRun] = ComparisonRun, **of_run: object,
) -> None:  # fmt: skip
    """A run of a study as it lies in the store."""
    study = parse_study(text.encode(), catalogue(ask_engines=False), path).model_copy(update={"blocks": 6})
    own: dict[str, Any] = {"run": name, "created_unix_s": NOW - days_ago * DAY_S, "blocks": 6, **of_run}
    run = of_kind(kind, a_run(study), **own)
    with Store(store_url()) as store:
        store.add_run(run)
        for record in records_of(study, {"config.synchronous=OFF": ratio}, seed=len(name)):
            store.add_record(record.model_copy(update={"run": name}))
        if finished:
            store.finish_run(name)
