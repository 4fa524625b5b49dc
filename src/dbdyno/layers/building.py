"""What the levels of `source` and `build` ask for: a build, knob by knob."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.layers.setup import Before, Request, Setup
from dbdyno.obtain.source.build import BuildSpecification


@dataclass(frozen=True)
class Building(Request):
    """One knob of a build. All of them together make the wish for it."""

    knob: str
    level: str
    before = Before.ENGINE

    def apply(self, setup: Setup) -> None:
        setup.build = self.added_to(setup.build)

    def added_to(self, wish: BuildSpecification | None) -> BuildSpecification:
        return (wish or BuildSpecification()).but(**{self.knob: self.level})
