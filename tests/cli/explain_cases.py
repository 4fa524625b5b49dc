"""What the tests of explain share with others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study.designs import variants_of
from tests.analyse.factory import a_run, a_study, records_of

Stored = Callable[[str, int], None]


def text(design: str, factors: int) -> str:
    lines = "".join(f'"config.f{index}" = [0, 1]\n' for index in range(factors))
    head = f'engine = "firebird@5"\ndesign = "{design}"\nblocks = 2\n[workload]\nname = "tpcb"\n'
    if design != "list":
        return f"{head}[factors]\n{lines}"
    variants = []
    for moved in range(factors + 1):
        levels = ", ".join(f'"config.f{index}" = {int(index < moved)}' for index in range(factors))
        name = moved or "baseline"
        variants.append(f'[[variants]]\nname = "{name}"\nlevels = {{ {levels} }}\n')
    return head + "".join(variants)


@pytest.fixture
def stored(homes: Path) -> Stored:
    """Puts a run of a design with so many factors into the store; the first one doubles the speed."""

    def put(design: str, factors: int) -> None:
        run = a_run_of(design, factors)
        study = study_of(run)
        names = [variant.name for variant in variants_of(study) if variant.levels["config.f0"]]
        with Store(store_url()) as store:
            store.add_run(run)
            for record in records_of(study, dict.fromkeys(names, 2.0), trial_sd=0.001):
                store.add_record(record.model_copy(update={"run": run.run}))

    return put


def a_run_of(design: str, factors: int) -> Run:
    changed = {"run": "gap", "study_text": text(design, factors), "blocks": 2, "seed": 1}
    return a_run(a_study()).model_copy(update=changed)
