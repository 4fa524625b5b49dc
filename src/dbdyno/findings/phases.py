"""The phases of a load: a row for each phase of each variant, with a verdict in one family of comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.columns import Block
from dbdyno.analyse.estimate import Trials, log_ratios
from dbdyno.analyse.found import RatioPosition
from dbdyno.analyse.intervals import position_of
from dbdyno.analyse.model import Analysis, Role, Verdict
from dbdyno.analyse.phases import PhasesCompared, PhaseTold
from dbdyno.analyse.quantiles import blocks_least, confidence_each
from dbdyno.records import metrics
from dbdyno.records.metrics import Metric
from dbdyno.records.record import Outcome, PhaseRecord, Record
from dbdyno.report.document import ColumnKind, Mark, Notes, Section, Table, Words, table
from dbdyno.report.words import naming, numbers, safe
from dbdyno.report.words.verdicts import marked
from dbdyno.study.nouns import BASELINE

TITLE = "Phases"
WRITTEN = "written_bytes_per_op"
KEPT_SHARE = 0.98
"""Of the rate that was asked for beside a phase, so much is as good as all."""
Figures = dict[str, dict[Block, list[float]]]
"""By phase and block."""


def find(basis: Basis) -> PhasesCompared:
    """The response of each phase under each variant, with its ratio to the baseline's over the blocks, in one
    family of comparisons."""
    metric = metrics.find(basis.study.goal.response)
    compared = [each for each in basis.compared if each.role in (Role.BASELINE, Role.CANDIDATE)]
    found = [(each, _figures(each, metric), _figures(each, metrics.find(WRITTEN))) for each in compared]
    baseline = {phase: _means(blocks) for phase, blocks in found[0][1].items()}
    pairs = sum(len(figures.keys() & baseline.keys()) for _, figures, _ in found[1:])
    confidence = confidence_each(basis.confidence, pairs)
    told = [
        _told(basis, metric, each, phase, _means(blocks), baseline.get(phase, {}), confidence).but(
            written_bytes_per_op=_middle(_means(written.get(phase, {})))
        )
        for each, figures, written in found
        for phase, blocks in figures.items()
    ]
    order = [one.name for one in basis.study.phases]
    return PhasesCompared(
        metric=metric.name,
        comparisons=pairs,
        confidence=basis.confidence,
        phases=tuple(sorted(told, key=lambda one: order.index(one.phase))),
        behind=tuple(dict.fromkeys(line for each in compared for line in _behind(basis, each))),
    )


def of_phase(record: Record, phase: PhaseRecord) -> Record:
    """The record as if that had been its only load."""
    return record.but(phases=(phase,))


def _measured(trials: Trials) -> Iterator[tuple[Record, PhaseRecord]]:
    for one in trials.each:
        for record in one.rows.columns.records(one.rows.ended(Outcome.MEASURED).tolist()):
            yield from ((record, phase) for phase in record.phases if phase.tally is not None)


def _figures(trials: Trials, metric: Metric) -> Figures:
    found: Figures = {}
    for record, phase in _measured(trials):
        value = metric.read(of_phase(record, phase))
        if value is not None and value > 0.0:
            found.setdefault(phase.name, {}).setdefault((record.host, record.block), []).append(value)
    return found


def _means(blocks: dict[Block, list[float]]) -> dict[Block, float]:
    """With copies of the baseline, their geometric mean in the block."""
    return {block: math.exp(fmean(map(math.log, values))) for block, values in blocks.items()}


def _middle(blocks: Mapping[Block, float]) -> float | None:
    return math.exp(fmean(map(math.log, blocks.values()))) if blocks else None


def _told(
    basis: Basis,
    metric: Metric,
    trials: Trials,
    phase: str,
    ours: dict[Block, float],
    theirs: dict[Block, float],
    confidence: float,
) -> PhaseTold:
    value = _middle(ours)
    assert value is not None, "it was measured in some block"
    told = PhaseTold(phase=phase, variant=trials.variant.name, value=value, blocks=len(ours))
    logs = log_ratios(ours, theirs) if trials.role is Role.CANDIDATE else {}
    ratio = basis.estimator.ratio(metric.name, logs, confidence) if logs else None
    if ratio is None:
        return told
    method = basis.method.but(blocks_least=blocks_least(confidence, basis.estimator.method.interval))
    position = position_of(ratio, method)
    return told.but(blocks=ratio.pairs, ratio=ratio.ratio, low=ratio.low, high=ratio.high, position=position)


def _behind(basis: Basis, trials: Trials) -> Iterator[str]:
    """Where less was sent beside a phase than was asked for, in any trial."""
    asked = {one.name: one.beside_rate_per_s for one in basis.study.phases if one.beside_rate_per_s}
    least: dict[str, float] = {}
    for _, phase in _measured(trials):
        if phase.name in asked and phase.tally is not None and phase.tally.duration_s:
            done_per_s = sum(one.operations for one in phase.guests) / phase.tally.duration_s
            least[phase.name] = min(least.get(phase.name, math.inf), done_per_s)
    for name, done_per_s in least.items():
        wanted = asked[name]
        if wanted is not None and done_per_s < KEPT_SHARE * wanted:
            yield (
                f"{trials.variant.name}, {name}: of {wanted:g} transactions per second beside it "
                f"{metrics.number_text(done_per_s)} were done in some trial"
            )


def sections(analysis: Analysis) -> Iterator[Section]:
    found = analysis.phases
    assert found is not None, "it is told where it was found"
    notes = Notes((*_notes(found, metrics.find(found.metric)),))
    yield Section(TITLE, (phases_table(analysis, found), notes))


WRITTEN_COLUMN, INTERVAL = "written per op", "interval"
LAYOUTS: tuple[tuple[str, ...], ...] = ((), (WRITTEN_COLUMN,), (WRITTEN_COLUMN, INTERVAL))
"""What a table for one screen leaves out, where there is no room for more."""


def phases_table(analysis: Analysis, found: PhasesCompared, left_out: Sequence[str] = ()) -> Table:
    """A row for each phase of each variant; some columns may be `left_out` of it."""
    metric, called = metrics.find(found.metric), naming.called(analysis)
    heads = ["phase", "variant", metric.unit or metric.title, WRITTEN_COLUMN, "ratio", INTERVAL, "verdict"]
    kept = [place for place, head in enumerate(heads) if head not in left_out]
    rows = [[row[place] for place in kept] for row in (_row(one, metric, called) for one in found.phases)]
    kinds = {"variant": ColumnKind.NAME, INTERVAL: ColumnKind.PHRASE, "verdict": ColumnKind.PHRASE}
    return table([heads[place] for place in kept], rows, kinds, dense=True)


def of_last(analysis: Analysis) -> str:
    """Which phase the figures are of that a run has once; empty where there is one load."""
    last = analysis.study.phases[-1].name if analysis.study.phases else ""
    return f"The answer is of the last phase, {safe.clean(last)}" if last else ""


def _row(one: PhaseTold, metric: Metric, called: Mapping[str, str]) -> list[Words]:
    written = one.written_bytes_per_op
    figures: list[Words] = [
        safe.clean(one.phase),
        called.get(one.variant, safe.clean(one.variant)),
        metric.format(one.value),
        numbers.DASH if written is None else metrics.bytes_text(written),
    ]
    if one.ratio is None:
        return [*figures, numbers.DASH, numbers.DASH, "baseline" if one.variant == BASELINE else numbers.DASH]
    interval = "one block"
    if one.low is not None and one.high is not None:
        interval = numbers.between_text(one.low, one.high)
    verdict = verdict_of(one.position, metric)
    return [*figures, numbers.ratio_text(one.ratio), interval, Mark(marked(verdict), verdict)]


def verdict_of(position: RatioPosition | None, metric: Metric) -> Verdict:
    """What a ratio to the baseline means for a metric."""
    if position is RatioPosition.LEVEL:
        return Verdict.NO_EFFECT
    if position in (None, RatioPosition.OPEN):
        return Verdict.INCONCLUSIVE
    better = (position is RatioPosition.ABOVE) is metric.higher_is_better
    return Verdict.FASTER if better else Verdict.SLOWER


def _notes(found: PhasesCompared, metric: Metric) -> Iterator[str]:
    last = found.phases[-1].phase if found.phases else ""
    yield (
        "Each phase is a load by itself, and follows the one before it on the same server. Told: its"
        f" {metric.title}; ratio: variant / baseline. Written: bytes that the server's processes sent towards"
        " storage, over the transactions of the phase. The intervals of all"
        f" {numbers.plural(found.comparisons, 'comparison')} hold together with"
        f" {numbers.share_text(found.confidence)}. All other figures of this page are of the last phase,"
        f" {safe.clean(last)}."
    )
    for line in found.behind:
        yield f"{safe.clean(line)}."
