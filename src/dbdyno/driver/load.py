"""What the flow needs of whatever puts the load on a server, and the files that a workload reads, as the
driver finds them. The real one is `load_process.LoadProcess`.

`LoadOfNodes` goes to all nodes of a cluster: each has a load process with clients of its own.

`review` says what can be known of a workload without a server: the mistakes in its files, and the SQL in
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dbdyno.driver import _driver, shares
from dbdyno.driver.job import Job
from dbdyno.driver.shares import InStretches
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import DriverFailed
from dbdyno.frozen import Frozen, Level, absent

QUERY_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class AtNode:
    """A node by its name and its URL, and the process that loads it."""

    node: str
    url: str
    process: LoadInShares


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

    def answers(self, job: Job) -> StatementsAnswered:
        return self._processes[0].answers(job)

    def query(self, url: str, sql: str, timeout_s: float = QUERY_TIMEOUT_S) -> list[list[str | float | None]]:
        return self._processes[0].query(url, sql, timeout_s)

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


class Invariant(Frozen):
    """One statement about the data that must be true. `value` is to be given as the `baseline` of the next
    job, where the workload only reads."""

    name: str
    holds: bool
    detail: str
    value: str | None = None


class ExplainedStatement(Frozen):
    """One kind of statement of a transaction: its text, in which `?` stands for a value, and its plan in the
    engine's own form, or why there is none."""

    transaction: str
    text: str
    plan: str | None
    why_not: str


class Explained(Frozen):
    """What was asked of the statements of a workload. `unreached` says of transactions, by name, why some of
    their statements may not have been met."""

    statements: tuple[ExplainedStatement, ...]
    unreached: dict[str, str]


Row = tuple[str | int | float | None, ...]
"""A row as the driver tells it: bytes that are no text are hexadecimal, decimals and dates are text."""


class StatementRefusal(Frozen):
    """How a server refused a statement: its own code, the SQLSTATE beside it where it sent one, its words."""

    code: str
    sqlstate: str = ""
    message: str


class RowsAnswered(Frozen):
    """One answer: the names of its columns, the types of their values, and its first rows. All of its rows
    are in the `count`. A statement that changes rows has those of its table `before` and `after` it. An
    embedded engine tells what it `counted` meanwhile, by a title with its unit."""

    columns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    count: int = 0
    affected: int = 0
    warnings: tuple[Row, ...] = ()
    counted: dict[str, float] = absent({})
    before: RowsAnswered | None = None
    after: RowsAnswered | None = None
    error: StatementRefusal | None = None


class StatementAnswered(Frozen):
    """A statement as it was sent, and what each sending was answered."""

    name: str
    sql: str
    is_ordered: bool
    runs: tuple[RowsAnswered, ...]


class StatementsAnswered(Frozen):
    """The answers to all statements of a workload."""

    statements: tuple[StatementAnswered, ...]


class Prepared(Frozen):
    """The schema and rows that were made, over so many sessions."""

    rows: int
    bytes: int
    duration_s: float
    sessions: int


class Flaw(Frozen):
    """A mistake in a file of the user's, or what a server refused of it. `place` is a file and a line; empty
    where the message names them."""

    place: str = ""
    message: str
    hint: str = ""

    @property
    def words(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class Examined(Frozen):
    """What a server said when it was asked to prepare statements; `left_out` are those that are known in a
    run only."""

    asked: int = 0
    left_out: int = 0
    refused: tuple[Flaw, ...] = ()


class LoadDriver(Protocol):
    """One holder of the driver. Each method raises DriverFailed with the driver's own message and hint."""

    @property
    def process_id(self) -> int: ...

    @property
    def told(self) -> Acknowledged | None:
        """What clients had been told when the load last waited for a slice; None before it first waits. Who
        knows the process after its death knows no more."""
        ...

    def prepare(self, job: Job) -> Prepared:
        """Makes the workload's schema and rows."""
        ...

    def run(self, job: Job) -> Tally:
        """Puts the load on the server, in one piece."""
        ...

    def begin(self, job: Job) -> Tally | None:
        """Puts the load on the server, up to the end of the warm-up where it has slices. None while slices
        are to come."""
        ...

    def go_on(self) -> Tally | None:
        """The next slice of the load that has begun. None while slices are to come."""
        ...

    def end(self) -> Tally:
        """Ends the load where it waits. The tally is of the slices that it had."""
        ...

    def check(self, job: Job, acknowledged: Acknowledged | None) -> list[Invariant]:
        """The workload's invariants. Without `acknowledged`, those alone that need no run."""
        ...

    def explain(self, job: Job) -> Explained:
        """The plans of the workload's statements. No write is executed."""
        ...

    def answers(self, job: Job) -> StatementsAnswered:
        """What the server answers to each of the user's statements, sent twice. Writes are rolled back."""
        ...

    def query(self, url: str, sql: str, timeout_s: float = QUERY_TIMEOUT_S) -> list[list[str | float | None]]:
        """The rows of one statement, which is given up after so many seconds."""
        ...

    def close(self) -> None: ...

    def kill(self) -> None: ...


class LoadInShares(LoadDriver, shares.Sharing, Protocol):
    """A load process that takes a share of a load: `load_process.LoadProcess`."""


class Review(Frozen):
    """The mistakes of a workload's files, and all SQL in them that is the user's own, each statement behind
    its place; empty where there is none that a server could judge before a run."""

    mistakes: tuple[Flaw, ...]
    own_sql: str


def review(workload: str, options: Mapping[str, Level], folder: Path) -> Review:
    """Reads a workload's files as a run would; relative paths count from `folder`. Raises DriverFailed for
    options that are no options."""
    try:
        found = _driver.review(workload, json.dumps(dict(options)), str(folder))
    except _driver.DriverError as error:
        raise DriverFailed(error.message, error.hint, error.kind) from None
    return Review.model_validate_json(found)


class FileRead(Frozen):
    """A file that a workload reads: its `name`, which counts from the job's folder where it is relative, and
    the `path` that this leads to. `option` leads to it, by itself or through a file that names it at the
    place `named_at`."""

    name: str
    path: str
    option: str
    named_at: str


def files_read(workload: str, options: Mapping[str, Level], folder: Path) -> tuple[FileRead, ...]:
    """The files that a workload with these options reads, in an order that does not change; none for options
    that name none, or that the driver refuses."""
    try:
        found = json.loads(_driver.files(workload, json.dumps(dict(options)), str(folder)))
    except _driver.DriverError:
        return ()
    return tuple(FileRead.model_validate(one) for one in found)
