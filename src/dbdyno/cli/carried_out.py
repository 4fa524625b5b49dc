"""A run's trials carried out here, with the progress that its user sees."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from dbdyno.begin.arrangement import server_bytes
from dbdyno.begin.begun import Begun, bench_of
from dbdyno.begin.counted import counted_text, why_counted
from dbdyno.begin.held import held
from dbdyno.begin.registered import began
from dbdyno.begin.stored_study import asked_of
from dbdyno.cli.progress import OfReference, Quiet, Searching, shown, told_of, told_to
from dbdyno.cli.terminal import tell
from dbdyno.host.allowed import Allowed
from dbdyno.host.callgrind import Callgrind
from dbdyno.host.journal import Journal, open_journal
from dbdyno.plan import ask_for
from dbdyno.records.record import Record
from dbdyno.records.run import BLOCKS_IN_PAIR, Run, SearchRun
from dbdyno.records.store import Store
from dbdyno.run import Side, carried_out, run_study
from dbdyno.study import Study
from dbdyno.study.designs import trials_in_all
from dbdyno.trial.bench import Bench, Leased
from dbdyno.trial.count import require_countable


@dataclass(frozen=True)
class Here:
    """What the runs of one call share. All their trials take about `trials_s`."""

    store: Store
    trials_s: float
    quiet: bool
    allowed: Allowed

    def tell(self, line: str) -> None:
        """Says what is done before the first trial."""
        if not self.quiet:
            tell(line)


def carry_out(begun: Begun, reference: Begun | None, here: Here) -> list[Record]:
    """Carries out all trials that are left of the run, with a reference in turn with it. Returns the run's
    records."""
    study, run, store = begun.study, begun.run, here.store
    trials = trials_in_all(study) + (study.blocks if reference is not None else 0)
    with ExitStack() as stack:
        journal = stack.enter_context(open_journal())
        callgrind = _callgrind(study, journal, stack)
        switch = stack.enter_context(held(begun, journal, store, here.allowed))
        bench = replace(bench_of(begun, journal, callgrind, here.allowed), tell=here.tell, switch=switch)
        bench = replace(bench, lengthens=lambda: asked_of(run).slice_s is None)
        if isinstance(run, SearchRun):
            return _searched(run, bench, here)
        progress = Quiet() if here.quiet else stack.enter_context(shown(trials, study, here.trials_s))
        bench = replace(bench, tell=progress.say)
        ask = told_to(progress, ask_for(run, tell=progress.decided), store)
        other = None
        if reference is not None:
            store.add_run(reference.run, began(reference.run))
            store.change_run(reference.run)
            # It has trials only beside this run's, so nobody goes on with it alone.
            store.finish_run(reference.run.run)
            again = bench_of(reference, journal, callgrind, here.allowed)
            # Here, because most runs are held against nothing.
            from dbdyno.plan import reference as reference_plan

            other = Side(reference_plan.ask, again, OfReference(progress))
        return run_study(Side(ask, bench, progress), store, other)


def records_of_host(store: Store, run: Run, host: str) -> list[Record]:
    """What a host of a fleet has measured of a run. Others' records are not read, because a host must cost
    the store the same in a large fleet as in a small one."""
    number = next(number for number, one in enumerate(run.fleet) if one.name == host)
    found = store.records_in_turn(run.run, BLOCKS_IN_PAIR, len(run.fleet), number)
    return [record for record in found if record.whole]


def carry_out_pair(
    begun: Begun,
    leased: Leased,
    progress: Quiet,
    store: Store,
    allowed: Allowed,
    goes_on: Callable[[], bool],
) -> bool:
    """Carries out what is left of the next pair of blocks of a fleet's host, or what comes beside the blocks,
    as long as it `goes_on`. Returns whether there is more to do. Raises LeaseOver where another may do it."""
    run = begun.run
    # Here, because most runs are of one host.
    from dbdyno.plan import fleet

    ask = partial(fleet.ask, leased.host)
    records = records_of_host(store, run, leased.host)
    with ExitStack() as stack:
        journal = stack.enter_context(open_journal())
        callgrind = _callgrind(begun.study, journal, stack)
        bench = replace(bench_of(begun, journal, callgrind, allowed), tell=progress.say, leased=leased)
        side, pair = Side(ask, bench, progress), None
        while seats := side.next_seats(records):
            found = seats[0].trial.block // BLOCKS_IN_PAIR
            if pair not in (None, found) or not goes_on():
                return True
            pair = found
            for record in carried_out(seats, store):
                records.append(record)
                if not goes_on():
                    return True
    return False


def _searched(run: SearchRun, bench: Bench, here: Here) -> list[Record]:
    """Carries out a search, whose progress is not counted in trials."""
    progress = Quiet() if here.quiet else Searching(bench.study, run)
    ask = told_of(progress, ask_for(run, partial(server_bytes, bench.study)))
    return run_study(Side(ask, bench, progress), here.store)


def _callgrind(study: Study, journal: Journal, stack: ExitStack) -> Callgrind | None:
    """What counts instructions: of all trials where they are the response and the CPU's own counters cannot
    be read, or beside the timed ones."""
    told = why_counted(study) or counted_text(study)
    if not told:
        return None
    require_countable(study)
    tell(told)
    return Callgrind(stack.enter_context(journal.folder("counted-")))
