"""What a soak asks of a setup: how many clients, for how long, what disturbs them, and how it ends."""

from __future__ import annotations

from enum import StrEnum

from dbdyno.frozen import Frozen, absent
from dbdyno.study.act import Act

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
