"""The nouns of what a search, or an evaluation, says of the best that it found."""

from __future__ import annotations

from typing import Literal

from dbdyno.frozen import Frozen, absent


class Judged(Frozen):
    """A finalist of an evaluation, by the searcher that found it (`side`): the ratio to the baseline that it
    was chosen by (`told`), and the one of fresh blocks (`again`) with its interval. It `holds` where that
    shows it to be faster than the baseline."""

    name: str
    side: Literal["theirs", "own", "both"]
    told: float
    again: float | None = None
    low: float | None = None
    high: float | None = None
    holds: bool = False


class Starts(Frozen):
    """The starts of a search's winner that were seen, and how many were `bad`. The true share of bad ones is
    at most `share_most`, with this confidence. `needed` starts without a bad one show the share `asked`
    for."""

    count: int
    bad: int
    share_most: float
    confidence: float
    asked: float | None = absent(None)
    needed: int = absent(0)
