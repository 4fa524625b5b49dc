"""What one execution of each statement costs: CPU, and what the engine counts of it, where that differs.

CPU is taken by other processes of a busy host less than time is, so it often tells two statements apart whose
times are still open.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.columns import Block
from dbdyno.analyse.estimate import Trials, log_ratios
from dbdyno.analyse.found import RatioPosition, StatementCostRatio, StatementCostsCompared
from dbdyno.analyse.intervals import position_of
from dbdyno.analyse.model import Role
from dbdyno.analyse.quantiles import blocks_least, confidence_each
from dbdyno.findings.statements import TOLD
from dbdyno.records.load_words import StatementCost
from dbdyno.records.metrics import number_text
from dbdyno.records.record import Outcome
from dbdyno.report.document import ColumnKind, Detail, Mark, Notes, Section, TableCell, Words, table
from dbdyno.report.words import numbers, safe
from dbdyno.report.words.verdicts import marked

CPU = "server_cpu_us_per_op"
"""The metric that a statement's CPU is judged as."""
COUNTS_DIFFER = 0.1
"""By more than this share of the larger one, two counts differ: caches and statistics move them a little."""

Costs = Mapping[str, Mapping[Block, Sequence[StatementCost]]]


def find(basis: Basis) -> StatementCostsCompared | None:
    """Each statement's under each variant beside the baseline's; None where no trial asked for them."""
    compared = [each for each in basis.compared if each.role in (Role.BASELINE, Role.CANDIDATE)]
    costs = [_costs(each) for each in compared]
    why_not = {each.variant.name: why for each in compared if (why := _why_not(each))}
    pairs = [
        (each.variant.name, name, costs[0][name], own[name])
        for each, own in zip(compared[1:], costs[1:], strict=True)
        for name in costs[0]
        if name in own
    ]
    if not pairs and not why_not:
        return None
    confidence = confidence_each(basis.confidence, len(pairs)) if pairs else basis.confidence
    return StatementCostsCompared(
        comparisons=len(pairs),
        confidence=basis.confidence,
        ratios=tuple(_ratio(basis, *pair, confidence) for pair in pairs),
        why_not=why_not,
    )


def _costs(trials: Trials) -> Costs:
    found: dict[str, dict[Block, list[StatementCost]]] = {}
    for record in trials.rows.columns.records(trials.rows.ended(Outcome.MEASURED).tolist()):
        for one in record.costs.statements if record.costs else ():
            if not one.why_not:
                found.setdefault(one.statement, {}).setdefault((record.host, record.block), []).append(one)
    return found


def _why_not(trials: Trials) -> str:
    records = trials.rows.columns.records(trials.rows.ended(Outcome.MEASURED).tolist())
    return next((one.costs.why_not for one in records if one.costs and one.costs.why_not), "")


def _ratio(
    basis: Basis,
    variant: str,
    statement: str,
    before: Mapping[Block, Sequence[StatementCost]],
    after: Mapping[Block, Sequence[StatementCost]],
    confidence: float,
) -> StatementCostRatio:
    known = StatementCostRatio(statement=statement, variant=variant, counted=_counts(before, after))
    ours, theirs = _cpu_ms(after), _cpu_ms(before)
    logs = log_ratios(ours, theirs)
    found = basis.estimator.ratio(CPU, logs, confidence) if logs else None
    if found is None:
        return known
    least = blocks_least(confidence, basis.estimator.method.interval)
    return known.but(
        baseline_cpu_ms=math.exp(fmean(math.log(theirs[block]) for block in logs)),
        cpu_ms=math.exp(fmean(math.log(ours[block]) for block in logs)),
        blocks=found.pairs,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        told=position_of(found, basis.method.but(blocks_least=least)),
    )


def _cpu_ms(costs: Mapping[Block, Sequence[StatementCost]]) -> dict[Block, float]:
    """By block; with copies, their geometric mean. Less than a clock can tell is left out."""
    found: dict[Block, float] = {}
    for block, each in costs.items():
        known = [one.cpu_ms for one in each if one.cpu_ms is not None and one.cpu_ms > 0.0]
        if known:
            found[block] = math.exp(fmean(map(math.log, known)))
    return found


def _counts(
    before: Mapping[Block, Sequence[StatementCost]], after: Mapping[Block, Sequence[StatementCost]]
) -> dict[str, tuple[float, float]]:
    sides = [[one.counted for each in side.values() for one in each] for side in (before, after)]
    titles = dict.fromkeys(title for one in sides[0] for title in one)
    return {
        title: (_median(title, sides[0]), _median(title, sides[1]))
        for title in titles
        if any(title in one for one in sides[1])
    }


def _median(title: str, counted: Sequence[Mapping[str, float]]) -> float:
    return median(one[title] for one in counted if title in one)


TITLE = "What statements cost"
NOTE = (
    "One execution of each in every trial, outside of what is timed. CPU is the server's; ratio: CPU of the"
    " variant / CPU of the baseline. Counts are medians, baseline -> variant, where they differ by more than"
    f" {numbers.share_text(COUNTS_DIFFER)}."
)


def sections(found: StatementCostsCompared) -> Iterator[Section]:
    """A row for each statement whose CPU or counts differ."""
    several = len({one.variant for one in found.ratios}) > 1
    differing = [one for one in found.ratios if _is_told(one)]
    heads = ("statement", *(["variant"] if several else []), "baseline, ms", "variant, ms", "CPU ratio")
    kinds = {"variant": ColumnKind.NAME, "interval": ColumnKind.PHRASE, "verdict": ColumnKind.PHRASE}
    lines = [_row(one, several) for one in sorted(differing, key=_by_size)]
    shown = table([*heads, "interval", "verdict", "what it reads and spills"], lines, kinds, dense=True)
    same = len(found.ratios) - len(differing)
    notes = [NOTE] if differing else []
    if same:
        notes.append(f"Neither CPU nor counts differ for sure in {numbers.plural(same, 'other comparison')}.")
    variants = dict.fromkeys(one.variant for one in found.ratios)
    notes += [
        f"{safe.clean(name)}: CPU alone is known, because its engine told no counts."
        for name in variants
        if not any(one.counted for one in found.ratios if one.variant == name)
    ]
    notes += [
        f"{safe.clean(name)}: costs are not known, because {safe.clause(safe.clean(why))}."
        for name, why in found.why_not.items()
    ]
    yield Section(TITLE, (*((shown,) if differing else ()), Notes(tuple(notes))), detail=Detail.DETAILS)


def _is_told(one: StatementCostRatio) -> bool:
    return one.told in (RatioPosition.ABOVE, RatioPosition.BELOW) or bool(_differing(one))


def _by_size(one: StatementCostRatio) -> float:
    return -abs(math.log(one.ratio)) if one.ratio else 0.0


def _differing(one: StatementCostRatio) -> dict[str, tuple[float, float]]:
    return {
        title: (before, after)
        for title, (before, after) in one.counted.items()
        if abs(after - before) > COUNTS_DIFFER * max(before, after)
    }


def _row(one: StatementCostRatio, several: bool) -> list[Words | TableCell]:
    verdict = TOLD[one.told]
    counts = "; ".join(
        f"{title} {number_text(before)} -> {number_text(after)}"
        for title, (before, after) in _differing(one).items()
    )
    known = one.ratio is not None and one.baseline_cpu_ms is not None and one.cpu_ms is not None
    interval = known and one.low is not None and one.high is not None
    return [
        safe.clean(one.statement),
        *([safe.clean(one.variant)] if several else []),
        number_text(one.baseline_cpu_ms or 0.0) if known else numbers.DASH,
        number_text(one.cpu_ms or 0.0) if known else numbers.DASH,
        numbers.ratio_text(one.ratio or 0.0) if known else numbers.DASH,
        numbers.between_text(one.low or 0.0, one.high or 0.0) if interval else numbers.DASH,
        Mark(marked(verdict), verdict),
        counts,
    ]
