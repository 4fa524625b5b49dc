"""A load that several drivers share: what each of them is asked, and what their answers are together.

A load that goes on in stretches is one from this host and one from another alike.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, Protocol

from dbdyno.driver import _driver
from dbdyno.driver.job import Job, LoadShare
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


Answer = dict[str, Any]


class Sharing(Protocol):
    """A driver that is asked one thing at a time."""

    def request(self, **request: Any) -> None:
        """Sends a request, whose answer is to be fetched before the next one."""
        ...

    def answer(self, verb: str, timeout_s: float) -> Answer:
        """The answer to the request that was sent, within so many seconds."""
        ...


def share_of(request: Answer, number: int, urls: Sequence[str]) -> Answer:
    """A request as the driver with this number is to have it, where driver and URL go together."""
    if "job" not in request:
        return request
    share = LoadShare(number=number, of=len(urls)).model_dump() if len(urls) > 1 else None
    return {**request, "job": {**request["job"], "url": urls[number], "share": share}}


def asked(drivers: Sequence[Sharing], urls: Sequence[str], request: Answer, timeout_s: float) -> list[Answer]:
    """What each answers, once their loads wait or are over. All are asked before any of them is listened to,
    so that they begin together. Where the load of one is over, that of the others is, too."""
    for number, driver in enumerate(drivers):
        driver.request(**share_of(request, number, urls))
    answers = [driver.answer(request["verb"], timeout_s) for driver in drivers]
    if any("waits" not in one for one in answers):
        for index, driver in enumerate(drivers):
            if "waits" in answers[index]:
                driver.request(verb="end")
                answers[index] = driver.answer("end", timeout_s)
    return answers


def told_by(answers: Sequence[Answer]) -> Answer | None:
    """What clients of all drivers have been told, as one answer; None where the load is over."""
    if not all("waits" in one for one in answers):
        return None
    told = [Acknowledged.model_validate(one["waits"]) for one in answers]
    return {"waits": reduce(Acknowledged.plus, told).model_dump()}


def merged(portions: Sequence[Answer]) -> Answer:
    """The tally of all portions, whose times are those of one clock."""
    tally: Answer = json.loads(_driver.merge(json.dumps(portions)))
    return tally


def parts_of(portions: Sequence[Answer]) -> Iterator[tuple[int, int, float]]:
    """Of each portion: its clients, its operations, and by how many seconds at most it began a stretch later
    than the first one did."""
    begun = [_begins_s(portion["total"]) for portion in portions]
    first_s = [min(each) for each in zip(*begun, strict=False)]
    for portion, begins_s in zip(portions, begun, strict=True):
        total = portion["total"]
        operations = sum(kind["operations"] for kind in total["by_transaction"])
        late_s = max(here - first for here, first in zip(begins_s, first_s, strict=False))
        yield total["clients"], operations, round(late_s, 6)


def _begins_s(total: Answer) -> list[float]:
    """When the load and each slice of it began, in unix time."""
    return [total["started_unix_s"], *(one["started_unix_s"] for one in total["slices"])]
