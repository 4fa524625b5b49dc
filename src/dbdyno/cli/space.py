"""The space of a search, as `dyno plan` prints it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.begin.space import space_text
from dbdyno.frozen import level_text
from dbdyno.plan.search.pace import FINALISTS
from dbdyno.report.words.numbers import plural
from dbdyno.study import Factor, Study

LEVELS_SHOWN = 6
"""Of a list; the rest are counted."""


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
