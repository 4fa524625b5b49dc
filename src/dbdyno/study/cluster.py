"""What a study must say of a cluster whose nodes it strikes."""

from __future__ import annotations

from collections.abc import Iterable

from dbdyno.study.nouns import Restarts
from dbdyno.study.section import SectionReader

FACTOR = "cluster.nodes"
"""The factor whose levels are numbers of servers that hold a database together."""
OF_NODES = ("nodes_killed", "nodes_paused", "nodes_cut_off", "first_nodes_lost")
EXCLUDED = {
    "driver": "the nodes are on a network of their own, which no other host is on",
    "application": "an application stands in front of one server",
}
"""Sections that do not go with a cluster, and why."""


def require_nodes(reader: SectionReader, restarts: Restarts | None, names: Iterable[str]) -> None:
    """Notes acts on nodes where there is but one, and what does not go with more."""
    if FACTOR in names:
        for section, why in EXCLUDED.items():
            if reader.at((section,)) is not None:
                told = f"[{section}] and `{FACTOR}` exclude each other: {why}"
                reader.note((section,), told, "keep one of the two")
        return
    for key in OF_NODES:
        if restarts is not None and getattr(restarts, key):
            hint = f'write "{FACTOR}" = [1, 3] under [factors], or "{FACTOR}" = 3 under [settings]'
            reader.note(("restarts", key), f"`{key}` strikes a node of a cluster, and there is none", hint)
