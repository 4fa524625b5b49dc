"""Figures that others published, beside those of a run."""

from __future__ import annotations

from enum import StrEnum

from dbdyno.frozen import Frozen, absent
from dbdyno.study.published import PublishedFigure


class PublishedPlace(StrEnum):
    """Where a published ratio lies beside an interval of ours."""

    INSIDE = "inside"
    ABOVE = "above"
    BELOW = "below"


class PublishedBeside(Frozen):
    """A published figure beside ours of the same two variants by the same `metric`: the geometric mean over
    `blocks` with its interval, and the `place` of theirs in that, where there is one. Whether both intervals
    `overlap` is known where theirs has one. A `cause` says why we have none."""

    figure: PublishedFigure
    metric: str
    blocks: int = 0
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    place: PublishedPlace | None = None
    overlap: bool | None = absent(None)
    cause: str = absent("")
