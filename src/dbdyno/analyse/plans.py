"""Which statements had another plan than under the baseline, block by block.

A plan that changed stands beside an effect. Whether it is the cause, the records cannot say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from dbdyno.frozen import Frozen, absent
from dbdyno.records.plan import StatementPlan
from dbdyno.records.record import Outcome, Record

BETWEEN = " -> "
"""Stands between the steps of a summary, and between what went and what came."""


class PlanForm(Frozen):
    """One plan of a statement: what is done in which order, its steps as a tree, and in how many blocks a
    variant had it."""

    summary: str
    steps: tuple[str, ...]
    blocks: int


class PlanChange(Frozen):
    """A statement whose plan differed from the baseline's in `changed` of the `blocks` in which both are
    known. `change` names the steps that differ. `before` are the baseline's plans and `after` the variant's,
    in all blocks, the most frequent first."""

    statement: str
    text: str
    change: str
    changed: int
    blocks: int
    before: tuple[PlanForm, ...]
    after: tuple[PlanForm, ...]


class PlanFlip(Frozen):
    """A statement that had more than one plan in the blocks of one and the same variant."""

    variant: str
    statement: str
    text: str
    forms: tuple[PlanForm, ...]


class VariantPlans(Frozen):
    """What differs from the baseline's plans in one variant, over the statements that could be `compared`."""

    variant: str
    compared: int
    changes: tuple[PlanChange, ...]


class Unexplained(Frozen):
    """A statement, or all of a transaction or a variant, whose plan is not known, and why."""

    name: str
    text: str = ""
    why: str


class PlansCompared(Frozen):
    """The plans of a run's statements. `flips` are those of single variants, the baseline's among them."""

    statements: int
    variants: tuple[VariantPlans, ...]
    flips: tuple[PlanFlip, ...] = absent(())
    unexplained: tuple[Unexplained, ...] = absent(())

    def of(self, variant: str) -> tuple[PlanChange, ...]:
        """What changed in a variant."""
        return next((one.changes for one in self.variants if one.variant == variant), ())


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
    return tuple(
        PlanForm(summary=first[digest].summary, steps=first[digest].steps, blocks=blocks)
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
