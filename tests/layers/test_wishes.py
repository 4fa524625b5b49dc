"""The builds that a study's levels ask for, each once, with the variants that share it."""

from __future__ import annotations

import pytest

from dbdyno.engines.registry import engine
from dbdyno.errors import Blocked
from dbdyno.layers.build import with_trainer
from dbdyno.layers.registry import LAYERS
from dbdyno.layers.wishes import variants_by_wish, wish_of
from dbdyno.obtain.source.build import BuildSpecification
from dbdyno.study import Factor, Study
from dbdyno.study.designs import variants_of
from tests.fakes import FakeEngine, make_study


def of_builds(*factors: Factor) -> Study:
    """A study that builds its engine."""
    return make_study(settings={"source.origin": "/x"}).model_copy(update={"factors": factors})


def test_a_variant_asks_for_the_studys_build_with_its_own_levels() -> None:
    study, fake = of_builds(), FakeEngine().engine
    wish = wish_of(study, {"build.lto": "full", "build.pgo": "tpcb"}, LAYERS, fake)
    assert wish == with_trainer(BuildSpecification(origin="/x", lto="full", pgo="tpcb"), study)
    assert wish is not None and wish.trainer is not None
    assert wish_of(make_study(), {"config.speed": 2}, LAYERS, fake) is None


def test_variants_that_differ_in_other_layers_share_a_build() -> None:
    study = of_builds(
        Factor(name="config.speed", levels=(1, 2)), Factor(name="build.lto", levels=("off", "full"))
    )
    found = variants_by_wish(study, variants_of(study), LAYERS, FakeEngine().engine)
    assert [(wish.lto, [one.name for one in sharing]) for wish, sharing in found.items()] == [
        ("off", ["baseline", "config.speed=2"]),
        ("full", ["build.lto=full"]),
    ]


def test_a_variant_that_a_layer_refuses_needs_no_build() -> None:
    study = of_builds(Factor(name="cpu.driver", levels=("all", "0")))
    with pytest.raises(Blocked):
        wish_of(study, {"cpu.driver": "0"}, LAYERS, engine("sqlite"))
    [sharing] = variants_by_wish(study, variants_of(study), LAYERS, engine("sqlite")).values()
    assert [one.name for one in sharing] == ["baseline"]
