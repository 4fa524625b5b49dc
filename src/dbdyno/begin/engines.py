"""The engines that a study compares, on this host: each variant's own, and what a run keeps of them.

What a study needs that is not here and can be fetched: engines in their versions, and packages of other
architectures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dbdyno.begin.catalogue import located
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine
from dbdyno.engines.upgrade import is_older, not_taken_over
from dbdyno.errors import Blocked, DynoError
from dbdyno.frozen import Frozen, Level, level_text
from dbdyno.host.cache import Tell
from dbdyno.host.writers import Allowed
from dbdyno.layers.config import untaken
from dbdyno.layers.registry import LAYERS, Refusal
from dbdyno.obtain.installation import Installation
from dbdyno.study import Study
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.reference import Reference
from dbdyno.study.trials import Variant
from dbdyno.trial.bench import OnEngine


@dataclass(frozen=True)
class Needed:
    """An engine that is not here; with an `architecture`, its packages of that one."""

    reference: Reference
    architecture: str = ""

    @property
    def words(self) -> str:
        """As `dyno engines fetch` takes it."""
        platform = f" --platform {self.architecture}" if self.architecture else ""
        return f"{self.reference.written}{platform}"


def needed_by(study: Study) -> Iterator[Needed]:
    """What is missing, in the order of the study. A path and a URL are where they are, or are not."""
    fixed = study.settings.get(PLATFORM_FACTOR)
    varied = next((factor.levels for factor in study.factors if factor.name == PLATFORM_FACTOR), ())
    levels = varied or ((fixed,) if fixed is not None else ())
    for reference in study.engines:
        if reference.path:
            continue
        if not levels and not isinstance(located(reference), Installation):
            yield Needed(reference)
        for architecture in map(level_text, levels):
            if not _there(reference, architecture):
                yield Needed(reference, architecture)


def _there(reference: Reference, architecture: str) -> bool:
    try:
        registry.platforms(registry.engine(reference.engine)).locate(reference.version, architecture)
    except DynoError:
        return False
    return True


def fetched_for(study: Study, mirror: str, tell: Tell) -> list[Installation]:
    """Fetches all that is missing, and returns it. Raises UserError where something cannot be had."""
    missing = list(needed_by(study))
    for one in missing:
        tell(f"needed and not here: {one.words}")
    found = []
    for one in missing:
        engine, version = registry.engine(one.reference.engine), one.reference.version
        if one.architecture:
            found.append(registry.platforms(engine).fetch(version, one.architecture, mirror, tell))
        else:
            found.append(engine.obtaining.fetch(version, mirror, tell))
    located.cache_clear()
    return found


def engine_of(study: Study, levels: Mapping[str, Level]) -> Engine:
    """The engine that a variant with these levels runs on."""
    return registry.engine(study.engine_of(levels).engine)


def on_engines(study: Study) -> dict[str, OnEngine]:
    """By the level of the factor `engine`, what a trial at it runs on; empty where engines are no factor.
    Raises the error of an installation that is not here."""
    if len(study.engines) < 2:
        return {}
    return {one.written: OnEngine(registry.engine(one.engine), _here(one)) for one in study.engines}


def others_of(study: Study) -> dict[str, Installation]:
    """The installations beside the baseline's, by their levels. Raises like `on_engines`."""
    return {one.written: _here(one) for one in study.engines[1:]}


def _here(reference: Reference) -> Installation:
    found = located(reference)
    if isinstance(found, DynoError):
        raise found
    return found


def untaken_of(study: Study, variants: Iterable[Variant], allowed: Allowed) -> tuple[Refusal, ...]:
    """The variants that are blocked because their engine does not take levels which another engine of the
    study takes: a refusal for each of these levels. An engine that is not here is not asked."""
    refused: dict[tuple[str, str, str], list[str]] = {}
    for variant in variants if len(study.engines) > 1 else ():
        levels = {**study.settings, **variant.levels}
        found = located(study.engine_of(levels))
        installation = found if isinstance(found, Installation) else None
        whys = list(untaken(levels, LAYERS, engine_of(study, levels), installation, allowed))
        if not whys and study.upgraded and installation is not None:
            whys = list(filter(None, [_not_taken_over(study, levels, installation)]))
        for why in whys:
            hint = _for_all(study, why.factor) or why.hint
            refused.setdefault((why.factor, why.message, hint), []).append(variant.name)
    return tuple(
        Refusal(factor=factor, reason=reason, remedy=remedy, variants=tuple(names))
        for (factor, reason, remedy), names in refused.items()
    )


def _for_all(study: Study, factor: str) -> str:
    """What to do about a setting of all variants that one of their engines does not take; else empty. Its
    name is no slip of the pen, because another engine of the study takes it."""
    of_file = study.configuration
    if of_file is not None and study.settings.get(factor) == of_file.settings.get(factor):
        where = of_file.path
    else:
        where = "[settings]"
    every = f"take it out of {where}, or give it a level that each engine of the study takes"
    return every if factor in study.settings else ""


def _not_taken_over(study: Study, levels: Mapping[str, Level], installation: Installation) -> Blocked | None:
    first = located(study.engine)
    if not isinstance(first, Installation):
        return None
    return not_taken_over(registry.engine(first.engine), first, engine_of(study, levels), installation)


class OlderEngine(Frozen):
    """A level of the factor `engine` that is older than the first, whose data it was to take over."""

    levels: tuple[str, str]
    versions: tuple[str, str]
    title: str


def older_engines(study: Study) -> Iterator[OlderEngine]:
    """The levels that do not read the data of the study's first version, where they were to take them over;
    as far as they are here."""
    first = located(study.engine)
    if not study.upgraded or not isinstance(first, Installation):
        return
    engine = registry.engine(first.engine)
    for reference in study.engines[1:]:
        found = located(reference)
        if not isinstance(found, Installation) or found.engine != first.engine:
            continue
        if is_older(engine, found.version, first.version):
            yield OlderEngine(
                levels=(study.engine.written, reference.written),
                versions=(first.version, found.version),
                title=engine.title,
            )


class SameEngine(Frozen):
    """Two levels of the factor `engine` that are one server: the same bytes."""

    levels: tuple[str, str]
    origin: str
    digest: str


def same_engines(study: Study) -> Iterator[SameEngine]:
    """The levels that lead to the installation of an earlier one, as far as they are here."""
    seen: dict[tuple[str, str], Reference] = {}
    for reference in study.engines:
        found = located(reference)
        if isinstance(found, Installation):
            first = seen.setdefault((found.engine, found.digest), reference)
            if first is not reference:
                levels = (first.written, reference.written)
                yield SameEngine(levels=levels, origin=found.origin, digest=found.digest)
