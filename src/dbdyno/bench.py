"""The bench: what all trials of one run share. Tests put an engine, a load and a clock of their own on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dbdyno.engines.base import Engine, Installation, Launch
from dbdyno.journal import Journal
from dbdyno.layers.base import Layer
from dbdyno.load import Load
from dbdyno.plan import Trial
from dbdyno.record import Level, Run
from dbdyno.study import Study


@dataclass(frozen=True)
class Bench:
    """One run's engine, layers, journal and means of load. `clock` gives unix time in seconds; `cores` are
    the host's."""

    study: Study
    run: Run
    engine: Engine
    installation: Installation
    layers: Mapping[str, Layer]
    journal: Journal
    open_load: Callable[[Mapping[str, str], Launch], Load]
    cores: int
    clock: Callable[[], float] = time.time

    def levels_by_layer(self, trial: Trial) -> dict[str, dict[str, Level]]:
        """Every level of a trial, the study's fixed settings included, as layer -> knob -> level."""
        split: dict[str, dict[str, Level]] = {}
        for name, level in {**self.study.settings, **trial.variant.levels}.items():
            layer, knob = name.split(".", 1)
            split.setdefault(layer, {})[knob] = level
        return split
