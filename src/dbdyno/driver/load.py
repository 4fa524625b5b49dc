"""What the flow needs of whatever puts the load on a server. The real one is `load_process.LoadProcess`."""

from __future__ import annotations

from typing import Protocol

from dbdyno.driver.job import Job
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.frozen import Frozen


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


class Load(Protocol):
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

    def query(self, url: str, sql: str) -> list[list[str | float | None]]:
        """The rows of one statement."""
        ...

    def close(self) -> None: ...

    def kill(self) -> None: ...
