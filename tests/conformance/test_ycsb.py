"""YCSB's core workloads load, run and keep their rows on every engine."""

from __future__ import annotations

import json

from tests.conformance.commands import loads
from tests.conformance.conftest import Bench

SIZE = ("--record-count", "300", "--field-length", "20")
SHORT = ("--warmup", "0", "--time", "120", "--operations", "60", "--clients", "2", "--json")


def test_each_of_ycsbs_workloads_runs_and_keeps_its_rows(bench: Bench) -> None:
    bench.initialise()
    server = bench.start()
    # What one run inserts, the next one reads, and neither inserts a key twice.
    first, last = [f"ycsb_{letter}" for letter in "abcf"], [f"ycsb_{letter}" for letter in "dedd"]
    _, *of_first, checked, _ = loads(
        server,
        ("prepare", "ycsb_a", *SIZE),
        *(("run", workload, *SIZE, *SHORT) for workload in first),
        ("check", "ycsb_f", *SIZE, "--json"),
        ("cleanup", "ycsb_f", *SIZE),
    )
    assert [(one["name"], one["holds"]) for one in json.loads(checked)] == [("rows_complete", True)]
    _, *of_last, _ = loads(
        server,
        ("prepare", "ycsb_d", *SIZE),
        *(("run", workload, *SIZE, *SHORT) for workload in last),
        ("cleanup", "ycsb_d", *SIZE),
    )
    for workload, said in zip([*first, *last], [*of_first, *of_last], strict=True):
        tally = json.loads(said)
        assert (tally["operations"], tally["errors"]) == (60, {}), workload
