"""What others published of two variants of a study."""

from __future__ import annotations

from dbdyno.frozen import Frozen

AGAINST_BASELINE = "baseline"
UNDATED = "not dated"


class PublishedFigure(Frozen):
    """A ratio that a `source` gives: `variant` over `against`, by the `metric` of the study's response where
    it names none. `low` and `high` are its interval, where it gives one. It was measured on that `hardware`,
    and what else `differs` is in words. A run holds its own figures against it, and is never judged by it."""

    variant: str
    against: str = AGAINST_BASELINE
    metric: str = ""
    ratio: float
    low: float | None = None
    high: float | None = None
    source: str
    year: int | None = None
    hardware: str
    differs: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """The two variants."""
        return self.variant, self.against

    @property
    def source_text(self) -> str:
        """Who published it, and when."""
        return f"{self.source}, {self.year or UNDATED}"
