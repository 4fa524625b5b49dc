"""What a study must say of a cluster whose nodes it strikes or loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.frozen import Level, level_text
from dbdyno.study.document import Place
from dbdyno.study.nouns import Factor, Restarts, Workload
from dbdyno.study.section import SectionReader

FACTOR = "cluster.nodes"
"""The factor whose levels are numbers of servers that hold a database together."""
LOAD, ALL = "cluster.load", "all"
"""The factor that says which nodes clients are on."""
OF_NODES = ("nodes_killed", "nodes_paused", "nodes_cut_off", "nodes_emptied", "first_nodes_lost")
EXCLUDED = {
    "driver": "the nodes are on a network of their own, which no other host is on",
    "application": "an application stands in front of one server",
}
"""Sections that do not go with a cluster, and why."""
TOGETHER = {
    "flexasync": "its clients wait for each other, which those of several load processes cannot",
    "replay": "its recording is played by one process",
}
"""Workloads whose clients cannot be dealt out over nodes, and why."""
GIVE_NODES = f'write "{FACTOR}" = [1, 3] under [factors], or "{FACTOR}" = 3 under [settings]'


def require_nodes(
    reader: SectionReader,
    restarts: Restarts | None,
    workload: Workload | None,
    factors: Sequence[Factor],
    settings: Mapping[str, Level],
) -> None:
    """Notes acts on nodes where there is but one, and what does not go with more."""
    given: dict[str, Sequence[Level]] = {name: (level,) for name, level in settings.items()}
    given |= {factor.name: factor.levels for factor in factors}
    if ALL in map(level_text, given.get(LOAD, ())):
        _require_dealt(reader, restarts, workload, given)
    if FACTOR in given:
        for section, why in EXCLUDED.items():
            if reader.at((section,)) is not None:
                told = f"[{section}] and `{FACTOR}` exclude each other: {why}"
                reader.note((section,), told, "keep one of the two")
        return
    for key in OF_NODES:
        if restarts is not None and getattr(restarts, key):
            reader.note(
                ("restarts", key), f"`{key}` strikes a node of a cluster, and there is none", GIVE_NODES
            )


def _require_dealt(
    reader: SectionReader,
    restarts: Restarts | None,
    workload: Workload | None,
    given: Mapping[str, Sequence[Level]],
) -> None:
    """Notes why clients cannot be dealt out over all nodes."""
    place = next((path for path in (("factors", LOAD), ("settings", LOAD)) if reader.at(path)), ())
    if FACTOR not in given:
        reader.note(place, f"`{LOAD}` is of a cluster, and there is none", GIVE_NODES)
        return
    if workload is None:
        return
    if why := TOGETHER.get(workload.name):
        reader.note(place, f"`{workload.name}` does not go to all nodes: {why}", f'write "{LOAD}" = "one"')
    clients = [one for one in given.get("workload.clients", (workload.clients,)) if isinstance(one, int)]
    nodes = [one for one in given[FACTOR] if isinstance(one, int)]
    if clients and nodes and min(clients) < max(nodes):
        told = f"{max(nodes)} nodes are to share {min(clients)} clients"
        reader.note(place, told, "give each node one client at least, or take fewer nodes")
    _require_written(reader, restarts, workload, place)


def _require_written(
    reader: SectionReader, restarts: Restarts | None, workload: Workload, place: Place
) -> None:
    """Notes writes that go to all nodes of an engine whose first node alone takes them."""
    offer = reader.catalogue.workload(workload.name)
    reads = offer is not None and offer.read_only and restarts is None
    known = ", ".join(sorted(reader.catalogue.each_writes))
    hint = f'write "{LOAD}" = "one", take a workload that reads alone and no [restarts], or take {known}'
    for name in sorted({engine.engine for engine in reader.engines} & reader.catalogue.engines):
        if not reads and name not in reader.catalogue.each_writes:
            reader.note(place, f"in a cluster of {name} the first node alone takes writes", hint)
