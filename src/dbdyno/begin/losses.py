"""What the variants of a run give up by the levels that they change, as layers know it."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.begin.engines import engine_of
from dbdyno.engines import registry
from dbdyno.frozen import Level
from dbdyno.layers.registry import given_up
from dbdyno.records.run import Run
from dbdyno.study import Study
from dbdyno.study.designs import variants_of
from dbdyno.study.space import Promise


def with_losses(study: Study, run: Run) -> Run:
    """A run that says what its variants give up. An imported one cannot, because its logs tell no levels."""
    if run.given_up is not None or run.of_logs or run.searches:
        return run
    return run.but(given_up=losses_of(study))


def losses_of(study: Study) -> dict[str, tuple[Promise, ...]]:
    """What the variants of a study give up that its baseline keeps, by name, without those that keep all."""
    found = {variant.name: given_up_by(study, variant.levels) for variant in variants_of(study)}
    return {name: promises for name, promises in found.items() if promises}


def given_up_by(study: Study, levels: Mapping[str, Level]) -> tuple[Promise, ...]:
    """What levels on top of a study's baseline give up."""
    baseline = {**study.settings, **study.baseline}
    return given_up({**baseline, **levels}, baseline, engine_of(study, levels))


def between_setups(ours: Study, theirs: Study) -> tuple[Promise, ...]:
    """What the baseline of a study gives up that the one of another study keeps. Nothing is told of two
    engines."""
    if ours.engine.engine != theirs.engine.engine:
        return ()
    before = {**theirs.settings, **theirs.baseline}
    return given_up({**ours.settings, **ours.baseline}, before, registry.engine(ours.engine.engine))
