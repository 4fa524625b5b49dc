"""The builds that the levels of a study ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked
from dbdyno.frozen import Level
from dbdyno.layers.build import with_trainer
from dbdyno.layers.layer import Layer, ask, by_layer
from dbdyno.layers.source import wish_among
from dbdyno.obtain.source.build import BuildSpecification
from dbdyno.study import Study
from dbdyno.study.trials import Variant


def wish_of(
    study: Study, levels: Mapping[str, Level], layers: Mapping[str, Layer], engine: Engine
) -> BuildSpecification | None:
    """The build that a variant's levels ask for beside the study's own settings; None where they ask for
    none. Raises Blocked where a layer refuses a level, and UserError for a trainer that is none."""
    wish = wish_among(ask(by_layer({**study.settings, **levels}), layers, engine))
    return wish and with_trainer(wish, study)


def variants_by_wish(
    study: Study, variants: Iterable[Variant], layers: Mapping[str, Layer], engine: Engine
) -> dict[BuildSpecification, tuple[Variant, ...]]:
    """Each build that these variants ask for, with those that share it, in their order. Raises UserError like
    `wish_of`."""
    wishes: dict[BuildSpecification, tuple[Variant, ...]] = {}
    for variant in variants:
        try:
            wish = wish_of(study, variant.levels, layers, engine)
        except Blocked:
            # It has no trial, so it needs no build.
            continue
        if wish is not None:
            wishes[wish] = (*wishes.get(wish, ()), variant)
    return wishes
