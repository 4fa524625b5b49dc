"""The layer of acts beside the load: a level is a statement or a command, which the trial itself carries out.

Nothing of it is in force before its moment, so the proof says what will be done, and the record what was.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.engines.engine import Engine
from dbdyno.frozen import Level, level_text
from dbdyno.layers.layer import LayerOfStudy, proof
from dbdyno.layers.setup import Request, Running
from dbdyno.records.record import Evidence, Reading
from dbdyno.study.soak import NO_ACT

DUE = Reading(value="due at its moment", source="Dyno itself, which does it beside the load")
NOTHING_DUE = Reading(value="nothing is done", source="the study's levels")


class MeanwhileLayer(LayerOfStudy):
    """`meanwhile.NAME = TEXT` puts another statement or command into an act of the study."""

    name = "meanwhile"

    def ask(self, levels: Mapping[str, Level], engine: Engine) -> tuple[Request, ...]:
        return ()

    def prove(self, levels: Mapping[str, Level], running: Running) -> list[Evidence]:
        return [_due(f"{self.name}.{name}", level_text(level)) for name, level in levels.items()]


def _due(factor: str, level: str) -> Evidence:
    return proof(factor, level, NOTHING_DUE if level == NO_ACT else DUE, True, "the trial's own list of acts")


MEANWHILE = MeanwhileLayer()
