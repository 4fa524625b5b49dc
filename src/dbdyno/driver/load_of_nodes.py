"""The load that goes to all nodes of a cluster. Each node has a load process with clients of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbdyno.driver import shares
from dbdyno.driver.stretches import InStretches

if TYPE_CHECKING:
    from dbdyno.driver.job import Job
    from dbdyno.driver.load import Explained, Invariant, Prepared
    from dbdyno.driver.load_process import LoadProcess
    from dbdyno.driver.tally import Acknowledged, Tally


@dataclass(frozen=True)
class AtNode:
    """A node by its name and its URL, and the process that loads it."""

    node: str
    url: str
    process: LoadProcess


@dataclass(frozen=True)
class NodeLoad:
    """What clients did at one node in a load. They began a stretch of it `late_s` after the first of all."""

    node: str
    clients: int
    operations: int
    late_s: float


class LoadOfNodes(InStretches):
    """A load whose clients are dealt out in turn over the nodes. The first node's process answers all else.

    `seen` is what the last load came to at each node; empty before one is over.
    """

    def __init__(self, at: Sequence[AtNode]) -> None:
        self.at = tuple(at)
        self.seen: tuple[NodeLoad, ...] = ()
        self._processes = [one.process for one in at]
        self._urls = [one.url for one in at]

    @property
    def process_id(self) -> int:
        return self._processes[0].process_id

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Those of all load processes."""
        return tuple(process.process_id for process in self._processes)

    def prepare(self, job: Job) -> Prepared:
        return self._processes[0].prepare(job)

    def check(self, job: Job, acknowledged: Acknowledged | None) -> list[Invariant]:
        return self._processes[0].check(job, acknowledged)

    def explain(self, job: Job) -> Explained:
        return self._processes[0].explain(job)

    def query(self, url: str, sql: str) -> list[list[str | float | None]]:
        return self._processes[0].query(url, sql)

    def begin(self, job: Job) -> Tally | None:
        self.seen = ()
        over = self._begin(job)
        # Those that share a load wait once they are connected, so that all go at once.
        return self._stretch(verb="go on") if over is None else over

    def go_on(self) -> Tally | None:
        return self._stretch(verb="go on")

    def close(self) -> None:
        for process in self._processes:
            process.close()

    def kill(self) -> None:
        for process in self._processes:
            process.kill()

    def _ask(self, timeout_s: float, **request: Any) -> dict[str, Any]:
        answers = shares.asked(self._processes, self._urls, request, timeout_s)
        if told := shares.told_by(answers):
            return told
        portions = [one["reply"] for one in answers]
        found = zip(self.at, shares.parts_of(portions), strict=True)
        self.seen = tuple(NodeLoad(one.node, *part) for one, part in found)
        for one, portion in zip(self.at, portions, strict=True):
            if reason := portion["total"]["saturated"]:
                portion["total"]["saturated"] = f"at {one.node}, {reason}"
        return {"reply": shares.merged(portions)}
