"""The layers that Dyno knows, by the name that a study writes before the dot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbdyno.engines.engine import Engine
from dbdyno.frozen import ENGINE_FACTOR, Level, layer_and_knob, level_text
from dbdyno.layers.build import BUILD
from dbdyno.layers.cluster import CLUSTER
from dbdyno.layers.config import ConfigLayer
from dbdyno.layers.cpu import CPU
from dbdyno.layers.engine import ENGINE
from dbdyno.layers.fault import FAULT
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import GivenUp, Layer, LayerOfKnobs, by_layer
from dbdyno.layers.machine import MACHINE
from dbdyno.layers.memory import MEMORY
from dbdyno.layers.platform import PLATFORM
from dbdyno.layers.source import SOURCE
from dbdyno.layers.storage import STORAGE
from dbdyno.layers.workload import WorkloadLayer
from dbdyno.study.files import NamedFile
from dbdyno.study.space import Promise

LAYERS: dict[str, Layer] = {
    layer.name: layer
    for layer in (
        ENGINE,
        PLATFORM,
        MACHINE,
        WorkloadLayer(),
        SOURCE,
        BUILD,
        ConfigLayer(),
        MEMORY,
        CPU,
        STORAGE,
        CLUSTER,
        FAULT,
    )
}
"""Every layer by name, in the order in which their requests are applied: memory needs what config has put."""

KNOBS: dict[str, Knob] = {
    knob.name: knob
    for layer in (ENGINE, PLATFORM, MACHINE, SOURCE, BUILD, MEMORY, CPU, STORAGE, CLUSTER, FAULT)
    for knob in layer.knobs.values()
}
"""The knobs of the layers that know all of theirs, by factor. The engine knows those of `config`, and the
driver those of `workload`."""


def knows(factor: str) -> bool:
    """Whether a factor may be one of these layers. Nobody here knows the knobs of `config` and `workload`."""
    if factor == ENGINE_FACTOR:
        return True
    name, _, knob = factor.partition(".")
    layer = LAYERS.get(name)
    return layer is not None and (knob in layer.knobs if isinstance(layer, LayerOfKnobs) else bool(knob))


def gives_up(
    factor: str, level: Level, engine: Engine, beside: Mapping[str, Level] | None = None
) -> Promise | None:
    """What a level of a factor gives up for its speed beside the levels of others, or wherever they stand;
    None where it keeps all."""
    lost = _lost(factor, level, engine, beside)
    return lost.promise if lost else None


def given_up(
    levels: Mapping[str, Level], baseline: Mapping[str, Level], engine: Engine
) -> tuple[Promise, ...]:
    """What a setup gives up that another one keeps, or gives up less of, each once. Both are whole: what they
    share can matter for what they do not."""
    found = set()
    for factor, level in levels.items():
        lost = _lost(factor, level, engine, levels)
        kept = _lost(factor, baseline[factor], engine, baseline) if factor in baseline else None
        if lost and (kept is None or lost.degree > kept.degree):
            found.add(lost.promise)
    return tuple(sorted(found))


def _lost(factor: str, level: Level, engine: Engine, beside: Mapping[str, Level] | None) -> GivenUp | None:
    layer, knob = layer_and_knob(factor)
    return LAYERS[layer].gives_up(
        knob, level, engine, None if beside is None else by_layer(beside).get(layer, {})
    )


def files_of_level(factor: str, level: Level, folder: Path) -> tuple[NamedFile, ...]:
    """The files that a level of a factor names in a study's folder. Those of a workload are known of all of
    its options together."""
    knob = KNOBS.get(factor)
    return knob.files(level_text(level), folder) if knob is not None and knob.takes(level) else ()


def in_production(factor: str) -> bool:
    """Whether a server that Dyno did not start has a factor too, and shows its level."""
    layer, knob = layer_and_knob(factor)
    return LAYERS[layer].in_production(knob)


def related_factors() -> dict[str, tuple[str, ...]]:
    """Which factors tell whether a difference of hosts matters, by the fingerprint's key."""
    related: dict[str, tuple[str, ...]] = {}
    for layer in LAYERS.values():
        for knob, keys in layer.related.items():
            for key in keys:
                related[key] = (*related.get(key, ()), f"{layer.name}.{knob}")
    return related
