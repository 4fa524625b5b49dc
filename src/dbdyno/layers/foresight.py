"""What the levels of a study will do to the host, known before the first trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dbdyno.engines import facts
from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked
from dbdyno.frozen import Frozen, Level
from dbdyno.layers.knob import Scope
from dbdyno.layers.layer import ask, by_layer
from dbdyno.layers.registry import KNOBS, LAYERS
from dbdyno.layers.setup import Deed


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
    doing: dict[Deed, list[str]] = {}
    refused: dict[tuple[str, str, str], list[str]] = {}
    for name, levels in variants.items():
        try:
            asked = ask(by_layer(levels), LAYERS, engine_of(levels))
        except Blocked as refusal:
            refused.setdefault((refusal.factor, refusal.message, refusal.hint), []).append(name)
            continue
        for deed in filter(None, (request.deed() for request in asked)):
            doing.setdefault(deed, []).append(name)
    return Foresight(
        host=tuple(_change(deed, tuple(names)) for deed, names in doing.items()),
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


def _change(deed: Deed, variants: tuple[str, ...]) -> HostChange:
    knob = KNOBS[deed.factor]
    return HostChange(
        factor=deed.factor,
        does=deed.does,
        after=deed.after,
        places=deed.places,
        needs=knob.needs,
        scope=knob.scope,
        variants=variants,
    )
