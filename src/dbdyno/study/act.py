"""What ends an engine on purpose, so that it has to come back."""

from __future__ import annotations

from enum import StrEnum


class Act(StrEnum):
    """How a phase ends where the engine ends with it. The engine is then started again on what is left.

    `STOP` ends the load and then the engine, cleanly. `KILL` ends the engine's processes in the midst of the
    load.
    """

    STOP = "stop"
    KILL = "kill"
