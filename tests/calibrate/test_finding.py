"""What pairs of slices tell: spreads, minutes, which binding is best, and which interval
suits. On a server that runs, each round has a pair of each binding."""

from __future__ import annotations

import math
import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dbdyno.analyse.intervals import ratio_of
from dbdyno.analyse.quantiles import BLOCKS_LEAST, SHORTEST_S, Spreads
from dbdyno.calibrate.finding import (
    ROUNDS_LEAST,
    STARTS_SD,
    Binding,
    BindingFinding,
    Pair,
    bindings,
    compared_bindings,
    finding,
    interval_for,
    listed,
    measured,
    minutes_to_tell,
    reason,
)
from dbdyno.calibrate.finding import best as best_of
from dbdyno.driver.job import Job
from dbdyno.driver.tally import Tally
from dbdyno.host.journal import Journal
from dbdyno.layers.setup import Running, Setup
from dbdyno.plan.budget import fitted_to_budget
from dbdyno.study import Arrangement, Interval
from tests.analyse.factory import a_study
from tests.calibrate.kept_cases import TRIAL
from tests.fakes import INSTALLATION, FakeEngine, make_tally

FREE, BOUND = Binding(), Binding(driver="1")


def best(findings: Sequence[BindingFinding]) -> BindingFinding:
    return best_of(compared_bindings(findings))


def pairs_of(logs: Sequence[float]) -> list[Pair]:
    return [
        Pair(first_per_s=1000.0 * math.exp(first), second_per_s=1000.0 * math.exp(second))
        for first, second in zip(logs[::2], logs[1::2], strict=True)
    ]


def test_a_finding_tells_the_spread_of_slices_and_of_their_pairs() -> None:
    random = np.random.default_rng(1)
    common, own = random.normal(0, 0.1, 2000), random.normal(0, 0.1, 4000)
    found = finding(FREE, pairs_of((np.repeat(common, 2) + own).tolist()), TRIAL)
    assert found.sd == pytest.approx(0.1 * math.sqrt(2), rel=0.05)
    assert found.sd_low < found.sd < found.sd_high
    assert found.pair_sd == pytest.approx(0.1 * math.sqrt(2), rel=0.05)
    assert found.autocorrelation == pytest.approx(0.5, abs=0.06)


def test_the_interval_of_a_spread_holds_the_true_one_as_often_as_promised() -> None:
    random = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        found = finding(FREE, pairs_of(random.normal(0, 0.1, 24).tolist()), TRIAL)
        held += found.sd_low <= 0.1 <= found.sd_high
    assert 0.92 <= held / 400 <= 0.98


@pytest.mark.parametrize(("difference", "pair_sd"), [(0.02, 0.1), (0.05, 0.1), (0.05, 0.03)])
def test_nine_in_ten_runs_of_so_many_minutes_tell_the_difference(difference: float, pair_sd: float) -> None:
    """Of runs that the budget's own function plans for these minutes, with starts and slices as supposed."""
    minutes = minutes_to_tell(difference, pair_sd, 0.5, TRIAL)
    assert minutes is not None
    spreads = Spreads(starts=STARTS_SD, seconds=pair_sd * math.sqrt(0.5 / 2.0))
    study = a_study().but(arrangement=Arrangement.SIDE_BY_SIDE, slice_s=0.5)
    workload = study.workload.but(warmup_s=1.0, duration_s=TRIAL.longest_s)
    # What is rounded may just not fit in.
    fit = fitted_to_budget(study.but(workload=workload), 1.03 * 60.0 * minutes, 2.5, spreads)
    variance = 2.0 * (spreads.starts**2 + spreads.seconds**2 / fit.workload.duration_s)
    assert fit.blocks >= BLOCKS_LEAST
    random, told = np.random.default_rng(3), 0
    for logs in random.normal(math.log1p(difference), math.sqrt(variance), (600, fit.blocks)):
        ratio = ratio_of("throughput", logs.tolist(), 0.95)
        told += ratio is not None and ratio.low is not None and ratio.low > 1.0
    assert told / 600 >= 0.86


def test_minutes_hold_starts_warm_up_and_six_blocks() -> None:
    least = minutes_to_tell(0.05, 0.001, 0.5, TRIAL)
    assert least is not None
    assert least * 60.0 >= 2 * BLOCKS_LEAST * (TRIAL.fixed_s + SHORTEST_S)
    longer = minutes_to_tell(0.05, 0.001, 0.5, TRIAL.but(fixed_s=7.0))
    assert longer is not None and longer > 1.5 * least


def test_what_takes_more_than_a_day_has_no_minutes() -> None:
    assert minutes_to_tell(0.01, 20.0, 1.0, TRIAL) is None


def test_a_binding_is_best_only_where_it_is_told_from_the_first() -> None:
    random, chosen = np.random.default_rng(4), 0
    for _ in range(200):
        alike = [finding(each, pairs_of(random.normal(0, 0.1, 24).tolist()), TRIAL) for each in (FREE, BOUND)]
        chosen += best(alike).arrangement == BOUND
    assert chosen <= 20
    noisy = finding(FREE, pairs_of(random.normal(0, 0.18, 24).tolist()), TRIAL)
    calm = finding(BOUND, pairs_of(random.normal(0, 0.05, 24).tolist()), TRIAL)
    assert best([noisy, calm]).arrangement == calm.arrangement


def test_a_binding_in_which_the_driver_is_the_limit_is_never_best() -> None:
    random = np.random.default_rng(5)
    noisy = finding(FREE, pairs_of(random.normal(0, 0.2, 24).tolist()), TRIAL)
    calm = [pair.but(saturated=1) for pair in pairs_of(random.normal(0, 0.01, 24).tolist())]
    assert best([noisy, finding(BOUND, calm, TRIAL)]) is noisy
    assert best([finding(FREE, calm, TRIAL), noisy]).arrangement == noisy.arrangement


def test_heavy_tails_ask_for_the_signed_rank_interval() -> None:
    random = np.random.default_rng(6)
    normal = [pairs_of(random.normal(0, spread, 60).tolist()) for spread in (0.05, 0.2)]
    assert interval_for(normal) is Interval.STUDENT
    heavy = pairs_of(stats.t.rvs(2, scale=0.05, size=200, random_state=random).tolist())
    assert interval_for([heavy]) is Interval.SIGNED_RANK
    assert interval_for([heavy[:5]]) is Interval.STUDENT


def test_the_figure_that_decided_is_told_and_it_decides() -> None:
    random = np.random.default_rng(7)

    def found(binding: Binding, spread: float) -> BindingFinding:
        return finding(binding, pairs_of(random.normal(0, spread, 24).tolist()), TRIAL)

    free, calm, alike = found(FREE, 0.18), found(BOUND, 0.05), found(BOUND, 0.17)
    first, other = compared_bindings([free, calm])
    assert first.against is None and other.against is not None
    assert other.against.ratio == pytest.approx(free.cost / calm.cost)
    assert other.against.needed == pytest.approx(stats.f.ppf(0.95, 12, 12))
    assert reason([first, other], "binding") == f"shown to be better: {other.against.words}"
    [_, unshown] = chance = compared_bindings([free, alike])
    assert unshown.against is not None and not unshown.against.shown
    told = reason(chance, "binding")
    assert told == f"no other binding is shown to be better: {unshown.against.words}"
    # A binding that was shown to be better is the first of the lengths: its own gain is none of theirs.
    lengths = compared_bindings([other, found(BOUND.but(slice_s=1.0), 0.05)])
    assert lengths[1].against is not None and lengths[1].against.arrangement == BOUND
    assert reason(lengths, "length") == f"no other length is shown to be better: {lengths[1].against.words}"


def test_a_reason_says_no_more_than_was_tested() -> None:
    random = np.random.default_rng(8)
    calm, noisy = (pairs_of(random.normal(0, spread, 24).tolist()) for spread in (0.01, 0.2))
    limited = [pair.but(saturated=1) for pair in calm]
    assert reason([finding(FREE, noisy, TRIAL)], "binding") == "no other binding was tried"
    chosen = reason(
        compared_bindings([finding(FREE, limited, TRIAL), finding(BOUND, noisy, TRIAL)]), "binding"
    )
    assert "the driver was the limit" in chosen and "not shown" in chosen
    kept = reason(compared_bindings([finding(FREE, noisy, TRIAL), finding(BOUND, limited, TRIAL)]), "binding")
    assert kept == "with every other binding the driver was the limit"


def test_of_several_that_are_shown_to_be_better_the_soonest_is_best() -> None:
    random = np.random.default_rng(9)
    noisy = finding(FREE, pairs_of(random.normal(0, 0.2, 60).tolist()), TRIAL)
    # Two pairs alone: its cost is least, and its bound is out of reach.
    lucky = finding(Binding(server="0"), pairs_of([0.0, 0.06, 0.0, 0.06]), TRIAL)
    calm = finding(BOUND, pairs_of(random.normal(0, 0.05, 60).tolist()), TRIAL)
    assert lucky.cost < calm.cost and best([noisy, lucky, calm]).arrangement == BOUND


@pytest.mark.parametrize(
    ("cpus", "bound"),
    [
        ([0], [("all", "all")]),
        ([0, 1], [("all", "all"), ("all", "1"), ("1", "1"), ("0", "1")]),
        ([0, 1, 2, 3], [("all", "all"), ("all", "3"), ("2-3", "2-3"), ("0-2", "3")]),
    ],
)
def test_server_and_driver_are_free_together_and_apart(cpus: list[int], bound: list[tuple[str, str]]) -> None:
    found = bindings(a_study(), embedded=False, cpus=cpus)
    assert [(one.server, one.driver) for one in found] == bound
    assert not found[0].settings


def test_an_embedded_engine_has_no_driver_to_bind() -> None:
    found = bindings(a_study(), embedded=True, cpus=[0, 1])
    assert [one.settings for one in found] == [{}, {"cpu.server": "0"}]


def test_a_study_that_binds_something_keeps_that() -> None:
    assert len(bindings(a_study({"cpu.quota": ["max", "50%"]}), embedded=False, cpus=[0, 1])) == 1
    fixed = a_study().but(settings={"cpu.server": "0"})
    assert len(bindings(fixed, embedded=False, cpus=[0, 1])) == 1


def test_gathering_is_tried_only_where_the_study_asks_for_it() -> None:
    study = a_study()
    asks = study.but(workload=study.workload.but(gather="on"))
    assert [one.gather for one in bindings(asks, embedded=True, cpus=[0, 1])] == [True, True, False, False]
    assert not any(one.gather for one in bindings(study, embedded=False, cpus=[0, 1]))


def test_cpus_are_listed_as_the_kernel_does() -> None:
    assert [listed(cpus) for cpus in ([3], [0, 1, 2], [0, 2])] == ["3", "0-2", "0,2"]


FIRST = min(os.sched_getaffinity(0))
SLICES_BOUND = Binding(server=str(FIRST))
SLICES_FREE = Binding()


@dataclass
class LoadThatLooks:
    """Notes the CPUs of the server in each slice; one that is `empty` ends no transaction."""

    server: subprocess.Popen[bytes]
    empty: Binding | None = None
    seen: list[set[int]] = field(default_factory=list)

    @property
    def process_id(self) -> int:
        """An embedded engine lives in the load process."""
        return self.server.pid

    def run(self, job: Job) -> Tally:
        cpus = os.sched_getaffinity(self.server.pid)
        self.seen.append(cpus)
        bound = cpus == {FIRST} and len(os.sched_getaffinity(0)) > 1
        operations = 0 if self.empty is (SLICES_BOUND if bound else SLICES_FREE) else 100
        return make_tally(operations=operations, duration_s=job.duration_s)


@pytest.fixture
def server() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def running(load: LoadThatLooks, folder: Path) -> Running:
    engine = FakeEngine(embedded=True).engine
    with (folder / "journal").open("w+") as file:
        setup = Setup(engine, INSTALLATION, folder, Journal(file.fileno(), folder), Job(workload="fake"))
    there = SimpleNamespace(process_ids=(load.server.pid,))
    return Running(setup, there, load)  # type: ignore[arg-type]


def test_each_round_has_a_pair_of_each_on_its_cpus(server: subprocess.Popen[bytes], tmp_path: Path) -> None:
    load = LoadThatLooks(server)
    found = measured(running(load, tmp_path), (SLICES_FREE, SLICES_BOUND), 0.0, random.Random(1))
    assert {each: len(pairs) for each, pairs in found.items()} == {
        SLICES_FREE: ROUNDS_LEAST,
        SLICES_BOUND: ROUNDS_LEAST,
    }
    here = os.sched_getaffinity(0)
    for index in range(0, len(load.seen), 4):
        pairs = load.seen[index : index + 4 : 2], load.seen[index + 1 : index + 4 : 2]
        assert pairs[0] == pairs[1], "both slices of a pair run on the same CPUs"
        assert sorted(map(len, pairs[0])) == sorted([1, len(here)])


def test_a_binding_with_an_empty_slice_is_left_out(server: subprocess.Popen[bytes], tmp_path: Path) -> None:
    load = LoadThatLooks(server, empty=SLICES_FREE)
    short = Binding(server=str(FIRST), slice_s=0.25)
    found = measured(running(load, tmp_path), (SLICES_FREE, short), 0.0, random.Random(1))
    if len(os.sched_getaffinity(0)) > 1:
        assert list(found) == [short]
    assert SLICES_FREE not in found
