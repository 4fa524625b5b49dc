"""Plans of statements that differ from the baseline's: a row for each, and both plans side by side.

Which statements had another plan than under the baseline, block by block.

A plan that changed stands beside an effect. Whether it is the cause, the records cannot say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.columns import HAS_PLANS
from dbdyno.analyse.found import PlanChange, PlanFlip, PlanForm, PlansCompared, Unexplained, VariantPlans
from dbdyno.records.record import Outcome, Plans, Record, StatementPlan
from dbdyno.report import document
from dbdyno.report.document import (
    Column,
    ColumnKind,
    Detail,
    Element,
    Fold,
    From,
    Lines,
    Mark,
    Notes,
    RowLook,
    Section,
    Table,
    TableCell,
    Tone,
    table,
)
from dbdyno.report.words import numbers, plans, safe

BETWEEN = " -> "
"""Stands between the steps of a summary, and between what went and what came."""


ByBlock = Mapping[tuple[str, int], Mapping[str, StatementPlan]]
"""By host and block: each statement's plan by its text."""


def compared_plans(records: Sequence[Record], baseline: str) -> PlansCompared | None:
    """The plans of all variants, held against those of the `baseline`, which comes first; None where no
    trial has any."""
    by_variant = _by_variant(records)
    if not by_variant:
        return None
    reference = by_variant.get(baseline, {})
    names = _names(records)
    return PlansCompared(
        statements=len(names),
        variants=tuple(
            _variant(name, reference, found, names) for name, found in by_variant.items() if name != baseline
        ),
        flips=tuple(flip for name, found in by_variant.items() for flip in _flips(name, found, names)),
        unexplained=tuple(_unexplained(records)),
    )


def _by_variant(records: Sequence[Record]) -> dict[str, ByBlock]:
    found: dict[str, dict[tuple[str, int], Mapping[str, StatementPlan]]] = {}
    for record in records:
        if record.plans is not None and record.outcome is Outcome.MEASURED:
            known = {one.text: one for one in record.plans.statements if one.digest}
            found.setdefault(record.variant, {})[record.host, record.block] = known
    return dict(found)


def _names(records: Sequence[Record]) -> dict[str, str]:
    """The name of each statement with a plan, by its text, as the first trial has it that met it."""
    names: dict[str, str] = {}
    for record in records:
        for one in record.plans.statements if record.plans else ():
            if one.digest:
                names.setdefault(one.text, one.statement)
    return names


def _variant(name: str, reference: ByBlock, found: ByBlock, names: Mapping[str, str]) -> VariantPlans:
    changes, compared = [], 0
    for text, statement in names.items():
        pairs = [
            (reference[block][text], plans[text])
            for block, plans in found.items()
            if text in plans and text in reference.get(block, {})
        ]
        compared += bool(pairs)
        changed = [(before, after) for before, after in pairs if before.digest != after.digest]
        if not changed:
            continue
        before, after = _most_frequent(changed)
        changes.append(
            PlanChange(
                statement=statement,
                text=text,
                change=change_text(before, after),
                changed=len(changed),
                blocks=len(pairs),
                before=_forms([one for one, _ in pairs]),
                after=_forms([one for _, one in pairs]),
            )
        )
    return VariantPlans(variant=name, compared=compared, changes=tuple(changes))


def _most_frequent(
    changed: Sequence[tuple[StatementPlan, StatementPlan]],
) -> tuple[StatementPlan, StatementPlan]:
    counted = Counter((before.digest, after.digest) for before, after in changed)
    [(digests, _)] = counted.most_common(1)
    return next(pair for pair in changed if (pair[0].digest, pair[1].digest) == digests)


def _forms(plans: Sequence[StatementPlan]) -> tuple[PlanForm, ...]:
    counted = Counter(one.digest for one in plans)
    first = {one.digest: one for one in reversed(plans)}
    rows = {one.digest: one.rows for one in reversed(plans) if one.rows}
    return tuple(
        PlanForm(
            summary=first[digest].summary,
            steps=first[digest].steps,
            blocks=blocks,
            rows=rows.get(digest, ()),
        )
        for digest, blocks in counted.most_common()
    )


def change_text(before: StatementPlan, after: StatementPlan) -> str:
    """The steps that went, and those that came in their place."""
    old, new = before.summary.split(BETWEEN), after.summary.split(BETWEEN)
    gone, come = list[str](), list[str]()
    for how, left, left_end, right, right_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if how != "equal":
            gone += old[left:left_end]
            come += new[right:right_end]
    if gone and come:
        return f"{' + '.join(gone)}{BETWEEN}{' + '.join(come)}"
    if gone or come:
        return f"{'without' if gone else 'with'} {' + '.join(gone or come)}"
    return "the same steps in another way"


def _flips(variant: str, found: ByBlock, names: Mapping[str, str]) -> list[PlanFlip]:
    flips = []
    for text, statement in names.items():
        forms = _forms([plans[text] for plans in found.values() if text in plans])
        if len(forms) > 1:
            flips.append(PlanFlip(variant=variant, statement=statement, text=text, forms=forms))
    return flips


def _unexplained(records: Sequence[Record]) -> list[Unexplained]:
    """Each reason once, however many trials have it."""
    found: dict[tuple[str, str, str], None] = {}
    for record in records:
        if record.plans is None:
            continue
        if record.plans.why_not:
            found[record.variant, "", record.plans.why_not] = None
        for name, why in record.plans.unreached.items():
            found[name, "", why] = None
        for one in record.plans.statements:
            if one.why_not:
                found[one.statement, one.text, one.why_not] = None
    return [Unexplained(name=name, text=text, why=why) for name, text, why in found]


TITLE = "Plans"
HEADS = ("variant", "statement", "baseline’s plan", "variant’s plan", "blocks")
NOTE = (
    "How the engine said after each load that it would execute a statement, with the same values in all"
    " trials. Costs and estimates are left out. This lists changes; it does not prove a"
    " cause."
)
ROWS_NOTE = (
    "Rows: what each step was expected to give each time, and gave when the statement was executed once after"
    " the first block's load. Marked where one is ten times the other."
)
KINDS = dict.fromkeys(HEADS[1:-1], ColumnKind.CODE)
TEXT_MOST = 60
ROWS_MOST = 12
"""On a terminal; the page and Markdown have all."""


def find(basis: Basis) -> PlansCompared | None:
    """What plans were asked for, held against the baseline's."""
    return compared_plans(basis.whole(HAS_PLANS), basis.baseline)


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
    below = From(Detail.TEXT, (whole, *map(_both, details(found))), cut if lines[ROWS_MOST:] else (whole,))
    yield From(Detail.PAGE, (whole, *map(_side_by_side, details(found))), (below,))
    forms = (form for _, change in details(found) for form in (*change.before, *change.after))
    yield Notes((*remarks, NOTE, *([ROWS_NOTE] if any(form.rows for form in forms) else [])))


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


def _side_by_side(detail: tuple[str, PlanChange]) -> Fold:
    """Both plans as trees in two columns, their steps aligned, and those that differ marked."""
    variant, change = detail
    before, after = ([*map(_step_cell, *_steps(forms))] for forms in (change.before, change.after))
    rows, looks = list[tuple[TableCell, TableCell]](), dict[int, RowLook]()
    # Trees are aligned by what is done, at whatever depth.
    sides = [[step.strip() for step in forms[0].steps] for forms in (change.before, change.after)]
    for how, left, left_end, right, right_end in SequenceMatcher(
        None, sides[0], sides[1], autojunk=False
    ).get_opcodes():
        for pair in zip_longest(before[left:left_end], after[right:right_end], fillvalue=TableCell("")):
            if how != "equal":
                looks[len(rows)] = RowLook.DIFFERS
            rows.append(pair)
    columns = (Column("baseline", ColumnKind.CODE), Column(variant, ColumnKind.CODE))
    trees = Table(columns, tuple(rows), dense=True, looks=looks)
    return Fold(f"{variant}: both plans of {change.statement}", (Notes((change.text,)), trees))


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
    return "\n".join(map(_step_line, *_steps(forms)))


ROWS_OFF = 10.0
"""A step whose rows were expected so many times too high or too low is marked."""
Rows = tuple[float, float] | None


def _steps(forms: Sequence[PlanForm]) -> tuple[tuple[str, ...], tuple[Rows, ...]]:
    """The steps of the most frequent plan, and the rows of each."""
    return forms[0].steps, forms[0].rows or (None,) * len(forms[0].steps)


def _step_cell(step: str, rows: Rows) -> TableCell:
    """A step, with its rows below it."""
    if rows is None:
        return TableCell(safe.clean(step))
    text = rows_beside(rows)
    return TableCell(safe.clean(step), (Mark(text, Tone.DOUBT) if times_off(rows) >= ROWS_OFF else text,))


def _step_line(step: str, rows: Rows) -> str:
    return safe.clean(step) + (f"  ({rows_beside(rows)})" if rows else "")


def times_off(rows: tuple[float, float]) -> float:
    """How many times too high or too low the rows of a step were expected. Less than one row is taken for
    one, as planners do."""
    expected, given = (max(1.0, one) for one in rows)
    return max(expected / given, given / expected)


def rows_beside(rows: tuple[float, float]) -> str:
    """What a step was expected to give, and gave."""
    expected, given = rows
    text = f"{_count(expected)} {'row' if expected == 1.0 else 'rows'} expected, {_count(given)} given"
    if (times := times_off(rows)) < ROWS_OFF:
        return text
    return f"{text}: {_count(times)} times too {'many' if expected > given else 'few'} expected"


def _count(rows: float) -> str:
    """A step that was carried out several times may give a part of a row on average."""
    return f"{rows:,.0f}" if rows >= 10.0 or rows == int(rows) else f"{rows:.2g}"


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
    steps += map(_step_line, one.steps, one.rows or (None,) * len(one.steps))
    steps += [f"its rows are not known: {safe.clean(one.rows_why_not)}"] if one.rows_why_not else []
    yield document.Text("\n".join(f"  {step}" for step in steps))
