"""What the driver is to do: the `Job` of `crates/driver/src/job.rs`, with the same shape and defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from dbdyno.driver.tally import Gather
from dbdyno.frozen import Frozen, absent

RATE_PER_S_MAX = 10_000_000.0
"""Transactions that the driver can send in a second at the most: more than all threads of a large machine."""
SECONDS_MAX = 30.0 * 86_400.0
"""The latest time of a schedule that the driver takes."""
PERIOD_S_MIN = 0.001
"""The shortest period of a sine that the driver can follow."""
ANSWER_TIMEOUT_S = 300.0
"""After so long without a byte of an answer a connection counts as lost."""


REPLAY = "replay"
"""The workload that plays a recording. Its times are those of the recording."""
PATIENCE, PATIENCE_S = 4.0, 60.0
"""A replay is ended that takes so many times as long as it should, and a minute."""


class ThinkTime(Frozen):
    """A distribution of the seconds that a client rests between transactions."""

    mean_s: float
    distribution: Literal["constant", "exponential"]


class Constant(Frozen):
    """The rate stays."""

    kind: Literal["constant"] = "constant"


class RateSteps(Frozen):
    """Each step holds its rate from its second on: (second, rate per second)."""

    kind: Literal["steps"] = "steps"
    steps: tuple[tuple[float, float], ...]


class Ramp(Frozen):
    """From `rate_per_s` to `to_per_s`, evenly, then constant."""

    kind: Literal["ramp"] = "ramp"
    to_per_s: float
    over_s: float


class Sine(Frozen):
    """`rate_per_s` plus a sine of this amplitude."""

    kind: Literal["sine"] = "sine"
    amplitude_per_s: float
    period_s: float


class Points(Frozen):
    """Rates at these seconds, interpolated between them: (second, rate per second)."""

    kind: Literal["points"] = "points"
    points: tuple[tuple[float, float], ...]


class PointsInFile(Frozen):
    """Points that the driver itself reads, from lines of `second rate`. A study's file comes as `Points`."""

    kind: Literal["file"] = "file"
    path: str


Schedule = Annotated[Constant | RateSteps | Ramp | Sine | Points | PointsInFile, Field(discriminator="kind")]
"""How an open loop's rate changes; seconds count from the start of the warm-up."""


class Closed(Frozen):
    """Each client sends its next transaction when its last one is done and its think time (s) has passed."""

    kind: Literal["closed"] = "closed"
    think_time: float | ThinkTime | None = None


Arrivals = Literal["poisson", "uniform"]
"""How the starts of an open loop are spread."""


class Open(Frozen):
    """Transactions start at times that do not depend on the server."""

    kind: Literal["open"] = "open"
    rate_per_s: float = 0.0
    arrivals: Arrivals = "poisson"
    schedule: Schedule | None = None


Load = Annotated[Closed | Open, Field(discriminator="kind")]


Isolation = Literal["read-uncommitted", "read-committed", "repeatable-read", "serializable"]
"""An isolation level of SQL's standard."""


class Opening(Frozen):
    """What each connection is told as soon as it is open: the isolation level of its transactions, the
    storage engine of the tables that it makes, and then the user's own statements in their order."""

    isolation: Isolation | None = None
    storage_engine: str | None = None
    sql: tuple[str, ...] = ()


class LedgerFile(Frozen):
    """Where each acknowledged transaction is noted: in the file at `path`, which lies on another file system
    than the data, and as a row with the number `cut` that commits with it."""

    path: str
    cut: int


class LoadShare(Frozen):
    """One `of` so many processes whose clients are those of one load, by its `number` from 0: on hosts of
    their own, or for the nodes of a cluster. They take clients and arrivals in turn."""

    number: int
    of: int


class Job(Frozen):
    """All that the driver is told. `url` is empty until there is a server. Relative paths of the
    workload count from `folder`; without one, from the process's own.

    `threads` 0 lets the driver choose. `operations` ends the run after so many transactions of the measured
    part. With `slices` the run waits after its warm-up and after each slice, with all connections open, and
    `settle_s` pass before each slice is measured. `cpus` are those that the driver's threads are bound to, in
    turn. `baseline` is the value of an earlier check of a read-only workload. `ledger` is kept of a run that
    will be cut short. `by_statement` times each statement by its kind. With `actual_rows` each read is
    executed once for its plan, which tells the rows of each step. `opening` is for every connection, those
    of `prepare` and `check` included. In a run each flight of a client's requests waits for
    `network_delay_s`, and so does the opening of a connection, as over a network with that round-trip time.
    A job with a `share` of a load also waits as soon as all its clients are connected, and what it
    counted is no tally, but what the driver's `merge` makes one of.
    """

    url: str = ""
    workload: str
    options: dict[str, Any] = Field(default_factory=dict)
    folder: str = ""
    clients: int = 1
    threads: int = 0
    backend: str = "auto"
    warmup_s: float = 0.0
    duration_s: float = 10.0
    operations: int | None = None
    slices: int | None = None
    settle_s: float = 0.0
    seed: int = 42
    load: Load = Closed()
    cpus: tuple[int, ...] | None = None
    gather: Gather = "when_crowded"
    reconnect: bool = False
    connect_timeout_s: float = 10.0
    answer_timeout_s: float = ANSWER_TIMEOUT_S
    ramp_s: float | None = None
    hdr_log: str | None = None
    metrics_port: int | None = None
    baseline: str | None = None
    ledger: LedgerFile | None = None
    by_statement: bool = False
    actual_rows: bool = absent(False)
    opening: Opening = Opening()
    network_delay_s: float = 0.0
    share: LoadShare | None = None

    @property
    def longest_s(self) -> float:
        """How long the load may take. A replay waits for a server that is slower than the recorded one."""
        whole_s = self.warmup_s + self.settle_s + self.duration_s
        if self.workload == REPLAY:
            speed = self.options.get("speed", 1.0)
            whole_s /= speed if isinstance(speed, int | float) and speed > 0 else 1.0
            whole_s = whole_s * PATIENCE + PATIENCE_S
        return (self.ramp_s or 0.0) + whole_s
