"""What the flow needs of a layer: to set its knobs before the start, and to prove them on the running
system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dbdyno.engines.base import Engine
from dbdyno.errors import Mistake
from dbdyno.frozen import Level
from dbdyno.layers.setup import Running, Setup
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Evidence
from dbdyno.study import Factor


class Layer(Protocol):
    """One layer of factors. A level that cannot be put into effect raises Blocked from `put`."""

    name: str

    def mistakes(self, factor: Factor, engine: Engine, installation: Installation | None) -> list[Mistake]:
        """Faults of a factor that can be told without touching anything; lines are filled in by the
        caller."""
        ...

    def put(self, levels: Mapping[str, Level], setup: Setup) -> None:
        """Puts this layer's levels (by knob) into the setup. What touches the host goes through the
        journal first."""
        ...

    def placed(self, setup: Setup) -> None:
        """Called once the data are in place, before the server starts: what needs the device they lie on."""
        ...

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        """Reads the running system: one Evidence per knob, before any load."""
        ...

    def exercised(self, evidence: Evidence, running: Running) -> Evidence:
        """The same evidence with what the load showed of the knob's use, where a counter tells."""
        ...
