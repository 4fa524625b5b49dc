"""The config layer: any setting of the server, proved by asking the live server what it runs with.

Which levels of a variant its own engine does not take, where others of the study may.

The engine layer: which installation a variant runs, proved by the file that the running process holds.

A variant's engine is chosen before anything else is asked for it (`trial/bench.py`), because all other levels
are asked of that engine. So a level of this layer asks for nothing by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path

from dbdyno.engines import facts
from dbdyno.engines.configuration import reach
from dbdyno.engines.engine import Engine
from dbdyno.engines.values import counterpart
from dbdyno.errors import Blocked, Mistake
from dbdyno.frozen import ENGINE_FACTOR, Level, layer_and_knob, level_shown, level_text
from dbdyno.host import fingerprint
from dbdyno.host.process import of_each
from dbdyno.host.writers import NOTHING_ALLOWED, Allowed
from dbdyno.layers.knob import Knob
from dbdyno.layers.layer import GivenUp, Layer, LayerOfKnobs, by_layer, proof
from dbdyno.layers.setup import Part, PartPlace, Request, Running, Setup
from dbdyno.obtain.installation import Installation, covers
from dbdyno.records.record import Evidence, Reading
from dbdyno.study import Factor
from dbdyno.study.nouns import Reference


def held_file(installation: Installation, process_ids: Iterable[int]) -> Path | None:
    """The installation's own program or library that one of these processes has mapped; None where none has.
    An installation that names no such file is known by the libraries below its prefix."""
    named = installation.library or (Path(installation.command[-1]) if installation.command else None)
    for mapped in of_each(process_ids, fingerprint.mapped):
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
            source=f"the server itself; /proc/PID/maps holds {file}, {build_id_text(file)}",
        )
    accepted = f"{installation.origin}, {_packages(installation)}digest {installation.digest}"
    remedy = "something else started in its place: look at the server's log"
    asked = Reference.of(level)
    is_asked = asked.engine == installation.engine and covers(asked.version, installation.version)
    return proof(ENGINE_FACTOR, level, found, file is not None and is_asked, accepted, remedy)


@cache
def build_id_text(file: Path) -> str:
    """Its build id, in words."""
    # Here, because a plan reads no file of an engine.
    from dbdyno.obtain.binary.read import build_id_of

    build_id = build_id_of(file)
    return f"build id {build_id}" if build_id else "which has no build id"


def _packages(installation: Installation) -> str:
    packages = installation.facts.get("packages", "")
    return f"{packages}, " if packages else ""


ENGINE = LayerOfKnobs(
    ENGINE_FACTOR,
    Knob(
        name=ENGINE_FACTOR,
        levels="engines such as mariadb@11.8 or mysql:./mysql-8.0.tar; the first is the baseline's",
        pattern=r"[a-z]+(@[0-9A-Za-z][0-9A-Za-z.+~_-]*|:[/~.].*)?",
        effect="the variant runs on that engine, with data of its own from the same seeds",
        proof="the server's own word on its version, and its file in /proc/PID/maps with the build id",
        prove=_prove,
        # A recipe sets what a server that is there can be told.
        in_production=False,
    ),
)
"""`engine = [LEVEL, LEVEL]`."""


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


@dataclass(frozen=True)
class SettingsRequest(Request):
    """Settings that the engine starts the server with, by its own names."""

    levels: Mapping[str, Level]

    def parts(self, engine: Engine, settings: Mapping[str, Level]) -> tuple[Part, ...]:
        return tuple(part for name, level in self.levels.items() for part in _parts(name, level, engine))

    def apply(self, setup: Setup) -> None:
        # Again, because the study of a run that goes on is not checked as a file is.
        for name, level in self.levels.items():
            found = reach(name, level, setup.engine.settings.CONFINED, setup.allowed.paths)
            if found:
                raise Blocked(f"config.{name}", found.reason, found.remedy)
        setup.settings.update(self.levels)


def _parts(name: str, level: Level, engine: Engine) -> Iterator[Part]:
    """A setting with the limit that it needs, or the deed where it stands in the data themselves."""
    part, production = partial(Part, factor=f"config.{name}"), engine.production
    if production is not None and name in production.in_data:
        yield part(place=PartPlace.BY_HAND, name=name, value=production.in_data[name](level))
    elif name in engine.settings.CREATION:
        deed = f"make the data anew with {name} = {level_shown(level)}, and load them again"
        yield part(place=PartPlace.BY_HAND, name=name, value=deed)
    else:
        yield part(place=PartPlace.SETTING, name=name, value=level)
        if production is not None and name in production.limits:
            yield part(place=PartPlace.UNIT, name=production.limits[name], value=level)


class ConfigLayer:
    """`config.NAME = VALUE` starts the server with that setting."""

    name = "config"
    related: Mapping[str, tuple[str, ...]] = {}

    def in_production(self, knob: str) -> bool:
        return True

    def mistakes(
        self,
        factor: Factor,
        engine: Engine,
        installation: Installation | None,
        allowed: Allowed = NOTHING_ALLOWED,
        beside: Mapping[str, Level] | None = None,
    ) -> list[Mistake]:
        """`beside` are the other settings (by the engine's names) of a variant with these levels."""
        outside = [
            Mistake(0, f"{factor.name}: {found.reason}", found.remedy)
            for level in factor.levels
            if (found := reach(factor.knob, level, engine.settings.CONFINED, allowed.paths))
        ]
        # A level that reaches out is not even asked of the server.
        if outside or installation is None:
            return outside
        offered = installation.offered
        known = engine.settings.names(installation) if offered is None else offered
        if factor.knob in known:
            # A server that runs already says what it takes when it is to take it.
            return self._refused(factor, engine, installation, beside or {}) if offered is None else []
        told = f"{engine.title} {installation.version} has no setting {factor.knob!r}"
        return [Mistake(0, told, _hint(factor.knob, engine, known))]

    def _refused(
        self, factor: Factor, engine: Engine, installation: Installation, beside: Mapping[str, Level]
    ) -> list[Mistake]:
        """A mistake for each level that the engine, asked before anything runs, does not take."""
        asked = (
            engine.settings.refused(installation, {**beside, factor.knob: level}) for level in factor.levels
        )
        faults = [refused[factor.knob] for refused in asked if factor.knob in refused]
        who = f"{factor.name}: {engine.title} {installation.version}"
        return [Mistake(0, f"{who} {fault.reason}", fault.takes) for fault in faults]

    def gives_up(
        self, knob: str, level: Level, engine: Engine, beside: Mapping[str, Level] | None
    ) -> GivenUp | None:
        risk = engine.settings.RISKS.get(knob)
        promise = risk.gives_up(level, beside) if risk is not None else None
        return GivenUp(promise, risk.degree(level)) if risk is not None and promise is not None else None

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        return (SettingsRequest(levels),)

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        readings = running.readings(frozenset(levels))
        return [self._prove_one(name, level, readings.get(name), running) for name, level in levels.items()]

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        knob, engine = evidence.factor.removeprefix("config."), running.setup.engine
        before, after = running.status_before, running.status_after
        unmet = facts.unmet(engine.settings.NEEDS, running.setup.settings)
        idle = unmet.get(knob, "") or engine.counters.unmoved(knob, before, after)
        shown = engine.counters.exercised(knob, before, after)
        return evidence.but(exercised=shown, idle=idle)

    def _prove_one(self, name: str, level: Level, reading: Reading | None, running: Running) -> Evidence:
        engine, requested = running.setup.engine, level_text(level)
        in_effect = reading is not None and engine.settings.same(name, level, reading.value)
        if reading is None:
            reason = f"{engine.title} does not say what it runs with, so nothing proves {level_shown(level)}"
        elif not in_effect:
            reason = f"asked for {level_shown(level)}, the server runs with {level_shown(reading.value)}"
        else:
            reason = ""
        remedy = (
            "" if in_effect else "choose a level that the server takes as it is, or see its log in the record"
        )
        return Evidence(
            factor=f"config.{name}",
            requested=requested,
            accepted=Reading(value=requested, source=running.accepted_by(name)),
            effective=reading,
            in_effect=in_effect,
            reason=reason,
            remedy=remedy,
        )


def _hint(name: str, engine: Engine, known: Collection[str]) -> str:
    """What may have been meant: the counterpart of another engine's setting, or a name that is near."""
    owner, own = counterpart(name, engine.name)
    if own in known:
        return f"it is a setting of {owner}; what serves its purpose here is config.{own}"
    nearest = get_close_matches(name, known, n=1)
    return (
        f"did you mean config.{nearest[0]}?" if nearest else f"it knows {len(known)} settings; none is near"
    )


CONFIG = ConfigLayer()
