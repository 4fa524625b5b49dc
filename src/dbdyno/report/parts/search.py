"""A search: the changes that are worth keeping with their shares, and what the finalists were."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from dbdyno.analyse.model import Analysis, Change, SearchResult
from dbdyno.frozen import level_text
from dbdyno.report.parts.table import show
from dbdyno.report.words import numbers, safe, search
from dbdyno.report.words.naming import factor_text

TITLE = "The search"
CHANGE_HEADS = ("change", "from", "to", "share", "interval")
FINALIST_HEADS = ("variant", "changes")
TRIED_HEADS = ("candidate", "ratio", "blocks", "changes", "why it does not count")
TRADEOFF = "What candidates gain and what they cost. The line joins those that no other beats in both."
GIVEN_UP_NOTE = (
    "What candidates gain by what they give up. Full points: none is better that gives up no more. How much"
    " is lost was not measured."
)
NOTE = "Share: the ratio winner / winner without this change, over the blocks of the last round."


def change_rows(found: SearchResult) -> list[tuple[str, ...]]:
    """The winner's changes, those with the largest share first; then those that were taken back."""
    ranked = sorted(found.changes, key=_distance, reverse=True)
    return [_row(change, "") for change in ranked] + [_row(change, "taken back") for change in found.removed]


def _row(change: Change, remark: str) -> tuple[str, ...]:
    share = change.share
    if share is None:
        told = change.cause and f"needed: {safe.clean(change.cause)}"
        ratio, interval = numbers.DASH, told or numbers.DASH
    else:
        ratio, interval = numbers.ratio_text(share.ratio), numbers.interval_text(share)
    name = f"{factor_text(change.factor)} ({remark})" if remark else factor_text(change.factor)
    levels = safe.clean(level_text(change.against)), safe.clean(level_text(change.level))
    return (name, *levels, ratio, interval)


def _distance(change: Change) -> float:
    """How far a share is from 1, whichever way is better; one that is needed comes first."""
    if change.share is None:
        return float("inf")
    return max(change.share.ratio, 1.0 / change.share.ratio)


def finalist_rows(analysis: Analysis) -> list[tuple[str, str]]:
    """What the confirmed variants change, the baseline left out."""
    found = analysis.search
    assert found is not None
    return [
        (safe.clean(one.name), search.changes_text(found, one.name, one.changed))
        for one in analysis.candidates
    ]


def tried_rows(found: SearchResult) -> list[tuple[str, ...]]:
    """Every candidate in the order of the search."""
    return [
        (
            safe.clean(one.name),
            numbers.DASH if one.ratio is None else numbers.ratio_text(one.ratio),
            str(one.blocks),
            search.changes_text(found, one.name, one.changed),
            safe.clean(one.cause),
        )
        for one in found.tried
    ]


def render(analysis: Analysis, console: Console) -> None:
    """Prints the changes with their shares, what the finalists change, and what must be known beside."""
    found = analysis.search
    if found is None:
        return
    console.print()
    console.print(Text(TITLE, style="bold"))
    if found.changes:
        show(console, CHANGE_HEADS, change_rows(found), words=(0, 1, 2), edge=True)
        console.print(Text(NOTE, style="dim"))
    if found.confirmed:
        show(console, FINALIST_HEADS, finalist_rows(analysis), words=(0, 1), edge=True)
    for sentence in search.sentences(found):
        console.print(Text(sentence))
