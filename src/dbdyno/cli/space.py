"""What is told of a search before it begins: its space, and whether its time is enough."""

from __future__ import annotations

import math
import time
from functools import partial

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.arrangement import room_bytes, server_bytes
from dbdyno.cli.estimate import overhead_s
from dbdyno.cli.wording import duration
from dbdyno.errors import UserError
from dbdyno.frozen import level_text
from dbdyno.plan.blocks import expected_duration_s
from dbdyno.plan.search.ask import fits
from dbdyno.plan.search.pace import FINALISTS, least_s
from dbdyno.plan.search.sampler import TRIES_MAX, Levels, first_levels
from dbdyno.records.record import Run
from dbdyno.report.words.numbers import is_or_are, plural
from dbdyno.study import Factor, Study
from dbdyno.study.space import Search

LEVELS_SHOWN = 6
"""Of a list; the rest are counted."""


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
            f"{duration(budget_s)} are too few for a search: the first candidates and their confirmation"
            f" take about {duration(needed_s)}",
            f"give at least {math.ceil(needed_s / 60)}m, or shorten `duration` and `warmup` under [workload]",
        )


def _may_be_tried(study: Study, levels: Levels) -> bool:
    """Whether a server of these levels may run in a block of its own with the baseline."""
    search, memory = study.search or Search(), partial(server_bytes, study)
    return search.keeps(levels) and fits(memory, study, room_bytes(), [study.baseline, levels])


def header(study: Study, run: Run, kept: int, now_unix_s: float) -> str:
    """What begins: the study, the run, how large the space is, and when the search will end."""
    end = time.strftime("%H:%M", time.localtime(now_unix_s + (run.budget_s or 0.0)))
    done = f"; {plural(kept, 'trial')} of it {is_or_are(kept)} kept" if kept else f"; until {end}"
    asked = f"a search of {space_text(study)}, for {duration(run.budget_s or 0.0)}"
    return f"{study.title}\nrun {run.run}: {asked}{done}"


def space_text(study: Study) -> str:
    """How many factors and points the space has."""
    points = math.prod(len(factor.levels) for factor in study.factors)
    shown = f"{points:,}" if points < 10**6 else f"about 10^{len(str(points)) - 1}"
    return f"{plural(len(study.factors), 'factor')} with {shown} points"


def print_space(console: Console, study: Study, seed: int) -> None:
    """The factors with their levels and conditions, and what else the search is to keep to."""
    console.print(Text(study.title, style="bold"))
    console.print(Text(f"{study.design.value} of {space_text(study)}, seed {seed}"))
    if study.seed is None:
        again = f"give --seed {seed} to `dyno tune` to have the same draws"
        console.print(Text(f"drawn from seed {seed}; {again}"))
    factors = Table(box=None, pad_edge=False)
    for head in ("factor", "baseline", "levels", "only if"):
        factors.add_column(head, no_wrap=head == "factor", overflow="fold")
    for factor in study.factors:
        factors.add_row(*map(Text, _row(factor)))
    console.print(factors)
    for line in _limits(study):
        console.print(Text(line))
    confirmed = f"the {FINALISTS} best candidates and the baseline"
    if study.variants:
        confirmed += f", and {', '.join(variant.name for variant in study.variants)}"
    console.print(Text(f"confirmed in {plural(study.blocks, 'block')} of their own: {confirmed}"))


def _row(factor: Factor) -> tuple[str, str, str, str]:
    levels = [level_text(level) for level in factor.rising or factor.levels]
    if factor.rising:
        shown = f"{levels[0]} to {levels[-1]}, {plural(len(levels), 'step')}"
    else:
        more = f" and {len(levels) - LEVELS_SHOWN} more" if levels[LEVELS_SHOWN:] else ""
        shown = ", ".join(levels[:LEVELS_SHOWN]) + more
    conditions = [f"{one.factor} is {' or '.join(map(level_text, one.levels))}" for one in factor.only_if]
    return factor.name, level_text(factor.baseline), shown, ", ".join(conditions)


def _limits(study: Study) -> list[str]:
    """The constraints, and what may be given up."""
    if study.search is None:
        return []
    told = [f"constraint: {constraint.text}" for constraint in study.search.constraints]
    if study.search.allow:
        told.append(f"levels may give up: {', '.join(study.search.allow)}")
    return told
