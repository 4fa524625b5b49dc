"""The cluster layer: how many servers hold the database together, and which of them clients are on. Each says
so itself."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.driver.load import LoadOfNodes
from dbdyno.engines.nodes import Nodes
from dbdyno.errors import Blocked, DriverFailed
from dbdyno.host.namespaces import FACTOR
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import ForSome, LayerOfKnobs, proof
from dbdyno.layers.setup import Request, Running, Setup
from dbdyno.records.record import Evidence, Reading
from dbdyno.study.sections import ALL_NODES, NODES_LOADED

KNOWN = "take mariadb or postgresql"


@dataclass(frozen=True)
class ServersTogether(Request):
    """So many servers of the engine, on a network of their own."""

    count: int

    def apply(self, setup: Setup) -> None:
        if setup.engine.cluster is None:
            raise Blocked(FACTOR, f"{setup.engine.title} has no cluster here", KNOWN)
        setup.engine.cluster.require(setup.installation)
        if setup.wish is not None and self.count > 1:
            reason = "the nodes' data lie in folders, and a volume holds one server's"
            raise Blocked(FACTOR, reason, "leave the storage layer and power cuts out")
        setup.nodes = Nodes(setup.engine, self.count)


@dataclass(frozen=True)
class ToAll(Request):
    """Clients are dealt out over all nodes."""

    def apply(self, setup: Setup) -> None:
        if setup.nodes is None:
            raise Blocked(NODES_LOADED, "there is no cluster", f'give "{FACTOR}" as well')
        setup.nodes.to_all = True


def _prove(level: str, running: Running) -> Evidence:
    """All nodes take part, and each runs with the settings of the first one."""
    nodes = running.setup.nodes
    if nodes is None:
        return proof(FACTOR, level, Reading(value="one server", source="Dyno started no other"), False, "")
    try:
        found = nodes.membership()
        differing = _differing(running, nodes)
    except DriverFailed as failure:
        found, differing = None, failure.message
    words = differing or (found.words if found else "")
    counted = "1 node" if nodes.count == 1 else f"{nodes.count} nodes"
    reading = Reading(value=f"{counted}: {words}", source="each node's own word")
    in_effect = found is not None and found.whole and not differing and str(nodes.count) == level
    return proof(FACTOR, level, reading, in_effect, f"{running.setup.engine.title} started as often")


def _differing(running: Running, nodes: Nodes) -> str:
    """The first setting that another node has and the first one has not; empty where there is none."""
    names = frozenset(running.setup.settings) - nodes.cluster.SETTINGS
    read = running.setup.engine.settings.read
    wanted = {name: one.value for name, one in read(nodes.first.ask, names).items()}
    for node in nodes.others:
        for name, one in read(node.ask, names).items():
            if one.value != wanted.get(name):
                return f"{node.name} has {name} = {one.value}, and {nodes.first.name} {wanted.get(name)}"
    return ""


def _followed(running: Running) -> Reading | None:
    """Whether all still took part when the load was over."""
    nodes = running.setup.nodes
    if nodes is None or nodes.count == 1:
        return None
    try:
        words = nodes.membership().words
    except DriverFailed as failure:
        words = failure.message
    return Reading(value=words, source="each node's own word after the load")


def _prove_load(level: str, running: Running) -> Evidence:
    """At the URL of each client's node, that node answers."""
    nodes, load = running.setup.nodes, running.load
    if nodes is None:
        return proof(
            NODES_LOADED, level, Reading(value="one server", source="Dyno started no other"), False, ""
        )
    places = [(one.node, one.url) for one in load.at] if isinstance(load, LoadOfNodes) else []
    places = places or [(nodes.first.name, running.setup.job.url)]
    try:
        told = [str(load.query(url, nodes.cluster.WHO)[0][0]) for _, url in places]
    except DriverFailed as failure:
        told = [failure.message]
    wanted = {name for name in nodes.by_name if level == ALL_NODES or name == nodes.first.name}
    in_effect = told == [name for name, _ in places] and set(told) == wanted
    reading = Reading(value=f"clients on {', '.join(told)}", source="each node's own name")
    return proof(NODES_LOADED, level, reading, in_effect, "Dyno dealt its clients out")


def _dealt(running: Running) -> Reading | None:
    """What the clients of each node did, and how far apart they began."""
    load = running.load
    if not isinstance(load, LoadOfNodes) or not load.seen:
        return None
    told = [f"{one.node}: {one.clients} clients, {one.operations:,} transactions" for one in load.seen]
    late_ms = 1e3 * max(one.late_s for one in load.seen)
    words = f"{'; '.join(told)}; they began within {late_ms:.1f} ms"
    return Reading(value=words, source="the clients' own count")


CLUSTER = LayerOfKnobs(
    "cluster",
    Knob(
        name=FACTOR,
        levels="1 to 5",
        pattern="[1-5]",
        effect="so many servers, each on data of its own, that replicate",
        proof="each node's word on who takes part, and its settings",
        ask=lambda level, _: (ServersTogether(int(level)),),
        prove=_prove,
        in_production=False,
        exercised=_followed,
    ),
    Knob(
        name=NODES_LOADED,
        levels="one, all",
        pattern="one|all",
        effect="clients are on the first node, or dealt out over all nodes",
        proof="the name that the node at each client's URL tells",
        ask=lambda level, _: (ToAll(),) if level == ALL_NODES else (),
        prove=_prove_load,
        in_production=False,
        exercised=_dealt,
    ),
    engines=ForSome(lambda engine: engine.cluster is not None, "has no cluster here", KNOWN),
)
"""`cluster.nodes = LEVEL` and `cluster.load = LEVEL`."""
