"""What a simulated run happens in: its time, its steps, and the faults that strike at them."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.errors import Blocked, DriverFailed, DynoError, LoadDied, ServerFailed
from dbdyno.records.record import Outcome

STEP_S = 0.001
STEPS_MOST = 4_000
"""A run that takes more steps than this goes round in a circle."""
FULL = "full"
MAKING = "making "
"""How the names of steps begin that make the pristine data, whatever trial needs them first."""


class Endless(BaseException):
    """A run takes steps without end. No part of the product may catch it."""


@dataclass(frozen=True)
class Fault:
    """A fault of a trial, which strikes whenever that trial comes to its `nth` step of this name."""

    trial: str
    step: str
    nth: int
    kind: str


FAULTS: Mapping[str, tuple[str, ...]] = {
    "initialise": ("server failed", "disk full"),
    "start": ("blocked", "server failed", "disk full"),
    "open load": ("driver failed", "load died"),
    "prepare": ("driver failed", "load died"),
    "query": ("driver failed", "load died"),
    "read": ("capped", "driver failed", "load died"),
    "begin": ("server failed", "server dies", "driver failed", "load died", "saturated"),
    "go on": ("server failed", "server dies", "driver failed", "load died"),
    "check": ("server dies", "driver failed", "load died", "broken"),
    "rest": ("server dies",),
    "clone": ("disk full",),
    "note": ("journal full",),
    "undone": ("undoing not noted",),
    "record": ("store full",),
    "stop": ("server failed",),
}
"""What can go wrong at a step, by its name."""

_OF_DRIVER = {"driver failed": Outcome.FAILED, "load died": Outcome.FAILED}
_OF_SERVER = {"server failed": Outcome.BROKEN, "server dies": Outcome.BROKEN}
OUTCOMES: Mapping[str, Mapping[str, Outcome]] = {
    "prepare": {
        "blocked": Outcome.BLOCKED,
        "server failed": Outcome.FAILED,
        "disk full": Outcome.FAILED,
        "journal full": Outcome.FAILED,
        "undoing not noted": Outcome.MEASURED,
        **_OF_DRIVER,
    },
    "verify": {"capped": Outcome.BLOCKED, **_OF_DRIVER},
    "drive": {"saturated": Outcome.FAILED, **_OF_SERVER, **_OF_DRIVER},
    "check": {"broken": Outcome.BROKEN, "server dies": Outcome.BROKEN, **_OF_DRIVER},
    "restart": {
        "broken": Outcome.BROKEN,
        "disk full": Outcome.FAILED,
        **_OF_SERVER,
        **_OF_DRIVER,
    },
    "record": {"store full": Outcome.MEASURED},
    "restore": {"server failed": Outcome.MEASURED, "undoing not noted": Outcome.MEASURED},
}
"""How a trial ends, by its stage and the fault that strikes it there. What is not here does not happen."""

AT_LOAD = ("drive", "check", "restart")
"""An embedded engine dies with its load process: in these stages that breaks the trial."""


def outcome_of(kind: str, stage: str, embedded: bool) -> Outcome | None:
    """What the table says; None where such a fault does not strike in that stage."""
    if kind == "load died" and embedded and stage in AT_LOAD:
        return Outcome.BROKEN
    return OUTCOMES.get(stage, {}).get(kind)


@dataclass(frozen=True)
class Step:
    """One step of a run: its name, the trial that takes it, which such step of the trial it is, and the stage
    that the trial is in. A step of the host's restoring has no trial."""

    name: str
    trial: str
    nth: int
    stage: str


@dataclass
class World:
    """One process of a simulated run. `strikes` are interruptions and deaths by the number of their step."""

    root: Path
    fault: Fault | None = None
    strikes: Mapping[int, str] = field(default_factory=dict)
    now_s: float = 1_000_000.0
    steps: list[Step] = field(default_factory=list)
    struck: list[str] = field(default_factory=list)
    trial: str = ""
    stages: dict[str, str] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    images: dict[str, int] = field(default_factory=dict)

    @property
    def stage(self) -> str:
        return self.stages.get(self.trial, "")

    def begin(self, trial: str) -> None:
        """A trial begins, perhaps once more."""
        self.trial, self.stages[trial] = trial, ""
        for key in [key for key in self.counts if key[0] == trial]:
            del self.counts[key]

    def at(self, name: str, trial: str | None = None) -> str:
        """A step is taken, of this trial or of the one that had the last. Returns the fault that strikes and
        that the caller is to act out; raises what is raised."""
        if threading.current_thread() is not threading.main_thread():
            return ""
        self.trial = self.trial if trial is None else trial
        self.now_s += STEP_S
        self.counts[self.trial, name] += 1
        step = Step(name, self.trial, self.counts[self.trial, name], self.stage)
        self.steps.append(step)
        if len(self.steps) > STEPS_MOST:
            raise Endless
        if self._strike(self.strikes.get(len(self.steps), "")):
            return FULL
        fault = self.fault
        if fault is None or (fault.trial, fault.step, fault.nth) != (step.trial, step.name, step.nth):
            return ""
        self.struck.append(step.stage)
        if failure := failure_of(fault.kind):
            raise failure
        return fault.kind

    def _strike(self, kind: str) -> bool:
        """Whether a disk is full, for whoever writes to act out."""
        if kind == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        elif kind == "death":
            os.kill(os.getpid(), signal.SIGKILL)
        return kind == FULL

    def wrong(self, what: str) -> None:
        """Keeps a fault of the product in a file, because this process may die before it is judged."""
        with (self.root / "wrong").open("a") as file:
            print(what, file=file)

    @property
    def host_value(self) -> Path:
        """What trials change of the host."""
        return self.root / "host-value"


def failure_of(kind: str) -> Exception | None:
    """What a fault raises; None for one that shows in another way."""
    failures: dict[str, Exception] = {
        "blocked": Blocked("config.speed", "the host refuses", "allow it"),
        "server failed": ServerFailed("the server failed", log="[ERROR] failed"),
        "driver failed": DriverFailed("the driver failed"),
        "load died": LoadDied("the load process died (SIGSEGV)"),
        "disk full": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        "journal full": DynoError("the journal of the host cannot be written: no space left"),
        "undoing not noted": DynoError("the journal of the host cannot be written: no space left"),
    }
    return failures.get(kind)
