"""A study of platforms: its engine runs as packages of several architectures, and nothing of it is timed.

Programs of other machines run under emulation, whose speed says nothing of these machines. So such a study
has no blocks. It asks whether each variant starts, keeps its invariants under load, and recovers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.study.builds import of_build
from dbdyno.study.nouns import MACHINE_FACTOR, Design, Factor, Restarts
from dbdyno.study.nouns import PLATFORM_FACTOR as FACTOR
from dbdyno.study.section import SectionReader

BESIDE = ("build", "config", "machine", "source", "workload")
"""Layers whose levels reach a server whatever machine it is of. The others act on this host."""
TRAINED = ("build.pgo", "build.bolt", "build.layout")
"""Levels whose only use is a speed."""
WITHOUT = ("aa", "baselines", "blocks", "images", "arrangement", "slice", "goal", "soak", "search")
"""Keys and tables that concern what is timed."""
ELSEWHERE = ("application", "driver", "data")
"""Tables that such a study has not."""
TIMES_NOTHING = "a study of platforms times nothing, because the speed of an emulator says nothing"


def is_of_platforms(names: Iterable[str]) -> bool:
    """Whether factors or settings of these names make a study one of platforms."""
    return FACTOR in names


def read_platforms(
    reader: SectionReader, head: dict[str, Any], factors: tuple[Factor, ...], settings: Iterable[str]
) -> dict[str, Any]:
    """The study's head, without blocks where it is one of platforms. Notes what does not go with that."""
    names = [*(factor.name for factor in factors), *settings]
    if not (is_of_platforms(names) or _names_one(reader)):
        return head
    for key in WITHOUT:
        if reader.at((key,)) is not None:
            reader.note((key,), f"`{key}` does not go with `{FACTOR}`: {TIMES_NOTHING}", "leave it out")
    for key in ELSEWHERE:
        if reader.at((key,)) is not None:
            reader.note((key,), f"`{key}` does not go with `{FACTOR}`", "leave it out")
    if head["design"] is Design.SEARCH:
        reader.note(("design",), f"a search does not go with `{FACTOR}`: {TIMES_NOTHING}", "choose another")
    for name in names:
        if name in TRAINED:
            told = f"`{name}` does not go with `{FACTOR}`: {TIMES_NOTHING}"
            reader.note(("factors", name), told, "leave it out")
        elif of_build(name) and MACHINE_FACTOR in names:
            told = f"`{name}` does not go with `{MACHINE_FACTOR}`: the guest starts packages"
            reader.note(("factors", name), told, "leave it out")
        elif name not in (FACTOR, ENGINE_FACTOR) and name.partition(".")[0] not in BESIDE:
            hint = (
                "keep one of the two: other architectures take settings of the server and of the load, and"
                " builds"
            )
            reader.note(("factors", name), f"`{name}` does not go with `{FACTOR}`", hint)
    _require_restarts(reader, names)
    return {**head, "blocks": 0}


def _names_one(reader: SectionReader) -> bool:
    """Whether the document has the factor, whose levels may be wrong, so that all mistakes are told at
    once."""
    places = (("factors", FACTOR), ("factors", *FACTOR.split(".")))
    return any(reader.at(place) is not None for place in places)


def _require_restarts(reader: SectionReader, names: Iterable[str]) -> None:
    if reader.at(("restarts",)) is None:
        acts = "resets = 5" if MACHINE_FACTOR in names else "kills = 2 and stops = 1"
        hint = f"write [restarts] with {acts}"
        reader.note((), f"without [restarts] a study with `{FACTOR}` asks nothing", hint)


def only_kills(reader: SectionReader, restarts: Restarts | None, names: Iterable[str]) -> None:
    """Notes acts that such a study has not: what a volume keeps says nothing of another machine's disks."""
    if restarts is None or not is_of_platforms(names):
        return
    for key in ("power_cuts", "torn_pages", "flipped_bits"):
        if getattr(restarts, key):
            hint = "give kills and stops"
            reader.note(("restarts", key), f"`{key}` does not go with `{FACTOR}`", hint)
