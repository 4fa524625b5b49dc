"""The engine layer: which installation a variant runs, proved by the file that the running process holds.

A variant's engine is chosen before anything else is asked for it (`trial/bench.py`), because all other levels
are asked of that engine. So a level of this layer asks for nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.host import libraries
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import LayerOfKnobs
from dbdyno.layers.proof import proof
from dbdyno.layers.setup import Running
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Evidence, Reading


def held_file(installation: Installation, process_ids: Iterable[int]) -> Path | None:
    """The installation's own program or library that one of these processes has mapped; None where none has.
    An installation that names no such file is known by the libraries below its prefix."""
    named = installation.library or (Path(installation.command[-1]) if installation.command else None)
    for process_id in process_ids:
        mapped = libraries.mapped(process_id)
        if named is not None and named.resolve() in mapped:
            return named.resolve()
        prefix = installation.prefix.resolve()
        below = [file for file in mapped if named is None and file.is_relative_to(prefix)]
        if libraries_below := sorted(file for file in below if ".so" in file.name):
            return libraries_below[0]
    return None


def _prove(level: str, running: Running) -> Evidence:
    installation, engine = running.setup.installation, running.setup.engine
    if engine.embedded:
        # Its library is loaded with the first statement.
        running.ask(f"SELECT 1{f' FROM {engine.dual}' if engine.dual else ''}")
    file = held_file(installation, running.process_ids)
    if file is None:
        found = Reading(value="another file", source=f"/proc/PID/maps holds nothing of {installation.origin}")
    else:
        found = Reading(
            value=f"{engine.title} {running.server.version}",
            source=f"the server itself; /proc/PID/maps holds {file}, {identity(file)}",
        )
    accepted = f"{installation.origin}, {_packages(installation)}digest {installation.digest}"
    remedy = "something else started in its place: look at the server's log"
    return proof(ENGINE_FACTOR, level, found, file is not None, accepted, remedy)


@cache
def identity(file: Path) -> str:
    """Its build id, in words."""
    # Here, because a plan reads no file of an engine.
    from dbdyno.obtain.binary.build_id import build_id_of

    build_id = build_id_of(file)
    return f"build id {build_id}" if build_id else "which has no build id"


def _packages(installation: Installation) -> str:
    packages = installation.facts.get("packages", "")
    return f"{packages}, " if packages else ""


ENGINE = LayerOfKnobs(
    ENGINE_FACTOR,
    Knob(
        name=ENGINE_FACTOR,
        levels="engines such as mariadb@11.8 or mariadb:/usr/sbin/mariadbd; the first is the baseline's",
        pattern=r"[a-z]+(@[0-9A-Za-z][0-9A-Za-z.+~_-]*|:[/~].*)?",
        effect="the variant runs on that engine, with data of its own from the same seeds",
        proof="the server's own word on its version, and its file in /proc/PID/maps with the build id",
        prove=_prove,
        # A recipe sets what a server that is there can be told.
        in_production=False,
    ),
)
"""`engine = [LEVEL, LEVEL]`."""
