"""The cluster layer: how many servers hold the database together, how, and which of them clients are on. Each
says so itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.driver.load import LoadOfNodes
from dbdyno.engines.nodes import Nodes
from dbdyno.errors import Blocked, DriverFailed, Mistake
from dbdyno.frozen import Level, level_text
from dbdyno.host.namespaces import FACTOR
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import ForSome, LayerOfKnobs, proof
from dbdyno.layers.setup import Request, Running, Setup
from dbdyno.records.record import Evidence, Reading
from dbdyno.study.nodes import ALL_NODES, KIND, NODES_LOADED

if TYPE_CHECKING:
    from dbdyno.engines.engine import Engine

KNOWN = "take mariadb, mysql or postgresql"
KINDS = ("galera", "streaming", "asynchronous", "semi-synchronous", "group")
WORD = "each node's own word"
LONGER = "raise the time that the first node waits, or take servers that answer within it"


@dataclass(frozen=True)
class ServersTogether(Request):
    """So many servers of the engine, on a network of their own; of its first kind where none is named."""

    count: int
    kind: str

    def apply(self, setup: Setup) -> None:
        clusters = setup.engine.clusters
        if not clusters:
            raise Blocked(FACTOR, f"{setup.engine.title} has no cluster here", KNOWN)
        cluster = clusters[self.kind or next(iter(clusters))]
        cluster.require(setup.installation)
        if setup.wish is not None and self.count > 1:
            reason = "the nodes' data lie in folders, and a volume holds one server's"
            raise Blocked(FACTOR, reason, "leave the storage layer and power cuts out")
        setup.nodes = Nodes(setup.engine, cluster, self.count)


@dataclass(frozen=True)
class ToAll(Request):
    """Clients are dealt out over all nodes."""

    def apply(self, setup: Setup) -> None:
        if setup.nodes is None:
            raise Blocked(NODES_LOADED, "there is no cluster", f'give "{FACTOR}" as well')
        setup.nodes.to_all = True


class _Clusters(LayerOfKnobs):
    """Its number of nodes and their kind are one wish."""

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        asked: list[Request] = []
        if "nodes" in levels:
            asked.append(
                ServersTogether(int(level_text(levels["nodes"])), level_text(levels.get("kind", "")))
            )
        return (*asked, *super().ask(levels, engine))

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        """A first node that told commits without the word of another one was not what it was asked to be."""
        nodes = running.setup.nodes
        if evidence.factor != KIND or nodes is None or nodes.count == 1:
            return super().exercised(evidence, running)
        before, after = running.status_before, running.status_after
        alone = sum(after.get(name, 0.0) - before.get(name, 0.0) for name in nodes.cluster.TOLD_ALONE)
        source = ", ".join(nodes.cluster.TOLD_ALONE)
        if not source:
            return evidence
        shown = Reading(value=f"{alone:,.0f} commits told without the word of another node", source=source)
        if not alone:
            return evidence.but(exercised=shown)
        reason = f"the first node went on alone during the load: {shown.value}"
        return evidence.but(exercised=shown, in_effect=False, reason=reason, remedy=LONGER)


def _lacks_kind(level: str, engine: Engine) -> Mistake | None:
    if level in engine.clusters or level not in KINDS:
        return None
    hint = f"it has: {', '.join(engine.clusters)}"
    return Mistake(0, f"{KIND}: {engine.title} has no cluster of the kind {level!r}", hint)


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
    reading = Reading(value=f"{counted}: {words}", source=WORD)
    in_effect = found is not None and found.whole and not differing and str(nodes.count) == level
    return proof(FACTOR, level, reading, in_effect, f"{running.setup.engine.title} started as often")


def _prove_kind(level: str, running: Running) -> Evidence:
    """What nodes say of how they take part is what those of that kind say."""
    nodes = running.setup.nodes
    if nodes is None:
        return proof(KIND, level, Reading(value="one server", source="Dyno started no other"), False, "")
    try:
        found = nodes.membership()
    except DriverFailed as failure:
        return proof(KIND, level, Reading(value=failure.message, source=WORD), False, "")
    in_effect = found.whole and nodes.cluster is running.setup.engine.clusters.get(level)
    return proof(KIND, level, Reading(value=found.words, source=WORD), in_effect, "the nodes' settings")


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


CLUSTER = _Clusters(
    "cluster",
    Knob(
        name=FACTOR,
        levels="1 to 5",
        pattern="[1-5]",
        effect="so many servers, each on data of its own, that replicate",
        proof="each node's word on who takes part, and its settings",
        prove=_prove,
        in_production=False,
        exercised=_followed,
    ),
    Knob(
        name=KIND,
        levels=", ".join(KINDS),
        pattern="|".join(KINDS),
        effect="how they replicate; by default the first that the engine has",
        proof="each node's word on its part, and that no commit of the load was told without the others",
        prove=_prove_kind,
        lacked=_lacks_kind,
        in_production=False,
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
    engines=ForSome(lambda engine: bool(engine.clusters), "has no cluster here", KNOWN),
)
"""`cluster.KNOB = LEVEL`."""
