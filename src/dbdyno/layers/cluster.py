"""The cluster layer: how many servers hold the database together, proved by what each of them says."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.engines.nodes import Nodes
from dbdyno.errors import Blocked, DriverFailed
from dbdyno.host.segment import FACTOR
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import ForSome, LayerOfKnobs
from dbdyno.layers.proof import proof
from dbdyno.layers.setup import Request, Running, Setup
from dbdyno.records.record import Evidence, Reading

KNOWN = "take mariadb or postgresql"


@dataclass(frozen=True)
class Together(Request):
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


CLUSTER = LayerOfKnobs(
    "cluster",
    Knob(
        name=FACTOR,
        levels="1 to 5",
        pattern="[1-5]",
        effect="so many servers, each on data of its own, that replicate",
        proof="each node's word on who takes part, and its settings",
        ask=lambda level, _: (Together(int(level)),),
        prove=_prove,
        in_production=False,
        exercised=_followed,
    ),
    engines=ForSome(lambda engine: engine.cluster is not None, "has no cluster here", KNOWN),
)
"""`cluster.nodes = LEVEL`."""
