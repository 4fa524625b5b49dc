"""An engine's own configuration file as the base of a study: what of it is taken, and what is not and why."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace

from dbdyno.engines.engine import Engine
from dbdyno.engines.line import Line
from dbdyno.frozen import Configuration, NotTaken
from dbdyno.obtain.installation import Installation

SECRET = re.compile(
    r"""((?<![\w-])(?:[\w-]*(?:password|passwd|passphrase)|wsrep[-_]sst[-_]auth)[ \t]*=[ \t]*)"""
    r"""(?:'[^'\n]*'|"[^"\n]*"|[^\s'"]+)""",
    re.IGNORECASE,
)
"""A secret's name, and its value: as an option of its own, or within a connection's text."""


def read_configuration(
    engine: Engine, installation: Installation | None, path: str, text: str
) -> Configuration:
    """The settings of a file's text that this engine takes. Without an installation only the lines that are
    never taken are left out. Secrets are left out of all that is kept, because it goes into a store.
    """
    digest, text = hashlib.sha256(text.encode()).hexdigest(), SECRET.sub(r"\1***", text)
    known = engine.settings.names(installation) if installation else None
    lines = [_judged(line, engine, installation, known) for line in engine.settings.configured(text, known)]
    # As in a server, the last line of a setting counts.
    last = {line.name: line for line in lines if not line.untaken}
    settings = {name: line.level for name, line in last.items()}
    refused = engine.settings.refused(installation, settings) if installation else {}
    faults = [_without(last[name], f"{engine.title} {fault.reason}") for name, fault in refused.items()]
    return Configuration(
        path=path,
        text=text,
        digest=digest,
        settings={f"config.{name}": level for name, level in settings.items() if name not in refused},
        not_taken=_told([*(line for line in lines if line.untaken), *faults]),
    )


def _judged(
    line: Line, engine: Engine, installation: Installation | None, known: frozenset[str] | None
) -> Line:
    if line.untaken or known is None or line.name in known or installation is None:
        return line
    return _without(line, f"{engine.title} {installation.version} has no such setting")


def _without(line: Line, why: str) -> Line:
    return replace(line, untaken=why)


def _told(lines: Iterable[Line]) -> tuple[NotTaken, ...]:
    ordered = sorted(lines, key=lambda line: line.number)
    return tuple(NotTaken(line=line.number, text=line.text, reason=line.untaken) for line in ordered)
