"""Trials on other machines: what one of another architecture runs on; the shell of an embedded engine there;
and an emulated machine, powered on with an engine in its guest, reset, and asked what it measured of its
start."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import cast

from dbdyno.engines.built import Built, built
from dbdyno.engines.facts import GuestProgram, Shell, ShellRound
from dbdyno.errors import Blocked, DynoError, ServerFailed
from dbdyno.frozen import ENGINE_FACTOR, Level, level_text
from dbdyno.host import paths
from dbdyno.layers.build import wish_of
from dbdyno.layers.layer import proof
from dbdyno.layers.platform import proved_by_console, proved_by_file
from dbdyno.layers.setup import Running, Setup
from dbdyno.machine import guest, kinds, packages
from dbdyno.machine.guest import Emulated, powered_on
from dbdyno.machine.packages import Parts
from dbdyno.machine.told import Resets, Started
from dbdyno.obtain import path
from dbdyno.obtain.architecture import elf_header, emulator_version
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Check, Evidence, Platform, Reading, Recovery
from dbdyno.records.reset import Reset
from dbdyno.study.designs import BUILD_LAYERS, of_build
from dbdyno.study.nouns import MACHINE_FACTOR, PLATFORM_FACTOR
from dbdyno.study.trials import Phase, Trial
from dbdyno.trial.bench import Bench, job_of
from dbdyno.trial.correctness import own_tests

PAGE = re.compile(r"^AT_PAGESZ:\s+(\d+)", re.MULTILINE)
TOLD = {"LD_SHOW_AUXV": "1"}
"""Has the dynamic loader print what the kernel, or the emulator, told the program (ld.so(8))."""


def platform_of(trial: Trial, bench: Bench) -> Platform | None:
    """What stands in a trial's record of its platform. None for a study of none, and where the packages, the
    build or the emulator are not here: the trial then ends, and says so."""
    levels = {**bench.study.settings, **trial.variant.levels}
    level = levels.get(PLATFORM_FACTOR)
    if level is None or bench.engine.platforms is None:
        return None
    # Here, because most studies are of this host's own platform.
    from dbdyno.engines.built import built
    from dbdyno.layers.build import wish_of

    try:
        if bench.study.in_guest:
            return machine_platform(trial, bench)
        wish = wish_of(bench.study, levels, bench.layers, bench.engine)
        if wish is not None:
            made = built(bench.engine, wish, bench.study.folder)
            return _with_build(described(made.installation), made)
        found = bench.engine.platforms.locate(bench.installation.version, level_text(level))
        return described(found)
    except DynoError:
        return None


def _with_build(platform: Platform, made: Built) -> Platform:
    """The root's C library is the one package of a build."""
    by = f"{made.account.key} by {Path(made.toolchain.cc).name}, {made.toolchain.version}"
    words = made.wish.but(architecture="").words
    return platform.but(packages=f"{by}, on {platform.packages}", built=words)


def described(found: Installation) -> Platform:
    """The platform of an installation. Raises DynoError where its program's file cannot be read."""
    made_for = elf_header(Path(found.command[-1]))
    return Platform(
        architecture=found.architecture,
        version=found.version,
        packages=found.facts.get("packages", ""),
        byte_order=made_for.byte_order,
        alignment_bytes=made_for.alignment_bytes,
        page_bytes=_page_bytes(found),
        emulator=emulator_version(found.architecture),
    )


def _page_bytes(found: Installation) -> int | None:
    told = PAGE.search(path.answer(found.command, "--version", environment=TOLD).stdout)
    return int(told[1]) if told else None


TAKEN = (ENGINE_FACTOR, PLATFORM_FACTOR, MACHINE_FACTOR)


@dataclass
class RunningMachine:
    """A machine that is up, and its `resets` so far."""

    console: Emulated
    parts: Parts
    engine: GuestProgram
    way: str
    first: Started
    seen: Resets
    resets: list[Reset] = field(default_factory=list)

    def told(self, platform: Platform) -> Platform:
        return platform.but(page_bytes=self.first.page_bytes)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The guest's word on its machine, and once it was reset, whether its firmware ran."""
        return (_proved(self.parts, self.first), *self._of_resets())

    def _of_resets(self) -> Iterator[Evidence]:
        if self.resets:
            yield proved_by_console(self.way, self.resets)

    def round_of(self, phase: Phase) -> ShellRound:
        """Resets the machine, and asks its engine. Raises ServerFailed where it does not come back."""
        assert phase.then is not None, "each phase of such a study ends in an act"
        ordered_s = time.monotonic()
        self.console.order(self.way)
        lines = self.console.until("waiting")
        reset = self.seen.add(ordered_s, lines)
        self.resets.append(reset)
        check = self.engine.check(Started(self.parts.kind, lines).answers)
        damage = "" if check.holds else f"{check.name}: {check.detail}"
        recovery = Recovery(act=phase.then, damage=damage, reset=reset)
        return ShellRound(recovery, (check,))


@contextmanager
def running_machine(trial: Trial, bench: Bench) -> Iterator[RunningMachine]:
    """A machine that was powered on, with data and a TPM of its own, which are gone afterwards. Raises
    Blocked where this host cannot emulate it, or levels ask for what a guest does not take, and ServerFailed
    for one that does not come up."""
    levels = _levels(trial, bench)
    for name in levels:
        if name not in TAKEN:
            raise Blocked(name, f"the guest takes no {name}", "leave it out")
    try:
        parts, engine = _parts(level_text(levels[PLATFORM_FACTOR]), bench)
    except DynoError as missing:
        raise Blocked(PLATFORM_FACTOR, missing.message, missing.hint) from None
    name = f"{bench.run.run}-{trial.index}"
    # The path of a socket has little room, and a runtime folder has none for an image.
    folder, sockets = paths.cache() / "trials" / name, paths.runtime() / name
    with bench.journal.scope():
        for place in (folder, sockets):
            bench.journal.note_tree(place)
            place.mkdir(parents=True)
        image = guest.write(parts, engine.data(), engine.ASK, folder)
        with powered_on(parts.kind, image, sockets) as console:
            first = Started(parts.kind, console.until("waiting"))
            _require_sound(engine.check(first.answers), first, console)
            way = level_text(levels[MACHINE_FACTOR])
            yield RunningMachine(console, parts, engine, way, first, Resets(parts.kind, way))


def machine_platform(trial: Trial, bench: Bench) -> Platform:
    """What stands in the record of such a trial. Raises DynoError where the packages or an emulator are not
    here."""
    parts, engine = _parts(level_text(_levels(trial, bench)[PLATFORM_FACTOR]), bench)
    made_for = elf_header(parts.copy.prefix / engine.PROGRAM)
    own = engine.RECIPE.server
    return Platform(
        architecture=parts.kind.architecture,
        version=parts.copy.version,
        packages=f"{own} {parts.copy.packages.get(own, '')}, {parts.packages}",
        byte_order=made_for.byte_order,
        alignment_bytes=made_for.alignment_bytes,
        emulator=f"{kinds.version(parts.kind.emulator)}, {kinds.version(kinds.TPM)}",
    )


def _levels(trial: Trial, bench: Bench) -> dict[str, Level]:
    return {**bench.study.settings, **trial.variant.levels}


def _parts(architecture: str, bench: Bench) -> tuple[Parts, GuestProgram]:
    engine = bench.engine.guest
    assert engine is not None, "a study names no other engine"
    return packages.locate(kinds.machine_kind(architecture), engine.RECIPE), engine


def _require_sound(check: Check, first: Started, console: Emulated) -> None:
    """A machine whose engine does not answer when it is powered on has nothing that a reset could keep."""
    if not check.holds:
        raise ServerFailed(f"the engine does not answer in the guest: {check.detail}", "", console.log)
    if not first.firmware_ran:
        raise ServerFailed("the machine started without its firmware", "", console.log)


def _proved(parts: Parts, first: Started) -> Evidence:
    """The kernel that runs says on which machine it does."""
    level = parts.kind.architecture
    found = Reading(
        value=f"Linux {first.kernel}, pages of {first.pages}", source="uname(2) and smaps in the guest"
    )
    named = kinds.KINDS[level].is_named_in(first.kernel)
    return proof(PLATFORM_FACTOR, level, found, named, f"{parts.copy.origin}, {parts.packages}")


OF_SHELL = (ENGINE_FACTOR, PLATFORM_FACTOR)


@dataclass(frozen=True)
class EngineShell:
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
def shell_of(trial: Trial, bench: Bench) -> Iterator[EngineShell]:
    """The shell with data of its own, which are gone afterwards. Raises Blocked where levels ask for what a
    shell does not take, and BuildFailed."""
    engine, levels = bench.engine, {**bench.study.settings, **trial.variant.levels}
    for name in levels:
        if name not in OF_SHELL and not of_build(name):
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
        yield EngineShell(engine.shell, installation, architecture, folder, proofs, counted)


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
