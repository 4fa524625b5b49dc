"""A soak goes up the ladder, goes on where it was cut short, and leaves out the rungs above a fall."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.kinds.registry import ask_for
from dbdyno.plan.soak import expected_s
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import SoakRun, of_kind
from dbdyno.study.soak import Soak
from dbdyno.study.trials import Trial, rung_of
from tests.analyse.factory import a_run, a_study, ended, records_of

SOAK = Soak(clients=(1, 2, 3), duration_s=10.0, disturb=())
STUDY = a_study(blocks=3)
RUN = of_kind(SoakRun, a_run(STUDY), soak=SOAK)
OTHER = "config.page_cache=64k"


def next_trials(records: Sequence[Record]) -> Sequence[Trial]:
    return ask_for(RUN)(STUDY, RUN, records)


def test_each_rung_holds_every_variant_with_the_phases_of_its_clients() -> None:
    records = records_of(STUDY)
    for rung in range(3):
        trials = next_trials([record for record in records if record.block < rung])
        assert {trial.variant.name for trial in trials} == {"baseline", OTHER}
        assert {trial.block for trial in trials} == {rung}
        assert all(trial.phases == rung_of(SOAK, STUDY, rung) for trial in trials)
    assert next_trials(records) == ()


def test_a_soak_that_was_cut_short_goes_on_with_what_is_not_whole() -> None:
    records = records_of(STUDY)
    first, second = (record for record in records if record.block == 0)
    assert [trial.index for trial in next_trials([first])] == [second.trial]
    cut = second.but(whole=False)
    assert [trial.index for trial in next_trials([first, cut])] == [second.trial]


def test_a_variant_that_fell_climbs_no_further_and_the_others_do() -> None:
    records = records_of(STUDY, changes={OTHER: ended(Outcome.BROKEN, "it died")})
    lowest = [record for record in records if record.block == 0]
    assert {trial.variant.name for trial in next_trials(lowest)} == {"baseline"}
    fallen = [record.but(outcome=Outcome.FAILED) for record in lowest]
    assert next_trials(fallen) == ()


def test_the_time_is_that_of_all_rungs_and_variants() -> None:
    each_s = sum(phase.takes_s for phase in rung_of(SOAK, STUDY, 0))
    assert expected_s(SOAK, STUDY, 2.0) == 2 * 3 * (each_s + 2.0)
