"""From a study's file to a Study: makes the catalogue from the real registries, so that a study may name
what will run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from dbdyno import _driver, metrics
from dbdyno.engines import registry
from dbdyno.engines.base import Installation, Reference
from dbdyno.errors import DynoError, Mistake, UserError
from dbdyno.layers import LAYERS
from dbdyno.layers.base import Layer
from dbdyno.record import Run
from dbdyno.study import Catalogue, Factor, Study, parse_study, read_study, workload_offers


def study_at(path: Path, blocks: int | None = None, seed: int | None = None) -> Study:
    """The study in a file, with what the command line changes. Raises StudyError with every mistake in it."""
    return _changed(read_study(path, catalogue()), blocks, seed)


def study_of(run: Run) -> Study:
    """The study of a run as it was when the run began. Looks at no engine: none need be here."""
    content = run.study_text.encode()
    return _changed(parse_study(content, catalogue(ask_engines=False), run.study_path), run.blocks, run.seed)


def catalogue(ask_engines: bool = True) -> Catalogue:
    """What a study may name here. With `ask_engines`, settings are checked against the engine where it is
    installed."""
    return Catalogue(
        engines=frozenset(registry.ENGINES),
        url_schemes=registry.URL_SCHEMES,
        workloads=workload_offers(_driver.workloads()),
        layers={name: _factor_check(layer, ask_engines) for name, layer in LAYERS.items()},
        metrics=frozenset(metrics.METRICS),
    )


def _changed(study: Study, blocks: int | None, seed: int | None) -> Study:
    changes = {name: value for name, value in (("blocks", blocks), ("seed", seed)) if value is not None}
    return study.model_copy(update=changes)


def _factor_check(layer: Layer, ask_engines: bool) -> Callable[[Factor, Reference], list[Mistake]]:
    def check(factor: Factor, reference: Reference) -> list[Mistake]:
        if not ask_engines:
            return []
        try:
            engine = registry.engine(reference.engine)
        except UserError:
            # The reader reports an unknown engine itself.
            return []
        return layer.mistakes(factor, engine, installation_of(reference))

    return check


@functools.cache
def installation_of(reference: Reference) -> Installation | None:
    """The installation, where there is one: a study can be read where its engine is not."""
    try:
        return registry.engine(reference.engine).locate(reference)
    except DynoError:
        return None
