"""What the report says of how its numbers were made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbdyno.analyse.model import Analysis
from dbdyno.driver.link import LoadHost
from dbdyno.frozen import Level
from dbdyno.records.record import Record
from dbdyno.report.words.method import method_text
from tests.analyse.factory import a_study, records_of
from tests.load_hosts import make_load_host, reading
from tests.report.cases import CASES, analysed


def with_reset(analysis: Analysis, reset: Callable[[int], dict[str, Level]]) -> Analysis:
    """The analysis with records that tell how the data of each block came back."""
    trials = tuple(
        trial.model_copy(
            update={"record": trial.record.model_copy(update={"reset": reset(trial.record.block)})}
        )
        for trial in analysis.trials
    )
    return analysis.model_copy(update={"trials": trials})


@pytest.mark.parametrize(("images", "said"), [(1, "Data: made once,"), (2, "pairs of blocks took 2 copies")])
def test_a_report_says_how_many_images_it_rests_on(images: int, said: str) -> None:
    analysis = with_reset(CASES["guards"](), lambda block: {"image": block % images})
    [line] = [line for line in method_text(analysis) if line.startswith("Data:")]
    assert said in line


def test_a_report_names_whose_interval_is_over_images() -> None:
    analysis = with_reset(CASES["guards"](), lambda block: {"image": block % 6})
    [line] = [line for line in method_text(analysis) if line.startswith("Data:")]
    assert "took 6 copies" in line and line.endswith("of none here.")
    first, second, *others = analysis.variants
    assert second.effect is not None
    second = second.but(effect=second.effect.but(images=6))
    [line] = [
        line
        for line in method_text(analysis.but(variants=(first, second, *others)))
        if line.startswith("Data:")
    ]
    assert line.endswith(f"of {second.name} here.")


def test_records_without_images_say_nothing_of_them() -> None:
    assert not [line for line in method_text(CASES["guards"]()) if line.startswith("Data:")]


@pytest.mark.parametrize(
    ("short", "said"),
    [(lambda trial: False, "checked in 12 of 12"), (lambda trial: trial < 5, "checked in 7 of 12"),
     (lambda trial: True, "not checked; none of 12")],
)  # fmt: skip
def test_a_report_says_how_many_trials_were_checked_for_a_steady_state(
    short: Callable[[int], bool], said: str
) -> None:
    """A trial that is too short for it has no steady state, and says nothing of one."""
    analysis = analysed(a_study(), records_of(a_study()))
    trials = tuple(
        trial.model_copy(update={"steady": None}) if short(number) else trial
        for number, trial in enumerate(analysis.trials)
    )
    [line] = [
        line
        for line in method_text(analysis.model_copy(update={"trials": trials}))
        if line.startswith("Steady state:")
    ]
    assert said in line


def test_a_report_says_where_its_load_came_from() -> None:
    analysis = CASES["guards"]()
    assert not [line for line in method_text(analysis) if line.startswith("Load:")]
    host = make_load_host(readings=(reading(200.0, within_us=30.0, offset_s=-0.25),))
    trials = tuple(
        trial.model_copy(update={"record": _from(host, trial.record)}) for trial in analysis.trials
    )
    [line] = [
        line
        for line in method_text(analysis.model_copy(update={"trials": trials}))
        if line.startswith("Load:")
    ]
    driven = sum(trial.record.tally is not None for trial in trials)
    assert line == (
        "Load: from load1 (4 CPUs), not encrypted. A round trip of the network took 200 us"
        f" (median of {driven} trials), and 400 us at the longest. The clocks were apart by 250 ms at most,"
        " known to within 30 us. All times are by the clock of the server's host."
    )


def _from(host: LoadHost, record: Record) -> Record:
    phases = tuple(phase.but(load_hosts=(host,)) for phase in record.phases)
    return record.model_copy(update={"phases": phases})
