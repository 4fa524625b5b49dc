"""Stalls of a server, and the latencies that an open loop of constant rate must show under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbdyno.errors import UserError


def require_capacity(served_per_s: float, arrivals_per_s: float) -> None:
    """Raises UserError for a server that serves no more than arrives, and so never catches up after a
    stall."""
    if served_per_s <= arrivals_per_s:
        raise UserError(
            f"the server serves {served_per_s:,.0f}/s from a queue, which is no more than the "
            f"{arrivals_per_s:,.0f}/s that arrive, so it never catches up after a stall",
            f"offer less, with `--rate {served_per_s / 2:.0f}` say, or give the server more CPUs",
        )


@dataclass(frozen=True)
class Stall:
    """For how long the server stood still, in seconds of unix time."""

    began_s: float
    ended_s: float

    def until_drained(self, arrivals_per_s: float, served_per_s: float) -> Stall:
        """The stall with the time that the server then needs for the requests that came meanwhile.

        It serves them in an order of its own, so the first of them may be answered last. More arrive while
        it does, so the queue shrinks by what is served beyond them. Raises UserError where it does not
        shrink.
        """
        require_capacity(served_per_s, arrivals_per_s)
        queued = (self.ended_s - self.began_s) * arrivals_per_s
        return replace(self, ended_s=self.ended_s + queued / (served_per_s - arrivals_per_s))


@dataclass(frozen=True)
class Measured:
    """The measured part of a run, in seconds of unix time."""

    began_s: float
    ended_s: float

    def waiting_s(self, stall: Stall, longer_than_s: float) -> float:
        """How much of the measured part holds arrivals that wait for longer than this.

        An arrival waits for the rest of the stall that it falls into. It belongs to the moment at which it
        was due, so a stall that goes on beyond the end counts with its whole length.
        """
        last_s = min(stall.ended_s - longer_than_s, self.ended_s)
        return max(0.0, last_s - max(stall.began_s, self.began_s))

    def expected_s(self, share_above: float, stalls: Sequence[Stall]) -> float | None:
        """The latency that this share of all arrivals exceeds, found by bisection; None where fewer wait."""

        def share(longer_than_s: float) -> float:
            waiting_s = sum(self.waiting_s(stall, longer_than_s) for stall in stalls)
            return waiting_s / (self.ended_s - self.began_s)

        if share(0.0) <= share_above:
            return None
        low_s, high_s = 0.0, max(stall.ended_s - stall.began_s for stall in stalls)
        for _ in range(60):
            middle_s = (low_s + high_s) / 2
            low_s, high_s = (middle_s, high_s) if share(middle_s) > share_above else (low_s, middle_s)
        return high_s
