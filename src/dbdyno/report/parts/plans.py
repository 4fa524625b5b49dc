"""Plans of statements that differ from the baseline's: a row for each, and both plans side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.plans import PlanChange, PlanForm, PlansCompared
from dbdyno.records.plan import Plans, StatementPlan
from dbdyno.report import document
from dbdyno.report.document import Detail, Element, Fold, From, Kind, Lines, Mark, Notes, Section, Tone, table
from dbdyno.report.words import numbers, plans, safe

TITLE = "Plans"
HEADS = ("variant", "statement", "baseline’s plan", "variant’s plan", "blocks")
NOTE = (
    "How the engine said after each load that it would execute a statement, with the same values in all"
    " trials. Costs and estimates are left out. This lists changes; it does not prove a"
    " cause."
)
KINDS = dict.fromkeys(HEADS[1:-1], Kind.CODE)
TEXT_MOST = 60
ROWS_MOST = 12
"""On a terminal; the page and Markdown have all."""


def sections(found: PlansCompared) -> Iterator[Section]:
    """What changed, or in one line that nothing did."""
    body = (*_body(found),)
    if body:
        yield Section(TITLE, body)


def _body(found: PlansCompared) -> Iterator[Element]:
    lines, remarks = _rows(found), tuple(plans.remarks(found))
    if not lines:
        if said := (*filter(None, (plans.unchanged(found),)), *remarks):
            yield Notes(said)
        return
    more = f"and {len(lines) - ROWS_MOST} more: the page and Markdown have them"
    cut = (table(HEADS, lines[:ROWS_MOST], KINDS, dense=True), Notes((more,)))
    whole = table(HEADS, lines, KINDS, dense=True)
    yield From(Detail.TEXT, (whole, *map(_both, details(found))), cut if lines[ROWS_MOST:] else (whole,))
    yield Notes((*remarks, NOTE))


def _both(detail: tuple[str, PlanChange]) -> Fold:
    """The baseline's plan and the variant's."""
    variant, change = detail
    return Fold(
        f"{variant}: both plans of {change.statement}",
        (
            Notes((change.text,)),
            Lines(("Baseline",)),
            document.Text(tree(change.before)),
            Lines((variant,)),
            document.Text(tree(change.after)),
        ),
    )


def _rows(found: PlansCompared) -> list[tuple[str, ...]]:
    """A row for each statement of a variant whose plan differs from the baseline's in some block."""
    return [
        (
            one.variant,
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
    text = change.text
    short = text if len(text) <= TEXT_MOST else f"{text[: TEXT_MOST - 1]}…"
    return f"{change.statement}: {short}"


def form_text(forms: Sequence[PlanForm]) -> str:
    """The most frequent plan, and how many others there were."""
    text = forms[0].summary
    return f"{text} (and {numbers.plural(len(forms) - 1, 'other')})" if len(forms) > 1 else text


def details(found: PlansCompared) -> list[tuple[str, PlanChange]]:
    """Each change with its variant, for the plans side by side."""
    return [(one.variant, change) for one in found.variants for change in one.changes]


def tree(forms: Sequence[PlanForm]) -> str:
    """The steps of the most frequent plan, a line each."""
    return "\n".join(map(safe.clean, forms[0].steps))


def of_trial(found: Plans) -> Iterator[Section]:
    """The plans that one trial has."""
    unknown = (f"not known: {found.why_not}",) if found.why_not else ()
    statements = (element for one in found.statements for element in _of_statement(one))
    unreached = tuple(f"{name} may have more statements: {why}" for name, why in found.unreached.items())
    body = (Lines(unknown), *statements, Lines(unreached))
    yield Section("plans of its statements, asked after the load", body)


def _of_statement(one: StatementPlan) -> Iterator[Element]:
    yield Lines(((Mark(one.statement, Tone.STRONG), "  ", Mark(one.text, Tone.QUIET)),))
    steps = [f"no plan: {safe.clean(one.why_not)}"] if one.why_not else []
    yield document.Text("\n".join(f"  {step}" for step in [*steps, *map(safe.clean, one.steps)]))
