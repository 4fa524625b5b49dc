"""What an engine says of clusters: how a further node is made, joins, and is known to be a member; who may be
first when the first one is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dbdyno.driver.passwords import Ask
from dbdyno.frozen import Level
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Loss


@dataclass(frozen=True)
class Peer:
    """A node as the others know it. The first one counts as 1."""

    name: str
    number: int
    address: str
    port: int


@dataclass(frozen=True)
class Site:
    """Where a node lies, and what a program that works on its data does before it runs."""

    peer: Peer
    installation: Installation
    data: Path
    runtime: Path
    steps: tuple[Callable[[], None], ...] = ()


class Founded(Protocol):
    """A server as far as the founding of a cluster needs it."""

    @property
    def url(self) -> str: ...

    def log(self) -> str: ...

    def stop(self, timeout_s: float = 30.0) -> None: ...


@dataclass(frozen=True)
class Membership:
    """Whether all nodes take part, and what each says of that."""

    whole: bool
    words: str


class Cluster(Protocol):
    """An engine's clusters. The nodes' `asks` are by name."""

    @property
    def PORT(self) -> int:  # noqa: N802  a module is a cluster, too
        """The usual port of the engine's network."""
        ...

    @property
    def AWAY_S(self) -> float:  # noqa: N802
        """How long a node is paused or cut off: longer than the others wait for it."""
        ...

    @property
    def SETTINGS(self) -> frozenset[str]:  # noqa: N802
        """Settings that the nodes differ in."""
        ...

    @property
    def EACH_WRITES(self) -> bool:  # noqa: N802
        """Whether each node takes writes, and not the first one alone."""
        ...

    @property
    def WHO(self) -> str:  # noqa: N802
        """A statement by which a node tells its name."""
        ...

    @property
    def PROGRESS(self) -> str:  # noqa: N802
        """A statement whose answer ends with how far a node has come, as a number that grows."""
        ...

    @property
    def NOW(self) -> str:  # noqa: N802
        """The time at which a statement began, in seconds of Unix time: what it sees is not older."""
        ...

    @property
    def FOUNDING(self) -> Mapping[str, Level]:  # noqa: N802
        """Further settings of a server that waits for no other."""
        ...

    @property
    def TOLD_ALONE(self) -> Sequence[str]:  # noqa: N802
        """Counters of the first node that grow only where a commit was told without the word of another one,
        although the kind of the cluster promises that."""
        ...

    def require(self, installation: Installation) -> None:
        """Raises Blocked where what all clusters of the engine need is not here."""
        ...

    def require_rejoin(self, installation: Installation) -> None:
        """Raises Blocked where what brings a lost first node back is not here."""
        ...

    def environment(self, site: Site) -> Mapping[str, str]:
        """What a node's process has in its environment on top."""
        ...

    def settings(self, site: Site, peers: Sequence[Peer], network: str) -> Mapping[str, Level]:
        """What a node is started with, where a study says nothing else. `network` holds all nodes. Writes
        what the settings name into the node's `runtime`. Raises Blocked where so many are no cluster."""
        ...

    def found(self, start: Callable[[], Founded]) -> None:
        """Does to the data of the first node, before they are cloned, what makes them those of a cluster.
        `start` starts its server, which is to be stopped again."""
        ...

    def again(self, site: Site, settings: Mapping[str, Level], alone: bool) -> Mapping[str, Level]:
        """Further settings of a node that was started with these before, and has ended. Where it is `alone`,
        there is no other. Raises ServerFailed where its data cannot be asked."""
        ...

    def permits(self, settings: Mapping[str, Level]) -> Loss:
        """What the loss of the first node takes along at most, while another is there."""
        ...

    def follow(self, site: Site, first: Peer) -> None:
        """Makes a clone of the first node's data, which no server has open, those of a further node."""
        ...

    def begin(self, ask: Ask) -> None:
        """Has a node that was just started take part where there is no other yet, as far as its settings do
        not say that."""
        ...

    def attach(self, ask: Ask, own: Peer, first: Peer) -> None:
        """Has a node that was just started follow the first one, or be the first one again, where its data
        and its settings do not say that. Raises ServerFailed where the others do not take it."""
        ...

    def membership(self, asks: Mapping[str, Ask], first: str) -> Membership:
        """Who takes part, by the word of the first node and of all others. Raises DriverFailed where one does
        not answer."""
        ...

    def lag(self, asks: Mapping[str, Ask], first: str) -> Mapping[str, float]:
        """How far nodes are behind at this moment, the worst of them, and what has stopped them since they
        started: what the engine tells of `replay_lag_s`, `replay_lag_bytes`, `receive_queue` (write sets),
        `transactions_behind`, `flow_control_s` and `node_aborts`."""
        ...

    def position(self, ask: Ask) -> str:
        """How far the first node has come."""
        ...

    def reached(self, ask: Ask, position: str) -> bool:
        """Whether another node has come as far."""
        ...

    def transfer(self, log: str) -> str:
        """How a node that came back had what it had missed, by the end of its log."""
        ...

    def refill(self, site: Site, first: Site, url: str) -> str:
        """Throws the data of a node away that has ended, so that it gets all of them again, here or when it
        starts. The first node answers at a URL. Returns how; empty where the node's log tells that. Raises
        ServerFailed where that fails."""
        ...

    def donor(self, log: str) -> str:
        """Who gave a node all its data when it started, by its log; empty where the first one did."""
        ...

    def promote(self, asks: Mapping[str, Ask], peers: Mapping[str, Peer]) -> str:
        """Makes the best of these nodes the first one, and has the others follow it. Returns its name."""
        ...

    def rejoin(self, site: Site, first: Site, url: str) -> str:
        """Brings the data of a lost first node in line with those of the one that took its place, which
        answers at a URL, so that it can follow. Returns how. Raises ServerFailed where that fails."""
        ...
