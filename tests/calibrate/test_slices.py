"""Slices on a server that runs: each round has a pair of each binding, on the CPUs that it says."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbdyno.calibrate.finding import ROUNDS_LEAST, Binding, measured
from dbdyno.driver.job import Job
from dbdyno.driver.tally import Tally
from dbdyno.host.journal import Journal
from dbdyno.layers.setup import Running, Setup
from tests.fakes import INSTALLATION, FakeEngine, make_tally

FIRST = min(os.sched_getaffinity(0))
BOUND = Binding(server=str(FIRST))
FREE = Binding()


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
        operations = 0 if self.empty is (BOUND if bound else FREE) else 100
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
    found = measured(running(load, tmp_path), (FREE, BOUND), 0.0, random.Random(1))
    assert {each: len(pairs) for each, pairs in found.items()} == {FREE: ROUNDS_LEAST, BOUND: ROUNDS_LEAST}
    here = os.sched_getaffinity(0)
    for index in range(0, len(load.seen), 4):
        pairs = load.seen[index : index + 4 : 2], load.seen[index + 1 : index + 4 : 2]
        assert pairs[0] == pairs[1], "both slices of a pair run on the same CPUs"
        assert sorted(map(len, pairs[0])) == sorted([1, len(here)])


def test_a_binding_with_an_empty_slice_is_left_out(server: subprocess.Popen[bytes], tmp_path: Path) -> None:
    load = LoadThatLooks(server, empty=FREE)
    short = Binding(server=str(FIRST), slice_s=0.25)
    found = measured(running(load, tmp_path), (FREE, short), 0.0, random.Random(1))
    if len(os.sched_getaffinity(0)) > 1:
        assert list(found) == [short]
    assert FREE not in found
