"""From a study's file to a Study, with what the command line changes."""

from __future__ import annotations

from pathlib import Path

from dbdyno.begin.catalogue import catalogue
from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.host.writers import NOTHING_ALLOWED, Allowed
from dbdyno.study import Catalogue, Study, read_study
from dbdyno.study.designs import extremes_of
from dbdyno.trial.count import require_countable


def study_at(
    path: Path,
    blocks: int | None = None,
    seed: int | None = None,
    allowed: Allowed = NOTHING_ALLOWED,
    names: Catalogue | None = None,
) -> Study:
    """The study in a file, with what the command line changes. Its levels may lead to what is `allowed`;
    `names` stands in the place of the catalogue that says so. Raises StudyError with every mistake in it."""
    study = changed(read_study(path, names or catalogue(allowed=allowed)), blocks, seed)
    _require_vectors(study)
    if study.goal.counted:
        require_countable(study)
    return study


def changed(study: Study, blocks: int | None, seed: int | None, duration_s: float | None = None) -> Study:
    """The study with what is given in the place of its own."""
    given: dict[str, object] = {"blocks": blocks, "seed": seed}
    if duration_s is not None:
        given["workload"] = study.workload.but(duration_s=duration_s)
    return study.but(**{name: value for name, value in given.items() if value is not None})


def _require_vectors(study: Study) -> None:
    """Raises UserError where any variant searches vectors that cannot be had, before anything is touched."""
    if study.workload.name != VECTOR_SEARCH:
        return
    # Here, because no other workload has a use for numpy.
    from dbdyno.datasets.vectors import require_vectors

    knobs = [factor.name for factor in study.factors if factor.layer == "workload"]
    variants = extremes_of(study)
    for levels in {tuple(variant.levels[name] for name in knobs) for variant in variants}:
        varied = {name.removeprefix("workload."): level for name, level in zip(knobs, levels, strict=True)}
        require_vectors({**study.workload.options, **varied}, study.folder)
