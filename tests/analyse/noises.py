"""Runs in which no variant differs, on hosts that are noisy in several ways. For tests and benches only.

Responses are logs, by block and variant. The order of a block is drawn, and mirrored in every second block.
Noise goes on from trial to trial in that order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.blocks import Trials
from dbdyno.analyse.model import Role, TrialResult
from dbdyno.records.record import Outcome, PhaseRecord, Record
from dbdyno.study.trials import Variant

Values = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Values]
"""Log responses of so many trials one after another."""


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


def equal_variants(noise: Noise, random: np.random.Generator, blocks: int, variants: int) -> Values:
    """Log responses by block and variant, of variants that are all the same."""
    orders = [random.permutation(variants) for _ in range((blocks + 1) // 2)]
    trials = noise(random, blocks * variants).reshape(blocks, variants)
    found = np.empty_like(trials)
    for block, values in enumerate(trials):
        order = orders[block // 2]
        found[block, order[::-1] if block % 2 else order] = values
    return found


def trials_of(logs: Values, latencies: Values) -> list[Trials]:
    """The trials of a run, the baseline first, from logs of throughput and of the p99 latency."""
    names = ["baseline", *(f"config.a={index}" for index in range(1, logs.shape[1]))]
    return [
        Trials(
            variant=Variant(name=name, levels={"config.a": index}),
            role=Role.CANDIDATE if index else Role.BASELINE,
            by_block={
                ("here", block): _trial(name, block, logs[block, index], latencies[block, index])
                for block in range(len(logs))
            },
        )
        for index, name in enumerate(names)
    ]


def _trial(name: str, block: int, log: float, latency: float) -> TrialResult:
    tally = {
        "operations": 1e6 * np.exp(log),
        "duration_s": 10.0,
        "latency_us": {"p99": 1e4 * np.exp(latency)},
    }
    record = Record(
        run="simulated", trial=block, block=block, position=0, variant=name, levels={}, host="here",
        started_unix_s=0.0, finished_unix_s=1.0, outcome=Outcome.MEASURED,
        phases=(PhaseRecord(name="load", tally=tally),),
    )  # fmt: skip
    return TrialResult(record=record, response=tally["operations"])
