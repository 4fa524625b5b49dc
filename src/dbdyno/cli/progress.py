"""Progress of a run on standard error: a live line on a terminal, one plain line per trial otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from dbdyno.cli.wording import duration
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.study import Study
from dbdyno.study.trials import Trial


class Quiet:
    """Says nothing."""

    def trial_began(self, trial: Trial) -> None: ...

    def stage_began(self, trial: Trial, stage: str) -> None: ...

    def trial_ended(self, record: Record) -> None: ...

    def asked(self, done: int) -> None: ...

    def replanned(self, trials: int, why: str) -> None: ...


class Lines(Quiet):
    """One line when a trial has ended: what it gave, and about how long the rest will take."""

    def __init__(
        self,
        trials: int,
        study: Study,
        expected_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._trials = trials
        self._response = metrics.find(study.goal.response)
        self._expected_s = expected_s / trials
        self._done = self._done_here = 0
        self._clock = clock
        self._began = clock()

    def asked(self, done: int) -> None:
        """The run looks for its next trials, with so many records: those of a run that is resumed, too."""
        self._done = done

    def replanned(self, trials: int, why: str) -> None:
        self._trials = trials
        self.say(why)

    def trial_ended(self, record: Record) -> None:
        self._done += 1
        self._done_here += 1
        total, left_s = self._trials, self.left_s()
        count = f"[{self._done:{len(str(total))}}/{total}]"
        left = f"about {duration(left_s)} left" if left_s else "done"
        self.say(f"{count} {record.variant}: {self._result(record)}; {left}")

    def say(self, line: str) -> None:
        click.echo(line, err=True)

    def left_s(self) -> float:
        """By what the trials of this process took; before the first, by the plan."""
        spent_s = self._clock() - self._began
        each_s = spent_s / self._done_here if self._done_here else self._expected_s
        return each_s * (self._trials - self._done)

    def _result(self, record: Record) -> str:
        if record.outcome is not Outcome.MEASURED:
            return f"{record.outcome.value}: {record.cause}"
        value = self._response.read(record)
        return f"{self._response.format(value)} {self._response.unit}" if value is not None else "measured"


class Beside(Quiet):
    """The same progress, for the trials of the run that takes turns."""

    def __init__(self, progress: Quiet) -> None:
        self._progress = progress

    def stage_began(self, trial: Trial, stage: str) -> None:
        self._progress.stage_began(trial, stage)

    def trial_ended(self, record: Record) -> None:
        named = record.model_copy(update={"variant": f"reference: {record.variant}"})
        self._progress.trial_ended(named)


class Live(Lines):
    """The same lines, and below them a bar with the stage that runs. A context manager."""

    def __init__(self, trials: int, study: Study, expected_s: float) -> None:
        super().__init__(trials, study, expected_s)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[left]}", markup=False),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        self._task = self._bar.add_task("", total=trials, left="")

    def __enter__(self) -> Live:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def asked(self, done: int) -> None:
        super().asked(done)
        self._bar.update(self._task, completed=done)

    def replanned(self, trials: int, why: str) -> None:
        super().replanned(trials, why)
        self._bar.update(self._task, total=trials)

    def stage_began(self, trial: Trial, stage: str) -> None:
        left = f"about {duration(self.left_s())} left"
        self._bar.update(self._task, description=f"{stage} {trial.variant.name}", left=left)

    def trial_ended(self, record: Record) -> None:
        super().trial_ended(record)
        self._bar.update(self._task, completed=self._done)

    def say(self, line: str) -> None:
        self._bar.console.print(line, markup=False, soft_wrap=True)
