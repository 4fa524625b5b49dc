"""The experiment's logic by seed: no fault at any step of a run breaks what Dyno promises of it.

The product is then broken in many ways, to show that the judge can tell.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

import dbdyno.run
from dbdyno.analyse import analysis
from dbdyno.analyse.model import TrialResult
from dbdyno.host import journal
from dbdyno.host.journal import Journal
from dbdyno.layers.setup import Setup
from dbdyno.plan import blocks
from dbdyno.records.record import Outcome, Record
from dbdyno.records.store import Store
from dbdyno.study.trials import Trial
from dbdyno.trial import drive, prepare
from dbdyno.trial.bench import Bench
from dbdyno.trial.prepare import place
from dbdyno.trial.pristine import pristine_data
from dbdyno.trial.record_builder import Draft
from tests.simulated import process
from tests.simulated.seed import wrong_with
from tests.simulated.studies import KINDS
from tests.simulated.world import FAULTS, MAKING

SEEDS = range(100)
FOUND = {
    88: "a driver that failed after a restart was taken for a broken server",
    237: "a search that was cut short in a confirmation had another order in its next block",
    2429: "a trial that failed beside others took their time from the budget",
    321: "a record that could not be kept between two phases was the variant's failure",
}
"""Seeds that found a fault of the product, with what it was."""
STRIKES = {"interrupt", "interrupt and interrupt", "death", "full"}
Break = Callable[[pytest.MonkeyPatch], None]
BREAKS: dict[str, tuple[Break, int]] = {}
"""Ways to break the product by what the judge must say of them, each with a seed that shows it."""


def test_no_seed_breaks_a_promise() -> None:
    tried = Counter[str]()
    bad = {seed: found for seed in SEEDS if (found := wrong_with(seed, tried))}
    assert not bad, "\n".join(
        f"again with: python -m tests.simulated {seed} 1\n{found}" for seed, found in bad.items()
    )
    assert tried.keys() >= KINDS.keys() | STRIKES
    struck = {name.partition(" at ")[2].removeprefix(MAKING) for name in tried} - {""}
    assert struck <= FAULTS.keys() and len(struck) >= len(FAULTS) - 3, "the seeds strike nearly everywhere"


@pytest.mark.parametrize("seed", FOUND)
def test_what_a_seed_has_found_stays_mended(seed: int) -> None:
    assert wrong_with(seed) == []


def breaks(says: str, seed: int = 0) -> Callable[[Break], None]:
    """Enters a way to break the product, with what the judge must say of it."""

    def enter(break_it: Break) -> None:
        BREAKS[says] = break_it, seed

    return enter


@breaks("is undone before")
def _undo_forwards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(journal, "reversed", lambda places: [places.start] * len(places), raising=False)


@breaks("ended and are not kept")
def _lose_records(patch: pytest.MonkeyPatch) -> None:
    add = Store.add_record

    def lose(store: Store, record: Record) -> None:
        if record.trial != 1:
            add(store, record)

    patch.setattr(Store, "add_record", lose)


@breaks("is restored before its record is kept")
def _keep_late(patch: pytest.MonkeyPatch) -> None:
    together = dbdyno.run.run_together
    patch.setattr(dbdyno.run, "run_together", lambda seats, keep: together(seats, lambda record: None))


@breaks("steps for", seed=12)
def _look_without_pause(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(drive, "LOOK_EVERY_S", 1e-4)


@breaks("Endless", seed=1)
def _ask_without_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(process, "ask_for", lambda run: lambda study, run, records: blocks.ask(study, run, ()))


@breaks("was kept and is another", seed=1)
def _do_all_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(process.SimulatedStore, "records", lambda store, run: [], raising=False)


@breaks("is a part", seed=21)
def _take_a_part_for_the_whole(patch: pytest.MonkeyPatch) -> None:
    found = Store.records

    def whole(store: Store, run: str) -> list[Record]:
        return [record.but(whole=True) for record in found(store, run)]

    patch.setattr(process.SimulatedStore, "records", whole, raising=False)


@breaks("'image'")
def _take_another_image_first(patch: pytest.MonkeyPatch) -> None:
    def another(setup: Setup, bench: Bench, trial: Trial) -> Any:
        block = trial.block if bench.verified else trial.block + 2
        return pristine_data(setup, bench, trial.but(block=block))

    patch.setattr(prepare, "pristine_data", another)


@breaks("Ctrl-C at step", seed=11)
def _swallow_interruptions(patch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def deaf() -> Iterator[None]:
        heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, heard)

    patch.setattr(journal, "shielded", deaf)
    patch.setattr(dbdyno.run, "shielded", deaf)


@breaks("left: ")
def _restore_nothing_when_interrupted(patch: pytest.MonkeyPatch) -> None:
    undo_since = Journal.undo_since

    def hasty(one: Journal, mark: int) -> tuple[list[str], list[str]]:
        return ([], []) if sys.exc_info()[0] is KeyboardInterrupt else undo_since(one, mark)

    patch.setattr(Journal, "undo_since", hasty)


@breaks("and has a speed", seed=24)
def _measure_what_is_broken(patch: pytest.MonkeyPatch) -> None:
    judged = analysis._trial

    def measured(record: Record, *more: Any) -> TrialResult:
        sound = record.but(outcome=Outcome.MEASURED)
        return judged(sound, *more).but(record=record)

    patch.setattr(analysis, "_trial", measured)


@breaks("/standing/")
def _leave_marks(patch: pytest.MonkeyPatch) -> None:
    let_go = Journal.let_go

    def leave(one: Journal) -> None:
        let_go(one)
        journal._mark_of(one._path).touch()

    patch.setattr(Journal, "let_go", leave)


@breaks("is measured and not broken", seed=26)
def _believe_every_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Draft, "judged", lambda *_, **__: None)


@breaks("servers are left")
def _leave_servers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prepare, "stop_or_kill", lambda stop, kill: lambda *_: None)


@breaks("after the replay: ", seed=2)
def _replay_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(process, "replay_abandoned", list)


@breaks("come next, and were")
def _ask_by_chance(patch: pytest.MonkeyPatch) -> None:
    draws = iter(range(10**9))
    patch.setattr(blocks, "_shuffled", lambda things, seed: _turned(things, next(draws)))


def _turned(things: Sequence[Any], by: int) -> list[Any]:
    return [*things[by % len(things) :], *things[: by % len(things)]]


@breaks("the data were not restored")
def _keep_what_trials_wrote(patch: pytest.MonkeyPatch) -> None:
    def changed(setup: Setup, *more: Any) -> Any:
        found = place(setup, *more)
        (setup.data / "rows").write_text("changed 1")
        return found

    patch.setattr(prepare, "place", changed)


@breaks("and undisturbed None")
def _go_on_without_end(patch: pytest.MonkeyPatch) -> None:
    """A run that was cut short takes its last trial for one more."""
    found = Store.records

    def renumbered(store: Store, run: str) -> list[Record]:
        records = found(store, run)
        return [*records[:-1], *(one.but(trial=one.trial + 1) for one in records[-1:])]

    patch.setattr(Store, "records", renumbered)


@breaks("the journal of the host cannot be written")
def _stop_where_an_undoing_is_not_noted(patch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def strict(*_: object) -> Iterator[None]:
        yield

    patch.setattr(journal, "suppress", strict)


@pytest.mark.parametrize("says", BREAKS)
def test_the_judge_sees_what_is_broken(says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it, first = BREAKS[says]
    break_it(monkeypatch)
    lines = (line for seed in (first, *SEEDS) for line in wrong_with(seed))
    assert any(says in line for line in lines)
