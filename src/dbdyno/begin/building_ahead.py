"""Builds of a study that are made ahead of its run: nothing is measured, and no run is kept."""

from __future__ import annotations

import math
from functools import cached_property

from dbdyno.begin.begun import Begun, bench_of, new_run, training_on
from dbdyno.begin.building import builds_of, make_builds, wishes_of
from dbdyno.engines import registry
from dbdyno.engines.built import Instrumented
from dbdyno.errors import UserError
from dbdyno.host.cache import Tell
from dbdyno.host.host_lock import alone
from dbdyno.host.journal import open_journal
from dbdyno.host.writers import Allowed
from dbdyno.obtain.source.build import Foreseen
from dbdyno.obtain.source.wish import BuildWish
from dbdyno.records.run import ComparisonRun
from dbdyno.study import Study
from dbdyno.study.designs import variants_of

TRAINING_S = 600.0
"""About how long a training takes, for those who wait for this host meanwhile."""


def made_ahead(study: Study, names: tuple[str, ...], allowed: Allowed, tell: Tell) -> tuple[Foreseen, ...]:
    """Makes and trains the builds of these variants, or of all, and returns what is there of them then. One
    that cannot be made is told. Raises UserError for a variant that is none, and where there is nothing to
    make."""
    wishes = _wishes_of(study, names)
    make_builds(study, wishes, _Training(study, allowed, tell).train, tell)
    words = {wish.words for wish in wishes}
    return tuple(found for found in builds_of(study) if found.words in words)


def _wishes_of(study: Study, names: tuple[str, ...]) -> dict[BuildWish, tuple[str, ...]]:
    wishes = wishes_of(study)
    if not wishes:
        raise UserError(f"{study.path} asks for no builds", "levels of build or source ask for them")
    known = [variant.name for variant in variants_of(study)]
    for name in names:
        if name not in known:
            raise UserError(f"no variant is called {name}", f"there are: {', '.join(known)}")
        if not any(name in those for those in wishes.values()):
            raise UserError(f"{name} runs the installed engine, and has no build", "name another variant")
    return {wish: those for wish, those in wishes.items() if not names or set(names) & set(those)}


class _Training:
    """Trains builds one at a time, and has this host to itself for no longer than that."""

    def __init__(self, study: Study, allowed: Allowed, tell: Tell) -> None:
        self._study, self._allowed, self._tell = study, allowed, tell

    def train(self, instrumented: Instrumented) -> int:
        title = f"training for {self._study.title}"
        with alone(title, TRAINING_S, math.inf, self._tell), open_journal() as journal:
            bench = bench_of(self._begun, journal, None, self._allowed)
            return training_on(bench, self._tell)(instrumented)

    @cached_property
    def _begun(self) -> Begun:
        """As a run would begin; nothing keeps it."""
        study = self._study
        installation = registry.locate(study.engine)
        return Begun(study, new_run(ComparisonRun, study, installation, self._tell), installation)
