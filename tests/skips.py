"""Which skips are allowed. Each is listed in `skips.toml` with what it lacks, and why it may be missing.

`DYNO_REQUIRE` names what a machine must have, as continuous integration does: `DYNO_REQUIRE=mariadb,valgrind`
fails the tests that lack one of these. It fails a skip that no entry names as well, because a claim would go
unheld without a word.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LIST = Path(__file__).with_name("skips.toml")
VARIABLE = "DYNO_REQUIRE"
PREFIX = "Skipped: "
"""What pytest puts before the reason of a skip."""


@dataclass(frozen=True)
class Allowed:
    """A skip that may happen: `reason` is a regular expression for all that the test says, `lacks` what the
    machine is without, and `why` the reason why that may be."""

    reason: str
    lacks: str
    why: str


@cache
def allowed() -> tuple[Allowed, ...]:
    return tuple(Allowed(**one) for one in tomllib.loads(LIST.read_text())["skip"])


def required() -> frozenset[str]:
    """What this machine must have, by the environment. Raises ValueError for a word that no entry lists."""
    named = frozenset(filter(None, os.environ.get(VARIABLE, "").split(",")))
    known = {one.lacks for one in allowed()}
    if unknown := ", ".join(sorted(named - known)):
        raise ValueError(f"{VARIABLE} names {unknown}; {LIST.name} knows {', '.join(sorted(known))}")
    return named


def objection(reason: str, entries: Iterable[Allowed], needed: frozenset[str]) -> str | None:
    """Why a test may not be skipped for this reason on a machine that must have what is needed. None where
    it may, or where nothing is needed."""
    if not needed:
        return None
    reason = reason.removeprefix(PREFIX)
    found = [one.lacks for one in entries if re.fullmatch(one.reason, reason, re.DOTALL)]
    if not found:
        return f"skipped for a reason that tests/{LIST.name} does not list: {reason}"
    if missing := ", ".join(sorted(needed.intersection(found))):
        return f"skipped, though {VARIABLE} says that this machine has {missing}: {reason}"
    return None
