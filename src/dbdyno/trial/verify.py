"""The second stage: before any load, is what runs what was declared?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.errors import Blocked, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host import fingerprint
from dbdyno.layers.layer import Layer
from dbdyno.layers.setup import Running
from dbdyno.obtain import path
from dbdyno.records.record import Evidence


def verify(
    running: Running, levels: Mapping[str, Mapping[str, Level]], layers: Mapping[str, Layer]
) -> tuple[Evidence, ...]:
    """Every layer proves its knobs on the running system: one Evidence per factor and fixed setting. So does
    the application in front of the server."""
    if running.setup.engine.embedded:
        # Its library is loaded with the first statement; before that its process shows nothing of it.
        running.status()
        _require_library(running)
    of_layers = (
        evidence for name, knobs in levels.items() for evidence in layers[name].prove(knobs, running)
    )
    return (*of_layers, *(running.front.prove() if running.front else ()))


def _require_library(running: Running) -> None:
    """Raises ServerFailed where the load process does not hold the very library that the run began with."""
    installation = running.setup.installation
    library = installation.library
    if library is None:
        return
    if (
        library not in fingerprint.mapped(running.load.process_id)
        or path.digest_of_binary(library) != installation.digest
    ):
        raise ServerFailed(
            f"the load process holds another {running.setup.engine.title} than the run began with, {library}",
            "the file was replaced or removed: put it back, or start a new run",
        )


def exercised(
    evidence: Sequence[Evidence], running: Running, layers: Mapping[str, Layer]
) -> tuple[Evidence, ...]:
    """After the load: the same evidence, with what the load showed of each knob's use. What proves the
    application stays as it is."""
    homes = (layers.get(one.factor.split(".", 1)[0]) for one in evidence)
    return tuple(
        layer.exercised(one, running) if layer else one for one, layer in zip(evidence, homes, strict=True)
    )


def require_in_effect(evidence: Sequence[Evidence]) -> None:
    """Raises Blocked for the first level that is not in effect: it is never measured as if it were."""
    for one in evidence:
        if not one.in_effect:
            raise Blocked(one.factor, f"{one.factor}: {one.reason}", one.remedy)
