"""What becomes of a cluster whose nodes are struck: a line for each act of each variant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.model import Analysis
from dbdyno.analyse.restarts import ByAct, OnNodes, Spread, Survivor
from dbdyno.records.metrics import number_text
from dbdyno.report.document import Kind, Notes, Section, table
from dbdyno.report.words import numbers
from dbdyno.study.act import OF_CLUSTER, Act

TITLE = "What becomes of the cluster"
HEADS = (
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
KINDS = {"after a": Kind.TEXT, "by": Kind.TEXT}
METHOD = (
    "In each round one node was struck in the midst of a full load. Every transaction that a client had been"
    " told of was then looked for on each node, one by one, once that node had all that the first one has."
    " The invariants were checked on each node, and all rows of all nodes were compared."
)
TIMES = (
    "Times are medians, with the shortest and the longest round. silent: the longest time without an"
    " acknowledged commit. replaced: from the end of the first node until another one takes writes. rejoin:"
    " from a node's start or return until all nodes take part."
)
STALE = (
    "stale reads: how often another node did not show the latest commit of a client that had been told of it,"
    " of all looks before the act."
)


DONOR = "{}, {}: the node that gave another one all its data came no further for at most {} s meanwhile."


def sections(analysis: Analysis, more: Sequence[str]) -> Iterator[Section]:
    """The table and its notes, with `more` of them; nothing where no node was struck."""
    if found := rows(analysis):
        notes = (METHOD, TIMES, STALE, *_permitted(analysis), *more)
        yield Section(TITLE, (table(HEADS, found, KINDS), Notes(notes)))


def rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """A row for each variant and act on its nodes."""
    ratios = {one.name: one.effect.ratio for one in analysis.variants if one.effect is not None}
    return [
        _row(one, act, act.nodes, ratios.get(one.variant))
        for one in analysis.survivors
        for act in one.acts
        if act.act in OF_CLUSTER and act.nodes is not None
    ]


def _row(one: Survivor, act: ByAct, nodes: OnNodes, ratio: float | None) -> tuple[str, ...]:
    return (
        one.variant,
        numbers.DASH if ratio is None else numbers.ratio_text(ratio),
        act.act.words,
        f"{act.rounds:,}",
        f"{act.acknowledged:,}",
        f"{act.lost:,} in {numbers.plural(act.losing, 'round')}" if act.lost else "0",
        f"{act.rounds - nodes.unequal} of {act.rounds}",
        _spread(nodes.silent_s),
        _spread(nodes.replaced_s),
        _spread(nodes.rejoin_s),
        ", ".join(nodes.transfers) or numbers.DASH,
        f"{nodes.stale:,} of {nodes.looks:,}" if nodes.looks else numbers.DASH,
    )


def _spread(seconds: Spread | None) -> str:
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
                yield DONOR.format(one.variant, act.act.words, number_text(act.nodes.donor_still_s.most))
            if act.nodes is not None and act.nodes.stale:
                yield (
                    f"{one.variant}, {act.act.words}: the oldest stale read came"
                    f" {number_text(act.nodes.stale_ms_most)} ms after the client was told."
                )
