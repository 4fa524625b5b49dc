"""What is told of a search before it begins: its space, and whether its time is enough."""

from __future__ import annotations

import math
from functools import partial

from dbdyno.begin.arrangement import room_bytes, server_bytes
from dbdyno.begin.estimate import overhead_s
from dbdyno.errors import UserError
from dbdyno.plan.blocks import expected_duration_s
from dbdyno.plan.search.ask import fits
from dbdyno.plan.search.pace import least_s
from dbdyno.plan.search.sampler import TRIES_MAX, Levels, first_levels
from dbdyno.records.run import SearchRun
from dbdyno.report.words.moments import clock_text
from dbdyno.report.words.numbers import about_text, is_or_are, plural
from dbdyno.study import Study
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
