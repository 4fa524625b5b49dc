"""How the nodes of a cluster are loaded, and what they hold once a load is over."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from dbdyno.driver.load import AtNode, LoadOfNodes
from dbdyno.driver.load_process import LoadProcess
from dbdyno.errors import DriverFailed
from dbdyno.records.record import Check

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dbdyno.driver.load import Invariant, LoadDriver
    from dbdyno.driver.tally import Acknowledged
    from dbdyno.engines.engine import Server
    from dbdyno.engines.nodes import ClusterNode, Nodes
    from dbdyno.layers.setup import Running, Setup
    from dbdyno.trial.bench import OpenLoad

CATCH_UP_S, LOOK_S = 60.0, 0.05
"""How long a node may take until it has all that the others have."""


def load_on(setup: Setup, server: Server, open_load: OpenLoad) -> LoadDriver:
    """The load process of a server; where all nodes of its cluster are loaded, those of all."""
    launch, nodes = setup.launch_of_load(server), setup.nodes
    if nodes is None or not nodes.loads_all:
        return open_load(server.driver_environment, launch)
    at: list[AtNode] = []
    with ExitStack() as undo:
        for node in nodes.homes:
            process = open_load(server.driver_environment, launch)
            undo.callback(process.kill)
            assert isinstance(process, LoadProcess), "the nodes are on this host"
            at.append(AtNode(node.name, node.url, process))
        undo.pop_all()
    return LoadOfNodes(at)


def caught_up(nodes: Nodes, node: ClusterNode) -> bool:
    """Whether a node comes to have all that the first one has."""
    deadline_s = time.monotonic() + CATCH_UP_S
    while not nodes.caught_up(node):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(LOOK_S)
    return True


def behind(nodes: Nodes) -> str:
    """Which nodes do not come to have all that the first one has; empty where all do."""
    late = [name for name, node in nodes.by_name.items() if not caught_up(nodes, node)]
    return f"{', '.join(late)} did not catch up within {CATCH_UP_S:g} s" if late else ""


def nodes_agree(running: Running) -> tuple[Check, ...]:
    """Whether all nodes have come to hold the same commits, and still take part; none for one server."""
    nodes = running.setup.nodes
    if nodes is None or nodes.count == 1:
        return ()
    try:
        late, membership = behind(nodes), nodes.membership()
    except DriverFailed as failure:
        return (Check(name="nodes_together", holds=False, detail=failure.message),)
    detail = late or ("" if membership.whole else membership.words)
    return (Check(name="nodes_together", holds=not detail, detail=detail),)


def of_others(running: Running, told: Acknowledged | None) -> tuple[Check, ...]:
    """The workload's invariants on each node but the first, against what clients were told; without that,
    those alone that need no run."""
    checks: list[Check] = []
    for node in running.setup.nodes.others if running.setup.nodes else ():
        found = running.load.check(running.data_job.but(url=node.url), told)
        checks += [one.but(name=f"{node.name}_{one.name}") for one in checks_of_invariants(found)]
    return tuple(checks)


def checks_of_invariants(invariants: Iterable[Invariant], after: str = "") -> tuple[Check, ...]:
    """A check for each, whose name says `after` what it was made."""
    suffix = f"_after_{after}" if after else ""
    return tuple(Check(name=f"{one.name}{suffix}", holds=one.holds, detail=one.detail) for one in invariants)
