"""How much of a run is still to come, by what is over of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dbdyno.study.trials import Trial


@dataclass
class Pace:
    """How long trials of one kind take: as long as expected until one has ended."""

    expected_s: float
    ended: int = 0
    took_s: float = 0.0


@dataclass
class BegunTrial:
    """A trial that goes on: how many stretches of its load are over, how much of it in seconds, and the
    stretch on its server now. `trial_s` is what all of it is expected to take."""

    stretches_over: int
    trial_s: float
    over_s: float
    stretch_s: float
    since_s: float

    def share(self, now_s: float) -> float:
        """How much of the trial is done. A stretch counts as it goes on, up to its length."""
        done_s = self.over_s + min(self.stretch_s, now_s - self.since_s)
        return min(1.0, done_s / self.trial_s) if self.trial_s else 0.0

    def load_ended(self, now_s: float) -> None:
        self.over_s += min(self.stretch_s, now_s - self.since_s)
        self.stretch_s = 0.0


class TimeLeft:
    """Counts parts of trials, because those of a block that run side by side end together: each has started
    once, and has its stretches of load in turn with the others. The trials beside the blocks come last and
    are of another length: `beside` of them, each expected to take `beside_s`.

    `trial_s` is what a trial of a block is expected to take. It counts until one has ended.
    """

    def __init__(
        self, trial_s: float, clock: Callable[[], float], beside: int = 0, beside_s: float = 0.0
    ) -> None:
        self._in_blocks, self._beside = Pace(trial_s), Pace(beside_s)
        self._beside_count = beside
        self._now = self._in_blocks
        self._clock = clock
        self._since_s = clock()
        self._begun: dict[str, BegunTrial] = {}

    def trial_began(self, variant: str) -> None:
        """Nothing is over of it, although it may have begun before with other slices."""
        self._begun.pop(variant, None)

    def stretch_began(self, trial: Trial) -> int:
        """The trial's load is put on its server, the first time or once more. How many such stretches are
        over."""
        self._now, name = self._pace(trial.of_no_block), trial.variant.name
        over = self._begun[name].stretches_over + 1 if name in self._begun else 0
        stretches_s = [seconds for phase in trial.phases for seconds in phase.stretches_s]
        load_s, trial_s = sum(stretches_s), self._now.expected_s
        # Nobody knows how long counted work takes.
        start_s = max(0.0, trial_s - load_s) if load_s else 0.0
        over_s, stretch_s = start_s + sum(stretches_s[:over]), sum(stretches_s[over : over + 1])
        self._begun[name] = BegunTrial(over, trial_s, over_s, stretch_s, self._load_ended())
        return over

    def trial_ended(self, variant: str, of_no_block: bool = False) -> None:
        self._begun.pop(variant, None)
        self._now, now_s = self._pace(of_no_block), self._load_ended()
        self._now.ended += 1
        self._now.took_s += now_s - self._since_s
        self._since_s = now_s

    def _load_ended(self) -> float:
        """No load is on a server any more. Now, in seconds."""
        now_s = self._clock()
        for one in self._begun.values():
            one.load_ended(now_s)
        return now_s

    def _pace(self, of_no_block: bool) -> Pace:
        return self._beside if of_no_block else self._in_blocks

    @property
    def begun(self) -> float:
        """How much is done of the trials that go on, in trials."""
        now_s = self._clock()
        return sum(one.share(now_s) for one in self._begun.values())

    def seconds(self, trials: int) -> float:
        """What so many trials take that have not ended."""
        beside = min(trials, self._beside_count)
        return self._takes_s(self._in_blocks, trials - beside) + self._takes_s(self._beside, beside)

    def _takes_s(self, pace: Pace, trials: int) -> float:
        """What so many trials of one kind take."""
        begun = self.begun if pace is self._now else 0.0
        each_s = pace.expected_s
        if pace.ended:
            goes_on_s = self._clock() - self._since_s if pace is self._now else 0.0
            each_s = (pace.took_s + goes_on_s) / (pace.ended + begun)
        return each_s * max(0.0, trials - begun)
