"""A search: whether its space and its time are enough, what comes next, and how it is told as it goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dbdyno.begin.arrangement import room_bytes, server_bytes
from dbdyno.begin.begun import Begun
from dbdyno.begin.checked import require_statements
from dbdyno.begin.estimate import overhead_s
from dbdyno.errors import UserError
from dbdyno.frozen import level_text
from dbdyno.host.cache import Tell
from dbdyno.host.writers import Allowed
from dbdyno.kinds.kind import Kind, no_memory
from dbdyno.plan.blocks import expected_duration_s
from dbdyno.plan.search import ask as search
from dbdyno.plan.search.ask import fits
from dbdyno.plan.search.pace import least_s
from dbdyno.plan.search.sampler import TRIES_MAX, Levels, first_levels
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import SearchRun
from dbdyno.report.words.numbers import about_text, clock_text, is_or_are, plural, ratio_text
from dbdyno.report.words.search import DOING
from dbdyno.run import Unwatched
from dbdyno.study import Factor, Study
from dbdyno.study.space import Search
from dbdyno.study.trials import Purpose, Trial

if TYPE_CHECKING:
    from dbdyno.plan import Ask
    from dbdyno.plan.search.ask import Memory
    from dbdyno.plan.sequential import Told


class Searching(Kind):
    """A search finds its variants itself, in the time that it has."""

    def ask(self, run: Any, memory: Memory = no_memory, decided: Told | None = None) -> Ask:
        return lambda study, _, records: search.ask(memory, study, run, records)

    def require(self, begun: Begun, tell: Tell, allowed: Allowed) -> None:
        require_statements(begun.study, tell, allowed)

    def progress(self, study: Study, run: Any, say: Callable[[str], None]) -> Unwatched:
        return Candidates(study, run, say)


SEARCH = Searching()


class Candidates(Unwatched):
    """A line when a trial has ended; and after each block the best candidate so far, and the time left."""

    def __init__(self, study: Study, run: SearchRun, say: Callable[[str], None]) -> None:
        self._study = study
        self._run = run
        self._say = say
        self._response = metrics.find(study.goal.response)
        self._doing = ""

    def seen(self, records: Sequence[Record]) -> None:
        """The search looks for its next trials, with these records."""
        if not records:
            return
        # Here and below, because few runs search.
        from dbdyno.plan.search.pace import spent_s

        left_s = max(0.0, self._run.budget_s - spent_s(records))
        last = max(records, key=lambda record: record.trial)
        told = self._tried(records) if last.purpose is Purpose.SEARCH else self._blocks(records, last)
        self._say(f"{told}; {about_text(left_s)} left")

    def _tried(self, records: Sequence[Record]) -> str:
        """How many candidates the search has tried, and the one beside which it tries the next."""
        from dbdyno.analyse.elimination import candidates_of

        tried = candidates_of(self._study, records)
        if not tried:
            return "the baseline is measured"
        # Here, because other progress has no use for numpy.
        from dbdyno.plan.search.model import Model

        best = Model(self._study, tried).leading(tried)
        found = "none seems better than the baseline yet"
        if best is not None:
            ratio = math.exp(best.worth if self._response.higher_is_better else -best.worth)
            told = f"{ratio_text(ratio)} times the baseline in its own blocks"
            found = f"best {best.name}, {told}, not confirmed"
        return f"{plural(len(tried), 'candidate')} tried; {found}"

    def _blocks(self, records: Sequence[Record], last: Record) -> str:
        """How many blocks of the confirmation, or of the elimination's round, are over."""
        blocks = {record.block for record in records if record.purpose is last.purpose}
        done = 1 + (len(blocks) - 1) % self._study.blocks
        return f"{done} of {plural(self._study.blocks, 'block')}"

    def trial_began(self, trial: Trial) -> None:
        doing = DOING[trial.purpose] if trial.purpose else ""
        if doing != self._doing:
            self._say(f"{doing} ...")
            self._doing = doing

    def trial_ended(self, record: Record) -> None:
        self._say(f"  {record.variant}: {self._result(record)}")

    def say(self, line: str) -> None:
        self._say(line)

    def _result(self, record: Record) -> str:
        if record.outcome is not Outcome.MEASURED:
            return f"{record.outcome.value}: {record.cause}"
        value = self._response.read(record)
        return "measured" if value is None else f"{self._response.format(value)} {self._response.unit}"


def require_space(study: Study, budget_s: float) -> None:
    """Raises UserError where there is nothing to vary or nothing of it may be tried, and where the time is
    too short to try anything and to confirm it."""
    if not study.factors:
        raise UserError(
            "the space is empty, because there are no factors",
            f"dyno tune {study.path} --suggest proposes what this load may depend on",
        )
    if first_levels(study, str(study.seed), partial(_may_be_tried, study)) is None:
        raise UserError(
            f"nothing of the space may be tried: none of {TRIES_MAX} draws keeps the constraints and has room"
            " in memory beside the baseline",
            "relax the constraints, or take levels that need less memory",
        )
    needed_s = least_s(study, expected_duration_s(1, study, overhead_s(study)))
    if budget_s < needed_s:
        raise UserError(
            f"{about_text(budget_s)} are too few for a search: the first candidates and their confirmation"
            f" take about {about_text(needed_s)}",
            f"give at least {math.ceil(needed_s / 60)}m, or shorten `duration` and `warmup` under [workload]",
        )


def _may_be_tried(study: Study, levels: Levels) -> bool:
    """Whether a server of these levels may run in a block of its own with the baseline."""
    search, memory = study.search or Search(), partial(server_bytes, study)
    return search.keeps(levels) and fits(memory, study, room_bytes(), [study.baseline, levels])


def header(study: Study, run: SearchRun, kept: int, now_unix_s: float) -> str:
    """What begins: the study, the run, how large the space is, and when the search will end."""
    end = clock_text(now_unix_s + run.budget_s)
    done = f"; {plural(kept, 'trial')} of it {is_or_are(kept)} kept" if kept else f"; until {end}"
    asked = f"a search of {space_text(study)}, for {about_text(run.budget_s)}"
    return f"{study.title}\nrun {run.run}: {asked}{done}"


def space_text(study: Study) -> str:
    """How many factors and points the space has."""
    points = math.prod(len(factor.levels) for factor in study.factors)
    shown = f"{points:,}" if points < 10**6 else f"about 10^{len(str(points)) - 1}"
    return f"{plural(len(study.factors), 'factor')} with {shown} points"


LEVELS_SHOWN = 6
"""Of a list; the rest are counted."""


def space_row(factor: Factor) -> tuple[str, str, str, str]:
    """A factor, its baseline, its levels, and when it matters."""
    levels = [level_text(level) for level in factor.rising or factor.levels]
    if factor.rising:
        shown = f"{levels[0]} to {levels[-1]}, {plural(len(levels), 'step')}"
    else:
        more = f" and {len(levels) - LEVELS_SHOWN} more" if levels[LEVELS_SHOWN:] else ""
        shown = ", ".join(levels[:LEVELS_SHOWN]) + more
    conditions = [f"{one.factor} is {' or '.join(map(level_text, one.levels))}" for one in factor.only_if]
    return factor.name, level_text(factor.baseline), shown, ", ".join(conditions)


def limits_of_search(study: Study) -> list[str]:
    """The constraints, and what may be given up."""
    if study.search is None:
        return []
    told = [f"constraint: {constraint.text}" for constraint in study.search.constraints]
    if study.search.allow:
        told.append(f"levels may give up: {', '.join(study.search.allow)}")
    return told
