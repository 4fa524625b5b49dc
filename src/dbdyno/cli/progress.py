"""Progress of a run on standard error: a live line on a terminal, plain lines otherwise. What is over of a
run tells how much is still to come."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from rich.progress import BarColumn, Progress, Task, TextColumn
from rich.table import Column
from rich.text import Text

from dbdyno.cli.patience import looking
from dbdyno.cli.terminal import terminal
from dbdyno.frozen import listed
from dbdyno.plan import Ask
from dbdyno.plan.budget import Replan, replanned
from dbdyno.prepare_run.adapted import replan_text
from dbdyno.prepare_run.estimate import beside_blocks_s
from dbdyno.records import metrics
from dbdyno.records.record import INSTRUCTIONS, Outcome, Record, Stage, inert_in, over_for_good
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import about_text, plural
from dbdyno.run import Unwatched
from dbdyno.study import Study
from dbdyno.study.designs import beside_count, trials_in_all, variants_of
from dbdyno.study.trials import Trial

if TYPE_CHECKING:
    from dbdyno.analyse.model import VariantResult


@dataclass
class Pace:
    """How long trials of one kind take: as long as expected until one has ended."""

    expected_s: float
    ended: int = 0
    took_s: float = 0.0


@dataclass
class BegunTrial:
    """A trial that goes on: how many stretches of its load are over, how much of it in seconds, and the
    stretch on its server now. `trial_s` is what all of it is expected to take."""

    stretches_over: int
    trial_s: float
    over_s: float
    stretch_s: float
    since_s: float

    def share(self, now_s: float) -> float:
        """How much of the trial is done. A stretch counts as it goes on, up to its length."""
        done_s = self.over_s + min(self.stretch_s, now_s - self.since_s)
        return min(1.0, done_s / self.trial_s) if self.trial_s else 0.0

    def load_ended(self, now_s: float) -> None:
        self.over_s += min(self.stretch_s, now_s - self.since_s)
        self.stretch_s = 0.0


class TimeLeft:
    """Counts parts of trials, because those of a block that run side by side end together: each has started
    once, and has its stretches of load in turn with the others. The trials beside the blocks come last and
    are of another length: `beside` of them, each expected to take `beside_s`.

    `trial_s` is what a trial of a block is expected to take. It counts until one has ended.
    """

    def __init__(
        self, trial_s: float, clock: Callable[[], float], beside: int = 0, beside_s: float = 0.0
    ) -> None:
        self._in_blocks, self._beside = Pace(trial_s), Pace(beside_s)
        self._beside_count = beside
        self._now = self._in_blocks
        self._clock = clock
        self._since_s = clock()
        self._begun: dict[str, BegunTrial] = {}

    def trial_began(self, variant: str) -> None:
        """Nothing is over of it, although it may have begun before with other slices."""
        self._begun.pop(variant, None)

    def stretch_began(self, trial: Trial) -> int:
        """The trial's load is put on its server, the first time or once more. How many such stretches are
        over."""
        self._now, name = self._pace(trial.of_no_block), trial.variant.name
        over = self._begun[name].stretches_over + 1 if name in self._begun else 0
        stretches_s = [seconds for phase in trial.phases for seconds in phase.stretches_s]
        load_s, trial_s = sum(stretches_s), self._now.expected_s
        # Nobody knows how long counted work takes.
        start_s = max(0.0, trial_s - load_s) if load_s else 0.0
        over_s, stretch_s = start_s + sum(stretches_s[:over]), sum(stretches_s[over : over + 1])
        self._begun[name] = BegunTrial(over, trial_s, over_s, stretch_s, self._load_ended())
        return over

    def trial_ended(self, variant: str, of_no_block: bool = False) -> None:
        self._begun.pop(variant, None)
        self._now, now_s = self._pace(of_no_block), self._load_ended()
        self._now.ended += 1
        self._now.took_s += now_s - self._since_s
        self._since_s = now_s

    def _load_ended(self) -> float:
        """No load is on a server any more. Now, in seconds."""
        now_s = self._clock()
        for one in self._begun.values():
            one.load_ended(now_s)
        return now_s

    def _pace(self, of_no_block: bool) -> Pace:
        return self._beside if of_no_block else self._in_blocks

    @property
    def begun(self) -> float:
        """How much is done of the trials that go on, in trials."""
        now_s = self._clock()
        return sum(one.share(now_s) for one in self._begun.values())

    def is_known(self) -> bool:
        """Whether anything tells what a trial takes."""
        return any(pace.ended or pace.expected_s for pace in (self._in_blocks, self._beside))

    def seconds(self, trials: int) -> float:
        """What so many trials take that have not ended."""
        beside = min(trials, self._beside_count)
        return self._takes_s(self._in_blocks, trials - beside) + self._takes_s(self._beside, beside)

    def _takes_s(self, pace: Pace, trials: int) -> float:
        """What so many trials of one kind take."""
        begun = self.begun if pace is self._now else 0.0
        each_s = pace.expected_s
        if pace.ended:
            goes_on_s = self._clock() - self._since_s if pace is self._now else 0.0
            each_s = (pace.took_s + goes_on_s) / (pace.ended + begun)
        return each_s * max(0.0, trials - begun)


LINE_EVERY_S = 30.0
"""So long nothing is said at most while the load goes round in slices."""
STILL_EVERY_S = 300.0
"""So long nothing is said at most while one load, or another stage of a trial, goes on."""
LOOK_EVERY_S = 2.0
BAR_COLUMNS = 24


class ProgressLines(Unwatched):
    """One line when a trial has ended: what it gave, and about how long the rest will take. While the load
    goes round in slices, or one stage goes on for long, a line now and then.

    A thread of its own looks how the run goes on, so whatever both change is behind a lock.
    """

    def __init__(
        self,
        trials: int,
        study: Study,
        expected_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._trials = trials
        self._response = metrics.find(study.goal.response)
        beside, beside_s = beside_count(study), beside_blocks_s(study)
        in_blocks_s = max(0.0, expected_s - beside_s) / max(1, trials - beside)
        self._left = TimeLeft(in_blocks_s, clock, beside, beside_s / max(1, beside))
        self._clock = clock
        self._said_s = self._doing_since_s = clock()
        self._doing = ""
        self._done = 0
        self._lock = threading.RLock()

    def asked(self, done: int) -> None:
        """The run looks for its next trials, with so many records: those of a run that is resumed, too. A
        reference's trials are counted here alone."""
        self._done = max(self._done, done)

    def replanned(self, trials: int, why: str) -> None:
        self._trials = trials
        self.say(why)

    def left_out(self, trials: int, why: str) -> None:
        self.replanned(self._trials - trials, why)

    def decided(self, result: VariantResult, blocks: int) -> None:
        """A verdict stands after so many blocks, while others are measured further."""
        # Here, because most runs come to their verdicts at their end.
        from dbdyno.report.words.verdicts import settled

        self.say(settled(result, blocks))

    def trial_began(self, trial: Trial) -> None:
        self._left.trial_began(trial.variant.name)

    def stage_began(self, trial: Trial, stage: Stage) -> None:
        with self._lock:
            piece = self._stage_began(trial, stage)
            if piece and self._clock() - self._said_s >= LINE_EVERY_S:
                self.tell(f"block {trial.block + 1}, {piece}")

    def trial_ended(self, record: Record) -> None:
        with self._lock:
            self._doing = ""
            self._done += 1
            self._left.trial_ended(record.variant, record.of_no_block)
            self.tell(f"{record.variant}: {self._result(record)}")

    def look(self) -> None:
        """Says how a stage goes on that has taken long by now."""
        with self._lock:
            now_s = self._clock()
            if self._doing and now_s - max(self._said_s, self._doing_since_s) >= STILL_EVERY_S:
                self.tell(f"{self._doing}: for {about_text(now_s - self._doing_since_s)}")

    def tell(self, what: str) -> None:
        """A line that says how far the run is."""
        total = self._trials
        self.say(f"[{self._done:{len(str(total))}}/{total}] {what}; {self._left_text()}")
        self._said_s = self._clock()

    def say(self, line: str) -> None:
        click.echo(line, err=True)

    def _stage_began(self, trial: Trial, stage: Stage) -> str:
        """What goes on from now on. The piece of the load that begins, where the load has several."""
        piece = self._stretch_began(trial) if stage is Stage.DRIVE else ""
        name = "beside the blocks" if trial.of_no_block else f"block {trial.block + 1}"
        self._doing = f"{name}, {piece or f'{stage} {trial.variant.name}'}"
        self._doing_since_s = self._clock()
        return piece

    def _stretch_began(self, trial: Trial) -> str:
        """Which slice of the trial's load begins, or which of its phases; empty where it is a warm-up, or the
        only load in one piece."""
        over, slices = self._left.stretch_began(trial), trial.phases[0].slices
        loads = [phase for phase in trial.phases if phase.then is None]
        if len(loads) > 1:
            clients = loads[over].clients
            return f"{plural(clients, 'client')}, {loads[over].name}" if clients else loads[over].name
        return f"slice {over} of {slices}" if slices and over else ""

    def _left_text(self) -> str:
        left_s = self._left.seconds(self._trials - self._done)
        if left_s or self._left.is_known():
            return f"about {about_text(left_s)} left" if left_s else "done"
        return "how long it takes is not known yet"

    def _result(self, record: Record) -> str:
        if record.outcome is not Outcome.MEASURED:
            return f"{record.outcome.value}: {record.cause}"
        if record.of_no_block and record.instructions is not None:
            per_op = metrics.number_text(record.instructions.per_op[INSTRUCTIONS])
            return f"{per_op} instructions per transaction"
        restarts = [_restarts(record)] if record.recoveries else []
        value = None if record.of_restarts else self._response.read(record)
        measured = [] if value is None else [f"{self._response.format(value)} {self._response.unit}"]
        return ", ".join([*measured, *restarts]) or "measured"


def _restarts(record: Record) -> str:
    done = [one for one in record.recoveries if not one.blocked]
    lossy = sum(one.lost > 0 for one in done)
    return f"{plural(len(done), 'restart')}, {lossy} with losses"


class OfReference(Unwatched):
    """The same progress, for the trials of the run that takes turns."""

    def __init__(self, progress: Unwatched) -> None:
        self._progress = progress

    def trial_began(self, trial: Trial) -> None:
        self._progress.trial_began(_of_reference(trial))

    def stage_began(self, trial: Trial, stage: Stage) -> None:
        self._progress.stage_began(_of_reference(trial), stage)

    def trial_ended(self, record: Record) -> None:
        self._progress.trial_ended(record.but(variant=_reference(record.variant)))


def _of_reference(trial: Trial) -> Trial:
    return trial.but(variant=trial.variant.but(name=_reference(trial.variant.name)))


def _reference(variant: str) -> str:
    return f"reference: {variant}"


class _OneLine(TextColumn):
    """A text of one line, which alone gives way where all columns do not fit."""

    def render(self, task: Task) -> Text:
        text = super().render(task)
        text.no_wrap, text.overflow = True, "ellipsis"
        return text


class Live(ProgressLines):
    """The same lines, and below them a bar with the stage that runs. A context manager."""

    def __init__(self, trials: int, study: Study, expected_s: float) -> None:
        super().__init__(trials, study, expected_s)
        self._bar = Progress(
            BarColumn(BAR_COLUMNS, table_column=Column(width=BAR_COLUMNS)),
            TextColumn("{task.fields[done]}/{task.total}", table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[left]}", markup=False, table_column=Column(no_wrap=True)),
            _OneLine("{task.description}", markup=False, table_column=Column()),
            console=terminal(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=trials, done=0, left="")

    def __enter__(self) -> Live:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def asked(self, done: int) -> None:
        super().asked(done)
        self._bar.update(self._task, completed=self._done, done=self._done)

    def replanned(self, trials: int, why: str) -> None:
        super().replanned(trials, why)
        self._bar.update(self._task, total=trials)

    def stage_began(self, trial: Trial, stage: Stage) -> None:
        with self._lock:
            piece = self._stage_began(trial, stage)
            told = f"{piece}: {trial.variant.name}" if piece else f"{stage} {trial.variant.name}"
            self._bar.update(self._task, description=told)
            self.look()

    def trial_ended(self, record: Record) -> None:
        with self._lock:
            super().trial_ended(record)
            self._bar.update(self._task, done=self._done)
            self.look()

    def look(self) -> None:
        """Moves the bar."""
        with self._lock:
            self._bar.update(self._task, completed=self._done + self._left.begun, left=self._left_text())

    def say(self, line: str) -> None:
        self._bar.console.print(line, markup=False, soft_wrap=True)


@contextmanager
def shown(trials: int, study: Study, expected_s: float) -> Iterator[ProgressLines]:
    """The progress of a run of so many trials, as standard error can show it."""
    with ExitStack() as stack:
        if sys.stderr.isatty():
            progress: ProgressLines = stack.enter_context(Live(trials, study, expected_s))
        else:
            progress = ProgressLines(trials, study, expected_s)
        stack.enter_context(looking(progress.look, LOOK_EVERY_S))
        yield progress


def told_to(progress: Unwatched, ask: Ask, store: Store) -> Ask:
    """The same answers. Once its first block is over, the progress is told what the budget still gives, and
    the run is kept with the blocks that this makes. It is told of inert variants as they are found."""
    told: list[Replan] = []
    known: set[str] = set()

    def asked(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
        progress.asked(len(records))
        replan = None if told else replanned(study, run, records)
        if replan is not None:
            told.append(replan)
            store.change_run(run.but(blocks=replan.blocks))
            progress.replanned(replan.trials(study), replan_text(study, replan))
        elif run.budget_s is None and (over := over_for_good(variants_of(study), records)) - known:
            fewer = trials_in_all(study, len(known)) - trials_in_all(study, len(over))
            names = listed(sorted(inert_in(records) - known))
            progress.left_out(fewer, f"the baseline's code, so without a further trial: {names}")
            known.update(over)
        return ask(study, run, records)

    return asked


def told_of(progress: Unwatched, ask: Ask) -> Ask:
    """The same answers. The progress is told of the records at each question."""

    def asked(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
        progress.seen(records)
        return ask(study, run, records)

    return asked
