"""What ends an engine on purpose, so that it has to come back."""

from __future__ import annotations

from enum import StrEnum


class Act(StrEnum):
    """How a phase ends where the engine ends with it. The engine is then started again on what is left.

    `STOP` ends the load and then the engine, cleanly. `FLIP` does so as well, and shows the engine a row with
    one bit that is wrong before all goes on. The others come in the midst of the load: `KILL` ends the
    engine's processes; `CUT` cuts the power of its volume; `TEAR` cuts it while pages are on their way, of
    which one half then reaches the device. `RESET` resets an emulated machine.
    """

    STOP = "stop"
    KILL = "kill"
    CUT = "cut"
    TEAR = "tear"
    FLIP = "flip"
    NODE_KILL = "node-kill"
    NODE_PAUSE = "node-pause"
    NODE_CUT = "node-cut"
    NODE_EMPTY = "node-empty"
    FIRST_LOST = "first-lost"
    RESET = "reset"

    @property
    def words(self) -> str:
        """A torn-page cut is a power cut that leaves halves of pages."""
        return _WORDS[self]


_WORDS = {
    Act.STOP: "clean stop",
    Act.KILL: "kill",
    Act.CUT: "power cut",
    Act.TEAR: "torn-page cut",
    Act.FLIP: "flipped bit",
    Act.NODE_KILL: "killed node",
    Act.NODE_PAUSE: "paused node",
    Act.NODE_CUT: "cut-off node",
    Act.NODE_EMPTY: "emptied node",
    Act.FIRST_LOST: "lost first node",
    Act.RESET: "reset",
}
OF_POWER = frozenset({Act.CUT, Act.TEAR})
"""Acts that need a volume of Dyno's own."""
CLEANLY = frozenset({Act.STOP, Act.FLIP})
"""Acts after the load, which end the engine cleanly."""
OF_CLUSTER = frozenset({Act.NODE_KILL, Act.NODE_PAUSE, Act.NODE_CUT, Act.NODE_EMPTY, Act.FIRST_LOST})
"""Acts on the nodes of a cluster."""
OF_SOAKS = frozenset({Act.STOP, Act.KILL, Act.CUT, Act.TEAR})
"""Acts that a soak may end with."""
