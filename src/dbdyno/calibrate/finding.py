"""The bindings that are tried (which CPUs server and driver use, how long a slice is, who gathers), and what
slices of one setup against itself tell of one: how pairs of them are taken on a server that runs, and pure
functions of their speeds.

The two slices of a pair follow one another on one server, so the log of their ratio is what chance alone does
to a comparison. How long a run takes that tells a difference d in nine of ten comparisons follows from the
function that fits a run to a budget (`analyse/quantiles.py`): n blocks, each with a start of both servers,
their warm-up and their slices, tell it when

(t(n) + 1.28) * sqrt(2 (b^2 + s^2 / m) / n) <= log(1 + d),

where t(n) is the quantile of the interval that verdicts use (Student's, 95 %), 1.28 the normal quantile of
nine in ten, s the spread of a second's log speed by the pairs of slices, m the seconds that a trial measures,
and b the spread of starts. One server runs all slices, so b is taken to be `STARTS_SD`.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Sequence

from dbdyno.analyse.quantiles import SHORTEST_S, Costs, Spreads, least_budget_s
from dbdyno.frozen import Frozen, Level
from dbdyno.host.process import bind
from dbdyno.layers.setup import Running
from dbdyno.study import Interval, Study
from dbdyno.study.nouns import SLICE_S
from dbdyno.study.trials import SETTLE_S

SERVER, DRIVER = "cpu.server", "cpu.driver"
ALL = "all"
OTHER_SLICES_S = (0.25, 1.0)


class Binding(Frozen):
    """Where server and driver run, and how the load is driven there. `server` and `driver` are CPUs in the
    kernel's list format, or `all`; the driver of an embedded engine has none, because it shares the server's
    process."""

    server: str = ALL
    driver: str = ALL
    slice_s: float = SLICE_S
    gather: bool = False

    @property
    def settings(self) -> dict[str, Level]:
        """What a study sets to be bound so. A binding to all CPUs needs no setting."""
        return {knob: cpus for knob, cpus in ((SERVER, self.server), (DRIVER, self.driver)) if cpus != ALL}

    @property
    def words(self) -> str:
        """Who is where: `server on CPU 0, driver on CPU 1`."""
        bound = (("server", self.server), ("driver", self.driver))
        told = [f"{who} on CPU {cpus}" for who, cpus in bound if cpus != ALL]
        return ", ".join([*told, *(["gathering"] if self.gather else [])]) or "both free"


def bindings(study: Study, embedded: bool, cpus: Sequence[int]) -> tuple[Binding, ...]:
    """The first is what a study has without a calibration. A study that binds something itself keeps that,
    and one CPU leaves no choice."""
    free = Binding(gather=study.workload.gather == "on")
    found: tuple[Binding, ...]
    if binds_itself(study) or len(cpus) < 2:
        found = (free,)
    elif embedded:
        found = (free, free.but(server=listed(cpus[: len(cpus) // 2])))
    else:
        last, half = str(cpus[-1]), listed(cpus[len(cpus) // 2 :])
        found = (
            free,
            free.but(driver=last),
            free.but(server=half, driver=half),
            free.but(server=listed(cpus[:-1]), driver=last),
        )
    if not free.gather:
        return found
    return (*found, *(one.but(gather=False) for one in found))


def binds_itself(study: Study) -> bool:
    """Whether the study says where server or driver run."""
    return any(name.startswith("cpu.") for name in (*study.settings, *study.baseline))


def listed(cpus: Sequence[int]) -> str:
    """In the kernel's list format: `0-3`, or `0,2`."""
    if len(cpus) > 1 and cpus[-1] - cpus[0] == len(cpus) - 1:
        return f"{cpus[0]}-{cpus[-1]}"
    return ",".join(map(str, cpus))


CONFIDENCE = 0.95
POWER_QUANTILE = 1.2816
"""Of the normal law: nine comparisons in ten."""
DIFFERENCES = (0.01, 0.02, 0.05)
STARTS_SD = 0.01
"""Of the log speed of a server from start to start. A calibration has one start. A report of a run whose
servers took turns says what it measured."""
SATURATED_SHARE_MOST = 0.1
SMALLEST_COST = 1e-30
PAIRS_FOR_TAILS, TAILS_LEVEL = 20, 0.01
"""Fewer pairs show no heavy tails, and every hundredth host seems to have them."""


class Pair(Frozen):
    """Two slices of one setup that followed one another: their speeds, and in how many the driver was the
    limit."""

    first_per_s: float
    second_per_s: float
    saturated: int = 0

    @property
    def log_ratio(self) -> float:
        return math.log(self.second_per_s / self.first_per_s)


class TrialCosts(Frozen):
    """What a trial of the study takes: `fixed_s` beside its slices (its start, its warm-up and its checks),
    and at most `longest_s` of slices."""

    fixed_s: float
    longest_s: float

    def costs(self, slice_s: float) -> Costs:
        """Of a run of two variants in slices of this length."""
        return Costs(
            variants=2,
            fixed_s=self.fixed_s,
            each_s=1.0 + SETTLE_S / slice_s,
            shortest_s=min(SHORTEST_S, self.longest_s),
            longest_s=self.longest_s,
            confidence=CONFIDENCE,
        )


class TimeToTell(Frozen):
    """In how many minutes of a run of two variants a difference (a share) is told; None: not in a day."""

    difference: float
    minutes: float | None


class Against(Frozen):
    """A binding beside the one that it would replace, `arrangement`: a difference takes `ratio` times as
    long there. It is shown to be better where that is above `needed`, a quantile of the F ratio."""

    arrangement: Binding
    ratio: float
    needed: float

    @property
    def shown(self) -> bool:
        return self.ratio > self.needed

    @property
    def words(self) -> str:
        return f"gain {self.ratio:.2f}, needed {self.needed:.2f}"


class BindingFinding(Frozen):
    """What the slices of one binding showed, which stored calibrations call `arrangement`.

    `against` is None for the binding that the others would replace, and for one that was not compared.
    `sd` is the spread of the log of a slice's speed with its 95 % interval, `pair_sd` that of the log ratio
    of two slices that follow one another, `autocorrelation` what such two have in common. `usable` is false
    where the driver was the limit too often.
    """

    arrangement: Binding
    slices: int
    speed_per_s: float
    sd: float
    sd_low: float
    sd_high: float
    autocorrelation: float
    pair_sd: float
    told: tuple[TimeToTell, ...]
    usable: bool = True
    against: Against | None = None

    @property
    def pairs(self) -> int:
        return self.slices // 2

    @property
    def spreads(self) -> Spreads:
        """How speeds spread here: from second to second as measured, and from start to start as supposed."""
        seconds = self.pair_sd * math.sqrt(self.arrangement.slice_s / 2.0)
        return Spreads(starts=STARTS_SD, seconds=seconds)

    @property
    def cost(self) -> float:
        """What the time that a difference takes is proportional to."""
        return self.pair_sd**2 * (self.arrangement.slice_s + SETTLE_S)


def finding(binding: Binding, pairs: Sequence[Pair], trial: TrialCosts) -> BindingFinding:
    """Needs two pairs at least. `trial` is what a trial of the study takes."""
    logs = [math.log(speed) for pair in pairs for speed in (pair.first_per_s, pair.second_per_s)]
    mean = math.fsum(logs) / len(logs)
    variance = math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
    of_pairs = math.fsum(pair.log_ratio**2 for pair in pairs) / len(pairs)
    low, high = _spread_interval(variance, len(logs) - 1)
    return BindingFinding(
        arrangement=binding,
        slices=len(logs),
        speed_per_s=math.exp(mean),
        sd=math.sqrt(variance),
        sd_low=low,
        sd_high=high,
        autocorrelation=1.0 - of_pairs / (2.0 * variance) if variance else 0.0,
        pair_sd=math.sqrt(of_pairs),
        told=tuple(
            TimeToTell(
                difference=one, minutes=minutes_to_tell(one, math.sqrt(of_pairs), binding.slice_s, trial)
            )
            for one in DIFFERENCES
        ),
        usable=sum(pair.saturated for pair in pairs) <= SATURATED_SHARE_MOST * len(logs),
    )


def _spread_interval(variance: float, freedom: int) -> tuple[float, float]:
    # Here, because it takes longer to import than most commands run.
    from scipy import stats

    low, high = (
        math.sqrt(variance * freedom / float(stats.chi2.ppf(0.5 + side * CONFIDENCE / 2.0, freedom)))
        for side in (1.0, -1.0)
    )
    return low, high


def minutes_to_tell(difference: float, pair_sd: float, slice_s: float, trial: TrialCosts) -> float | None:
    """Of a run of two variants, by the formula above; None where it takes more than a day."""
    spreads = Spreads(starts=STARTS_SD, seconds=pair_sd * math.sqrt(slice_s / 2.0))
    found_s = least_budget_s(trial.costs(slice_s), difference, POWER_QUANTILE, spreads)
    return None if found_s is None else found_s / 60.0


def compared_bindings(findings: Sequence[BindingFinding]) -> tuple[BindingFinding, ...]:
    """The first, and each other with how it stands against the first: by the F ratio of the costs at 95 %,
    corrected for the number of others (Šidák 1967)."""
    first, *others = findings
    if not others:
        return (first,)
    from scipy import stats

    level = CONFIDENCE ** (1.0 / len(others))
    return first, *(
        one.but(
            against=Against(
                arrangement=first.arrangement,
                # Speeds that do not vary at all have no ratio, and JSON has no infinity.
                ratio=first.cost / max(one.cost, SMALLEST_COST),
                needed=float(stats.f.ppf(level, first.pairs, one.pairs)),
            )
        )
        for one in others
    )


def best(findings: Sequence[BindingFinding]) -> BindingFinding:
    """Of findings that were compared: the one that tells differences soonest of those that are shown to be
    better than the first; else the first, because what is bound without need is only another server. Where
    the driver was the limit in the first, any other takes its place."""
    first, *others = findings
    fit = [one for one in others if one.usable and (not first.usable or (one.against and one.against.shown))]
    return min(fit, key=lambda one: one.cost, default=first)


def reason(findings: Sequence[BindingFinding], what: str) -> str:
    """Why one of the findings that were compared is the best: the figure that decided. `what` is in what
    they differ."""
    first, *others = findings
    chosen, usable = best(findings), [one for one in others if one.usable]
    if not others:
        return f"no other {what} was tried"
    if not usable:
        return f"with every other {what} the driver was the limit"
    if chosen is not first and not first.usable:
        return f"the driver was the limit without this {what}; that it is better was not shown"
    nearest = max((one.against for one in usable if one.against), key=lambda one: one.ratio / one.needed)
    if chosen is first or not chosen.against:
        return f"no other {what} is shown to be better: {nearest.words}"
    return f"shown to be better: {chosen.against.words}"


def interval_for(pairs: Sequence[Sequence[Pair]]) -> Interval:
    """The interval that suits how log ratios vary here: signed-rank where their tails are heavy, else
    Student's.

    Heavy is what the kurtosis of all pairs, each binding's by its own spread, is at the level 1 % (F. J.
    Anscombe and W. J. Glynn, Biometrika 70, 1983, 227-234).
    """
    scaled = [ratio for each in pairs for ratio in _scaled([pair.log_ratio for pair in each])]
    if len(scaled) < PAIRS_FOR_TAILS:
        return Interval.STUDENT
    from scipy import stats

    heavy = float(stats.kurtosistest(scaled, alternative="greater").pvalue) < TAILS_LEVEL
    return Interval.SIGNED_RANK if heavy else Interval.STUDENT


def _scaled(ratios: Sequence[float]) -> list[float]:
    spread = math.sqrt(math.fsum(ratio**2 for ratio in ratios) / len(ratios)) if ratios else 0.0
    return [ratio / spread for ratio in ratios] if spread else []


def with_slices(binding: Binding, lengths_s: Sequence[float]) -> tuple[Binding, ...]:
    """The binding with slices of other lengths."""
    return tuple(binding.but(slice_s=length) for length in lengths_s if length != SLICE_S)


ROUNDS_LEAST = 6
Pairs = dict[Binding, list[Pair]]
"""By binding, in the order in which they are given."""


def measured(
    running: Running,
    bindings: Sequence[Binding],
    seconds: float,
    draw: random.Random,
    clock: Callable[[], float] = time.monotonic,
) -> Pairs:
    """As many rounds as `seconds` hold; a round has one pair of each binding, in an order that it draws.

    A binding in which a slice ended no transaction is left out, because that slice has no speed.
    """
    pairs: Pairs = {each: [] for each in bindings}
    over, rounds = clock() + seconds, 0
    while pairs and (rounds < ROUNDS_LEAST or clock() < over):
        for each in draw.sample(list(pairs), len(pairs)):
            _bind(running, each)
            if pair := _pair(running, each, seed=rounds):
                pairs[each].append(pair)
            else:
                del pairs[each]
        rounds += 1
    return pairs


def _bind(running: Running, binding: Binding) -> None:
    """Moves server and driver to the binding's CPUs while they run."""
    launch, load_launch = running.setup.launch, running.setup.load_launch
    bind(running.process_ids, _cpus(binding.server, launch.affinity))
    if not running.setup.engine.embedded:
        bind((running.load.process_id,), _cpus(binding.driver, load_launch.affinity))


def _cpus(listed: str, started_on: Sequence[int]) -> set[int]:
    """The CPUs of a list; all are those that the process was started on."""
    if listed == ALL:
        return set(started_on) or os.sched_getaffinity(0)
    bounds = [part.split("-") for part in listed.split(",")]
    return {cpu for ends in bounds for cpu in range(int(ends[0]), int(ends[-1]) + 1)}


def _pair(running: Running, binding: Binding, seed: int) -> Pair | None:
    job = running.setup.job.but(
        ramp_s=0.0,
        warmup_s=SETTLE_S,
        duration_s=binding.slice_s,
        gather="on" if binding.gather else "off",
        seed=seed,
    )
    first, second = running.load.run(job), running.load.run(job)
    if not (first.operations and second.operations):
        return None
    saturated = sum(tally.saturated is not None for tally in (first, second))
    return Pair(first_per_s=first.throughput_per_s, second_per_s=second.throughput_per_s, saturated=saturated)
