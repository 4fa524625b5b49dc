"""How long the rest of a run takes, by what its trials took so far."""

from __future__ import annotations

from collections.abc import Callable

from dbdyno.study.trials import Trial


class TimeLeft:
    """Counts parts of trials, because those of a block that run side by side end together: each has started
    once, and has its stretches of load in turn with the others.

    `trial_s` is what a trial is expected to take. It counts until one has ended.
    """

    def __init__(self, trial_s: float, clock: Callable[[], float]) -> None:
        self._trial_s = trial_s
        self._clock = clock
        self._began_s = clock()
        self._ended = 0
        self._over: dict[str, int] = {}
        self._parts: dict[str, float] = {}

    def stretch_began(self, trial: Trial) -> int:
        """The trial's load is put on its server, the first time or once more. How many such stretches are
        over."""
        name = trial.variant.name
        over = self._over[name] = self._over.get(name, -1) + 1
        stretches_s = [seconds for phase in trial.phases for seconds in phase.stretches_s]
        load_s = sum(stretches_s)
        # Nobody knows how long counted work takes.
        start_s = max(0.0, self._trial_s - load_s) if load_s else 0.0
        self._parts[name] = (start_s + sum(stretches_s[:over])) / self._trial_s
        return over

    def trial_ended(self, variant: str) -> None:
        self._over.pop(variant, None)
        self._parts.pop(variant, None)
        self._ended += 1

    @property
    def begun(self) -> float:
        """How much is done of the trials that go on, in trials."""
        return sum(self._parts.values())

    def seconds(self, trials: int) -> float:
        """What so many trials take that have not ended."""
        each_s = self._trial_s
        if self._ended:
            each_s = (self._clock() - self._began_s) / (self._ended + self.begun)
        return each_s * max(0.0, trials - self.begun)
