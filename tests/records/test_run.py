"""A stored run is of the kind that it was, whether it says so or was stored before runs did."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from dbdyno.records.run import (
    Brought,
    ComparisonRun,
    ImportedRun,
    Run,
    SearchRun,
    SoakRun,
    of_kind,
    run_of_document,
)
from dbdyno.study.soak import Soak
from tests.analyse.factory import a_run, a_study

COMPARISON = a_run(a_study()).but(sequential=True, reference="reference-example")
SEARCH = of_kind(SearchRun, COMPARISON, budget_s=60.0, study_text='title = "?"\ndesign = "search"\n')
SOAK = of_kind(SoakRun, COMPARISON, soak=Soak(clients=(8, 16)))
LOGS = Brought(tool="pgbench", title="Logs", variants=("a", "b"), response="throughput", margin=0.02)
IMPORTED = of_kind(ImportedRun, COMPARISON, brought=LOGS, host={})
RUNS = [COMPARISON, SEARCH, SEARCH.but(room_bytes=1 << 30, study_text=""), SOAK, IMPORTED]


def without_kind(run: Run) -> str:
    """As it was stored before runs said their kind, with null for what the first of those wrote so."""
    held = json.loads(run.model_dump_json(exclude={"kind"}))
    return json.dumps(dict.fromkeys(("reference", "soak", "room_bytes", "brought", "counting")) | held)


@pytest.mark.parametrize("stored", [lambda run: run.model_dump_json(), without_kind])
@pytest.mark.parametrize("run", RUNS, ids=lambda run: type(run).__name__)
def test_a_run_is_read_as_what_it_was(run: Run, stored: Callable[[Run], str]) -> None:
    read = run_of_document(stored(run))
    assert read == run and type(read) is type(run)


def test_a_study_of_a_search_makes_no_search_of_the_reference_or_of_the_soak_of_its_baseline() -> None:
    again = of_kind(ComparisonRun, SEARCH, budget_s=None, run="reference-example")
    for run in (again, SOAK.but(study_text=SEARCH.study_text)):
        assert type(run_of_document(without_kind(run))) is type(run)


def test_a_comparison_with_a_budget_is_no_search() -> None:
    told = 'title = "Does design = \\"search\\" help?"\n'
    for text in (told, "", 'design = "search'):
        run = COMPARISON.but(budget_s=60.0, study_text=text)
        assert run_of_document(without_kind(run)) == run


@pytest.mark.parametrize("change", [{"kind": "dream"}, {"kind": "soak"}, {"room_bytes": 1}, {"later": 1}])
def test_what_does_not_go_with_its_kind_is_refused(change: dict[str, object]) -> None:
    document = json.loads(COMPARISON.model_dump_json()) | change
    with pytest.raises(ValidationError):
        run_of_document(json.dumps(document))
