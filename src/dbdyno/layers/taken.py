"""Which levels of a variant its own engine does not take, where others of the study may."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked
from dbdyno.frozen import ENGINE_FACTOR, Level, layer_and_knob
from dbdyno.host.allowed import NOTHING_ALLOWED, Allowed
from dbdyno.layers.layer import Layer
from dbdyno.obtain.installation import Installation
from dbdyno.study import Factor


def taken_of(
    levels: Mapping[str, Level], layers: Mapping[str, Layer], engine: Engine, installation: Installation
) -> dict[str, Level]:
    """The levels (by factor) that an engine takes."""
    return {
        name: level
        for name, level in levels.items()
        if untaken({name: level}, layers, engine, installation) is None
    }


def untaken(
    levels: Mapping[str, Level],
    layers: Mapping[str, Layer],
    engine: Engine,
    installation: Installation | None,
    allowed: Allowed = NOTHING_ALLOWED,
) -> Blocked | None:
    """Why an engine cannot run with these levels (by factor), by the first that it does not take; None where
    it takes them all. No server starts."""
    for name, level in levels.items():
        layer = layers.get(layer_and_knob(name)[0])
        if layer is None or name == ENGINE_FACTOR:
            continue
        factor = Factor(name=name, levels=(level,))
        for mistake in layer.mistakes(factor, engine, installation, allowed):
            return Blocked(name, mistake.message, mistake.hint)
    return None
