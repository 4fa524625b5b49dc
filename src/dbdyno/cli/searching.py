"""How far a search is, on standard error: the best candidate so far, and the time left."""

from __future__ import annotations

import math
from collections.abc import Sequence

import click

from dbdyno.analyse.candidates import candidates_of
from dbdyno.cli.progress import Quiet
from dbdyno.plan import Ask
from dbdyno.plan.search.pace import spent_s
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import Run, SearchRun
from dbdyno.report.words import numbers
from dbdyno.report.words.numbers import about_text
from dbdyno.report.words.search import DOING
from dbdyno.study import Study
from dbdyno.study.trials import Purpose, Trial


class Searching(Quiet):
    """A line when a trial has ended; and after each block the best candidate so far, and the time left."""

    def __init__(self, study: Study, run: SearchRun) -> None:
        self._study = study
        self._run = run
        self._response = metrics.find(study.goal.response)
        self._doing = ""

    def seen(self, records: Sequence[Record]) -> None:
        """The search looks for its next trials, with these records."""
        if not records:
            return
        left_s = max(0.0, self._run.budget_s - spent_s(records))
        last = max(records, key=lambda record: record.trial)
        told = self._tried(records) if last.purpose is Purpose.SEARCH else self._blocks(records, last)
        self.say(f"{told}; {about_text(left_s)} left")

    def _tried(self, records: Sequence[Record]) -> str:
        """How many candidates the search has tried, and the one beside which it tries the next."""
        tried = candidates_of(self._study, records)
        if not tried:
            return "the baseline is measured"
        # Here, because other progress has no use for numpy.
        from dbdyno.plan.search.model import Model

        best = Model(self._study, tried).leading(tried)
        found = "none seems better than the baseline yet"
        if best is not None:
            ratio = math.exp(best.worth if self._response.higher_is_better else -best.worth)
            told = f"{numbers.ratio_text(ratio)} times the baseline in its own blocks"
            found = f"best {best.name}, {told}, not confirmed"
        return f"{numbers.plural(len(tried), 'candidate')} tried; {found}"

    def _blocks(self, records: Sequence[Record], last: Record) -> str:
        """How many blocks of the confirmation, or of the elimination's round, are over."""
        blocks = {record.block for record in records if record.purpose is last.purpose}
        done = 1 + (len(blocks) - 1) % self._study.blocks
        return f"{done} of {numbers.plural(self._study.blocks, 'block')}"

    def trial_began(self, trial: Trial) -> None:
        doing = DOING[trial.purpose] if trial.purpose else ""
        if doing != self._doing:
            self.say(f"{doing} ...")
            self._doing = doing

    def trial_ended(self, record: Record) -> None:
        self.say(f"  {record.variant}: {self._result(record)}")

    def say(self, line: str) -> None:
        click.echo(line, err=True)

    def _result(self, record: Record) -> str:
        if record.outcome is not Outcome.MEASURED:
            return f"{record.outcome.value}: {record.cause}"
        value = self._response.read(record)
        return "measured" if value is None else f"{self._response.format(value)} {self._response.unit}"


def told_of(progress: Quiet, ask: Ask) -> Ask:
    """The same answers. The progress is told of the records at each question."""

    def asked(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
        progress.seen(records)
        return ask(study, run, records)

    return asked
