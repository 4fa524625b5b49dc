"""A trial of an embedded engine on another architecture: its shell of that machine is loaded, ended and
asked, because a load process of this machine loads no library of another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import cast

from dbdyno.engines.built import Built, built
from dbdyno.engines.facts import Shell, ShellRound
from dbdyno.errors import Blocked
from dbdyno.frozen import ENGINE_FACTOR, level_text
from dbdyno.host import paths
from dbdyno.layers.platform import proved_by_file
from dbdyno.layers.setup import Running, Setup
from dbdyno.layers.wishes import wish_of
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Evidence, Platform
from dbdyno.study.designs import BUILD_LAYERS, of_build
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.trials import Phase, Trial
from dbdyno.trial.bench import Bench, job_of
from dbdyno.trial.correctness import own_tests

TAKEN = (ENGINE_FACTOR, PLATFORM_FACTOR)


@dataclass(frozen=True)
class Asked:
    """The shell of an engine on an architecture, with the folder of its data. One transaction of its load
    takes so many `instructions`."""

    shell: Shell
    installation: Installation
    architecture: str
    folder: Path
    of_build: tuple[Evidence, ...] = ()
    instructions: int | None = None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The one that its program's file gives, and those of its build."""
        return (proved_by_file(self.architecture, self.installation), *self.of_build)

    def told(self, platform: Platform) -> Platform:
        return platform.but(instructions=self.instructions)

    def round_of(self, phase: Phase) -> ShellRound:
        """Raises ServerFailed where the shell fails."""
        assert phase.then is not None, "each phase of such a study ends in an act"
        return self.shell.round_of(self.installation, self.folder, phase.then, phase.duration_s)


@contextmanager
def shell_of(trial: Trial, bench: Bench) -> Iterator[Asked]:
    """The shell with data of its own, which are gone afterwards. Raises Blocked where levels ask for what a
    shell does not take, and BuildFailed."""
    engine, levels = bench.engine, {**bench.study.settings, **trial.variant.levels}
    for name in levels:
        if name not in TAKEN and not of_build(name):
            raise Blocked(
                name, f"{engine.title} is asked by its shell there, which takes no {name}", "leave it out"
            )
    assert engine.platforms is not None and engine.shell is not None
    architecture = level_text(levels[PLATFORM_FACTOR])
    wish = wish_of(bench.study, levels, bench.layers, engine)
    made = built(engine, wish, bench.study.folder) if wish else None
    if made is None:
        installation = engine.platforms.locate(bench.installation.version, architecture)
    else:
        own_tests(made.account).require_passed()
        installation = made.installation
    folder = paths.cache() / "trials" / f"{bench.run.run}-{trial.index}"
    with bench.journal.scope():
        bench.journal.note_tree(folder)
        folder.mkdir(parents=True)
        engine.shell.make(installation, folder)
        proofs = () if made is None else _proofs(made, engine.shell, folder, trial, bench)
        counted = engine.shell.instructions(installation, folder)
        yield Asked(engine.shell, installation, architecture, folder, proofs, counted)


@dataclass(frozen=True)
class _Held:
    """A shell that runs, as far as the proofs of a build look at it."""

    setup: Setup
    process_ids: tuple[int, ...]


def _proofs(made: Built, shell: Shell, folder: Path, trial: Trial, bench: Bench) -> tuple[Evidence, ...]:
    """Those of a build's levels, read while the shell runs."""
    job = job_of(bench.study.workload, trial, bench)
    setup = Setup(bench.engine, made.installation, folder, bench.journal, job, built=made)
    with shell.opened(made.installation, folder) as process_id:
        # The proofs of a build ask for its process and its account alone.
        held = cast(Running, _Held(setup, (process_id,)))
        levels = bench.levels_by_layer(trial)
        each = (bench.layers[name].prove(levels[name], held) for name in levels if name in BUILD_LAYERS)
        return tuple(chain.from_iterable(each))
