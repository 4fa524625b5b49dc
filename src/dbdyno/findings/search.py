"""A search: the changes that are worth keeping with their shares, and what the finalists were."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dbdyno.analyse.elimination import (
    COSTS,
)
from dbdyno.analyse.model import (
    Analysis,
    Change,
    SearchResult,
)
from dbdyno.frozen import level_shown
from dbdyno.report.document import ColumnKind, Detail, Element, Figure, Fold, Lines, Notes, Section, table
from dbdyno.report.words import numbers, search
from dbdyno.report.words.naming import factor_text

TITLE = "The search"
CHANGE_HEADS = ("change", "from", "to", "share", "interval")
FINALIST_HEADS = ("variant", "changes")
TRIED_HEADS = ("candidate", "ratio", "blocks", "changes", "why it does not count")
PATH = (
    "Points: candidates in the order of the search, each by its ratio in the search’s own blocks. Line: the"
    " best by then. Band: the confirmed interval. Below: what candidates gain and what they cost, and a line"
    " that joins those that no other beats in both."
)
GIVEN_UP_NOTE = (
    "What candidates gain by what they give up. Full points: none is better that gives up no more. How much"
    " is lost was not measured."
)
JUDGED_HEADS = ("variant", "found by", "ratio told", "measured again", "interval", "again / told", "holds")
JUDGED_NOTE = (
    "Theirs: a searcher of others. Own: Dyno’s. Told: the ratio to the baseline in the blocks by which it was"
    " chosen. Again: in fresh blocks. It holds where these show it to be faster than the baseline."
)
NOTE = "Share: the ratio winner / winner without this change, over the blocks of the last round."


def sections(analysis: Analysis) -> Iterator[Section]:
    """The changes with their shares, what the finalists change, and the candidates on the way there."""
    found = analysis.search
    if found is None:
        return
    yield Section(TITLE, (*_ended(analysis, found),))
    if found.tried:
        yield Section("Its path", (*_path(analysis, found),), aside=PATH, detail=Detail.PAGE)


def _ended(analysis: Analysis, found: SearchResult) -> Iterator[Element]:
    if found.judged:
        yield table(JUDGED_HEADS, judged_rows(found), dict.fromkeys(("found by", "holds"), ColumnKind.PHRASE))
        yield Notes((JUDGED_NOTE,))
    yield Figure("dbdyno.report.figures.search:shares", (found, analysis.method.margin))
    if found.changes:
        yield table(CHANGE_HEADS, change_rows(found), {"from": ColumnKind.CODE, "to": ColumnKind.CODE})
        yield Notes((NOTE,))
    if found.confirmed:
        yield table(FINALIST_HEADS, finalist_rows(analysis), {"changes": ColumnKind.CODE})
    yield Lines(tuple(search.sentences(found)), bullets=True)


def _path(analysis: Analysis, found: SearchResult) -> Iterator[Element]:
    response, margin = analysis.method.response, analysis.method.margin
    yield Figure("dbdyno.report.figures.search:path", (found, margin))
    for cost in COSTS:
        if cost != response:
            yield Figure(
                "dbdyno.report.figures.search:tradeoff",
                (found, cost, response, margin),
                key=f"tradeoff-{cost}",
            )
    yield Figure(
        "dbdyno.report.figures.search:by_given_up",
        (found, response, margin),
        key="given-up",
        words=GIVEN_UP_NOTE,
    )
    kinds = {"changes": ColumnKind.CODE, "why it does not count": ColumnKind.CODE}
    tried = table(TRIED_HEADS, tried_rows(found), kinds)
    yield Fold(numbers.plural(len(found.tried), "candidate"), (tried,))


def change_rows(found: SearchResult) -> list[tuple[str, ...]]:
    """The winner's changes, those with the largest share first; then those that were taken back."""
    ranked = sorted(found.changes, key=_distance, reverse=True)
    return [_row(change, "") for change in ranked] + [_row(change, "taken back") for change in found.removed]


def _row(change: Change, remark: str) -> tuple[str, ...]:
    share = change.share
    if share is None:
        told = change.cause and f"needed: {change.cause}"
        ratio, interval = numbers.DASH, told or numbers.DASH
    else:
        ratio, interval = numbers.ratio_text(share.ratio), numbers.interval_text(share)
    name = f"{factor_text(change.factor)} ({remark})" if remark else factor_text(change.factor)
    levels = level_shown(change.against), level_shown(change.level)
    return (name, *levels, ratio, interval)


def _distance(change: Change) -> float:
    """How far a share is from 1, whichever way is better; one that is needed comes first."""
    if change.share is None:
        return float("inf")
    return max(change.share.ratio, 1.0 / change.share.ratio)


def judged_rows(found: SearchResult) -> list[tuple[str, ...]]:
    """The finalists of an evaluation, those of each side by what their searcher saw."""
    ranked = sorted(found.judged, key=lambda one: (one.side == "own", -abs(math.log(one.told))))
    return [
        (
            one.name,
            one.side,
            numbers.ratio_text(one.told),
            numbers.DASH if one.again is None else numbers.ratio_text(one.again),
            numbers.DASH if one.low is None or one.high is None else numbers.between_text(one.low, one.high),
            numbers.DASH if one.again is None else numbers.ratio_text(one.again / one.told),
            "yes" if one.holds else "no",
        )
        for one in ranked
    ]


def finalist_rows(analysis: Analysis) -> list[tuple[str, str]]:
    """What the confirmed variants change, the baseline left out."""
    found = analysis.search
    assert found is not None
    return [(one.name, search.changes_text(found, one.name, one.changed)) for one in analysis.candidates]


def tried_rows(found: SearchResult) -> list[tuple[str, ...]]:
    """Every candidate in the order of the search."""
    return [
        (
            one.name,
            numbers.DASH if one.ratio is None else numbers.ratio_text(one.ratio),
            str(one.blocks),
            search.changes_text(found, one.name, one.changed),
            one.cause,
        )
        for one in found.tried
    ]
