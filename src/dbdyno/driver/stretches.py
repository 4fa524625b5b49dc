"""A load that goes on in stretches: what one from this host and one from another have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dbdyno.driver.job import Job
from dbdyno.driver.tally import Acknowledged, Tally

GRACE_S = 60.0
"""Beyond the planned duration: connecting thousands of clients, the last transactions, a slow engine."""


class InStretches(ABC):
    """A driver that is asked for one stretch after the other."""

    _planned_s = 0.0
    _told: Acknowledged | None = None

    @property
    def told(self) -> Acknowledged | None:
        """What clients had been told when the load last waited for a slice."""
        return self._told

    def run(self, job: Job) -> Tally:
        """Puts the load on the server, in one piece, and returns the tally."""
        tally = self.begin(job)
        assert tally is not None, "a load in one piece does not wait"
        return tally

    @abstractmethod
    def begin(self, job: Job) -> Tally | None:
        """Puts the load on the server, up to the end of the warm-up where it has slices."""

    def end(self) -> Tally:
        """Ends the load where it waits."""
        tally = self._stretch(verb="end")
        assert tally is not None, "a load that was ended does not wait"
        return tally

    def _begin(self, job: Job) -> Tally | None:
        # Each wait for the next reply is shorter than this.
        self._planned_s, self._told = job.longest_s, None
        return self._stretch(verb="run", job=job.model_dump())

    def _stretch(self, **request: Any) -> Tally | None:
        """Has the load go on until it waits, or is over."""
        answer = self._ask(self._planned_s + GRACE_S, **request)
        if "waits" in answer:
            self._told = Acknowledged.model_validate(answer["waits"])
            return None
        return Tally.model_validate(answer["reply"])

    @abstractmethod
    def _ask(self, timeout_s: float, **request: Any) -> dict[str, Any]:
        """The driver's answer to a request, within so many seconds."""
