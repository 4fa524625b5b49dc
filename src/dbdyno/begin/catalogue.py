"""What a study may name here: made from the real registries, and from the engine where it is installed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

from dbdyno.applications.registry import PRODUCTS
from dbdyno.begin.given import given_mistakes
from dbdyno.driver import _driver
from dbdyno.engines import registry
from dbdyno.engines.configuration import read_configuration, require_settings
from dbdyno.errors import DynoError, Mistake, UserError
from dbdyno.frozen import Configuration, Level
from dbdyno.host.writers import NOTHING_ALLOWED, Allowed
from dbdyno.layers.config import mistakes_beside
from dbdyno.layers.registry import KNOBS, LAYERS, files_of_level, gives_up
from dbdyno.layers.workload import files_named
from dbdyno.obtain.installation import Installation
from dbdyno.records import metrics
from dbdyno.registry import Table, Those
from dbdyno.sql_logs import recording
from dbdyno.study import Catalogue, Factor, Study, workload_offers
from dbdyno.study.catalogue import BesideCheck, NamesFiles
from dbdyno.study.nouns import Application, GivenData
from dbdyno.study.reference import Reference
from dbdyno.study.space import Promise


def catalogue(ask_engines: bool = True, allowed: Allowed = NOTHING_ALLOWED) -> Catalogue:
    """What a study may name here. With `ask_engines`, settings are checked against the engine where it is
    installed. Levels may lead to what is `allowed`."""
    return Catalogue(
        engines=frozenset(registry.ENGINES),
        choosing=Those(registry.ENGINES, lambda engine: engine.sessions_choose),
        workloads=workload_offers(_driver.workloads()),
        layers=Table(LAYERS, lambda name: _factor_check(name, ask_engines, allowed)),
        beside=_beside_check(allowed) if ask_engines else None,
        metrics=frozenset(metrics.METRICS),
        knobs=Table(KNOBS, lambda name: f"{KNOBS[name].effect}; levels: {KNOBS[name].levels}"),
        configure=_configure,
        # What a stored run may give up was decided when it began.
        gives_up=_gives_up if ask_engines else None,
        losing=lambda reference: registry.engine(reference.engine).settings.LOSING,
        applications=dict.fromkeys(PRODUCTS, _application_check),
        given=_given if ask_engines else None,
        # A stored run keeps its own.
        files=NamesFiles(files_named, files_of_level) if ask_engines else None,
        # A stored study is read where its files may be gone.
        recorded=recording.about if ask_engines else None,
        networked=Those(registry.ENGINES, lambda engine: engine.network),
        each_writes=Those(registry.ENGINES, lambda one: one.cluster and one.cluster.EACH_WRITES),
    )


def _configure(name: str, folder: Path, reference: Reference) -> Configuration:
    engine = registry.engine(reference.engine)
    return require_settings(read_configuration(engine, installation_of(reference), name, folder))


def _gives_up(factor: str, level: Level, reference: Reference) -> Promise | None:
    return gives_up(factor, level, registry.engine(reference.engine))


def _factor_check(
    layer: str, ask_engines: bool, allowed: Allowed
) -> Callable[[Factor, Reference], list[Mistake]]:
    def check(factor: Factor, reference: Reference) -> list[Mistake]:
        if not ask_engines:
            return []
        try:
            engine = registry.engine(reference.engine)
        except UserError:
            # The reader reports an unknown engine itself.
            return []
        return LAYERS[layer].mistakes(factor, engine, installation_of(reference), allowed)

    return check


def _beside_check(allowed: Allowed) -> BesideCheck:
    def check(factor: Factor, beside: Mapping[str, Level], reference: Reference) -> list[Mistake]:
        engine, installation = registry.engine(reference.engine), installation_of(reference)
        return mistakes_beside(LAYERS[factor.layer], factor, beside, engine, installation, allowed)

    return check


def _application_check(wish: Application, reference: Reference) -> list[Mistake]:
    production = registry.engine(reference.engine).production
    return PRODUCTS[wish.name].mistakes(wish, production.protocols if production else ())


def _given(data: GivenData, folder: Path, reference: Reference, factors: tuple[Factor, ...]) -> list[Mistake]:
    return given_mistakes(data, folder, installation_of(reference), reference, factors)


def unchecked_text(study: Study) -> str:
    """What could not be checked of the study's levels, and what allows it; empty where they were."""
    names = {*study.settings, *study.baseline}
    missing = (one for one in map(located, study.engines) if isinstance(one, DynoError))
    if (first := next(missing, None)) is None or not any(name.startswith("config.") for name in names):
        return ""
    return f"the levels of `config` were not checked, because {first.message}; {first.hint}"


def installation_of(reference: Reference) -> Installation | None:
    """The installation, where there is one: a study can be read where its engine is not."""
    found = located(reference)
    return found if isinstance(found, Installation) else None


@functools.cache
def located(reference: Reference) -> Installation | DynoError:
    """The installation, or why there is none."""
    try:
        return registry.locate(reference)
    except DynoError as missing:
        return missing
