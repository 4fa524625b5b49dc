"""What a run says of its progress, while its trials run one by one and while the load goes round."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from dbdyno.cli.progress import LINE_EVERY_S, Lines, Live, OfReference
from dbdyno.host.journal import open_journal
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.recovery import Recovery
from dbdyno.records.stage import Stage
from dbdyno.records.store import Store
from dbdyno.study import Arrangement, Study
from dbdyno.study.act import Act
from dbdyno.study.designs import trial_count
from dbdyno.study.trials import Trial
from tests.analyse.factory import a_study, records_of
from tests.analyse.restarts_cases import LOST, record_of
from tests.fakes import carried_out, make_bench, make_run, make_study


def sliced(blocks: int = 1) -> Study:
    """Two servers beside each other, with two slices each."""
    return make_study(1, 2, blocks=blocks, arrangement=Arrangement.SIDE_BY_SIDE, slice_s=0.5)


def carry_out(study: Study, progress: Lines | OfReference) -> list[Record]:
    with Store(store_url()) as store, open_journal() as journal:
        run = make_run(study)
        store.add_run(run)
        return carried_out(make_bench(study, run, journal), store, progress)


def lines_of(study: Study, each_reading_s: float) -> Lines:
    """Told by a clock that goes on by so much whenever it is read."""
    readings = count()
    return Lines(trial_count(study), study, 40.0, lambda: each_reading_s * next(readings))


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
    lines, record = Lines(3, study, 30.0), records_of(a_study(blocks=1))[0]
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
