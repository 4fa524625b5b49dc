"""An engine's own configuration file as the base of a study: what of it is taken, and what is not and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dbdyno.engines import exported
from dbdyno.engines.confined import reach
from dbdyno.engines.engine import Engine
from dbdyno.engines.included import Follower
from dbdyno.engines.line import A_PATH, A_PROGRAM, Line, NoConfiguration
from dbdyno.frozen import Configuration, LineCount, NotTaken
from dbdyno.obtain.installation import Installation


def read_configuration(
    engine: Engine, installation: Installation | None, name: str, folder: Path
) -> Configuration:
    """The settings of a file, and of those that it includes, that this engine takes. `name` counts from the
    folder. Without an installation only the lines that are never taken are left out. Raises OSError and
    UnicodeDecodeError where the file cannot be read, and NoConfiguration where the server would refuse it.
    """
    known = engine.settings.names(installation) if installation else None
    follower = Follower(lambda text: engine.settings.configured(text, installation))
    # PostgreSQL and Firebird read the names of settings in any case.
    spelled = {one.lower(): one for one in known or ()}
    named = (
        replace(one, name=spelled.get(one.name.lower(), one.name)) for one in follower.lines(name, folder)
    )
    lines = [_judged(line, engine, installation, known) for line in named]
    # As in a server, the last line of a setting counts.
    last = {line.name: line for line in lines if not line.untaken}
    settings = {one: line.level for one, line in last.items()}
    refused = engine.settings.refused(installation, settings) if installation else {}
    faults = {last[one]: f"{engine.title} {fault.reason}" for one, fault in refused.items()}
    whole, *included = follower.files
    told = _told(_without(line, faults[line]) if line in faults else line for line in lines)
    length = sum(exported.length(file.text) for file in follower.files)
    count = LineCount(
        whole=length,
        silent=length - len(lines),
        again=sum(not line.untaken and last[line.name] is not line for line in lines),
    )
    return Configuration(
        path=name,
        text=whole.text,
        digest=whole.digest,
        settings={f"config.{one}": level for one, level in settings.items() if one not in refused},
        not_taken=told,
        included=tuple(included),
        lines=count,
    )


def require_settings(found: Configuration) -> Configuration:
    """The same. Raises NoConfiguration where nothing of it is taken, because a study would call the server's
    defaults the user's file."""
    if found.settings:
        return found
    first = next(iter(found.not_taken), None)
    why = f": {first.text}: {first.reason}" if first is not None else ""
    raise NoConfiguration(f"no line of it sets what a study can take{why}", "leave it out, or name another")


def _judged(
    line: Line, engine: Engine, installation: Installation | None, known: frozenset[str] | None
) -> Line:
    if line.untaken or line.include is not None:
        return line
    # A run refuses such a level, and no variant would be left.
    if reach(line.name, line.level, engine.settings.CONFINED) is not None:
        return _without(line, A_PROGRAM if line.name in engine.settings.CONFINED else A_PATH)
    if known is None or line.name in known or installation is None:
        return line
    return _without(line, f"{engine.title} {installation.version} has no such setting")


def _without(line: Line, why: str) -> Line:
    return replace(line, untaken=why)


def _told(lines: Iterable[Line]) -> tuple[NotTaken, ...]:
    """In the order in which a server reads them."""
    return tuple(
        NotTaken(line=line.number, text=line.text, reason=line.untaken, file=line.file)
        for line in lines
        if line.untaken
    )
