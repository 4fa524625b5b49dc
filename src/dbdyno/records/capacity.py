"""What the search for a capacity tried in a trial, and what it found."""

from __future__ import annotations

from pydantic import Field

from dbdyno.frozen import Frozen, absent


class TriedRate(Frozen):
    """A rate that was offered, and whether the promise held. `seen` is what the promise bounds, and `broke`
    are those beyond their bounds, both by the words of the study; with `rate` among them where transactions
    that were due were not done. Where `by_driver`, the driver had no CPU time left, so that a broken promise
    is not the server's."""

    rate_per_s: float
    kept: bool
    broke: tuple[str, ...] = absent(())
    seen: dict[str, float] = Field(default_factory=dict)
    by_driver: bool = absent(False)


class Capacity(Frozen):
    """The rate at which a step keeps the promise as often as not. It is `at_least` that where no rate was
    found that the server itself does not keep, and `why` says by what the search ended."""

    per_s: float
    at_least: bool = absent(False)
    why: str = absent("")
