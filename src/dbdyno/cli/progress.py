"""Progress of a run on standard error: a live line on a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click
from rich.progress import BarColumn, Progress, TextColumn

from dbdyno.begin.budget import replan_text
from dbdyno.cli.terminal import terminal
from dbdyno.cli.time_left import TimeLeft
from dbdyno.plan import Ask
from dbdyno.plan.budget import Replan, replanned
from dbdyno.records import metrics
from dbdyno.records.left_out import inert_in, over_for_good
from dbdyno.records.record import INSTRUCTIONS, Outcome, Record
from dbdyno.records.run import Run
from dbdyno.records.stage import Stage
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import about_text, plural
from dbdyno.run import Unwatched
from dbdyno.study import Study
from dbdyno.study.designs import trials_in_all, variants_of
from dbdyno.study.trials import Trial

LINE_EVERY_S = 30.0
"""So long nothing is said at most while the load goes round in slices."""


class Quiet(Unwatched):
    """Says nothing."""

    def asked(self, done: int) -> None: ...

    def seen(self, records: Sequence[Record]) -> None: ...

    def replanned(self, trials: int, why: str) -> None: ...

    def left_out(self, trials: int, why: str) -> None: ...

    def say(self, line: str) -> None: ...


class Lines(Quiet):
    """One line when a trial has ended: what it gave, and about how long the rest will take. While the load
    goes round in slices, a line now and then.
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
        self._left = TimeLeft(expected_s / trials, clock)
        self._clock = clock
        self._said_s = clock()
        self._done = 0

    def asked(self, done: int) -> None:
        """The run looks for its next trials, with so many records: those of a run that is resumed, too. A
        reference's trials are counted here alone."""
        self._done = max(self._done, done)

    def replanned(self, trials: int, why: str) -> None:
        self._trials = trials
        self.say(why)

    def left_out(self, trials: int, why: str) -> None:
        self.replanned(self._trials - trials, why)

    def stage_began(self, trial: Trial, stage: Stage) -> None:
        piece = self._stretch_began(trial) if stage is Stage.DRIVE else ""
        if piece and self._clock() - self._said_s >= LINE_EVERY_S:
            self.tell(f"block {trial.block + 1}, {piece}")

    def trial_ended(self, record: Record) -> None:
        self._done += 1
        self._left.trial_ended(record.variant)
        self.tell(f"{record.variant}: {self._result(record)}")

    def tell(self, what: str) -> None:
        """A line that says how far the run is."""
        total = self._trials
        self.say(f"[{self._done:{len(str(total))}}/{total}] {what}; {self._left_text()}")
        self._said_s = self._clock()

    def say(self, line: str) -> None:
        click.echo(line, err=True)

    def _stretch_began(self, trial: Trial) -> str:
        """Which slice of the trial's load begins, or which of its phases; empty where it is a warm-up, or the
        only load in one piece."""
        over, slices = self._left.stretch_began(trial), trial.phases[0].slices
        loads = [phase for phase in trial.phases if phase.then is None]
        if len(loads) > 1:
            return f"{plural(loads[over].clients or 0, 'client')}, {loads[over].name}"
        return f"slice {over} of {slices}" if slices and over else ""

    def _left_text(self) -> str:
        left_s = self._left.seconds(self._trials - self._done)
        return f"about {about_text(left_s)} left" if left_s else "done"

    def _result(self, record: Record) -> str:
        if record.outcome is not Outcome.MEASURED:
            return f"{record.outcome.value}: {record.cause}"
        if record.of_no_block and record.counted is not None:
            return f"{metrics.number_text(record.counted.per_op[INSTRUCTIONS])} instructions per transaction"
        restarts = [_restarts(record)] if record.recoveries else []
        value = None if record.of_restarts else self._response.read(record)
        measured = [] if value is None else [f"{self._response.format(value)} {self._response.unit}"]
        return ", ".join([*measured, *restarts]) or "measured"


def _restarts(record: Record) -> str:
    done = [one for one in record.recoveries if not one.blocked]
    lossy = sum(one.lost > 0 for one in done)
    return f"{plural(len(done), 'restart')}, {lossy} with losses"


class OfReference(Quiet):
    """The same progress, for the trials of the run that takes turns."""

    def __init__(self, progress: Quiet) -> None:
        self._progress = progress

    def stage_began(self, trial: Trial, stage: Stage) -> None:
        variant = trial.variant.but(name=_reference(trial.variant.name))
        self._progress.stage_began(trial.but(variant=variant), stage)

    def trial_ended(self, record: Record) -> None:
        self._progress.trial_ended(record.but(variant=_reference(record.variant)))


def _reference(variant: str) -> str:
    return f"reference: {variant}"


class Live(Lines):
    """The same lines, and below them a bar with the stage that runs. A context manager."""

    def __init__(self, trials: int, study: Study, expected_s: float) -> None:
        super().__init__(trials, study, expected_s)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[done]}/{task.total}"),
            TextColumn("{task.fields[left]}", markup=False),
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
        piece = self._stretch_began(trial) if stage is Stage.DRIVE else ""
        self._bar.update(
            self._task,
            description=f"{piece}: {trial.variant.name}" if piece else f"{stage} {trial.variant.name}",
            completed=self._done + self._left.begun,
            left=self._left_text(),
        )

    def trial_ended(self, record: Record) -> None:
        super().trial_ended(record)
        self._bar.update(self._task, completed=self._done, done=self._done, left=self._left_text())

    def say(self, line: str) -> None:
        self._bar.console.print(line, markup=False, soft_wrap=True)


@contextmanager
def shown(trials: int, study: Study, expected_s: float) -> Iterator[Lines]:
    """The progress of a run of so many trials, as standard error can show it."""
    if sys.stderr.isatty():
        with Live(trials, study, expected_s) as live:
            yield live
    else:
        yield Lines(trials, study, expected_s)


def told_to(progress: Quiet, ask: Ask, store: Store) -> Ask:
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
            names = ", ".join(sorted(inert_in(records) - known))
            progress.left_out(fewer, f"inert, so without a further trial: {names}")
            known.update(over)
        return ask(study, run, records)

    return asked
