"""The guide on fleets can be typed as it stands where Slurm is, and `dyno tune` confirms a winner there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbdyno.records.record import Outcome
from dbdyno.records.store import Store
from tests.cli.calls import dyno
from tests.cli.jobs_cases import slurm as slurm
from tests.cli.jobs_cases import study as study
from tests.fleet.machines import folders_in, wait_for
from tests.fleet.slurm_cluster import Cluster
from tests.needs import needs_root, needs_slurm
from tests.records.postgresql import PostgreSQL
from tests.warm import Process

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "fleet.md").read_text()
BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OWN = {"PARTITION": "main", "FEATURE": "big", "--hosts 4": "--hosts 3"}
"""What a reader replaces by the names of their own, and how many nodes there are."""
NOT_TYPED = {"kubernetes:": "no cluster runs here", "ssh:": "other tests have a real sshd"}


def lines_of_guide() -> Iterator[str]:
    """Each line of the guide that is typed, without what it says behind it."""
    for block in BLOCK.findall(GUIDE):
        for line in block.splitlines():
            line = line.partition("  #")[0].strip()
            if not any(word in line for word in NOT_TYPED):
                for word, own in OWN.items():
                    line = line.replace(word, own)
                yield line


def in_shell(line: str, url: str) -> str:
    """Types a line into a shell whose home is this user's, and gives the store that it then has."""
    line = line.replace("postgresql://dyno:PASSWORD@db.example/dyno", url)
    done = subprocess.run(["bash", "-ec", f'{line}\nprintf %s "$DYNO_STORE"'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.engine
@needs_root
@needs_slurm
def test_the_guide_can_be_typed_on_a_cluster(
    study: Path, slurm: Cluster, store_server: PostgreSQL, homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, workers, typed = store_server.url, list[Process](), list[str]()
    monkeypatch.setenv("HOME", str(homes))
    monkeypatch.chdir(homes)
    for line in lines_of_guide():
        typed.append(line)
        if not line.startswith("dyno"):
            if said := in_shell(line, url):
                monkeypatch.setenv("DYNO_STORE", said)
        elif line == "dyno fleet worker --name a --tag big":
            for name in ("a", "b"):
                words = line.replace("--name a", f"--name {name}").split()[1:]
                workers.append(Process(*words, env={**os.environ, **folders_in(homes / name)}))
            wait_for("both are there", lambda: dyno("fleet", "hosts").stdout.count("idle") == 2, 60.0)
        else:
            said_of = dyno(*line.split()[1:])
            assert said_of.returncode == 0, f"{line}\n{said_of.stderr}"
        if line == "dyno run study.toml --fleet tag:big":
            for one in workers:
                one.send_signal(signal.SIGINT)
                assert one.wait(60.0) == 130
    assert len(typed) == 12 and sum("slurm:" in line for line in typed) == 2
    assert (homes / ".dyno-store").stat().st_mode & 0o077 == 0
    with Store(url) as store:
        runs = [summary.run for summary in store.runs()]
    nodes = ["n1", "n2", "n3"]
    assert sorted([host.name for host in run.fleet] for run in runs) == [["a", "b"], ["a", "b"], nodes, nodes]


SEARCH = """
title  = "What helps SQLite?"
engine = "sqlite"
design = "search"
seed   = 3
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.2s"
[factors]
"config.synchronous" = ["full", "off"]
"config.cache_size"  = ["2M", "4M"]
[search]
time  = "10h"
allow = ["durability"]
[goal]
guards = ["invariants", "mean_ms <= 100x"]
"""


@pytest.mark.engine
@needs_root
@needs_slurm
def test_a_winner_is_confirmed_on_nodes(
    study: Path, slurm: Cluster, store_server: PostgreSQL, homes: Path
) -> None:
    url = store_server.url
    study.write_text(SEARCH)
    assert dyno("tune", str(study), "--quiet", "--store", url).returncode == 0
    where = ("--fleet", "slurm:main", "--hosts", "2", "--store", url, "--name", "confirmed")
    over = dyno("tune", str(study), *where)
    assert over.returncode == 0, over.stderr
    with Store(url) as store:
        run = store.run("confirmed")
        assert [host.name for host in run.fleet] == ["n1", "n2"]
        assert {one.outcome for one in store.records(run.run)} == {Outcome.MEASURED}
    assert "names no host" not in over.stderr and slurm.journals() == []
