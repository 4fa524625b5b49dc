"""The layers that Dyno knows, by the name that a study writes before the dot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.frozen import ENGINE_FACTOR, layer_and_knob, level_text
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import LayerOfKnobs, by_layer
from dbdyno.registry import registry

if TYPE_CHECKING:
    from dbdyno.engines.engine import Engine
    from dbdyno.frozen import Level
    from dbdyno.layers.layer import GivenUp, Layer
    from dbdyno.registry import Table
    from dbdyno.study.files import NamedFile
    from dbdyno.study.space import Promise

LAYERS: Table[Layer] = registry(
    {
        "engine": "dbdyno.layers.engine:ENGINE",
        "platform": "dbdyno.layers.platform:PLATFORM",
        "machine": "dbdyno.layers.machine:MACHINE",
        "workload": "dbdyno.layers.workload:WORKLOAD",
        "source": "dbdyno.layers.source:SOURCE",
        "build": "dbdyno.layers.build:BUILD",
        "config": "dbdyno.layers.config:CONFIG",
        "memory": "dbdyno.layers.memory:MEMORY",
        "cpu": "dbdyno.layers.cpu:CPU",
        "storage": "dbdyno.layers.storage:STORAGE",
        "cluster": "dbdyno.layers.cluster:CLUSTER",
        "fault": "dbdyno.layers.fault:FAULT",
    }
)
"""Every layer by name, in the order in which their requests are applied: memory needs what config has put."""


class _Knobs(Mapping[str, Knob]):
    """By factor, from the layer that has it: to ask for one imports no other layer."""

    def __getitem__(self, factor: str) -> Knob:
        layer = LAYERS[factor.partition(".")[0]]
        if not isinstance(layer, LayerOfKnobs):
            raise KeyError(factor)
        return layer.knobs[factor.partition(".")[2] or factor]

    def __iter__(self) -> Iterator[str]:
        layers = (layer for layer in LAYERS.values() if isinstance(layer, LayerOfKnobs))
        return (knob.name for layer in layers for knob in layer.knobs.values())

    def __len__(self) -> int:
        return sum(1 for _ in self)


KNOBS: Mapping[str, Knob] = _Knobs()
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
