"""What a trial of another architecture runs on, known before its engine starts; and a trial on an
emulated machine, which is powered on with an engine in its guest, reset, and asked what it measured of
its start."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.engines.facts import Guest, ShellRound
from dbdyno.errors import Blocked, DynoError, ServerFailed
from dbdyno.frozen import ENGINE_FACTOR, Level, level_text
from dbdyno.host import paths
from dbdyno.layers.layer import proof
from dbdyno.layers.machine import proved_by_console
from dbdyno.machine import guest, kinds, packages
from dbdyno.machine.console import Emulated, powered_on
from dbdyno.machine.packages import Parts
from dbdyno.machine.told import Resets, Started
from dbdyno.obtain import path
from dbdyno.obtain.architecture import emulator_version, header
from dbdyno.records.record import Check, Evidence, Platform, Reading, Recovery
from dbdyno.records.reset import Reset
from dbdyno.study.nouns import MACHINE_FACTOR, PLATFORM_FACTOR
from dbdyno.study.trials import Phase, Trial
from dbdyno.trial.bench import Bench

if TYPE_CHECKING:
    from dbdyno.engines.built import Built
    from dbdyno.obtain.installation import Installation

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
    from dbdyno.layers.wishes import wish_of

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
    made_for = header(Path(found.command[-1]))
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
class OnMachine:
    """A machine that is up, and its `resets` so far."""

    console: Emulated
    parts: Parts
    engine: Guest
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
def machine_of(trial: Trial, bench: Bench) -> Iterator[OnMachine]:
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
            yield OnMachine(console, parts, engine, way, first, Resets(parts.kind, way))


def machine_platform(trial: Trial, bench: Bench) -> Platform:
    """What stands in the record of such a trial. Raises DynoError where the packages or an emulator are not
    here."""
    parts, engine = _parts(level_text(_levels(trial, bench)[PLATFORM_FACTOR]), bench)
    made_for = header(parts.copy.prefix / engine.PROGRAM)
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


def _parts(architecture: str, bench: Bench) -> tuple[Parts, Guest]:
    engine = bench.engine.guest
    assert engine is not None, "a study names no other engine"
    return packages.locate(kinds.kind(architecture), engine.RECIPE), engine


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
