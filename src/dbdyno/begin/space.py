"""What is told of a search before it begins: its space, and whether its time is enough."""

from __future__ import annotations

import math
from functools import partial

from dbdyno.begin.arrangement import room_bytes, server_bytes
from dbdyno.begin.estimate import overhead_s
from dbdyno.errors import UserError
from dbdyno.frozen import level_text
from dbdyno.plan.blocks import expected_duration_s
from dbdyno.plan.search.ask import fits
from dbdyno.plan.search.pace import least_s
from dbdyno.plan.search.sampler import TRIES_MAX, Levels, first_levels
from dbdyno.records.run import SearchRun
from dbdyno.report.words.numbers import about_text, clock_text, is_or_are, plural
from dbdyno.study import Factor, Study
from dbdyno.study.space import Search


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
