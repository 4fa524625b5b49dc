"""A knob: all that is known of one thing that a study may vary. Imports nothing that touches a host."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from dbdyno.frozen import Level, level_text

if TYPE_CHECKING:
    from dbdyno.engines.engine import Engine
    from dbdyno.layers.setup import Request, Running
    from dbdyno.records.record import Evidence, Reading

ROOT = "root"
ROOT_OR_GROUP = "root, or a delegated control group"


class Scope(StrEnum):
    """What a knob changes. Two servers can run side by side only where no knob of the host's varies."""

    SERVER = "server"
    HOST = "host"


def asks_nothing(_level: str, _engine: Engine) -> tuple[Request, ...]:
    """For a knob whose layer asks for it together with others."""
    return ()


def not_counted(_running: Running) -> Reading | None:
    """For a knob of whose use no counter tells."""
    return None


@dataclass(frozen=True)
class Knob:
    """One knob of a layer that knows all of its own.

    `levels`, `effect`, `proof` and `needs` are words: what may be written, how a level is put into effect,
    what is read to prove it, and which right a level that touches the host needs. `pattern` matches each
    level as a whole. `related` are keys of the host's fingerprint: where two hosts differ in one of them,
    the measured effect of this knob tells how much that matters.
    """

    name: str
    levels: str
    pattern: str
    effect: str
    proof: str
    prove: Callable[[str, Running], Evidence]
    ask: Callable[[str, Engine], tuple[Request, ...]] = asks_nothing
    exercised: Callable[[Running], Reading | None] = not_counted
    needs: str = ""
    scope: Scope = Scope.SERVER
    related: tuple[str, ...] = ()

    def takes(self, level: Level) -> bool:
        return re.fullmatch(self.pattern, level_text(level)) is not None
