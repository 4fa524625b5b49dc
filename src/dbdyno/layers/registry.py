"""The layers that Dyno knows, by the name that a study writes before the dot.

What the levels of a study will do to the host, known before the first trial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.engines import facts
from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked
from dbdyno.frozen import ENGINE_FACTOR, Frozen, Level, layer_and_knob, level_text
from dbdyno.layers.knob import Knob, Scope
from dbdyno.layers.layer import LayerOfKnobs, ask, by_layer
from dbdyno.layers.setup import RequestedChange
from dbdyno.registry import registry

if TYPE_CHECKING:
    from dbdyno.layers.layer import GivenUp, Layer
    from dbdyno.registry import LazyTable
    from dbdyno.study.files import NamedFile
    from dbdyno.study.nouns import Promise


class HostChange(Frozen):
    """One thing that trials of some variants do to the host.

    `after` says what becomes of it, `places` where it writes, `needs` which right it takes, `scope` whether
    it concerns one server or the whole host.
    """

    factor: str
    does: str
    after: str
    places: tuple[str, ...]
    needs: str
    scope: Scope
    variants: tuple[str, ...]


class Refusal(Frozen):
    """Why some variants are blocked wherever they are tried, and what would allow them."""

    factor: str
    reason: str
    remedy: str
    variants: tuple[str, ...]


class Idle(Frozen):
    """A setting that cannot matter in some variants, and why."""

    factor: str
    reason: str
    variants: tuple[str, ...]


class Foresight(Frozen):
    """What can be known without a look at the host. What it offers shows when a trial is prepared."""

    host: tuple[HostChange, ...]
    blocked: tuple[Refusal, ...]
    idle: tuple[Idle, ...]


EngineOf = Callable[[Mapping[str, Level]], Engine]
"""The engine that a variant with these levels runs on."""


def foresee(variants: Mapping[str, Mapping[str, Level]], engine_of: EngineOf) -> Foresight:
    """What variants (name: level by factor, fixed settings included) do to the host. Touches nothing."""
    doing: dict[RequestedChange, list[str]] = {}
    refused: dict[tuple[str, str, str], list[str]] = {}
    for name, levels in variants.items():
        try:
            asked = ask(by_layer(levels), LAYERS, engine_of(levels))
        except Blocked as refusal:
            refused.setdefault((refusal.factor, refusal.message, refusal.hint), []).append(name)
            continue
        for change in filter(None, (request.change() for request in asked)):
            doing.setdefault(change, []).append(name)
    return Foresight(
        host=tuple(_change(change, tuple(names)) for change, names in doing.items()),
        blocked=_refusals(refused),
        idle=_idle(variants, engine_of),
    )


def lacking(variants: Mapping[str, Mapping[str, Level]], engine_of: EngineOf) -> tuple[Refusal, ...]:
    """Variants (as in `foresee`) for which this host lacks something, and what. Changes nothing."""
    refused: dict[tuple[str, str, str], list[str]] = {}
    for name, levels in variants.items():
        try:
            for request in ask(by_layer(levels), LAYERS, engine_of(levels)):
                request.require_here()
        except Blocked as refusal:
            refused.setdefault((refusal.factor, refusal.message, refusal.hint), []).append(name)
    return _refusals(refused)


def _refusals(refused: Mapping[tuple[str, str, str], list[str]]) -> tuple[Refusal, ...]:
    return tuple(
        Refusal(factor=factor, reason=reason, remedy=remedy, variants=tuple(names))
        for (factor, reason, remedy), names in refused.items()
    )


def _idle(variants: Mapping[str, Mapping[str, Level]], engine_of: EngineOf) -> tuple[Idle, ...]:
    found: dict[tuple[str, str], list[str]] = {}
    for name, levels in variants.items():
        unmet = facts.unmet(engine_of(levels).settings.NEEDS, by_layer(levels).get("config", {}))
        for knob, reason in unmet.items():
            found.setdefault((f"config.{knob}", reason), []).append(name)
    return tuple(
        Idle(factor=factor, reason=reason, variants=tuple(names)) for (factor, reason), names in found.items()
    )


def _change(change: RequestedChange, variants: tuple[str, ...]) -> HostChange:
    knob = KNOBS[change.factor]
    return HostChange(
        factor=change.factor,
        does=change.does,
        after=change.after,
        places=change.places,
        needs=knob.needs,
        scope=knob.scope,
        variants=variants,
    )


LAYERS: LazyTable[Layer] = registry(
    {
        "engine": "dbdyno.layers.config:ENGINE",
        "platform": "dbdyno.layers.platform:PLATFORM",
        "machine": "dbdyno.layers.platform:MACHINE",
        "workload": "dbdyno.layers.workload:WORKLOAD",
        "statement": "dbdyno.layers.workload:STATEMENT",
        "schema": "dbdyno.layers.workload:SCHEMA",
        "source": "dbdyno.layers.source:SOURCE",
        "build": "dbdyno.layers.build:BUILD",
        "config": "dbdyno.layers.config:CONFIG",
        "memory": "dbdyno.layers.memory:MEMORY",
        "cpu": "dbdyno.layers.cpu:CPU",
        "storage": "dbdyno.layers.storage:STORAGE",
        "cluster": "dbdyno.layers.cluster:CLUSTER",
        "front": "dbdyno.layers.front:FRONT",
        "meanwhile": "dbdyno.layers.meanwhile:MEANWHILE",
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
    if layer_and_knob(factor)[0] == "statement":
        # Here, because few studies send other texts.
        from dbdyno.layers.workload import STATEMENT

        return STATEMENT.files(level)
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
