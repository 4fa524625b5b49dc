"""How an engine came back after an act that ended it, and what its settings permit the act to take along."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from dbdyno.frozen import Frozen, absent
from dbdyno.records.reset import Reset
from dbdyno.study.act import Act


class Loss(StrEnum):
    """What a power cut takes along at most: nothing; the latest commits, as if they had never been; or the
    data, which may be damaged."""

    NOTHING = "nothing"
    COMMITS = "commits"
    DATA = "data"

    @classmethod
    def gravest(cls, losses: Iterable[Loss]) -> Loss:
        """The worst of several losses; nothing where there are none."""
        return max(losses, key=list(cls).index, default=cls.NOTHING)


class Clustered(Frozen):
    """What an act on one node of a cluster, `struck`, came to.

    It was back `rejoin_s` after it was started again or let go, by a `transfer` of what it had missed; None
    where it did not come back. Another node took its place within `replaced_s`, where it was the first. The
    longest time without an acknowledged commit was `silent_s`. Where it got all data from another node, that
    is the `donor`, which came no further for `donor_still_s` at the longest meanwhile. `lost` are
    acknowledged transactions that a node lacks, by its name, once it has all that the first one has. `looks`
    at a commit that a client had been told of were made on another node before the act; it was not there yet
    in `stale` of them, the latest `stale_ms` after the client was told.
    """

    struck: str
    rejoin_s: float | None = None
    transfer: str = ""
    replaced_s: float | None = None
    silent_s: float = 0.0
    donor: str = absent("")
    donor_still_s: float | None = absent(None)
    lost: dict[str, int] = Field(default_factory=dict)
    looks: int = 0
    stale: int = 0
    stale_ms: float = 0.0


class Recovery(Frozen):
    """How an engine came back after an act that ended it.

    Its settings permit the act to take along what `permits` says. A clean stop took `stop_s`. From the start
    of its process until it answered a first question it took `ready_s`; None where it did not come up, and
    where nothing is timed.
    `damage` says which invariants fail, or why it did not come up.
    By the act `acknowledged` transactions stood in the clients' own ledger, and `lost` of them are gone:
    clients had been told of the first of these `lost_ms` before the act. `present` is how many rows of the
    ledger are there, those included of which nobody was told. `torn_pages` were cut in half.
    Where one bit of a row was turned, `told` says whether the engine said so; None where it did not read it.
    Before the act the load came to `speed_per_s`. From its first transaction it needed `full_speed_s` until
    it was as fast as the fastest of the loads before it, or lasted so long without; None for the first load,
    and for one that was too short to tell.
    Where the act cannot be done on this host, `blocked` says why, and `remedy` what would allow it; nothing
    was done then. What an act on a node of a cluster came to is in `cluster`, and a reset of a machine in
    `reset`.
    """

    act: Act
    permits: Loss = Loss.NOTHING
    stop_s: float | None = None
    ready_s: float | None = None
    damage: str = ""
    acknowledged: int = 0
    lost: int = 0
    lost_ms: float = 0.0
    present: int = 0
    torn_pages: int | None = None
    told: bool | None = absent(None)
    full_speed_s: float | None = None
    speed_per_s: float = absent(0.0)
    blocked: str = ""
    remedy: str = ""
    cluster: Clustered | None = absent(None)
    reset: Reset | None = absent(None)

    @property
    def untimed(self) -> Recovery:
        """The same without its times: those of an emulator say nothing."""
        return self.but(stop_s=None, ready_s=None, full_speed_s=None, speed_per_s=0.0)

    @property
    def fault(self) -> str:
        """What went wrong that the settings do not permit; empty where nothing did."""
        if self.damage and self.permits is not Loss.DATA:
            return f"after a {self.act.words}, {self.damage}"
        if self.lost and self.permits is Loss.NOTHING:
            return (
                f"after a {self.act.words}, {self.lost} of {self.acknowledged} acknowledged transactions"
                f" were gone, the first of them {self.lost_ms:.1f} ms old"
            )
        return ""
