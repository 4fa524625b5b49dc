"""What each variant loses when its engine ends, beside what it gains: a line for each act of each variant.

What becomes of a cluster whose nodes are struck: a line for each act of each variant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.model import Analysis, VariantResult
from dbdyno.analyse.restarts import CONFIDENCE, ByAct, OnNodes, Spread, Survival, Survivor, with_frontier
from dbdyno.records import metrics
from dbdyno.records.metrics import number_text
from dbdyno.records.record import Loss
from dbdyno.report.document import ColumnKind, Notes, Section, table
from dbdyno.report.words import numbers, safe
from dbdyno.study.soak import OF_CLUSTER, Act

TITLE = "What survives"
HEADS = (
    "variant",
    "ratio",
    "may lose",
    "after a",
    "rounds",
    "lossy",
    "lost at most",
    "oldest lost, ms",
    "damaged",
    "ready, s",
    "full speed, s",
)
KINDS = {"may lose": ColumnKind.TEXT, "after a": ColumnKind.TEXT}
METHOD = (
    "Before the blocks, each engine was ended in the midst of a full load, at random moments, and started "
    "again. Every transaction that a client had been told of was then looked for, one by one, and the "
    "invariants were checked. Power is cut at the file system: a cut shows no loss from a device whose "
    "own cache is volatile."
)
MAY_LOSE = {Loss.NOTHING: "nothing", Loss.COMMITS: "late commits", Loss.DATA: "the data"}


def find(basis: Basis) -> Survival | None:
    """What became of each variant when its engine ended, and which none beats in that and in speed."""
    survived, response = basis.survived, basis.study.goal.response
    return with_frontier(survived, _worths(basis.results, response)) if survived else None


def _worths(results: Sequence[VariantResult], response: str) -> dict[str, float]:
    """How much better than the baseline each variant is shown to be, as a log ratio: one whose interval
    holds 1 is as good."""
    sign = 1.0 if metrics.find(response).higher_is_better else -1.0
    worths = {results[0].name: 0.0}
    for one in results:
        effect = one.effect
        if effect is not None and effect.low is not None and effect.high is not None:
            shown = effect.low > 1.0 or effect.high < 1.0
            worths[one.name] = sign * math.log(effect.ratio) if shown else 0.0
    return worths


def sections(analysis: Analysis) -> Iterator[Section]:
    """The table and the notes; nothing where no engine was restarted."""
    if analysis.survival is None:
        return
    found = rows(analysis)
    if found or not cluster_rows(analysis):
        yield Section(TITLE, (table(HEADS, found, KINDS), Notes(tuple(notes(analysis)))))
    yield from cluster_sections(analysis, () if found else tuple(of_variants(analysis)))


def rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """A row for each variant and act, the control last. Acts on the nodes of a cluster have a table of their
    own."""
    found = analysis.survival
    assert found is not None
    ratios = {one.name: one.effect.ratio for one in analysis.variants if one.effect is not None}
    return [
        _row(one, act, ratios.get(one.variant))
        for one in found.tried
        for act in one.acts
        if act.nodes is None
    ]


def _row(one: Survivor, act: ByAct, ratio: float | None) -> tuple[str, ...]:
    return (
        one.variant,
        numbers.DASH if ratio is None else numbers.ratio_text(ratio),
        MAY_LOSE[one.permits],
        act.act.words,
        f"{act.rounds:,}",
        f"{act.losing:,}",
        f"{act.lost_most:,}",
        number_text(act.lost_ms_most) if act.lost else numbers.DASH,
        f"{act.damaged:,}",
        *(
            numbers.DASH if seconds is None else number_text(seconds)
            for seconds in (act.ready_s, act.full_speed_s)
        ),
    )


def notes(analysis: Analysis) -> list[str]:
    """How it was found, what it proves, and what the settings did not permit."""
    found = analysis.survival
    assert found is not None
    return [METHOD, *_proof(found), *_frontier(analysis, found), *of_variants(analysis)]


def of_variants(analysis: Analysis) -> Iterator[str]:
    """What is told of each variant by itself."""
    for one in analysis.survivors:
        yield from _of_variant(one)


def _frontier(analysis: Analysis, found: Survival) -> Iterator[str]:
    """The variants that none beats in both, each with what it gains and what it lost."""
    if not found.frontier:
        return
    ratios = {one.name: one.effect.ratio for one in analysis.variants if one.effect is not None}
    by_name = {one.variant: one for one in found.variants}
    told = [
        f"{name} ({numbers.ratio_text(ratios.get(name, 1.0))} times, {_lost(by_name[name])})"
        for name in found.frontier
    ]
    yield f"Speed against loss, no variant beats these in both: {'; '.join(told)}."


def _lost(one: Survivor) -> str:
    """What the power cuts took along of a variant at worst."""
    rounds = numbers.plural(sum(act.rounds for act in one.power), "power cut")
    damaged, lost_most = one.loss
    parts = []
    if lost_most:
        oldest_ms = max(act.lost_ms_most for act in one.power)
        lost = numbers.plural(lost_most, "transaction")
        parts.append(f"at most {lost} lost in one of {rounds}, the oldest {number_text(oldest_ms)} ms old")
    if damaged:
        parts.append(f"the data damaged after {damaged:,} of {rounds}")
    return " and ".join(parts) or f"nothing lost in {rounds}"


def _proof(found: Survival) -> Iterator[str]:
    if found.unproven:
        yield f"That nothing was lost proves nothing: {safe.clause(found.unproven)}."
        return
    for act in found.control.power if found.control else ():
        rounds = numbers.plural(act.rounds, act.act.words)
        if act.losing:
            told = f"{act.lost:,} of {act.acknowledged:,} acknowledged transactions"
            yield f"The control must lose, and did: {told} in {act.losing} of {rounds}."
        elif act.damaged:
            yield f"The control must lose, and did: its data were damaged in {act.damaged} of {rounds}."
        else:
            yield f"The control lost nothing in {rounds}, but another setup did, so the cuts are real."


def _of_variant(one: Survivor) -> Iterator[str]:
    name = one.variant
    for act in one.power:
        rounds = numbers.plural(act.rounds, act.act.words)
        if not (act.losing or act.damaged):
            share = numbers.rough_share_text(act.share_most)
            yield (
                f"{name}: none of {rounds} took anything along, so at most {share} of such cuts do "
                f"({numbers.share_text(CONFIDENCE)} confidence)."
            )
        if act.torn_pages == 0:
            yield f"{name}: no page was on its way in any of {rounds}, so none was torn."
        elif act.torn_pages is not None:
            yield f"{name}: {numbers.plural(act.torn_pages, 'page')} torn in {rounds}."
    for act in one.acts:
        if act.act is Act.FLIP:
            yield f"{name}: {_of_flips(act)}."
        elif act.stop_s is not None:
            yield f"{name}: a clean stop took {number_text(act.stop_s)} s."
    for fault in one.faults:
        yield f"{name}: its settings do not permit this: {safe.clause(fault)}."
    if one.cause:
        yield f"{name}: not all rounds could be tried: {safe.clause(one.cause)}."


def _of_flips(act: ByAct) -> str:
    """What the engine made of the bits that were turned in rows of it."""
    told = [f"the engine told of {act.told} of {numbers.plural(act.rounds, act.act.words)}"]
    if act.silent:
        told.append(f"of {act.silent} it handed out another row and said nothing")
    if unread := act.rounds - act.told - act.silent:
        told.append(f"{unread} it did not read")
    return "; ".join(told)


CLUSTER_TITLE = "What becomes of the cluster"
CLUSTER_HEADS = (
    "variant",
    "ratio",
    "after a",
    "rounds",
    "acknowledged",
    "lost",
    "nodes equal",
    "silent, s",
    "replaced, s",
    "rejoin, s",
    "by",
    "stale reads",
)
CLUSTER_KINDS = {"after a": ColumnKind.TEXT, "by": ColumnKind.TEXT}
CLUSTER_METHOD = (
    "In each round one node was struck in the midst of a full load. Every transaction that a client had been"
    " told of was then looked for on each node, one by one, once that node had all that the first one has."
    " The invariants were checked on each node, and all rows of all nodes were compared."
)
CLUSTER_TIMES = (
    "Times are medians, with the shortest and the longest round. silent: the longest time without an"
    " acknowledged commit. replaced: from the end of the first node until another one takes writes. rejoin:"
    " from a node's start or return until all nodes take part."
)
CLUSTER_STALE = (
    "stale reads: how often another node did not show the latest commit of a client that had been told of it,"
    " of all looks before the act."
)


CLUSTER_DONOR = (
    "{}, {}: the node that gave another one all its data came no further for at most {} s meanwhile."
)


def cluster_sections(analysis: Analysis, more: Sequence[str]) -> Iterator[Section]:
    """The table and its notes, with `more` of them; nothing where no node was struck."""
    if found := cluster_rows(analysis):
        notes = (CLUSTER_METHOD, CLUSTER_TIMES, CLUSTER_STALE, *_permitted(analysis), *more)
        yield Section(CLUSTER_TITLE, (table(CLUSTER_HEADS, found, CLUSTER_KINDS), Notes(notes)))


def cluster_rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """A row for each variant and act on its nodes."""
    ratios = {one.name: one.effect.ratio for one in analysis.variants if one.effect is not None}
    return [
        _cluster_row(one, act, act.nodes, ratios.get(one.variant))
        for one in analysis.survivors
        for act in one.acts
        if act.act in OF_CLUSTER and act.nodes is not None
    ]


def _cluster_row(one: Survivor, act: ByAct, nodes: OnNodes, ratio: float | None) -> tuple[str, ...]:
    return (
        one.variant,
        numbers.DASH if ratio is None else numbers.ratio_text(ratio),
        act.act.words,
        f"{act.rounds:,}",
        f"{act.acknowledged:,}",
        f"{act.lost:,} in {numbers.plural(act.losing, 'round')}" if act.lost else "0",
        f"{act.rounds - nodes.unequal} of {act.rounds}",
        _cluster_spread(nodes.silent_s),
        _cluster_spread(nodes.replaced_s),
        _cluster_spread(nodes.rejoin_s),
        ", ".join(nodes.transfers) or numbers.DASH,
        f"{nodes.stale:,} of {nodes.looks:,}" if nodes.looks else numbers.DASH,
    )


def _cluster_spread(seconds: Spread | None) -> str:
    if seconds is None:
        return numbers.DASH
    shown = map(number_text, (seconds.median, seconds.least, seconds.most))
    return "{} ({} to {})".format(*shown)


def _permitted(analysis: Analysis) -> Iterator[str]:
    """What was lost with the first node and may be, how long a donor stood still, and how old the stale reads
    were."""
    for one in analysis.survivors:
        for act in one.acts:
            if act.act is Act.FIRST_LOST and act.lost and not one.faults:
                yield (
                    f"{one.variant}: its settings permit that the first node takes commits along. The oldest"
                    f" that was lost was {number_text(act.lost_ms_most)} ms old."
                )
            if act.nodes is not None and act.nodes.donor_still_s is not None:
                yield CLUSTER_DONOR.format(
                    one.variant, act.act.words, number_text(act.nodes.donor_still_s.most)
                )
            if act.nodes is not None and act.nodes.stale:
                yield (
                    f"{one.variant}, {act.act.words}: the oldest stale read came"
                    f" {number_text(act.nodes.stale_ms_most)} ms after the client was told."
                )
