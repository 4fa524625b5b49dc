"""Data that a later version takes over from the one that made them: whether it can, and by which tool."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from dbdyno.engines.engine import Engine
from dbdyno.engines.server import LOG_BYTES
from dbdyno.errors import Blocked, ServerFailed
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.host.process import confine, how_it_ended
from dbdyno.obtain.installation import Installation, environment_of

STOP_S = 300.0
"""A server that has just taken data over writes all of them before it ends."""
OWN_DATA = 'leave `data = "upgraded"` out: each engine then makes its own data'


def series_of(version: str, numbers: int) -> tuple[int, ...]:
    """The first numbers of a version."""
    return tuple(map(int, re.findall(r"\d+", version)[:numbers]))


def is_older(engine: Engine, version: str, other: str) -> bool:
    """Whether a version is of a series before that of the other, whose data it does not read."""
    upgrading = engine.upgrading
    return upgrading is not None and upgrading.series(version) < upgrading.series(other)


def step_before(
    engine: Engine, own: Installation, first: Installation, others: Iterable[Installation]
) -> Installation:
    """Whose data a version takes over: those of the nearest older one of the others, because a server may
    refuse data of one before that. The first made the data."""
    older = (
        one
        for one in others
        if one.engine == engine.name and is_older(engine, one.version, own.version)
        if is_older(engine, first.version, one.version)
    )
    return max(older, key=lambda one: _series(engine, one), default=first)


def _series(engine: Engine, one: Installation) -> tuple[int, ...]:
    return engine.upgrading.series(one.version) if engine.upgrading is not None else ()


def not_taken_over(first: Engine, old: Installation, engine: Engine, new: Installation) -> Blocked | None:
    """Why an engine cannot take over the data of the first one; None where it can, or is that one."""
    if old.digest == new.digest:
        return None
    if engine.name != first.name or engine.upgrading is None:
        reason = f"{engine.title} cannot take over data of {first.title}"
        return Blocked(ENGINE_FACTOR, reason, f"compare them in a study of its own, and there {OWN_DATA}")
    lacking = engine.upgrading.lacking(old, new)
    return None if lacking is None else Blocked(ENGINE_FACTOR, lacking.message, lacking.hint)


def run_tool(
    title: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    steps: Sequence[Callable[[], None]],
    folder: Path,
) -> str:
    """Runs a tool of an engine in a folder; what it wrote. Raises ServerFailed with its last words."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env=environment_of(environment),
        cwd=folder,
        preexec_fn=confine(before_exec=tuple(steps)),
    )
    if done.returncode:
        said = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        told = f": {' '.join(said[-3:])}" if said else ""
        raise ServerFailed(
            f"{title} {how_it_ended(done.returncode)}{told}",
            "look at its output, which follows",
            done.stdout[-LOG_BYTES:],
        )
    return done.stdout
