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
from dbdyno.study.trials import Plan, Trial


class Quiet:
    """Says nothing."""

    def trial_began(self, trial: Trial) -> None: ...

    def stage_began(self, trial: Trial, stage: str) -> None: ...

    def trial_ended(self, record: Record) -> None: ...

    def replanned(self, plan: Plan, why: str) -> None: ...


class Lines(Quiet):
    """One line when a trial has ended: what it gave, and about how long the rest will take."""

    def __init__(
        self,
        plan: Plan,
        study: Study,
        expected_s: float,
        done: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._response = metrics.find(study.goal.response)
        self._expected_s = expected_s / len(plan.trials)
        self._done_before = self._done = done
        self._clock = clock
        self._began = clock()

    def replanned(self, plan: Plan, why: str) -> None:
        self._plan = plan
        self.say(why)

    def trial_ended(self, record: Record) -> None:
        self._done += 1
        total, left_s = len(self._plan.trials), self.left_s()
        count = f"[{self._done:{len(str(total))}}/{total}]"
        left = f"about {duration(left_s)} left" if left_s else "done"
        self.say(f"{count} {record.variant}: {self._result(record)}; {left}")

    def say(self, line: str) -> None:
        click.echo(line, err=True)

    def left_s(self) -> float:
        """By what the trials of this process took; before the first, by the plan."""
        done_here = self._done - self._done_before
        each_s = (self._clock() - self._began) / done_here if done_here else self._expected_s
        return each_s * (len(self._plan.trials) - self._done)

    def _result(self, record: Record) -> str:
        if record.outcome is not Outcome.MEASURED:
            return f"{record.outcome.value}: {record.cause}"
        value = self._response.read(record)
        return f"{self._response.format(value)} {self._response.unit}" if value is not None else "measured"


class Live(Lines):
    """The same lines, and below them a bar with the stage that runs. A context manager."""

    def __init__(self, plan: Plan, study: Study, expected_s: float, done: int) -> None:
        super().__init__(plan, study, expected_s, done)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[left]}", markup=False),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        self._task = self._bar.add_task("", total=len(plan.trials), completed=done, left="")

    def __enter__(self) -> Live:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def replanned(self, plan: Plan, why: str) -> None:
        super().replanned(plan, why)
        self._bar.update(self._task, total=len(plan.trials))

    def stage_began(self, trial: Trial, stage: str) -> None:
        left = f"about {duration(self.left_s())} left"
        self._bar.update(self._task, description=f"{stage} {trial.variant.name}", left=left)

    def trial_ended(self, record: Record) -> None:
        super().trial_ended(record)
        self._bar.update(self._task, completed=self._done)

    def say(self, line: str) -> None:
        self._bar.console.print(line, markup=False, soft_wrap=True)
