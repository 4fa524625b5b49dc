"""Looks at the server's own load while a run goes on, and stops the run where that load suffers."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dbdyno.engines.ledger import BEAT_S
from dbdyno.engines.runtime import Runtime
from dbdyno.errors import DriverFailed
from dbdyno.records.in_use import GuardSeen
from dbdyno.study.nouns import ServerInUse
from dbdyno.trial.running.switch import Switch

LOOK_EVERY_S = 1.0
REMEMBERED = 10
"""Over so many looks the ages of statements are taken together."""
IN_A_ROW = 2
"""So many looks over a bound stop a run."""


def words_of(server: ServerInUse, runtime: Runtime) -> str:
    """What is watched and where it is read, in words; empty where nothing is."""
    bounds = []
    if server.guard_p99_s is not None:
        ages = f"the 99th percentile of the ages of its statements in {REMEMBERED} looks"
        bounds.append(f"{ages} at most {server.guard_p99_s:g} s ({runtime.LATENCY})")
    if server.guard_errors_per_s is not None:
        bounds.append(f"at most {server.guard_errors_per_s:g} errors per second ({runtime.ERRORS})")
    return " and ".join(bounds)


class Guard:
    """A thread of Dyno's own process. It looks at a fixed pace, whatever has a turn."""

    def __init__(self, switch: Switch, server: ServerInUse, run: str) -> None:
        self._switch, self._server, self._run = switch, server, run
        self._over = threading.Event()
        self._ages: deque[tuple[float, ...]] = deque(maxlen=REMEMBERED)
        self._errors: tuple[float, float] | None = None
        self._strikes = 0
        self.seen = GuardSeen()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Looks within."""
        thread = threading.Thread(target=self._look_until_over, name="guard", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _look_until_over(self) -> None:
        for number in range(1_000_000_000):
            # A look that fails says nothing: whoever has the turn finds out what is wrong with the server.
            with suppress(DriverFailed):
                if self._server.guarded:
                    self.look()
                if self._switch.ledger is not None and number % round(BEAT_S / LOOK_EVERY_S) == 0:
                    self._switch.ledger.beat(self._run)
            if self._switch.stopped or self._over.wait(LOOK_EVERY_S):
                return

    def look(self) -> None:
        """One look. Stops the run where the looks in a row that were over a bound are enough."""
        now = self._switch.runtime.of_others(self._switch.ask)
        self._ages.append(now.ages_s)
        ages = sorted(age for each in self._ages for age in each)
        p99_s = ages[math.ceil(0.99 * len(ages)) - 1] if ages else 0.0
        errors_per_s = self._errors_per_s(now.errors)
        exceeded = self._exceeded(p99_s, errors_per_s)
        self._strikes = self._strikes + 1 if exceeded else 0
        stopped = exceeded if self._strikes >= IN_A_ROW else ""
        self.seen = GuardSeen(
            looks=self.seen.looks + 1,
            p99_s=max(self.seen.p99_s, round(p99_s, 6)),
            errors_per_s=max(self.seen.errors_per_s, round(errors_per_s, 3)),
            stopped=stopped,
        )
        if stopped:
            self._switch.stop(f"the guard of the server's own load stopped the run: {stopped}")

    def _errors_per_s(self, errors: float) -> float:
        before, at_s = self._errors, time.monotonic()
        self._errors = (errors, at_s)
        if before is None or at_s <= before[1]:
            return 0.0
        return max(0.0, errors - before[0]) / (at_s - before[1])

    def _exceeded(self, p99_s: float, errors_per_s: float) -> str:
        """Which bound was passed; empty where none was."""
        server = self._server
        if server.guard_p99_s is not None and p99_s > server.guard_p99_s:
            return f"its statements reached an age of {p99_s:.3f} s, and {server.guard_p99_s:g} s are allowed"
        if server.guard_errors_per_s is not None and errors_per_s > server.guard_errors_per_s:
            return (
                f"it had {errors_per_s:.1f} errors per second, and {server.guard_errors_per_s:g} are allowed"
            )
        return ""
