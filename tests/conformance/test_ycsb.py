"""YCSB's core workloads load, run and keep their rows on every engine."""

from __future__ import annotations

import json
import os
import subprocess

from dbdyno.engines.engine import Server
from tests.conformance.conftest import Bench
from tests.conftest import DYNO

SIZE = ("--record-count", "300", "--field-length", "20")
SHORT = ("--warmup", "0", "--time", "120", "--operations", "60", "--clients", "2", "--json")


def test_each_of_ycsbs_workloads_runs_and_keeps_its_rows(bench: Bench) -> None:
    bench.initialise()
    server = bench.start()
    load("prepare", "ycsb_a", server)
    for letter in "abcf":
        _run(f"ycsb_{letter}", server)
    checked = json.loads(load("check", "ycsb_f", server, "--json"))
    assert [(one["name"], one["holds"]) for one in checked] == [("rows_complete", True)]
    # What one run inserts, the next one reads, and neither inserts a key twice.
    for letter in "dedd":
        _run(f"ycsb_{letter}", server)
    load("cleanup", "ycsb_d", server)


def load(verb: str, workload: str, server: Server, *options: str) -> str:
    command = [*DYNO, "load", verb, workload, "--url", server.url, *SIZE, *options]
    environment = {**os.environ, **server.driver_environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{verb} {workload}: {done.stderr}"
    return done.stdout


def _run(workload: str, server: Server) -> None:
    tally = json.loads(load("run", workload, server, *SHORT))
    assert (tally["operations"], tally["errors"]) == (60, {}), workload
