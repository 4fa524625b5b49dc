"""The nodes of one trial's cluster: servers of one engine, each on data of its own, that are one database."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from dbdyno.driver.passwords import Ask, query
from dbdyno.engines.cluster import Cluster, Membership, Peer, Site
from dbdyno.engines.engine import Engine, Server
from dbdyno.errors import DriverFailed, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.clone import clone_tree, tree_size_bytes
from dbdyno.host.journal import Journal
from dbdyno.host.launch import Launch
from dbdyno.host.namespaces import NetworkSegment
from dbdyno.host.process import standing_still
from dbdyno.host.room import require_disk
from dbdyno.obtain.installation import Installation

FULL_S = 120.0
"""How long nodes may take until all of them take part."""
LOOK_S = 0.02


@dataclass(frozen=True)
class Ground:
    """What all nodes of a trial are started from: the levels' settings and launch, for a server that lies at
    `data` and has its socket in `runtime` where it is the only one."""

    installation: Installation
    data: Path
    runtime: Path
    settings: Mapping[str, Level]
    launch: Launch
    journal: Journal


@dataclass
class ClusterNode:
    """One of them, with the settings in which it differs from the others. Its server is there once it was
    started."""

    site: Site
    settings: Mapping[str, Level] = field(default_factory=dict)
    server: Server | None = None

    @property
    def name(self) -> str:
        return self.site.peer.name

    @property
    def url(self) -> str:
        assert self.server is not None, "it was started"
        return self.server.url

    def ask(self, sql: str) -> list[list[str | float | None]]:
        return query(self.url, sql)


class Nodes:
    """The nodes by name, and which of them is `first`: the one that the load goes to, where that does not go
    `to_all`. Ended by `end`."""

    def __init__(self, engine: Engine, cluster: Cluster, count: int) -> None:
        self.engine = engine
        self.cluster = cluster
        self.count = count
        self.by_name: dict[str, ClusterNode] = {}
        self.segment = NetworkSegment(count)
        self.to_all = False
        self._first = ""
        self._ground: Ground | None = None

    @property
    def placed(self) -> bool:
        return bool(self.by_name)

    @property
    def first(self) -> ClusterNode:
        return self.by_name[self._first]

    @property
    def others(self) -> list[ClusterNode]:
        """All but the first, in their order."""
        return [node for node in self.by_name.values() if node.name != self._first]

    @property
    def asks(self) -> dict[str, Ask]:
        return {node.name: node.ask for node in self.by_name.values()}

    @property
    def loads_all(self) -> bool:
        """Whether clients are dealt out over more than one node."""
        return self.to_all and self.count > 1

    @property
    def homes(self) -> list[ClusterNode]:
        """The nodes that clients are dealt out to, in turn."""
        return [self.first, *self.others] if self.to_all else [self.first]

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Those of all nodes but the first."""
        return tuple(one for node in self.others if node.server for one in node.server.process_ids)

    def place(self, ground: Ground) -> None:
        """Gives each node its data, as clones of those that no server has open yet, and its settings."""
        self._ground = ground
        segment, cluster = self.segment, self.cluster
        peers = [
            Peer(f"node{number}", number, segment.address(number), segment.port(number, cluster.PORT))
            for number in range(1, self.count + 1)
        ]
        for peer in peers:
            lone = peer is peers[0]
            data = ground.data if lone else ground.data.with_name(peer.name)
            runtime = ground.runtime if lone else ground.runtime / peer.name
            runtime.mkdir(exist_ok=True)
            steps = (*segment.entering(peer.number), *ground.launch.steps(data, runtime))
            site = Site(peer, ground.installation, data, runtime, steps)
            own = cluster.settings(site, peers, segment.network)
            given = {name: level for name, level in own.items() if name not in ground.settings}
            self.by_name[peer.name] = ClusterNode(site, given)
        self._first = peers[0].name
        cluster.found(partial(self._started, self.first, cluster.FOUNDING))
        if self.others:
            needed_bytes = len(self.others) * tree_size_bytes(ground.data)
            require_disk(ground.data.parent, needed_bytes, "the data of the other nodes")
        for node in self.others:
            clone_tree(ground.data, node.site.data)
            cluster.follow(node.site, self.first.site.peer)

    def start_first(self) -> Server:
        """Starts the first node on data of which no node has been started."""
        server = self._started(self.first, self.cluster.FOUNDING)
        self.cluster.begin(self.first.ask)
        return server

    def start(self, node: ClusterNode) -> Server:
        """Starts one node, once more where it has been there before. Raises ServerFailed where it does not
        come up."""
        alone = self.count == 1
        more = dict(self.cluster.FOUNDING) if alone else {}
        if node.server is not None:
            settings = {**self._settings(node), **more}
            more |= self.cluster.again(node.site, settings, alone)
        server = self._started(node, more)
        if alone:
            self.cluster.begin(node.ask)
        else:
            self.cluster.attach(node.ask, node.site.peer, self.first.site.peer)
        return server

    def _settings(self, node: ClusterNode) -> dict[str, Level]:
        assert self._ground is not None, "the nodes have their data"
        return {**self._ground.settings, **node.settings}

    def _started(self, node: ClusterNode, more: Mapping[str, Level]) -> Server:
        ground, site = self._ground, node.site
        assert ground is not None, "the nodes have their data"
        launch = replace(
            ground.launch,
            environment={**ground.launch.environment, **self.cluster.environment(site)},
            before_exec=(*self.segment.entering(site.peer.number), *ground.launch.before_exec),
        )
        settings = {**self._settings(node), **more}
        node.server = self.engine.life.start(site.installation, site.data, site.runtime, settings, launch)
        ground.journal.note_processes(node.server.process_ids)
        return node.server

    def start_others(self) -> None:
        """Starts all but the first, and waits until they take part."""
        for node in self.others:
            self.start(node)
        self.full_s()

    def membership(self) -> Membership:
        return self.cluster.membership(self.asks, self._first)

    def full_s(self) -> float:
        """Waits until all nodes take part; the seconds that it took. Raises ServerFailed where they do not
        come together."""
        began_s = time.monotonic()
        seen = "no node answers"
        while (waited_s := time.monotonic() - began_s) < FULL_S * self._patience:
            try:
                found = self.membership()
            except DriverFailed as failure:
                seen = failure.message
            else:
                if found.whole:
                    return waited_s
                seen = found.words
            time.sleep(LOOK_S)
        log = "\n".join(node.server.log() for node in self.by_name.values() if node.server)
        raise ServerFailed(f"not all nodes take part after {FULL_S:g} s: {seen}", "look at their logs", log)

    def caught_up(self, node: ClusterNode) -> bool:
        """Whether a node has all that the first one has by now."""
        if node is self.first and not (self.loads_all and self.cluster.EACH_WRITES):
            return True
        return self.cluster.reached(node.ask, self.cluster.position(self.first.ask))

    @contextmanager
    def paused(self, node: ClusterNode) -> Iterator[None]:
        assert node.server is not None, "it was started"
        with standing_still(node.server.process_ids):
            yield

    @contextmanager
    def cut_off(self, node: ClusterNode) -> Iterator[None]:
        self.segment.cut(node.site.peer.number)
        try:
            yield
        finally:
            self.segment.mend(node.site.peer.number)

    def promote(self) -> ClusterNode:
        """The first node is lost: another one takes its place. Returns the lost one."""
        lost, rest = self.first, self.others
        asks = {node.name: node.ask for node in rest}
        self._first = self.cluster.promote(asks, {node.name: node.site.peer for node in rest})
        return lost

    def rejoin(self, lost: ClusterNode) -> str:
        """Brings a lost first node back as another one. Returns how its data were brought in line."""
        how = self.cluster.rejoin(lost.site, self.first.site, self.first.url)
        server = self.start(lost)
        self.full_s()
        return how or self.cluster.transfer(server.log())

    def refill(self, node: ClusterNode) -> str:
        """Starts a node that has ended without its data, and waits until it has got all of them and takes
        part. Returns how."""
        how = self.cluster.refill(node.site, self.first.site, self.first.url)
        # Of what it was before, nothing is left to go on from.
        node.server = None
        server = self.start(node)
        self.full_s()
        return how or self.cluster.transfer(server.log())

    def end(self) -> None:
        """Ends all nodes at once, because their data are thrown away. May be called twice."""
        with ExitStack() as ending:
            ending.callback(self.segment.close)
            for node in self.by_name.values():
                if node.server is not None:
                    ending.callback(node.server.kill)

    @property
    def _patience(self) -> float:
        return self._ground.launch.patience if self._ground else 1.0
