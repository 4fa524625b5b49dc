"""Clusters in a study: which factors speak of nodes, and what needs more than one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dbdyno.frozen import Level, level_text
from dbdyno.study.document import Place
from dbdyno.study.nouns import Factor, Restarts, Workload
from dbdyno.study.section import SectionReader

NODES = "cluster.nodes"
"""The factor whose levels are numbers of servers that hold a database together."""
NODES_LOADED, ALL_NODES = "cluster.load", "all"
"""The factor that says which nodes clients are on."""
KIND, GALERA = "cluster.kind", "galera"
"""The factor that says how they are held together, and the kind of which each node takes writes."""
OF_NODES = ("nodes_killed", "nodes_paused", "nodes_cut_off", "nodes_emptied", "first_nodes_lost")
GIVE_NODES = f'write "{NODES}" = [1, 3] under [factors], or "{NODES}" = 3 under [settings]'


def require_nodes(
    reader: SectionReader,
    restarts: Restarts | None,
    workload: Workload | None,
    factors: Sequence[Factor],
    settings: Mapping[str, Level],
) -> None:
    """Notes acts on nodes where there is but one, and loads that more cannot share."""
    given: dict[str, Sequence[Level]] = {name: (level,) for name, level in settings.items()}
    given |= {factor.name: factor.levels for factor in factors}
    if ALL_NODES in map(level_text, given.get(NODES_LOADED, ())):
        _require_dealt(reader, restarts, workload, given)
    if NODES in given:
        return
    if KIND in given:
        reader.note(_place(reader, KIND), f"`{KIND}` is of a cluster, and there is none", GIVE_NODES)
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
    place = _place(reader, NODES_LOADED)
    if NODES not in given:
        reader.note(place, f"`{NODES_LOADED}` is of a cluster, and there is none", GIVE_NODES)
        return
    if workload is None:
        return
    clients = [one for one in given.get("workload.clients", (workload.clients,)) if isinstance(one, int)]
    nodes = [one for one in given[NODES] if isinstance(one, int)]
    if clients and nodes and min(clients) < max(nodes):
        told = f"{max(nodes)} nodes are to share {min(clients)} clients"
        reader.note(place, told, "give each node one client at least, or take fewer nodes")
    if any(level_text(kind) != GALERA for kind in given.get(KIND, ())):
        each_writes: Collection[str] = ()
    else:
        each_writes = reader.catalogue.each_writes
    _require_written(reader, restarts, workload, place, each_writes)


def _place(reader: SectionReader, factor: str) -> Place:
    return next((path for path in (("factors", factor), ("settings", factor)) if reader.at(path)), ())


def _require_written(
    reader: SectionReader,
    restarts: Restarts | None,
    workload: Workload,
    place: Place,
    each_writes: Collection[str],
) -> None:
    """Notes writes that go to all nodes of an engine whose first node alone takes them."""
    offer = reader.catalogue.workload(workload.name)
    reads = offer is not None and offer.read_only and restarts is None
    known = ", ".join(f"{name} with {GALERA}" for name in sorted(reader.catalogue.each_writes))
    hint = (
        f'write "{NODES_LOADED}" = "one", take a workload that reads alone and no [restarts], or take {known}'
    )
    for name in sorted({engine.engine for engine in reader.engines} & reader.catalogue.engines):
        if not reads and name not in each_writes:
            reader.note(place, f"in a cluster of {name} the first node alone takes writes", hint)
