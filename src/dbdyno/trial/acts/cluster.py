"""What is done to one node of a cluster while the load goes on, and what the nodes hold afterwards.

While the load goes on, one thread looks on other nodes for the commits that clients were told of, and one at
how far each node is.

Every commit that a client was told of is looked for on each node by itself, once the node has all that the
first one has. Then all tables of all nodes are read and compared.

Each look asks a node for the latest row of each client. The node says when its statement began. So a client
that was told of a later row before that moment, and reads on this node, would not see its own commit.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Event
from typing import NamedTuple

from dbdyno.driver.load import LoadDriver
from dbdyno.driver.tally import Tally
from dbdyno.engines.nodes import ClusterNode, Nodes
from dbdyno.errors import Blocked, DriverFailed, DynoError, ServerFailed
from dbdyno.host.namespaces import FACTOR
from dbdyno.layers.setup import Running
from dbdyno.records.record import Check, Clustered, Loss, Recovery
from dbdyno.study.soak import Act
from dbdyno.study.trials import Phase
from dbdyno.trial.acts.endings import (
    NS,
    Acknowledgement,
    Acted,
    ActUnderWay,
    Ledger,
    broken,
    full_speed_s,
    judged,
    log_after,
    longest_silence_s,
    losses,
    speed_per_s,
    windows_of,
)
from dbdyno.trial.acts.engine import with_load
from dbdyno.trial.answers import TableRows, rows_of
from dbdyno.trial.bench import Bench
from dbdyno.trial.nodes import behind, caught_up, of_others
from dbdyno.trial.record_builder import of_the_engine

BETWEEN_LOOKS_S = 0.02
Moment = tuple[float, float]
"""Seconds of the monotonic clock, and how far a node had come by then."""


class Moves:
    """Asks nodes in turn how far they have come, by the statement's answer, until the end of a `with` block.
    `made` holds the moments by a node's name."""

    def __init__(self, nodes: Iterable[ClusterNode], sql: str) -> None:
        self._nodes, self._sql = tuple(nodes), sql
        self.made: dict[str, list[Moment]] = {node.name: [] for node in self._nodes}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> Moves:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def still_s(self, name: str) -> float | None:
        """The longest time in which a node came no further; None for one that was not asked."""
        return longest_still_s(self.made[name]) if name in self.made else None

    def _ask(self) -> None:
        while not self._over.wait(BETWEEN_LOOKS_S):
            for node in self._nodes:
                # A node that gives no answer is asked again.
                with suppress(DriverFailed):
                    come = float(node.ask(self._sql)[0][-1] or 0)
                    self.made[node.name].append((time.monotonic(), come))


def longest_still_s(moments: Sequence[Moment]) -> float:
    """The longest time between two moves of moments in their order. The first and the last moment count as
    moves."""
    moved = [after for before, after in pairwise(moments) if after[1] != before[1]]
    ends = [*moments[:1], *moved, *moments[-1:]]
    return max((after[0] - before[0] for before, after in pairwise(ends)), default=0.0)


BETWEEN_S = 0.02
NOBODY = -1
"""No client has this number."""


class NodeLook(NamedTuple):
    """The latest row of each client that the node with a number showed to a statement that began at `at_ns`,
    of the monotonic clock."""

    number: int
    at_ns: int
    latest: dict[int, int]


class Staleness(NamedTuple):
    """How many clients' latest commits were looked for, how many of those were not there yet, and how long
    ago the client of the oldest one had been told of it."""

    looks: int
    stale: int
    stale_ms: float


class NodeLooks:
    """Looks at each node in turn until `end`, in a thread of its own, where `now` is what a node calls the
    start of its statement."""

    def __init__(self, ledger: Ledger, nodes: Sequence[ClusterNode], now: str) -> None:
        self.made: list[NodeLook] = []
        self._nodes = nodes
        # The time is told by a row of its own, because a node may have none of any client yet.
        self._sql = (
            f"SELECT {NOBODY}, 0, {now} UNION ALL"
            f" SELECT client, MAX(entry), 0 FROM dyno_ledger WHERE cut = {ledger.cut} GROUP BY client"
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(BETWEEN_S):
            for node in self._nodes:
                # A node that gives no answer gives no stale one.
                with suppress(DriverFailed):
                    self._look_at(node)

    def _look_at(self, node: ClusterNode) -> None:
        rows = node.ask(self._sql)
        ahead_ns = time.time_ns() - time.monotonic_ns()
        at_ns = max(round(float(row[2] or 0) * NS) for row in rows) - ahead_ns
        latest = {int(float(row[0] or 0)): int(float(row[1] or 0)) for row in rows}
        self.made.append(NodeLook(node.site.peer.number, at_ns, latest))


def staleness(
    looks: Iterable[NodeLook], entries: Iterable[Acknowledgement], homes: Sequence[int]
) -> Staleness:
    """What the looks missed of that which clients had been told of by then. Clients are dealt out in turn
    over the nodes with the numbers of `homes`, and a look on a client's own node does not count."""
    by_client: dict[int, list[Acknowledgement]] = {}
    for entry in entries:
        by_client.setdefault(entry.client, []).append(entry)
    found = stale = 0
    oldest_ns = 0
    for look in looks:
        for client, told in by_client.items():
            if look.number == homes[client % len(homes)]:
                continue
            before = [entry for entry in told if entry.told_ns < look.at_ns]
            missed = [entry.told_ns for entry in before if entry.number > look.latest.get(client, -1)]
            found += bool(before)
            stale += bool(missed)
            oldest_ns = max([oldest_ns, *(look.at_ns - told_ns for told_ns in missed)])
    return Staleness(found, stale, oldest_ns / 1e6)


STOP_S = 60.0
DOWN_S = 1.0
"""How long a killed node is away. The log that it then misses is short, and its start is what takes time."""
AFTER_S = 0.5
"""How long the load goes on once all nodes take part again."""
COMPARISONS = 3
"""A transaction that the load left open may end between two readings of the same table."""


@dataclass(frozen=True)
class _Struck:
    """The node, how it came back, and why it did not where it did not. At `back_ns` all took part again,
    while the load went on."""

    node: ClusterNode
    at_ns: int
    back_ns: int = 0
    rejoin_s: float | None = None
    transfer: str = ""
    replaced_s: float | None = None
    donor: str = ""
    donor_still_s: float | None = None
    damage: str = ""
    log: str = ""


def act_on_node(running: Running, phase: Phase, ledger: Ledger, bench: Bench, undo: ExitStack) -> Acted:
    """Does to a node what the phase asks for, under the load, and looks at all of them afterwards.

    Raises Blocked where there is no other node, or it cannot be cut off here, DriverFailed where the driver
    fails, and DynoError where the load ended before the act.
    """
    assert phase.then is not None, "there is something to be done"
    nodes = running.setup.nodes
    if nodes is None or nodes.count == 1:
        raise Blocked(FACTOR, "there is no other node", 'give more than one: "cluster.nodes" = 3')
    if phase.then is Act.NODE_CUT:
        nodes.segment.require_cut()
    if phase.then in (Act.FIRST_LOST, Act.NODE_EMPTY):
        nodes.cluster.require_rejoin(running.setup.installation)
    for node in nodes.others:
        # A look needs the ledger's table on each node.
        caught_up(nodes, node)
    homes = [node.site.peer.number for node in nodes.homes]
    struck, looks = _under_load(running, nodes, phase, ledger)
    if phase.then is Act.FIRST_LOST and not struck.damage:
        struck = _replaced(nodes, struck)
    entries = ledger.entries()
    seen = staleness(looks.made, entries, homes)
    counts = windows_of(entries, struck.at_ns)
    found = Recovery(
        act=phase.then,
        permits=_permitted(running, nodes, phase.then),
        full_speed_s=full_speed_s(counts, running.fastest_per_s),
        speed_per_s=speed_per_s(counts),
        acknowledged=len(entries),
        damage=struck.damage,
        cluster=Clustered(
            struck=struck.node.name,
            rejoin_s=struck.rejoin_s,
            transfer=struck.transfer,
            replaced_s=struck.replaced_s,
            donor=struck.donor,
            donor_still_s=struck.donor_still_s,
            silent_s=round(_silent_s(struck, entries), 6),
            looks=seen.looks,
            stale=seen.stale,
            stale_ms=round(seen.stale_ms, 3),
        ),
    )
    if struck.damage:
        return Acted(running, found, log=struck.log)
    return _looked_at(running, nodes, ledger, found, entries, bench, undo)


def _silent_s(struck: _Struck, entries: Sequence[Acknowledgement]) -> float:
    """The longest time without an acknowledged commit. Clients that were turned away do not come back, so it
    lasts until all nodes took part at least."""
    last_ns = max((entry.told_ns for entry in entries), default=struck.at_ns)
    turned_away_s = max(0, struck.back_ns - last_ns) / NS
    return max(longest_silence_s(entries), turned_away_s, struck.replaced_s or 0.0)


def _permitted(running: Running, nodes: Nodes, act: Act) -> Loss:
    """Another node's end takes nothing along, because the first one goes on."""
    if act is not Act.FIRST_LOST:
        return Loss.NOTHING
    return nodes.cluster.permits({**nodes.first.settings, **running.setup.settings})


def _under_load(running: Running, nodes: Nodes, phase: Phase, ledger: Ledger) -> tuple[_Struck, NodeLooks]:
    """The load is driven by a thread of its own, because a server dies with the thread that started it."""
    over = Event()
    with ThreadPoolExecutor(1) as pool:
        driving = pool.submit(_drive, running.load, ActUnderWay(running, phase, ledger), ledger, over)
        looks = None
        try:
            if not ledger.begins(over):
                raise _ended_before(driving)
            looked_at = list(nodes.by_name.values()) if nodes.loads_all else nodes.others
            looks = NodeLooks(ledger, looked_at, nodes.cluster.NOW)
            if over.wait(phase.duration_s):
                raise _ended_before(driving)
            looks.end()
            assert phase.then is not None, "there is something to be done"
            return _strike(nodes, phase, over), looks
        finally:
            if looks is not None:
                looks.end()
            running.load.kill()


def _drive(load: LoadDriver, ending: ActUnderWay, ledger: Ledger, over: Event) -> Tally:
    try:
        return load.run(ending.job(ledger))
    finally:
        over.set()


def _ended_before(driving: Future[Tally]) -> DynoError:
    """Why the load was over too early."""
    failure = driving.exception()
    if isinstance(failure, DynoError):
        return failure
    return DynoError("the load ended before the act", "run again on a quieter machine")


def _strike(nodes: Nodes, phase: Phase, over: Event) -> _Struck:
    """Does it, and waits until all take part again. A first node that is killed does not come back by
    itself."""
    act = phase.then
    assert act is not None, "there is something to be done"
    at_ns = time.monotonic_ns()
    if act is Act.FIRST_LOST:
        assert nodes.first.server is not None, "the load was on it"
        nodes.first.server.kill()
        return _Struck(nodes.first, at_ns)
    node = drawn(nodes, phase)
    try:
        back = AWAY[act](nodes, node)
    except (ServerFailed, DriverFailed) as failure:
        return _Struck(node, at_ns, damage=_lost(node, failure), log=getattr(failure, "log", ""))
    back_ns = time.monotonic_ns()
    over.wait(AFTER_S)
    return replace(back, at_ns=at_ns, back_ns=back_ns)


def drawn(nodes: Nodes, phase: Phase) -> ClusterNode:
    """Which node is struck: all variants with as many nodes meet the same."""
    return random.Random(f"{phase.name} {phase.duration_s}").choice(nodes.others)


def _back(nodes: Nodes, node: ClusterNode, rejoin_s: float, transfer: str = "") -> _Struck:
    assert node.server is not None, "it takes part"
    transfer = transfer or nodes.cluster.transfer(node.server.log())
    return _Struck(node, 0, rejoin_s=round(rejoin_s, 6), transfer=transfer)


def _kill(nodes: Nodes, node: ClusterNode) -> _Struck:
    assert node.server is not None, "it takes part"
    node.server.kill()
    time.sleep(DOWN_S)
    began_s = time.monotonic()
    nodes.start(node)
    nodes.full_s()
    return _back(nodes, node, time.monotonic() - began_s)


def _pause(nodes: Nodes, node: ClusterNode) -> _Struck:
    with nodes.paused(node):
        time.sleep(nodes.cluster.AWAY_S)
    return _back(nodes, node, nodes.full_s())


def _cut(nodes: Nodes, node: ClusterNode) -> _Struck:
    with nodes.cut_off(node):
        time.sleep(nodes.cluster.AWAY_S)
    return _back(nodes, node, nodes.full_s())


def _empty(nodes: Nodes, node: ClusterNode) -> _Struck:
    """A clean stop leaves a majority behind, however few the others are."""
    assert node.server is not None, "it takes part"
    node.server.stop(STOP_S)
    time.sleep(DOWN_S)
    began_s = time.monotonic()
    rest = [one for one in nodes.by_name.values() if one is not node]
    with Moves(rest, nodes.cluster.PROGRESS) as moves:
        transfer = nodes.refill(node)
        rejoin_s = time.monotonic() - began_s
    donor = nodes.cluster.donor(node.server.log()) or nodes.first.name
    still_s = moves.still_s(donor)
    found = _back(nodes, node, rejoin_s, transfer)
    return replace(found, donor=donor, donor_still_s=None if still_s is None else round(still_s, 6))


AWAY: Mapping[Act, Callable[[Nodes, ClusterNode], _Struck]] = {
    Act.NODE_KILL: _kill,
    Act.NODE_PAUSE: _pause,
    Act.NODE_CUT: _cut,
    Act.NODE_EMPTY: _empty,
}
"""Each has a node away for a while. Returns how it came back, in the seconds from its return until all take
part."""


def _replaced(nodes: Nodes, struck: _Struck) -> _Struck:
    """Another node takes the place of the first one, which then rejoins."""
    try:
        lost = nodes.promote()
        replaced_s = (time.monotonic_ns() - struck.at_ns) / 1e9
        began_s = time.monotonic()
        transfer = nodes.rejoin(lost)
        rejoin_s = time.monotonic() - began_s
    except (ServerFailed, DriverFailed) as failure:
        return replace(struck, damage=_lost(struck.node, failure), log=getattr(failure, "log", ""))
    return replace(struck, replaced_s=round(replaced_s, 6), rejoin_s=round(rejoin_s, 6), transfer=transfer)


def _lost(node: ClusterNode, failure: DynoError) -> str:
    return f"{node.name} did not come back: {failure.message}"


def _looked_at(
    running: Running,
    nodes: Nodes,
    ledger: Ledger,
    found: Recovery,
    entries: list[Acknowledgement],
    bench: Bench,
    undo: ExitStack,
) -> Acted:
    """What each node holds of what clients were told, and whether all of them hold the same."""
    assert nodes.first.server is not None and found.cluster is not None, "it takes part"
    fastest_per_s = max(running.fastest_per_s, found.speed_per_s)
    up = replace(running, server=nodes.first.server, fastest_per_s=fastest_per_s)
    up = with_load(up, bench.open_load, undo)
    try:
        late = behind(nodes)
        rows = ledger.rows(up.ask)
        # All that was told is owed: a commit that others hold outlives whoever told of it.
        end_ns = 1 + max(entry.told_ns for entry in entries)
        on_node = {
            node.name: losses(entries, ledger.rows(node.ask), end_ns) for node in nodes.by_name.values()
        }
        checks = (*judged(up.load.check(up.setup.job, None), rows), *_on_others(up, nodes))
        if late:
            checks = (*checks, Check(name="nodes_caught_up", holds=False, detail=late))
        up, log = log_after(found.act, up)
    except (ServerFailed, DriverFailed) as failure:
        if not of_the_engine(failure, running.setup.engine):
            raise
        return Acted(running, found.but(damage=failure.message), log=running.log())
    worst = max(on_node.values(), key=lambda one: one.lost)
    lacking = {name: one.lost for name, one in on_node.items() if one.lost}
    found = found.but(
        lost=worst.lost,
        lost_ms=worst.first_ms,
        present=len(rows),
        damage=broken(checks),
        cluster=found.cluster.but(lost=lacking),
    )
    return Acted(up, found, (*checks, *log))


def _on_others(up: Running, nodes: Nodes) -> tuple[Check, ...]:
    """The workload's invariants on each other node, and whether all its rows are those of the first."""
    differing = _differing(up, nodes)
    return (*of_others(up, None), Check(name="nodes_equal", holds=not differing, detail=differing))


def _differing(up: Running, nodes: Nodes) -> str:
    """The first table of which a node holds other rows than the first node; empty where all are equal."""
    differing = ""
    for _ in range(COMPARISONS):
        own = _tables(up, nodes.first)
        told = (_of_tables(up, node, own) for node in nodes.others if caught_up(nodes, node))
        differing = "; ".join(filter(None, told))
        if not differing:
            break
    return differing


def _of_tables(up: Running, node: ClusterNode, own: Sequence[TableRows]) -> str:
    """The first table that is another one on a node; empty where none is."""
    held = {table.name: table.text for table in _tables(up, node)}
    wanted = {table.name: table.text for table in own}
    odd = sorted(name for name in held | wanted if held.get(name) != wanted.get(name))
    return f"{node.name} holds {held.get(odd[0])}, and the first node {wanted.get(odd[0])}" if odd else ""


def _tables(up: Running, node: ClusterNode) -> tuple[TableRows, ...]:
    compared = up.setup.engine.compared
    return rows_of(up.load, node.url, compared) if compared else ()
