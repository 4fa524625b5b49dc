"""What a soak asks of a setup: how many clients, for how long, what disturbs them, and how it ends; and the
acts that end an engine on purpose, so that it has to come back. Beside these, what is done while a load goes
on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from dbdyno.frozen import Frozen, Level, absent, level_text


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


OF_MEANWHILE = frozenset({"act_s", "dip_depth", "dip_s", "dip_lost_s", "dip_p99_ms"})
"""Metrics that a trial has only where something is done beside its load."""
NO_ACT = "none"
"""The level of an act beside the load under which nothing is done; a study writes an empty text for it."""


class Meanwhile(Frozen):
    """What is done beside the load of each trial, `at_s` after its measured part began: the statements of
    `sql`, in a session of their own, or a `command`, which no shell reads. In a command `${host}`, `${port}`,
    `${socket}`, `${user}`, `${password_file}` and `${database}` stand for where the server is, and
    `${folder}` for a folder that goes with the trial."""

    name: str
    at_s: float
    sql: str = absent("")
    command: str = absent("")

    @property
    def factor(self) -> str:
        """What it is called where it varies."""
        return f"meanwhile.{self.name}"

    @property
    def text(self) -> str:
        return self.sql or self.command

    def given(self, text: str) -> Meanwhile:
        """The same with another statement, or another command."""
        return self.but(sql=text) if self.sql else self.but(command=text)


def acts_with(acts: Iterable[Meanwhile], levels: Mapping[str, Level]) -> tuple[Meanwhile, ...]:
    """What of the acts of a study is done where a variant has these levels, fixed ones included."""
    texts = {act: level_text(levels.get(act.factor, act.text)) for act in acts}
    return tuple(act.given(text) for act, text in texts.items() if text != NO_ACT)


GROWTH_LEAST_S = 60.0
"""A short soak with a load shorter than this fills caches, and says nothing of what grows."""


class Disturbance(StrEnum):
    """Clients beside those of the load, who behave as clients should not.

    `IDLE` ones are connected and ask nothing. `CHURN` connects, asks and leaves again and again. `SLOW` ones
    read their answers for a tenth of the time. `KILLED` ones die in the midst of an answer. `HALF_OPEN` ones
    stop in the midst of an answer and stay connected. `SILENT` ones connect and never say a word.
    """

    IDLE = "idle"
    CHURN = "churn"
    SLOW = "slow"
    KILLED = "killed"
    HALF_OPEN = "half-open"
    SILENT = "silent"


class Soak(Frozen):
    """One rung for each number of `clients`, each a trial on a server of its own, on pristine data.

    In each rung connections are opened as fast as the server takes them, then within `opening_s`. The load
    goes on for `duration_s`, and is judged for drift. Each disturbance, and each workload `beside` the
    study's own, comes on top of it for `disturbed_s`. `control_s` is how long the server then rests with as
    many idle connections: what changes there is not the load's doing; 0 leaves that out. `ends` are done
    last, one after the other; a power cut among them has the data lie on a volume of Dyno's own. Without
    `sessions`, as of an engine in the load process, nobody else can connect. Without `growth` nothing is said
    of what grows, unless the load lasts long enough for that all the same. The setup stands where nothing
    would gain more than a share of `rise` within `horizon_s`, and nothing would reach a limit.
    """

    clients: tuple[int, ...] = (100, 500, 1_000, 5_000)
    duration_s: float = 1_800.0
    opening_s: float = 10.0
    disturb: tuple[Disturbance, ...] = tuple(Disturbance)
    beside: tuple[str, ...] = ()
    disturbed_s: float = 60.0
    control_s: float = 180.0
    ends: tuple[Act, ...] = (Act.STOP,)
    sessions: bool = True
    horizon_s: float = 86_400.0
    rise: float = 0.1
    growth: bool = absent(True)

    @property
    def tells_growth(self) -> bool:
        """Whether the load lasts long enough to say anything of what grows."""
        return self.growth or self.duration_s >= GROWTH_LEAST_S

    def within_process(self) -> Soak:
        """The same for an engine that lives in the load process."""
        return self.but(disturb=(), beside=(), sessions=False)


SMOKE = Soak(
    clients=(100,),
    duration_s=20.0,
    opening_s=2.0,
    disturb=(),
    control_s=0.0,
    ends=(Act.KILL, Act.CUT, Act.TEAR, Act.STOP),
    growth=False,
)
"""A soak for people in a hurry."""
