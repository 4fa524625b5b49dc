"""The wall time of trials: the load apart from all else, and nothing counted twice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dbdyno.analyse import split as stages
from dbdyno.analyse.columns import OfRecords
from dbdyno.analyse.found import HostCondition, Overhead
from dbdyno.findings import analyse
from dbdyno.records.record import Outcome, Record
from tests.analyse.factory import a_run, a_study, ended, records_of


def records() -> list[Record]:
    study = a_study()
    return records_of(study, changes={"config.page_cache=64k": ended(Outcome.FAILED, "no luck")})


def overhead(records: Sequence[Record]) -> Overhead | None:
    columns = OfRecords(records)
    return stages.overhead(columns, columns.places)


def conditions(records: Sequence[Record]) -> tuple[HostCondition, ...]:
    columns = OfRecords(records)
    return stages.conditions(columns, columns.places)


def test_the_stages_come_in_their_order_and_add_up() -> None:
    found = overhead(records())
    assert found is not None
    assert [stage.name for stage in found.stages] == [
        "prepare", "verify", "load", "drive", "check", "record", "restore",
    ]  # fmt: skip
    assert sum(stage.share for stage in found.stages) == pytest.approx(1.0)
    assert sum(stage.median_s for stage in found.stages) == pytest.approx(found.trial_s)


def test_the_load_is_no_overhead() -> None:
    # 5 s of warm-up and 20 s measured, of 25.1 s that the stage took; 4.32 s in the other stages.
    found = overhead(records())
    assert found is not None
    seconds = {stage.name: stage.median_s for stage in found.stages}
    assert seconds["load"] == 25.0
    assert seconds["drive"] == pytest.approx(0.1)
    assert found.trial_s == pytest.approx(29.42)
    assert found.overhead_s == pytest.approx(4.42)
    assert found.overhead_share == pytest.approx(4.42 / 29.42)


def test_only_measured_trials_count() -> None:
    found = overhead(records())
    assert found is not None and found.trials == sum(r.outcome is Outcome.MEASURED for r in records())
    assert overhead([r for r in records() if r.outcome is Outcome.FAILED]) is None
    assert overhead([]) is None


def test_one_slow_trial_shows_in_the_longest_alone() -> None:
    first, *rest = [record for record in records() if record.outcome is Outcome.MEASURED]
    slow = first.but(stages_s={**first.stages_s, "prepare": 60.0})
    found = overhead([slow, *rest])
    assert found is not None
    prepare = found.stages[0]
    assert (prepare.median_s, prepare.longest_s) == (2.1, 60.0)


def test_conditions_are_read_from_what_trials_hold() -> None:
    found = {one.metric: one for one in conditions(records())}
    assert found.keys() == {"frequency_ghz", "steal_s"}
    assert found["frequency_ghz"].median == pytest.approx(2.6)
    steal = found["steal_s"]
    assert 0.0 <= steal.lowest <= steal.median <= steal.highest < 0.1 and steal.lowest < steal.highest


def test_an_analysis_holds_both() -> None:
    study = a_study()
    analysis = analyse(study, a_run(study), records())
    assert analysis.overhead == overhead(records())
    assert analysis.conditions == conditions(records())
