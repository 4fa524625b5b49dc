"""A knob: all that is known of one thing that a study may vary. Imports nothing that touches a host."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import Mistake
from dbdyno.frozen import Level, level_text

if TYPE_CHECKING:
    from dbdyno.engines.engine import Engine
    from dbdyno.layers.setup import Request, Running
    from dbdyno.records.record import Evidence, Reading
    from dbdyno.study.files import NamedFile
    from dbdyno.study.nouns import Promise


ROOT = "root"
ROOT_OR_GROUP = "root, or a delegated control group"


class Scope(StrEnum):
    """What a knob changes. Two servers can run side by side only where no knob of the host's varies."""

    SERVER = "server"
    HOST = "host"


def asks_nothing(_level: str, _engine: Engine) -> tuple[Request, ...]:
    """For a knob whose layer asks for it together with others."""
    return ()


def says_all(_text: str) -> Mistake | None:
    """For a knob whose pattern says all of its levels."""
    return None


def lacks_none(_text: str, _engine: Engine) -> Mistake | None:
    """For a knob whose levels each engine has."""
    return None


def keeps_all(_text: str) -> Promise | None:
    """For a knob whose levels differ in their speed alone."""
    return None


def names_none(_text: str, _folder: Path) -> tuple[NamedFile, ...]:
    """For a knob whose levels name no files."""
    return ()


def not_counted(_running: Running) -> Reading | None:
    """For a knob of whose use no counter tells."""
    return None


@dataclass(frozen=True)
class Knob:
    """One knob of a layer that knows all of its own.

    `levels`, `effect`, `proof` and `needs` are words: what may be written, how a level is put into effect,
    what is read to prove it, and which right a level that touches the host needs. `pattern` matches each
    level as a whole, `refused` says what else is wrong with one, and `lacked` what an engine lacks for it;
    `files` says which files a level of a study in a folder names. `gives_up` names what a level gives up
    for its speed. `related` are keys of the host's fingerprint: where two hosts differ in one of them, the
    measured effect of this knob tells how much that matters. `in_production` says whether a server that Dyno
    did not start has the knob too, and shows its level: the size of a volume of Dyno's has no meaning there.
    """

    name: str
    levels: str
    pattern: str
    effect: str
    proof: str
    prove: Callable[[str, Running], Evidence]
    ask: Callable[[str, Engine], tuple[Request, ...]] = asks_nothing
    refused: Callable[[str], Mistake | None] = says_all
    lacked: Callable[[str, Engine], Mistake | None] = lacks_none
    gives_up: Callable[[str], Promise | None] = keeps_all
    exercised: Callable[[Running], Reading | None] = not_counted
    files: Callable[[str, Path], tuple[NamedFile, ...]] = names_none
    needs: str = ""
    scope: Scope = Scope.SERVER
    related: tuple[str, ...] = ()
    in_production: bool = True

    def takes(self, level: Level) -> bool:
        return self.mistake(level) is None

    def mistake(self, level: Level) -> Mistake | None:
        """What is wrong with a level that a study gives, without its line."""
        text = level_text(level)
        if re.fullmatch(self.pattern, text) is None:
            return Mistake(0, f"{self.name}: {text!r} is no level of it", f"allowed: {self.levels}")
        return self.refused(text)
