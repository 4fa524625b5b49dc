"""The front layer: what stands between the load and its server, and the settings of that program, proved by
asking it what it runs with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from dbdyno.applications.front import Front, FrontWish, program_here
from dbdyno.applications.registry import FRONTS
from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked, DriverFailed, EngineMissing, Mistake
from dbdyno.frozen import Level, level_text
from dbdyno.host.process import cpu_taken
from dbdyno.layers.layer import LayerOfStudy, proof
from dbdyno.layers.setup import Request, Running, Setup
from dbdyno.records.record import Evidence, Reading
from dbdyno.study import Factor
from dbdyno.study.front import FRONT_KIND, NO_FRONT

KIND = "kind"
NOTHING_THERE = "nothing stands in front"
TRUE, FALSE = frozenset(("1", "yes", "on", "true")), frozenset(("0", "no", "off", "false"))
"""How programs spell a truth."""


@dataclass(frozen=True)
class InFront(Request):
    """A program in front of the server, with its settings."""

    wish: FrontWish

    def require_here(self) -> None:
        known = FRONTS.get(self.wish.kind)
        if known is None:
            return
        try:
            program_here(self.wish.kind, known.program)
        except EngineMissing as missing:
            raise Blocked(FRONT_KIND, missing.message, missing.hint) from None

    def apply(self, setup: Setup) -> None:
        setup.front = self.wish


class FrontLayer(LayerOfStudy):
    """`front.kind = NAME` puts a program in front of the server, and `front.NAME = VALUE` sets it up."""

    name = "front"

    def wrong(self, factor: Factor, engine: Engine) -> list[Mistake]:
        """The study's reader knows the names; here it is told what a server's protocol rules out."""
        if factor.knob != KIND:
            return []
        spoken, found = engine.production.protocols if engine.production else (), []
        for kind in (kind for kind in map(level_text, factor.levels) if kind != NO_FRONT):
            if engine.embedded:
                told = f"{engine.title} runs in the load process, so that nothing stands in front of it"
                found.append(Mistake(0, told, "take an engine with a server"))
            elif kind in FRONTS and not FRONTS[kind].protocols & set(spoken):
                passed = " or ".join(sorted(FRONTS[kind].protocols))
                told = f"{FRONTS[kind].title} cannot stand in front of {engine.title}"
                found.append(Mistake(0, told, f"it passes on what speaks the protocol of {passed}"))
        return found

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        kind = level_text(levels.get(KIND, NO_FRONT))
        if kind == NO_FRONT:
            return ()
        settings = {name: level for name, level in levels.items() if name != KIND}
        return (InFront(FrontWish(kind, settings)),)

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        front = running.front
        if front is None:
            reading = Reading(value=NO_FRONT, source="the load goes to the server's own socket")
            return [_without_front(name, level_text(level), reading) for name, level in levels.items()]
        shown = _shown(front) if levels.keys() - {KIND} else {}
        return [
            _of_kind(level_text(level), front)
            if name == KIND
            else _of_setting(name, level_text(level), shown.get(name), front)
            for name, level in levels.items()
        ]

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        front = running.front
        if evidence.factor != FRONT_KIND or front is None:
            return evidence
        spent_s = cpu_taken((front.process.child.pid,)).total_s
        shown = Reading(
            value=f"{spent_s:.2f} s of CPU since its start", source="the CPU clocks of its processes"
        )
        return evidence.but(exercised=shown)


def _without_front(name: str, level: str, reading: Reading) -> Evidence:
    """Where nothing stands in front, each of its settings matters as little as any other."""
    if name == KIND:
        return proof(FRONT_KIND, level, reading, level == NO_FRONT, "the study's levels")
    return proof(
        f"front.{name}", level, reading.but(value=NOTHING_THERE), True, "no program, which none needs"
    )


def _of_kind(level: str, front: Front) -> Evidence:
    executable = psutil.Process(front.process.child.pid).exe()
    reading = Reading(
        value=front.process.title, source=f"/proc/PID/exe is {executable}, digest {front.digest}"
    )
    return proof(FRONT_KIND, level, reading, level == front.kind, f"{front.process.title} started")


def _shown(front: Front) -> Mapping[str, str]:
    try:
        return front.shown()
    except (DriverFailed, OSError) as error:
        raise Blocked(
            FRONT_KIND,
            f"{front.process.title} does not say what it runs with: {error}",
            "look at its log, and at `show` and `show_at`",
        ) from None


def _of_setting(name: str, level: str, found: str | None, front: Front) -> Evidence:
    reading = Reading(
        value="no such setting" if found is None else found, source=f"{front.process.title} itself"
    )
    in_effect = found is not None and shown_alike(level, found)
    remedy = "compare its name and value with the documentation of that program"
    return proof(f"front.{name}", level, reading, in_effect, f"{front.process.title} started with it", remedy)


def shown_alike(asked: str, found: str) -> bool:
    """Whether a program shows what it was asked for, however it spells numbers and truths."""
    one, other = (re.sub(r"\s+", " ", text.strip().casefold()) for text in (asked, found))
    if one == other or any({one, other} <= alike for alike in (TRUE, FALSE)):
        return True
    try:
        return float(one) == float(other)
    except ValueError:
        return False


FRONT = FrontLayer()
