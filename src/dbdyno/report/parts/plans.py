"""Plans of statements that differ from the baseline's: a row for each, and both plans side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.console import Console
from rich.text import Text

from dbdyno.analyse.plans import PlanChange, PlanForm, PlansCompared
from dbdyno.records.plan import Plans, StatementPlan
from dbdyno.report.parts.table import show
from dbdyno.report.words import numbers, plans, safe

TITLE = "Plans"
HEADS = ("variant", "statement", "baseline’s plan", "variant’s plan", "blocks")
NOTE = (
    "How the engine said after each load that it would execute a statement, with the same values in all"
    " trials. Costs and estimates are left out. A plan that changed stands beside an effect; it need not be"
    " its cause."
)
BOTH_HEADS = ("baseline’s plan", "variant’s plan")
TEXT_MOST = 60
ROWS_MOST = 12
"""On a terminal; the page and Markdown have all."""


def rows(found: PlansCompared) -> list[tuple[str, ...]]:
    """A row for each statement of a variant whose plan differs from the baseline's in some block."""
    return [
        (
            safe.clean(one.variant),
            statement_text(change),
            form_text(change.before),
            form_text(change.after),
            f"{change.changed} of {change.blocks}",
        )
        for one in found.variants
        for change in one.changes
    ]


def statement_text(change: PlanChange) -> str:
    """A statement's name, with the beginning of its text: a number in a transaction says little."""
    text = safe.clean(change.text)
    short = text if len(text) <= TEXT_MOST else f"{text[: TEXT_MOST - 1]}…"
    return f"{safe.clean(change.statement)}: {short}"


def form_text(forms: Sequence[PlanForm]) -> str:
    """The most frequent plan, and how many others there were."""
    text = safe.clean(forms[0].summary)
    return f"{text} (and {numbers.plural(len(forms) - 1, 'other')})" if len(forms) > 1 else text


def details(found: PlansCompared) -> list[tuple[str, PlanChange]]:
    """Each change with its variant, for the plans side by side."""
    return [(safe.clean(one.variant), change) for one in found.variants for change in one.changes]


def tree(forms: Sequence[PlanForm]) -> str:
    """The steps of the most frequent plan, a line each."""
    return "\n".join(map(safe.clean, forms[0].steps))


def side_by_side(change: PlanChange) -> list[tuple[str, ...]]:
    """A line of the baseline's plan beside one of the variant's, where a form of report keeps no indents."""
    trees = ([_stepped(step) for step in forms[0].steps] for forms in (change.before, change.after))
    return list(zip_longest(*trees, fillvalue=""))


def _stepped(step: str) -> str:
    text = step.lstrip(" ")
    return f"{'› ' * ((len(step) - len(text)) // 2)}{safe.clean(text)}"


def render(found: PlansCompared, console: Console) -> None:
    """Prints what changed, or in one line that nothing did."""
    lines = rows(found)
    remarks = plans.remarks(found)
    if not lines:
        for said in filter(None, (plans.unchanged(found), *remarks)):
            console.print(Text(said, style="dim"))
        return
    console.print(Text(TITLE, style="bold"))
    show(console, HEADS, lines[:ROWS_MOST], words=range(len(HEADS) - 1), close=True)
    if len(lines) > ROWS_MOST:
        console.print(
            Text(f"and {len(lines) - ROWS_MOST} more: the page and Markdown have them", style="dim")
        )
    for said in (*remarks, NOTE):
        console.print(Text(said, style="dim"))


def render_trial(found: Plans, console: Console) -> None:
    """Prints the plans that one trial has."""
    console.print(Text("plans of its statements, asked after the load", style="bold"))
    if found.why_not:
        console.print(Text(f"not known: {safe.clean(found.why_not)}"))
    for one in found.statements:
        _render_statement(one, console)
    for name, why in found.unreached.items():
        console.print(Text(f"{safe.clean(name)} may have more statements: {safe.clean(why)}"))


def _render_statement(one: StatementPlan, console: Console) -> None:
    console.print(Text.assemble((safe.clean(one.statement), "bold"), "  ", (safe.clean(one.text), "dim")))
    if one.why_not:
        console.print(Text(f"  no plan: {safe.clean(one.why_not)}"))
    for step in one.steps:
        console.print(Text(f"  {safe.clean(step)}"))
