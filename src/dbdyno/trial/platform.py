"""What a trial of a study of platforms runs on: known before its engine starts, so that one that does not
start is told with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import DynoError
from dbdyno.frozen import level_text
from dbdyno.obtain import path
from dbdyno.obtain.architecture import emulator_version, header
from dbdyno.records.record import Platform
from dbdyno.study.nouns import PLATFORM_FACTOR

if TYPE_CHECKING:
    from dbdyno.engines.built import Built
    from dbdyno.obtain.installation import Installation
    from dbdyno.study.trials import Trial
    from dbdyno.trial.bench import Bench

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
    from dbdyno.trial.machine import machine_platform

    try:
        if bench.study.of_machine:
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
