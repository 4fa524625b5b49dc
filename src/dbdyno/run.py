"""The spine: one study from its first trial to its last. `run_trial` reads as the architecture."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dbdyno.engines.facts import ShellRound
from dbdyno.errors import ServerFailed
from dbdyno.host.host_lock import undisturbed
from dbdyno.interrupts import shielded
from dbdyno.layers.setup import Running
from dbdyno.plan import Ask
from dbdyno.plan.arrangement import LongerSlices, WarmUp, longer_slices
from dbdyno.plan.blocks import Order
from dbdyno.plan.capacity import next_rate
from dbdyno.records.record import Doubt, Evidence, Platform, Record, Stage
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study import Arrangement, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import STATEMENTS
from dbdyno.study.soak import acts_with
from dbdyno.study.trials import Phase, Purpose, Trial, Variant
from dbdyno.trial.around_load import (
    RowsAround,
    fill,
    has_answers,
    has_passes,
    has_plans,
    plans_of,
    rows_asked,
)
from dbdyno.trial.bench import Bench
from dbdyno.trial.beside import defaults_of, has_defaults, server_compiler
from dbdyno.trial.check import check
from dbdyno.trial.correctness import code_beside_baseline, require_own_code
from dbdyno.trial.count import count
from dbdyno.trial.drive import Steps, drive
from dbdyno.trial.extra_clients import GuestVisit, guests_of
from dbdyno.trial.machine import platform_of
from dbdyno.trial.observe import PERIOD_S, Observer, Watch
from dbdyno.trial.prepare import prepare
from dbdyno.trial.record_builder import Draft
from dbdyno.trial.verify import exercised, require_in_effect, verify

if TYPE_CHECKING:
    from dbdyno.analyse.model import VariantResult
    from dbdyno.trial.acts.meanwhile import ActsBeside


class Progress(Protocol):
    """Whoever wants to see a run go on."""

    def trial_began(self, trial: Trial) -> None: ...

    def stage_began(self, trial: Trial, stage: Stage) -> None: ...

    def trial_ended(self, record: Record) -> None: ...


class Unwatched:
    """Sees nothing of a run, and says nothing. Beside its trials a run has it see the records by which it
    looks for the next ones, and what this makes of its size."""

    def trial_began(self, trial: Trial) -> None: ...

    def stage_began(self, trial: Trial, stage: Stage) -> None: ...

    def trial_ended(self, record: Record) -> None: ...

    def asked(self, done: int) -> None: ...

    def seen(self, records: Sequence[Record]) -> None: ...

    def replanned(self, trials: int, why: str) -> None: ...

    def left_out(self, trials: int, why: str) -> None: ...

    def decided(self, result: VariantResult, blocks: int) -> None: ...

    def say(self, line: str) -> None: ...


@dataclass(frozen=True)
class RunSide:
    """One of two runs that take turns. Its study and its run are those of the bench."""

    ask: Ask
    bench: Bench
    progress: Progress

    @property
    def run(self) -> Run:
        return self.bench.run

    def next_seats(self, records: Sequence[Record]) -> list[TrialSlot]:
        """The run's next trials, after these records of it."""
        trials = self.ask(self.bench.study, self.run, records)
        return [TrialSlot(trial, self.bench, self.progress) for trial in trials]

    def lengthened(self, longer: LongerSlices, store: Store) -> RunSide:
        """The same with longer slices, which the store keeps, so that a run that is resumed has them too."""
        study = longer.of(self.bench.study)
        run = store.run(self.run.run).but(slice_s=study.slice_s, duration_s=study.workload.duration_s)
        store.change_run(run)
        return replace(self, bench=replace(self.bench, study=study, run=run))


def run_study(side: RunSide, store: Store, reference: RunSide | None = None) -> list[Record]:
    """Carries out what a run asks for until it asks for nothing. Returns all the run's records. What comes
    next follows from the records alone, so a run that was cut short goes on in the same way.

    With a reference, its trial has a turn beside that of the run's baseline in each block, so that both meet
    the same disturbances: in the same rounds of slices, or one after the other. A first block whose warm-ups
    show that slices are too short begins anew with longer ones.
    """
    sides = [side] if reference is None else [side, reference]
    kept = {
        each.run.run: [record for record in store.records(each.run.run) if record.whole] for each in sides
    }
    while seats := side.next_seats(kept[side.run.run]):
        if reference is not None and _has_baseline(seats):
            seats = _woven(seats, reference.next_seats(kept[reference.run.run]))
        try:
            for record in carried_out(seats, store):
                kept[record.run].append(record)
        except SlicesTooShort as short:
            side = side.lengthened(short.longer, store)
            reference = reference and reference.lengthened(short.longer, store)
            side.bench.tell(lengthened_text(short.longer, side.bench.study))
    store.finish_run(side.run.run)
    return kept[side.run.run]


def carried_out(seats: Sequence[TrialSlot], store: Store) -> Iterator[Record]:
    """Carries trials out: those of a block side by side, or each by itself. Nobody is told of one that is not
    kept yet."""
    for together in up_together(seats):
        for seat, record in zip(together, run_together(together, store.add_record), strict=True):
            store.add_record(record)
            seat.progress.trial_ended(record)
            yield record


def _has_baseline(seats: Sequence[TrialSlot]) -> bool:
    """Whether the run's baseline is among a block's trials. It is not where the rest of a block follows whose
    baseline is over, nor among trials of no block."""
    return any(seat.of_baseline and not seat.trial.of_no_block for seat in seats)


def _woven(seats: list[TrialSlot], again: list[TrialSlot]) -> list[TrialSlot]:
    """A block's trials, with the reference's next to that of the baseline. Which of the two comes first is
    drawn like the order of a block."""
    if not again:
        return seats
    place = next(index for index, seat in enumerate(seats) if seat.of_baseline)
    own, other = seats[place].bench.run, again[0].bench.run
    sides = tuple(Variant(name=run.run, levels={}) for run in (own, other))
    drawn = Order.of(own).of_block(sides, seats[place].trial.block)
    place += drawn[0].name == own.run
    return [*seats[:place], *again, *seats[place:]]


@dataclass(frozen=True)
class TrialSlot:
    """A trial with the bench and the progress of its run."""

    trial: Trial
    bench: Bench
    progress: Progress

    @property
    def of_baseline(self) -> bool:
        return self.trial.variant.name == variants_of(self.bench.study)[0].name


def up_together(seats: Sequence[TrialSlot]) -> list[list[TrialSlot]]:
    """Which trials have their servers up at once: a whole block's, or each by itself. Those of no block
    always run by themselves."""
    arrangements = {seat.bench.study.arrangement for seat in seats}
    beside = any(seat.trial.of_no_block for seat in seats)
    if arrangements == {Arrangement.SIDE_BY_SIDE} and not beside:
        return [list(seats)]
    return [[seat] for seat in seats]


Beside = Callable[[Running], AbstractContextManager[object]]
"""What else looks on while the load runs."""

Keep = Callable[[Record], None]
"""Puts on disk what is known of a trial so far."""


def unkept(_record: Record) -> None:
    """Keeps nothing."""


def run_trial(
    trial: Trial,
    bench: Bench,
    keep: Keep = unkept,
    progress: Progress | None = None,
    beside: Beside = nullcontext,
) -> Record:
    """One trial by itself; no run keeps it and nobody watches it, unless the caller says so."""
    progress = progress or Unwatched()
    [record] = run_together([TrialSlot(trial, bench, progress)], keep, beside)
    progress.trial_ended(record)
    return record


def run_together(seats: Sequence[TrialSlot], keep: Keep, beside: Beside = nullcontext) -> list[Record]:
    """The trials of one block, each a step at a time, in an order that is drawn for each round of steps.

    Whatever happens, they are closed and the host is restored in the reverse order, because the journal is a
    stack. So a trial that is over keeps its place until then.
    """
    order, drafts = Order.of(seats[0].bench.run), list[Draft]()
    with ExitStack() as block:
        going = list[TrialSteps]()
        for seat in seats:
            trial, bench = seat.trial, seat.bench.of(seat.trial)
            draft = Draft(trial, bench, seat.progress.stage_began)
            drafts.append(draft)
            seat.progress.trial_began(trial)
            undo = block.enter_context(restoring(draft, bench))
            steps = block.enter_context(closing(steps_of(draft, bench, undo, keep, beside)))
            turns = TrialSteps(trial, steps)
            going += [turns] if turns.take() else []
        with undisturbed():
            # The first round warms up; the slices' rounds then come in pairs.
            for number in itertools.count(1):
                if not going:
                    break
                dropped = dropped_of(going, seats[0].bench)
                in_turn = order.of_round(going, seats[0].trial.block, number)
                over = [one for one in in_turn if not one.take(last=one.trial.variant.name in dropped)]
                going = [turns for turns in going if turns not in over]
                if number == 1 and (longer := longer_for(going, seats[0])):
                    raise SlicesTooShort(longer)
    return [draft.record() for draft in drafts]


class SlicesTooShort(Exception):
    """The first block's warm-ups are over, and the slices to come would hold too few transactions."""

    def __init__(self, longer: LongerSlices) -> None:
        super().__init__(longer.why)
        self.longer = longer


class TrialSteps:
    """A trial's steps as they are taken, and what its clients had been `told` of whenever its load waited."""

    def __init__(self, trial: Trial, steps: Steps[None]) -> None:
        self.trial = trial
        self.told: list[int] = []
        self._steps = steps

    def take(self, last: bool = False) -> bool:
        """Takes the next step, with `last` the end of its load; False when that was the trial's last one."""
        try:
            told = self._steps.send(True if last else None)
        except StopIteration:
            return False
        self.told += [] if told is None else [told]
        return True


def dropped_of(going: Sequence[TrialSteps], bench: Bench) -> frozenset[str]:
    """The variants of a search whose loads end here. Where a block is to give a verdict, all go on."""
    if any(turns.trial.purpose is not Purpose.SEARCH for turns in going):
        return frozenset()
    return bench.drop({turns.trial.variant.name: turns.told for turns in going})


def longer_for(going: Sequence[TrialSteps], seat: TrialSlot) -> LongerSlices | None:
    """The slices that a block needs whose warm-ups are over. All blocks of a run have the same, so the first
    one decides."""
    if seat.trial.block != 0 or seat.trial.of_no_block:
        return None
    given = seat.bench.study.workload.clients
    longer = longer_slices(
        seat.bench.study,
        [
            WarmUp(
                variant=turns.trial.variant.name,
                clients=int(str(turns.trial.variant.levels.get("workload.clients", given))),
                told=turns.told[0],
            )
            for turns in going
            if turns.told
        ],
    )
    return longer if longer and seat.bench.lengthens() else None


def lengthened_text(longer: LongerSlices, study: Study) -> str:
    """What is said of longer slices, once."""
    load = f"{longer.slice_s:g} s, and the load of a trial {study.workload.duration_s:g} s"
    return f"slices are made longer, because {longer.why}: a slice takes {load}, in all variants"


def steps_of(draft: Draft, bench: Bench, undo: ExitStack, keep: Keep, beside: Beside) -> Steps[None]:
    """One trial, every stage in order. It stops where another trial may have a turn: before its load begins,
    before each slice of it, and before it is checked. A failure is a record too. The record is kept before
    the host is restored, so that an interruption then costs nothing.
    """
    trial = draft.trial
    with draft.catching():
        draft.platform = platform_of(trial, bench)
        if bench.study.in_guest:
            # Here and below, because few trials are asked on another machine.
            from dbdyno.trial.machine import running_machine

            yield from asked_apart(draft, bench, running_machine)
        elif draft.platform is not None and bench.engine.shell is not None:
            from dbdyno.trial.machine import shell_of

            yield from asked_apart(draft, bench, shell_of)
        else:
            yield from on_server(draft, bench, undo, keep, beside)
    with draft.stage(Stage.RECORD):
        keep(draft.record())
    if draft.failed:
        # Its server must not disturb those that go on.
        end(draft, undo)


def on_server(draft: Draft, bench: Bench, undo: ExitStack, keep: Keep, beside: Beside) -> Steps[None]:
    """The stages of a trial whose engine a load process drives, from its preparation to its last phase."""
    trial = draft.trial
    with draft.stage(Stage.PREPARE):
        draft.code = code_beside_baseline(trial, bench)
        require_own_code(trial, bench.study, draft.code)
        ready = prepare
        if bench.switch is not None:
            # Here, because most runs start their servers.
            from dbdyno.trial.running.prepare import prepare_running

            ready = prepare_running
        running = draft.started(*ready(trial, bench, undo))
    with draft.stage(Stage.VERIFY):
        draft.evidence = verify(running, bench.levels_by_layer(trial), bench.layers)
        require_in_effect(draft.evidence)
        draft.defaults = defaults_of(running) if has_defaults(trial, bench) else None
        draft.compiler = server_compiler(running) if bench.engines else ""
    if running.setup.built is not None:
        with draft.stage(Stage.GATE):
            # Here, because most trials run no build.
            from dbdyno.build_check import gated

            draft.gated(gated(running.setup.built, bench))
    if has_passes(running.setup) and not bench.callgrind:
        with draft.stage(Stage.FILL):
            draft.filled(fill(running))
    for phase in trial.phases:
        if phase is not trial.phases[0]:
            # What the phases so far showed stays, whatever happens to the next.
            with draft.stage(Stage.RECORD):
                keep(draft.record(whole=False))
        if phase.tries_rate:
            phase = phase.but(rate_per_s=next_rate(draft.closed_per_s, draft.tried))
        draft.phase_began(phase)
        if phase.then is None:
            running = yield from phase_of(draft, bench, running, phase, beside)
        else:
            yield None
            running = ended(draft, bench, running, phase, undo)
        if draft.over:
            break
    if draft.tried and not draft.over:
        with draft.stage(Stage.CHECK):
            draft.searched()
    if bench.study.workload.is_cold and not draft.over and not trial.of_no_block:
        yield None
        with draft.stage(Stage.RESTART):
            # Here, because few loads are timed cold.
            from dbdyno.trial.acts.engine import cold_times_ms

            draft.timed_cold(*cold_times_ms(running, bench.open_load, undo))


class Apart(Protocol):
    """An engine on another machine, which no load process drives."""

    def told(self, platform: Platform) -> Platform:
        """What stands in the record of its platform, with what is known once it runs."""
        ...

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """All levels that are proved by now."""
        ...

    def round_of(self, phase: Phase) -> ShellRound: ...


OpenApart = Callable[[Trial, Bench], AbstractContextManager[Apart]]


def asked_apart(draft: Draft, bench: Bench, open_apart: OpenApart) -> Steps[None]:
    """The stages of a trial whose engine is asked on another machine: by its shell, or in its guest."""
    with ExitStack() as closing_apart:
        with draft.stage(Stage.PREPARE):
            asked = closing_apart.enter_context(open_apart(draft.trial, bench))
            draft.platform = draft.platform and asked.told(draft.platform)
        with draft.stage(Stage.VERIFY):
            draft.evidence = asked.evidence
            require_in_effect(draft.evidence)
        for phase in draft.trial.phases:
            draft.phase_began(phase)
            yield None
            with draft.stage(Stage.RESTART):
                draft.shell_ended(asked.round_of(phase))
            draft.evidence = asked.evidence
            require_in_effect(draft.evidence)
            if draft.over:
                break


def phase_of(draft: Draft, bench: Bench, running: Running, phase: Phase, beside: Beside) -> Steps[Running]:
    """One phase of a trial: its load with all that looks on and all who come along, and its checks."""
    yield None
    rows = rows_before(draft, bench, running, phase)
    with (
        accompanied(draft, bench, running, phase),
        beside(running),
        Observer(
            running.process_ids,
            bench.engine.embedded,
            front=running.front,
            driver_ids=running.driver_ids,
            asked=asked_beside(running, bench),
            counters=bench.engine.counters,
            lag=running.lag,
        ) as observer,
        acting(draft, bench, running, phase) as acts,
    ):
        at_work = partial(under_load, draft, observer, phase, acts)
        if bench.callgrind:
            with at_work():
                running = count(running, bench.callgrind)
        else:
            running = yield from drive(running, phase, at_work, bench.clock)
    yield None
    with draft.stage(Stage.CHECK):
        observation = draft.driven(running, observer.observation(running))
        if rows is not None:
            observation = draft.counted(observation, rows.totals(running))
        draft.evidence = exercised(draft.evidence, running, bench.layers)
        require_in_effect(draft.evidence)
        running, found = check(running, phase, observation, bench.cores)
        checks, doubts = found
        draft.judged(checks, draft.of_search(phase, doubts), compared=not phase.watched)
    load = bench.study.workload
    if load.plans and not draft.failed and has_plans(draft.trial, phase, running):
        with draft.stage(Stage.PLANS):
            once = load.actual_rows and draft.trial.block == 0
            draft.plans = plans_of(running, bench.run.seed, actual_rows=once)
    if load.name == STATEMENTS and not draft.failed and has_answers(draft.trial, phase, running):
        with draft.stage(Stage.ANSWERS):
            statements_answered(draft, bench, running)
    return running


def rows_before(draft: Draft, bench: Bench, running: Running, phase: Phase) -> RowsAround | None:
    """Who counts the rows that the load to come changes; None where nobody asks for that."""
    if bench.callgrind or not rows_asked(draft.trial, phase, bench.study):
        return None
    with draft.stage(Stage.CHECK):
        return RowsAround(running, bench.study)


def statements_answered(draft: Draft, bench: Bench, running: Running) -> None:
    """The statements are answered in a variant's first trial, because others have the same data. What each
    costs is asked in every trial, where nobody else asks the server."""
    # Here, because few loads are statements alone.
    from dbdyno.trial.answers import answers_of, schema_of
    from dbdyno.trial.statement_costs import statement_costs

    variant = draft.trial.variant.name
    first = variant not in bench.sent
    if first:
        answers, bench.sent[variant] = answers_of(running, bench.run.seed)
        draft.answers = answers.but(schema_told=schema_of(running))
    if bench.run.in_use is None:
        draft.costs = statement_costs(running, bench.sent[variant], counted=first)


def asked_beside(running: Running, bench: Bench) -> str:
    """The URL at which the server is asked while the load goes on. Empty where instructions are counted,
    where the engine lives in the load process, and where the server is somebody else's."""
    apart = bench.callgrind or bench.engine.embedded or bench.run.in_use is not None
    return "" if apart else running.server.url


def ended(draft: Draft, bench: Bench, running: Running, phase: Phase, undo: ExitStack) -> Running:
    """A phase that ends in an act on the server, which comes up again."""
    with draft.stage(Stage.RESTART):
        # Here, because most phases end in no act.
        from dbdyno.trial.acts import act_on

        acted = act_on(running, phase, bench, undo)
        return draft.survived(acted) if phase.ledger else draft.acted(acted)


@contextmanager
def accompanied(draft: Draft, bench: Bench, running: Running, phase: Phase) -> Iterator[None]:
    """The phase's guests come, and what the server holds is watched. What they saw stays, however the phase
    ends."""
    watch = Watch(running, phase, bench.clock.unix_s, bench.clock.monotonic_s) if phase.watched else None
    guests: Sequence[GuestVisit] = ()
    try:
        with (
            guests_of(running, phase, bench.open_load) as guests,
            watch.looking() if watch else nullcontext(),
        ):
            yield
    finally:
        draft.seen(watch.watched() if watch else None, [guest.told() for guest in guests])


@contextmanager
def acting(draft: Draft, bench: Bench, running: Running, phase: Phase) -> Iterator[ActsBeside | None]:
    """What is done beside the phase's load. What became of it stays, however the phase ends."""
    if not phase.acts or bench.callgrind:
        yield None
        return
    # Here, because beside most loads nothing is done.
    from dbdyno.trial.acts.meanwhile import ActsBeside

    due = acts_with(bench.study.meanwhile, {**bench.study.settings, **draft.trial.variant.levels})
    acts = ActsBeside(running, due, phase.ramp_s + phase.warmup_s, bench.journal)
    try:
        with acts:
            yield acts
    finally:
        draft.acted_beside(acts.told(), acts.zero_unix_s)


@contextmanager
def under_load(draft: Draft, observer: Observer, phase: Phase, acts: ActsBeside | None) -> Iterator[None]:
    """A stretch in which the trial's own load is on its server."""
    stretch = nullcontext() if acts is None else acts.stretch()
    with draft.stage(Stage.DRIVE), observer.looking(phase.settle_s / 2 or PERIOD_S), stretch:
        yield


@contextmanager
def restoring(draft: Draft, bench: Bench) -> Iterator[ExitStack]:
    """Whatever happens within, stops what runs and undoes the journal; then notes in the record how that
    went."""
    mark, undo = bench.journal.mark(), ExitStack()
    try:
        yield undo
    finally:
        interruption = sys.exc_info()
        with shielded(), draft.stage(Stage.RESTORE):
            try:
                end(draft, undo, *interruption)
            finally:
                bench.journal.undo_to(mark)


def end(draft: Draft, undo: ExitStack, *interruption: Any) -> None:
    """Stops what a trial runs: cleanly, or at once after an interruption."""
    try:
        undo.__exit__(*(interruption or (None, None, None)))
    except ServerFailed as failure:
        draft.doubt(Doubt.SERVER_LOG, failure.message)
