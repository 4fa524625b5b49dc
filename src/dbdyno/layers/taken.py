"""Which levels of a variant its own engine does not take, where others of the study may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked, Mistake
from dbdyno.frozen import ENGINE_FACTOR, Level, layer_and_knob
from dbdyno.host.allowed import NOTHING_ALLOWED, Allowed
from dbdyno.layers.config import ConfigLayer
from dbdyno.layers.layer import Layer, by_layer
from dbdyno.obtain.installation import Installation
from dbdyno.study import Factor


def taken_of(
    levels: Mapping[str, Level], layers: Mapping[str, Layer], engine: Engine, installation: Installation
) -> dict[str, Level]:
    """The levels (by factor) that an engine takes."""
    return {
        name: level
        for name, level in levels.items()
        if not any(untaken({name: level}, layers, engine, installation, beside=levels))
    }


def untaken(
    levels: Mapping[str, Level],
    layers: Mapping[str, Layer],
    engine: Engine,
    installation: Installation | None,
    allowed: Allowed = NOTHING_ALLOWED,
    beside: Mapping[str, Level] | None = None,
) -> Iterator[Blocked]:
    """Why an engine cannot run with these levels (by factor) beside others: the first mistake of each level
    that it does not take. No server starts."""
    others = {**(beside or {}), **levels}
    for name, level in levels.items():
        layer = layers.get(layer_and_knob(name)[0])
        if layer is None or name == ENGINE_FACTOR:
            continue
        factor = Factor(name=name, levels=(level,))
        for mistake in mistakes_beside(layer, factor, others, engine, installation, allowed)[:1]:
            yield Blocked(name, mistake.message, mistake.hint)


def mistakes_beside(
    layer: Layer,
    factor: Factor,
    beside: Mapping[str, Level],
    engine: Engine,
    installation: Installation | None,
    allowed: Allowed = NOTHING_ALLOWED,
) -> list[Mistake]:
    """What a layer finds wrong with levels in a variant that has other levels (by factor) beside them: a
    setting may need another one, as a collation needs its character set."""
    found = layer.mistakes(factor, engine, installation, allowed)
    if not found or not isinstance(layer, ConfigLayer):
        return found
    others = by_layer({name: level for name, level in beside.items() if name != factor.name})
    return layer.mistakes(factor, engine, installation, allowed, others.get("config", {}))
