"""Runs over a fleet, whose hosts favour variants in their own ways. For tests only: nothing was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dbdyno.records.record import Record
from dbdyno.records.run import ComparisonRun, FleetHost
from dbdyno.study import Goal, Study
from tests.analyse.factory import a_study, records_of

FLEET = ("amber", "birch", "cedar")
FACTORS = {"config.page_cache": ["2k", "64k", "256k"]}
AT_64K, AT_256K = "config.page_cache=64k", "config.page_cache=256k"


def study_of(hosts: Sequence[str], blocks: int = 8, goal: Goal | None = None) -> Study:
    """Of so many blocks on each host."""
    return a_study(
        FACTORS, blocks=blocks * len(hosts), title="Does a larger cache help everywhere?", goal=goal
    )


def on_fleet(
    study: Study, ratios: Mapping[str, Sequence[float]], hosts: Sequence[str] = FLEET, seed: int = 1
) -> list[Record]:
    """A run's records whose pairs of blocks the hosts took in turn. `ratios` has the true ratio of a variant
    on each host."""
    found = []
    for record in records_of(study, seed=seed):
        number = record.block // 2 % len(hosts)
        true = ratios.get(record.variant, (1.0,) * len(hosts))[number]
        found.append(faster(record, true).but(fleet_host=hosts[number], host=f"fingerprint {hosts[number]}"))
    return found


def on_hosts(run: ComparisonRun, hosts: Sequence[str]) -> ComparisonRun:
    """The run on these hosts, of which the last one was taken out."""
    fleet = (
        FleetHost(
            name=name, host=run.host.but(name=name), installation=run.installation, left_out=name == hosts[-1]
        )
        for name in hosts
    )
    return run.but(fleet=tuple(fleet))


def drawn(hosts: int, between_sd: float, seed: int) -> list[float]:
    """True ratios of one variant, by host, about 1."""
    found: list[float] = np.exp(np.random.default_rng(seed).normal(0.0, between_sd, hosts)).tolist()
    return found


def faster(record: Record, ratio: float) -> Record:
    """The same trial with so many times the operations."""
    tally = record.tally
    assert tally is not None
    operations = round(tally.operations * ratio)
    more = tally.but(operations=operations, throughput_per_s=operations / tally.duration_s)
    [phase] = record.phases
    return record.but(phases=(phase.but(tally=more),))
