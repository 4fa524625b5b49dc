"""What a run says of its progress, while its trials run one by one and while the load goes round."""

from __future__ import annotations

from functools import partial
from itertools import count, groupby
from pathlib import Path

import click
import pytest

from dbdyno.analyse.elimination import candidates_of, ranked_candidates
from dbdyno.cli.progress import (
    BAR_COLUMNS,
    LINE_EVERY_S,
    STILL_EVERY_S,
    Live,
    OfReference,
    ProgressLines,
    TimeLeft,
)
from dbdyno.host.journal import open_journal
from dbdyno.kinds.search import Candidates
from dbdyno.plan.search.ask import next_block, trials_of
from dbdyno.prepare_run.estimate import counted_s
from dbdyno.records.place import store_url
from dbdyno.records.record import Record, Recovery, Stage
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import about_text
from dbdyno.study import Arrangement, Study
from dbdyno.study.designs import trial_count, trials_in_all
from dbdyno.study.soak import Act
from dbdyno.study.trials import COUNTED, NO_BLOCK, Phase, Purpose, Trial
from tests.analyse.factory import a_study, records_of
from tests.analyse.restarts_cases import LOST, record_of
from tests.fakes import Clock, carried_out, make_bench, make_run, make_study, make_trial
from tests.searches import a_search, listed, measured, ranged, two_changes_help
from tests.searches import carried_out as searched


def sliced(blocks: int = 1) -> Study:
    """Two servers beside each other, with two slices each."""
    return make_study(1, 2, blocks=blocks, arrangement=Arrangement.SIDE_BY_SIDE, slice_s=0.5)


def carry_out(study: Study, progress: ProgressLines | OfReference) -> list[Record]:
    with Store(store_url()) as store, open_journal() as journal:
        run = make_run(study)
        store.add_run(run)
        return carried_out(make_bench(study, run, journal), store, progress)


def lines_of(study: Study, each_reading_s: float) -> ProgressLines:
    """Told by a clock that goes on by so much whenever it is read."""
    readings = count()
    return ProgressLines(trial_count(study), study, 40.0, lambda: each_reading_s * next(readings))


def test_trials_that_follow_one_another_have_a_line_each(
    homes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study(1, 2, blocks=1)
    carry_out(study, lines_of(study, LINE_EVERY_S))
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("[1/2] ") and first.endswith(" left")
    assert last.startswith("[2/2] ") and last.endswith("; done")


def test_while_slices_go_round_a_line_says_which(homes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = sliced(blocks=2)
    carry_out(study, lines_of(study, LINE_EVERY_S))
    said = capsys.readouterr().err.splitlines()
    assert [line.split(";")[0] for line in said if "slice" in line] == [
        *["[0/4] block 1, slice 1 of 2"] * 2,
        *["[0/4] block 1, slice 2 of 2"] * 2,
        *["[2/4] block 2, slice 1 of 2"] * 2,
        *["[2/4] block 2, slice 2 of 2"] * 2,
    ]
    assert all(line.endswith((" left", "; done")) for line in said)
    assert len(said) == 8 + 4


def test_slices_that_are_soon_over_are_not_told(homes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = sliced()
    carry_out(study, lines_of(study, LINE_EVERY_S / 1000))
    said = capsys.readouterr().err.splitlines()
    assert [line.split("]")[0] for line in said] == ["[1/2", "[2/2"]


def test_a_load_that_goes_on_for_long_is_told_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    study, clock = make_study(1, 2, blocks=1), Clock()
    lines = ProgressLines(2, study, 4000.0, clock)
    trial = make_trial("baseline", Phase(name="load", warmup_s=0.0, duration_s=1800.0))
    lines.look()
    lines.stage_began(trial, Stage.PREPARE)
    clock.now_s += STILL_EVERY_S - 1.0
    lines.stage_began(trial, Stage.DRIVE)
    clock.now_s += STILL_EVERY_S - 1.0
    lines.look()
    assert capsys.readouterr().err == "", "each stage has a time of its own"
    clock.now_s += 1.0
    lines.look()
    lines.look()
    assert capsys.readouterr().err == "[0/2] block 1, drive baseline: for 5 min; about 58 min left\n"
    clock.now_s += STILL_EVERY_S
    lines.look()
    assert capsys.readouterr().err == "[0/2] block 1, drive baseline: for 10 min; about 53 min left\n"
    lines.trial_ended(records_of(a_study(blocks=1))[0])
    clock.now_s += STILL_EVERY_S
    capsys.readouterr()
    lines.look()
    assert capsys.readouterr().err == "", "nothing goes on"


def test_the_bar_moves_while_a_load_goes_on() -> None:
    study, clock = make_study(1, 2, blocks=1), Clock()
    with Live(2, study, 20.0) as live:
        live._left = TimeLeft(10.0, clock)
        live.stage_began(make_trial("a", Phase(name="load", warmup_s=0.0, duration_s=8.0)), Stage.DRIVE)
        [task] = live._bar.tasks
        assert task.completed == pytest.approx(0.2)
        clock.now_s += 4.0
        live.look()
        assert task.completed == pytest.approx(0.6) and task.fields["left"] == "about 14 s left"


@pytest.mark.parametrize("name", ["a", "config.innodb_buffer_pool_size=134217728, config.another=1"])
def test_the_bar_keeps_its_width_and_one_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    study = make_study(1, 2, blocks=1)
    live = Live(2, study, 20.0)
    live.stage_began(make_trial(name, Phase(name="load", warmup_s=0.0, duration_s=8.0)), Stage.DRIVE)
    with live._bar.console.capture() as printed:
        live._bar.console.print(live._bar.get_renderable())
    [line] = printed.get().splitlines()
    assert len(line) <= 80 and line.index(" 0/2 ") == BAR_COLUMNS and " s left " in line


def test_a_reference_is_told_from_the_variant_of_its_name(
    homes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = sliced()
    lines = lines_of(study, LINE_EVERY_S)
    carry_out(study, OfReference(lines))
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "] reference: " in line] == said[-2:]
    assert lines._left.begun == 0.0, "what began under a name has ended under it"


def test_the_trials_of_a_reference_stay_counted(capsys: pytest.CaptureFixture[str]) -> None:
    study = make_study(1, 2, blocks=1)
    lines, record = ProgressLines(3, study, 30.0), records_of(a_study(blocks=1))[0]
    lines.trial_ended(record)
    OfReference(lines).trial_ended(record)
    lines.asked(1)
    lines.trial_ended(record)
    counts = [line.split("]")[0] for line in capsys.readouterr().err.splitlines()]
    assert counts == ["[1/3", "[2/3", "[3/3"]


def test_the_bar_of_a_terminal_moves_with_every_slice(homes: Path) -> None:
    study = sliced()
    shown: list[tuple[str, float]] = []

    class Seen(Live):
        def stage_began(self, trial: Trial, stage: Stage) -> None:
            super().stage_began(trial, stage)
            [task] = self._bar.tasks
            shown.append((task.description, task.completed))

    with Seen(trial_count(study), study, 4.0) as live:
        carry_out(study, live)
    told = [description for description, _ in shown if description.startswith("slice")]
    assert len(told) == 4 and told[0].startswith("slice 1 of 2: ") and told[-1].startswith("slice 2 of 2: ")
    done = [completed for _, completed in shown]
    assert done == sorted(done) and 0.0 < done[-1] < 2.0
    assert len(set(done)) > 4


def test_an_act_that_was_not_done_is_no_restart(capsys: pytest.CaptureFixture[str]) -> None:
    not_done = Recovery(act=Act.CUT, blocked="this kernel offers no loop devices")
    lines_of(make_study(1, 2), 0.0).trial_ended(record_of(0, "baseline", LOST, not_done))
    assert "baseline: 1 restart, 1 with losses" in capsys.readouterr().err


def test_a_timed_trial_that_ends_in_acts_tells_what_it_measured(capsys: pytest.CaptureFixture[str]) -> None:
    record = records_of(a_study(blocks=1))[0]
    acts = record_of(0, "baseline", LOST).phases
    lines = lines_of(make_study(1, 2), 0.0)
    lines.trial_ended(record)
    lines.trial_ended(record.model_copy(update={"phases": (*record.phases, *acts)}))
    plain, with_acts = [line.split("] ")[1].split(";")[0] for line in capsys.readouterr().err.splitlines()]
    assert with_acts == f"{plain}, 1 restart, 1 with losses"
    assert any(letter.isdigit() for letter in plain.split(": ")[1])


def test_counts_to_come_are_in_the_time_that_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    study = a_study(blocks=1)
    study = study.but(goal=study.goal.but(counted=True))
    trials = trials_in_all(study)
    lines = ProgressLines(trials, study, 4.0 * trial_count(study) + counted_s(study), Clock())
    lines.trial_ended(records_of(study)[0])
    assert f"about {about_text(counted_s(study))} left" in capsys.readouterr().err


FACTORS = (ranged("config.pool", 16), listed("config.log", 2), *(listed(f"config.f{n}", 3) for n in range(4)))


def test_the_best_so_far_and_the_time_left_are_told_after_each_block(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study, run = a_search(budget_s=1500.0)
    records = searched(study, run, two_changes_help)
    progress = Candidates(study, run, partial(click.echo, err=True))
    for number in range(len({record.block for record in records})):
        blocks = [list(own) for _, own in groupby(records, key=lambda one: one.block)]
        progress.seen([record for own in blocks[: number + 1] for record in own])
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "the baseline is measured; 25 min left"
    assert told[1].startswith("4 candidates tried; best candidate-")
    assert told[1].endswith("not confirmed; 24 min left")
    confirming = [one for one in told if one.startswith(f"1 of {study.blocks} blocks")]
    assert len(confirming) >= 2, "one for the confirmation, one for each round of the elimination"


def test_the_best_that_is_told_is_the_one_that_the_next_block_measures_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study, run = a_search(*FACTORS, seed=2)
    records = searched(study, run, two_changes_help, trial_sd=0.1)
    searching = [record for record in records if record.purpose is Purpose.SEARCH]
    blocks = [list(own) for _, own in groupby(searching, key=lambda one: one.block)]
    progress, by_own_blocks = Candidates(study, run, partial(click.echo, err=True)), 0
    for number in range(2, len(blocks)):
        earlier = [record for own in blocks[:number] for record in own]
        tried = candidates_of(study, earlier)
        again = {record.variant for record in blocks[number]} & {one.name for one in tried}
        progress.seen(earlier)
        told = capsys.readouterr().err
        if again:
            [best] = again
            assert f"best {best}, " in told
            by_own_blocks += ranked_candidates(tried)[0].name == best
        else:
            assert "none seems better than the baseline yet" in told
    assert by_own_blocks < len(blocks) - 2, "luck never led, so nothing was shown"


def test_a_stage_is_named_when_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    study, run = a_search()
    block = next_block(lambda levels: 0, study, run, [])
    assert block is not None
    [trial] = trials_of(study, run, block, 0)
    progress = Candidates(study, run, partial(click.echo, err=True))
    progress.trial_began(trial)
    progress.trial_ended(measured(trial, run, lambda levels: None))
    progress.trial_began(trial)
    said = "searching ...\n  baseline: failed: the server did not start\n"
    assert capsys.readouterr().err == said


SLICED = Phase(name="load", warmup_s=2.0, duration_s=6.0, slices=10)
"""A load of 9 s, because each slice settles for a tenth of a second."""
WHOLE = Phase(name="load", warmup_s=2.0, duration_s=7.0)


def test_before_a_trial_has_ended_the_rest_is_what_was_expected_without_what_is_done() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    assert left.seconds(8) == 80.0
    clock.now_s += 1000.0
    trials = [make_trial(name, SLICED) for name in ("a", "b")]
    assert [left.stretch_began(trial) for trial in trials] == [0, 0]
    assert left.seconds(8) == pytest.approx(80.0 - 2 * 1.0), "both have started"
    left.stretch_began(trials[0])
    assert left.seconds(8) == pytest.approx(78.0 - 2.0), "one has warmed up as well"
    assert left.stretch_began(trials[0]) == 2
    assert left.seconds(8) == pytest.approx(76.0 - 0.7), "and has had a slice"


def test_trials_that_end_together_are_not_taken_for_one() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    trials = [make_trial(name, SLICED) for name in ("a", "b", "c", "d")]
    for _ in range(11):
        for trial in trials:
            left.stretch_began(trial)
    clock.now_s += 80.0
    left.trial_ended("a")
    # The last of them had its load all the time. Of two the last slice, 0.7 of their 10 s, had none.
    assert left.begun == pytest.approx(2 * 0.93 + 1.0)
    assert left.seconds(7) == pytest.approx(80.0 / 3.86 * 4.14)
    for name in ("b", "c", "d"):
        left.trial_ended(name)
    assert left.seconds(4) == pytest.approx(80.0)
    assert left.seconds(0) == 0.0


def test_a_load_counts_while_it_goes_on() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    left.stretch_began(make_trial("a", WHOLE))
    clock.now_s += 4.5
    assert left.seconds(2) == pytest.approx(20.0 - 1.0 - 4.5)
    clock.now_s += 1000.0
    assert left.begun == 1.0, "and no longer than it is to take"
    left.trial_ended("a")
    assert left.begun == 0.0


def test_a_load_is_over_where_another_server_has_it() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    trials = [make_trial(name, SLICED) for name in ("a", "b")]
    left.stretch_began(trials[0])
    clock.now_s += 2.0
    left.stretch_began(trials[1])
    clock.now_s += 0.5
    assert left.begun == pytest.approx((1.0 + 2.0 + 1.0 + 0.5) / 10.0)
    clock.now_s += 1000.0
    assert left.begun == pytest.approx(2 * (1.0 + 2.0) / 10.0), "both have warmed up, and had no slice"


def test_a_load_in_one_piece_counts_whole_when_its_trial_has_ended() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock)
    assert left.stretch_began(make_trial("a", WHOLE)) == 0
    assert left.seconds(2) == pytest.approx(20.0 - 1.0)
    clock.now_s += 12.0
    left.trial_ended("a")
    assert left.seconds(1) == pytest.approx(12.0)
    assert left.stretch_began(make_trial("a", WHOLE)) == 0, "the next block begins anew"


def test_work_that_is_counted_is_over_when_its_trial_has_ended() -> None:
    left = TimeLeft(10.0, Clock())
    assert left.stretch_began(make_trial("a", *COUNTED)) == 0
    assert left.seconds(1) == 10.0


def test_trials_beside_the_blocks_have_a_time_of_their_own() -> None:
    clock = Clock()
    left = TimeLeft(10.0, clock, beside=2, beside_s=60.0)
    assert left.seconds(6) == 4 * 10.0 + 2 * 60.0
    for _ in range(4):
        clock.now_s += 5.0
        left.trial_ended("a")
    assert left.seconds(2) == 2 * 60.0, "what blocks took says nothing of the others"
    left.stretch_began(make_trial("a", *COUNTED, block=NO_BLOCK))
    clock.now_s += 50.0
    left.trial_ended("a", of_no_block=True)
    assert left.seconds(1) == 50.0
    assert left.seconds(0) == 0.0


def test_a_trial_that_begins_anew_has_nothing_over() -> None:
    left, trial = TimeLeft(10.0, Clock()), make_trial("a", SLICED)
    assert [left.stretch_began(trial) for _ in range(2)] == [0, 1]
    left.trial_began("a")
    assert left.stretch_began(trial) == 0
