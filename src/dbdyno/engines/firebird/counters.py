"""Firebird's own counters: embedded, it has none that last."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.engines import embedded
from dbdyno.engines.engine import Ask

CACHE_MISSES = ""
exercised = embedded.exercised
held = embedded.held
unmoved = embedded.unmoved


def status(_ask: Ask) -> dict[str, float]:
    """None. The counters of an embedded database begin anew when its last attachment ends, which is
    before anyone could read them after a load."""
    return {}


def view(_gained: Mapping[str, float]) -> dict[str, float]:
    return {}


LIBRARIES = (
    "libfbclient",
    "libEngine",
    "libChaCha",
    "libSrp",
    "libfbtrace",
    "libib_util",
    "libtom",
    "libudr",
)
"""How the files of Firebird's client, engine, plug-ins and arithmetic begin."""


def owns(_file: str, object_file: str) -> bool:
    """Whether a function of the load process is Firebird's, by the library that holds it."""
    return object_file.rsplit("/", 1)[-1].startswith(LIBRARIES)
