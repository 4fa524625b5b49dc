"""A trial of an embedded engine on another architecture: its shell of that machine is loaded, ended and
asked, because a load process of this machine loads no library of another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.engines.shell import Shell, ShellRound
from dbdyno.errors import Blocked
from dbdyno.frozen import ENGINE_FACTOR, level_text
from dbdyno.host import paths
from dbdyno.layers.platform import proved_by_file
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Evidence
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.phases import Phase
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Bench

TAKEN = (ENGINE_FACTOR, PLATFORM_FACTOR)


@dataclass(frozen=True)
class Asked:
    """The shell of an engine on an architecture, with the folder of its data."""

    shell: Shell
    installation: Installation
    architecture: str
    folder: Path

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The one that its program's file gives."""
        return (proved_by_file(self.architecture, self.installation),)

    def round_of(self, phase: Phase) -> ShellRound:
        """Raises ServerFailed where the shell fails."""
        assert phase.then is not None, "each phase of such a study ends in an act"
        return self.shell.round_of(self.installation, self.folder, phase.then, phase.duration_s)


@contextmanager
def shell_of(trial: Trial, bench: Bench) -> Iterator[Asked]:
    """The shell with data of its own, which are gone afterwards. Raises Blocked where levels ask for what a
    shell does not take."""
    engine, levels = bench.engine, {**bench.study.settings, **trial.variant.levels}
    for name in levels:
        if name not in TAKEN:
            raise Blocked(
                name, f"{engine.title} is asked by its shell there, which takes no {name}", "leave it out"
            )
    assert engine.platforms is not None and engine.shell is not None
    architecture = level_text(levels[PLATFORM_FACTOR])
    installation = engine.platforms.locate(bench.installation.version, architecture)
    folder = paths.cache() / "trials" / f"{bench.run.run}-{trial.index}"
    with bench.journal.scope():
        bench.journal.note_tree(folder)
        folder.mkdir(parents=True)
        engine.shell.make(installation, folder)
        yield Asked(engine.shell, installation, architecture, folder)
