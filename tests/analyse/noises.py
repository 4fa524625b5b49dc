"""Runs in which no variant differs, on hosts that are noisy in several ways. For tests and benches only.

Responses are logs, by block and variant. The order of a block is drawn, and mirrored in every second block.
Noise goes on from trial to trial in that order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from statistics import NormalDist
from typing import cast
from unittest import mock

import numpy as np
import numpy.typing as npt

from dbdyno.analyse import effects
from dbdyno.analyse.effects import variant_result
from dbdyno.analyse.estimate import Contrasts, Estimator, Trials, estimated_ratio
from dbdyno.analyse.floor import Outlook
from dbdyno.analyse.intervals import beyond, judge
from dbdyno.analyse.model import Method, Role, TrialResult, VariantResult, Verdict
from dbdyno.analyse.quantiles import blocks_least, confidence_each
from dbdyno.records.record import Outcome, PhaseRecord, Record
from dbdyno.study import Goal, Guard, Interval
from dbdyno.study.trials import Variant
from tests.fakes import make_tally

Values = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Values]
"""Log responses of so many trials one after another."""
ANY = make_tally()
without_estimates = mock.patch.object(effects, "outlook", lambda *_: Outlook())
"""How many more blocks are needed takes most of the time of a verdict, and decides nothing."""


def lognormal(random: np.random.Generator, trials: int) -> Values:
    return random.normal(0.0, 0.02, trials)


def two_states(random: np.random.Generator, trials: int) -> Values:
    """A host that is 15 % slower for some trials on end."""
    slow = np.cumsum(random.random(trials) < 0.2) % 2
    return lognormal(random, trials) / 2.0 - 0.15 * slow


def drift(random: np.random.Generator, trials: int) -> Values:
    """A host that gets 2 % faster with each trial."""
    return lognormal(random, trials) / 2.0 + 0.02 * np.arange(trials)


def stalls(random: np.random.Generator, trials: int) -> Values:
    """One trial in ten loses up to half of its speed."""
    stalled = random.random(trials) < 0.1
    return lognormal(random, trials) / 2.0 - stalled * random.uniform(0.1, 0.7, trials)


NOISES: dict[str, Noise] = {
    "lognormal": lognormal, "two states": two_states, "drift": drift, "stalls": stalls
}  # fmt: skip


Shared = Callable[[np.random.Generator, int, int], Values]
"""Log responses by block and variant, of equal variants each of which has some luck that blocks share."""


def correlated(random: np.random.Generator, blocks: int, variants: int) -> Values:
    """What favours a variant in one block favours it half as much in the next one."""
    luck = np.empty((blocks, variants))
    luck[0] = random.normal(0.0, 0.02, variants)
    for block in range(1, blocks):
        luck[block] = 0.5 * luck[block - 1] + random.normal(0.0, 0.02 * math.sqrt(0.75), variants)
    return luck


def of_runs(random: np.random.Generator, blocks: int, variants: int) -> Values:
    """A variant has some luck in all blocks of a run."""
    return random.normal(0.0, 0.01, (1, variants)) + random.normal(0.0, 0.02, (blocks, variants))


def of_images(random: np.random.Generator, blocks: int, variants: int) -> Values:
    """A variant has some luck with each of two images of the data, which pairs of blocks take in turn."""
    luck = random.normal(0.0, 0.01, (2, variants))
    image = np.arange(blocks) // 2 % 2
    own: Values = luck[image] + random.normal(0.0, 0.02, (blocks, variants))
    return own


SHARED: dict[str, Shared] = {"correlated": correlated, "of runs": of_runs, "of images": of_images}
"""Under these no interval over the blocks of one run holds what it promises."""


def equal_variants(noise: Noise, random: np.random.Generator, blocks: int, variants: int) -> Values:
    """Log responses by block and variant, of variants that are all the same."""
    orders = [random.permutation(variants) for _ in range((blocks + 1) // 2)]
    trials = noise(random, blocks * variants).reshape(blocks, variants)
    found = np.empty_like(trials)
    for block, values in enumerate(trials):
        order = orders[block // 2]
        found[block, order[::-1] if block % 2 else order] = values
    return found


@without_estimates
def false_alarms_of_images(
    random: np.random.Generator,
    images: int,
    blocks: int,
    luck: float,
    runs: int,
    interval: Interval = Interval.STUDENT,
) -> float:
    """The share of runs in which a candidate that is equal to its baseline is called different, where each of
    so many images favours it by some `luck`, in spreads of a block. Other intervals than Student's are looked
    at after every block."""
    goal = Goal(margin=0.0, interval=interval)
    method = method_of(goal, 1, interval)
    looks = [blocks] if interval is Interval.STUDENT else range(6, blocks + 1)
    alarms = 0
    for _ in range(runs):
        logs = random.normal(0.0, 0.02, (blocks, 2)) / math.sqrt(2.0)
        logs[:, 1] += random.normal(0.0, 0.02 * luck, images)[np.arange(blocks) // 2 % images]
        sides = (trials_of(logs[:look], 0.0 * logs[:look], images) for look in looks)
        alarms += any(_alarm([variant_result(two, one, goal, method, ())]) for one, two in sides)
    return alarms / runs


@without_estimates
def false_alarms_of_hosts(
    random: np.random.Generator, hosts: int, blocks: int, luck: float, runs: int
) -> int:
    """In how many runs a candidate that is equal to its baseline is called different, where each of so many
    hosts favours it by some `luck`, in spreads of a block. Each host has so many `blocks`."""
    goal = Goal(margin=0.0)
    method, alarms = method_of(goal, 1, Interval.STUDENT), 0
    for _ in range(runs):
        logs = random.normal(0.0, 0.02, (hosts * blocks, 2)) / math.sqrt(2.0)
        logs[:, 1] += random.normal(0.0, 0.02 * luck, hosts)[np.arange(len(logs)) // 2 % hosts]
        one, two = trials_of(logs, 0.0 * logs, hosts=hosts)
        alarms += _alarm([variant_result(two, one, goal, method, ())])
    return alarms


def trials_of(
    logs: Values, latencies: Values, images: int | None = None, hosts: int | None = None
) -> list[Trials]:
    """The trials of a run, the baseline first, from logs of throughput and of the p99 latency. Pairs of
    blocks took so many images of the data in turn, or went round so many hosts."""
    names = ["baseline", *(f"config.a={index}" for index in range(1, logs.shape[1]))]
    return [
        Trials(
            variant=Variant(name=name, levels={"config.a": index}),
            role=Role.CANDIDATE if index else Role.BASELINE,
            by_block={
                ("here", block): _trial(
                    name, block, logs[block, index], latencies[block, index], images, hosts
                )
                for block in range(len(logs))
            },
        )
        for index, name in enumerate(names)
    ]


def _trial(
    name: str, block: int, log: float, latency: float, images: int | None, hosts: int | None
) -> TrialResult:
    tally = make_tally(
        operations=round(1e6 * np.exp(log)),
        duration_s=10.0,
        latency_us=ANY.latency_us.but(p99=1e4 * np.exp(latency)),
    )
    record = Record(
        run="simulated", trial=block, block=block, position=0, variant=name, levels={}, host="here",
        started_unix_s=0.0, finished_unix_s=1.0, outcome=Outcome.MEASURED,
        phases=(PhaseRecord(name="load", tally=tally),),
        reset={"image": block // 2 % images} if images else {},
        fleet_host=f"host-{block // 2 % hosts}" if hosts else "",
    )  # fmt: skip
    return TrialResult(record=record, response=tally.operations)


def without(trials: Trials, blocks: Iterable[int]) -> Trials:
    """The trials as if those of some blocks had failed."""
    kept = dict(trials.by_block)
    for block in blocks:
        trial = kept["here", block]
        failed = trial.record.but(outcome=Outcome.FAILED, phases=())
        kept["here", block] = trial.but(record=failed, response=None)
    return replace(trials, by_block=kept)


@without_estimates
def lost_when_slow(random: np.random.Generator, blocks: int, share: float, failing: int) -> Verdict:
    """The verdict of a candidate that is equal to its baseline, where the trials of a `failing` side (0: the
    baseline, 1: the candidate) fail that are by chance among the slowest: so many of all, as a share."""
    goal = Goal(margin=0.002)
    own = random.normal(0.0, 0.02, (blocks, 2))
    slow = 0.02 * NormalDist().inv_cdf(share)
    logs = own + random.normal(0.0, 0.05, (blocks, 1))
    baseline, candidate = (
        without(each, np.flatnonzero(own[:, side] < slow).tolist() if side == failing else ())
        for side, each in enumerate(trials_of(logs, 0.0 * logs))
    )
    verdict = variant_result(candidate, baseline, goal, method_of(goal, 1, Interval.STUDENT), ()).verdict
    assert verdict is not None
    return verdict


Guards = tuple[Guard, ...]
GUARD = Guard(text="p99_ms <= 1.0x", metric="p99_ms", bound=1.0, relative=True)


def method_of(goal: Goal, candidates: int, interval: Interval) -> Method:
    comparisons = goal.comparisons(candidates)
    each = confidence_each(goal.confidence, comparisons)
    return Method(
        response=goal.response, higher_is_better=True, margin=goal.margin, confidence=goal.confidence,
        comparisons=comparisons, confidence_each=each, assurance=0.8, interval=interval,
        blocks_least=blocks_least(each, interval),
    )  # fmt: skip


PLAIN = Estimator(method_of(Goal(), 1, Interval.STUDENT))
"""For contrasts of blocks that have nothing in common."""


def told(
    random: np.random.Generator, true: float, spread: float, method: Method, blocks: int, runs: int
) -> Counter[Verdict]:
    """How many runs of so many blocks give which verdict, where the ratio is `true` and log ratios have this
    spread. A run that is looked at after each pair of blocks ends with the first verdict that stands."""
    looks = range(method.blocks_least, blocks + 1, 2) if method.sequential else [blocks]
    found: Counter[Verdict] = Counter()
    for _ in range(runs):
        logs = random.normal(math.log(true), spread, blocks)
        for look in looks:
            effect = estimated_ratio(
                "throughput",
                Contrasts.apart(logs[:look].tolist()),
                method.confidence_each,
                method,
                judged=True,
            )
            assert effect is not None
            verdict, _ = judge(effect, method)
            if verdict is Verdict.NO_EFFECT or (method.sequential and beyond(effect, method.margin)):
                break
        found[verdict] += 1
    return found


def _alarm(results: list[VariantResult]) -> bool:
    wrong = (Verdict.FASTER, Verdict.SLOWER, Verdict.BROKEN)
    return any(result.verdict in wrong for result in results)


@without_estimates
def of_equal(
    random: np.random.Generator, candidates: int, baselines: int, blocks: int
) -> list[VariantResult]:
    """The results of equal candidates over the mean of so many baselines."""
    goal = Goal(margin=0.02)
    method, each = method_of(goal, candidates, Interval.STUDENT), candidates + baselines
    logs = lognormal(random, blocks * each).reshape(blocks, each)
    first, *others = trials_of(logs, 0.0 * logs)
    baseline = replace(first, copies=tuple(others[: baselines - 1]))
    return [variant_result(one, baseline, goal, method, ()) for one in others[baselines - 1 :]]


def _drawn(noise: Noise | Shared, random: np.random.Generator, blocks: int, variants: int) -> Values:
    if noise in SHARED.values():
        return cast(Shared, noise)(random, blocks, variants)
    return equal_variants(cast(Noise, noise), random, blocks, variants)


@without_estimates
def false_alarm(
    noise: Noise | Shared,
    random: np.random.Generator,
    blocks: int,
    interval: Interval,
    guards: Guards = (),
    baselines: int = 1,
) -> bool:
    """Whether any of three equal candidates is called different, or breaks a guard that all keep."""
    goal = Goal(margin=0.02, guards=guards, interval=interval)
    method = method_of(goal, 3, interval)
    logs, latencies = (_drawn(noise, random, blocks, 3 + baselines) for _ in range(2))
    looks = range(6, blocks + 1) if interval is Interval.ANYTIME else [blocks]
    for look in looks:
        first, *others = trials_of(logs[:look], -latencies[:look])
        baseline = replace(first, copies=tuple(others[: baselines - 1]))
        candidates = others[baselines - 1 :]
        if _alarm([variant_result(each, baseline, goal, method, ()) for each in candidates]):
            return True
    return False
