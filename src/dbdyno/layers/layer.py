"""What a layer is: its knobs, which tell all that is known of one thing that a study may vary; what its
levels ask for; and what its reading of the running system proves of one level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dbdyno.errors import Mistake
from dbdyno.frozen import Level, layer_and_knob, level_text
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.layers.knob import Knob
from dbdyno.records.record import Evidence, Reading

if TYPE_CHECKING:
    from dbdyno.engines.engine import Engine
    from dbdyno.host.writers import Allowed
    from dbdyno.layers.setup import Request, Running
    from dbdyno.obtain.installation import Installation
    from dbdyno.study import Factor
    from dbdyno.study.nouns import Promise


def proof(
    factor: str, level: str, found: Reading, in_effect: bool, accepted: str, remedy: str = ""
) -> Evidence:
    """The evidence of one reading. `accepted` says who took the level, `remedy` what would allow one that is
    not in effect."""
    return Evidence(
        factor=factor,
        requested=level,
        accepted=Reading(value=level, source=accepted),
        effective=found,
        in_effect=in_effect,
        reason="" if in_effect else f"asked for {level}, found {found.value}",
        remedy="" if in_effect else remedy,
    )


@dataclass(frozen=True)
class GivenUp:
    """What a level gives up, and how much of it beside other levels of its factor."""

    promise: Promise
    degree: float = 1.0


class Layer(Protocol):
    """One layer of factors."""

    name: str

    @property
    def related(self) -> Mapping[str, tuple[str, ...]]:
        """Keys of the host's fingerprint that this layer's knobs tell about, by knob."""
        ...

    def in_production(self, knob: str) -> bool:
        """Whether a server that Dyno did not start has this knob too, and shows its level."""
        ...

    def mistakes(
        self,
        factor: Factor,
        engine: Engine,
        installation: Installation | None,
        allowed: Allowed = NOTHING_ALLOWED,
    ) -> list[Mistake]:
        """Faults of a factor that can be told without touching anything; lines are filled in by the caller.
        What is `allowed` is none."""
        ...

    def gives_up(
        self, knob: str, level: Level, engine: Engine, beside: Mapping[str, Level] | None
    ) -> GivenUp | None:
        """What a level gives up for its speed beside the other levels of this layer, or wherever they stand;
        None where it keeps all."""
        ...

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        """What this layer's levels (by knob) ask for, in the order in which it is applied. Touches nothing.

        Raises Blocked where the levels contradict each other, or the engine rules one out.
        """
        ...

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        """Reads the running system: one Evidence per knob, before any load."""
        ...

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        """The same evidence with what the load showed of the knob's use, where a counter tells."""
        ...


@dataclass(frozen=True)
class ForSome:
    """Engines that take a layer's levels. Of any other one its title with these `words` says why not, and
    `hint` names some that do."""

    takes: Callable[[Engine], bool]
    words: str
    hint: str


class LayerOfKnobs:
    """A layer that knows all its knobs: each says, by itself, what it asks for and what proves it. Its levels
    are for all engines, or for some."""

    def __init__(self, name: str, *knobs: Knob, engines: ForSome | None = None) -> None:
        self.name = name
        self._engines = engines
        self.knobs = {knob.name.removeprefix(f"{name}."): knob for knob in knobs}

    @property
    def related(self) -> Mapping[str, tuple[str, ...]]:
        return {name: knob.related for name, knob in self.knobs.items()}

    def in_production(self, knob: str) -> bool:
        return self.knobs[knob].in_production

    def mistakes(
        self,
        factor: Factor,
        engine: Engine,
        installation: Installation | None,
        allowed: Allowed = NOTHING_ALLOWED,
    ) -> list[Mistake]:
        knob = self.knobs.get(factor.knob)
        if knob is None:
            hint = f"it has: {', '.join(self.knobs)}"
            return [Mistake(0, f"the {self.name} layer has no knob {factor.knob!r}", hint)]
        found = list(filter(None, map(knob.mistake, factor.levels)))
        if self._engines is not None and not self._engines.takes(engine):
            return [*found, Mistake(0, f"{engine.title} {self._engines.words}", self._engines.hint)]
        lacking = (knob.lacked(level_text(level), engine) for level in factor.levels)
        return [*found, *filter(None, lacking)]

    def gives_up(
        self, knob: str, level: Level, engine: Engine, beside: Mapping[str, Level] | None
    ) -> GivenUp | None:
        promise = self.knobs[knob].gives_up(level_text(level)) if knob in self.knobs else None
        return GivenUp(promise) if promise else None

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        return tuple(
            request
            for name, knob in self.knobs.items()
            if name in levels
            for request in knob.ask(level_text(levels[name]), engine)
        )

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        return [self.knobs[name].prove(level_text(level), running) for name, level in levels.items()]

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        shown = self.knobs[evidence.factor.removeprefix(f"{self.name}.")].exercised(running)
        return evidence if shown is None else evidence.but(exercised=shown)


class LayerOfStudy:
    """A layer of what stands around a server, which production does not take from a recipe. Its levels give
    nothing up, and which there are is not known beforehand."""

    related: Mapping[str, tuple[str, ...]] = {}

    def in_production(self, knob: str) -> bool:
        return False

    def mistakes(
        self,
        factor: Factor,
        engine: Engine,
        installation: Installation | None,
        allowed: Allowed = NOTHING_ALLOWED,
    ) -> list[Mistake]:
        return self.wrong(factor, engine)

    def wrong(self, factor: Factor, engine: Engine) -> list[Mistake]:
        """Faults of a factor, without their lines. The study's reader has checked what it knows."""
        return []

    def gives_up(
        self, knob: str, level: Level, engine: Engine, beside: Mapping[str, Level] | None
    ) -> GivenUp | None:
        return None

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        return evidence


def by_layer(levels: Mapping[str, Level]) -> dict[str, dict[str, Level]]:
    """Levels by factor, as layer -> knob -> level."""
    split: dict[str, dict[str, Level]] = {}
    for name, level in levels.items():
        layer, knob = layer_and_knob(name)
        split.setdefault(layer, {})[knob] = level
    return split


def ask(
    levels: Mapping[str, Mapping[str, Level]], layers: Mapping[str, Layer], engine: Engine
) -> tuple[Request, ...]:
    """What one variant's levels (layer -> knob -> level) ask for, in the order in which it is applied.

    Touches nothing. Raises Blocked like the layers.
    """
    return tuple(
        request for name in layers if name in levels for request in layers[name].ask(levels[name], engine)
    )
