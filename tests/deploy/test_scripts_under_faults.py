"""`apply` and `undo` killed at a command, or on a disk that is full from a command on.

Each file of the host is its old or its new contents as a whole, and what was there before is never gone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from tests.deploy.faults import AFTER, BEFORE, Fault, Host, after_fault, wrong
from tests.needs import on_machine

SHELLS = [["dash"], ["bash", "--posix"], ["busybox", "sh"]]
VARIABLE = "DYNO_TEST_RECIPE_FAULTS"
STRIDE = 23
"""A test takes each command of so many, because all of them take minutes: all with VARIABLE=all."""
ALL = os.environ.get(VARIABLE) == "all"
ORDERS = (("undo",), ("apply", "undo"))
"""The scripts that may follow a fault."""
WORKERS = 2
pytestmark = pytest.mark.timeout(0 if ALL else 300)


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def shell(request: pytest.FixtureRequest) -> list[str]:
    chosen: list[str] = request.param
    if on_machine(chosen[0]) is None:
        pytest.skip(f"no shell {chosen[0]} on this machine")
    return chosen


@pytest.fixture
def hosts(shell: list[str], tmp_path: Path) -> list[Host]:
    """A host for each worker, on the disk of the tests."""
    folders = [tmp_path / str(number) for number in range(WORKERS)]
    for folder in folders:
        (folder / "disk").mkdir(parents=True)
    return [Host(folder / "disk", folder / "aside", shell) for folder in folders]


@pytest.fixture
def small_hosts(hosts: list[Host]) -> Iterator[list[Host]]:
    """Each on a small disk of its own."""
    mounted = []
    try:
        for host in hosts:
            command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(host.disk)]
            if on_machine("mount") is None or subprocess.run(command, check=False).returncode:
                pytest.skip("no small disk can be mounted here: run it as root")
            mounted.append(host)
        yield hosts
    finally:
        for host in mounted:
            subprocess.run(["umount", str(host.disk)], check=True)


def cases(host: Host, kind: str) -> Iterator[tuple[str, Fault]]:
    """Faults at commands of both scripts."""
    host.make()
    for script in ("apply", "undo"):
        said = host.run(script, counted=True)
        assert (said.returncode, said.stderr) == (0, ""), said
        assert host.commands > 40, "the commands are not counted"
        every = 1 if ALL else STRIDE
        # Another shell begins with another command.
        first = 1 + SHELLS.index(list(host.shell)) * 4 % every
        for command in range(first, host.commands + 1, every):
            yield script, Fault(kind, command, free_pages=command % 3)


def problems(hosts: list[Host], kind: str) -> list[str]:
    """What is wrong after each of the cases, which the hosts share out."""
    numbered = list(zip(cases(hosts[0], kind), count(), strict=False))

    def of_host(number: int) -> list[str]:
        mine = [case for case, at in numbered if at % len(hosts) == number]
        return [one for script, fault in mine for one in after_fault(hosts[number], script, fault, ORDERS)]

    with ThreadPoolExecutor(len(hosts)) as pool:
        found = [one for each in pool.map(of_host, range(len(hosts))) for one in each]
    print(f"{len(numbered)} faults of {kind}")
    return found


def test_the_faults_have_something_to_destroy(hosts: list[Host]) -> None:
    host = hosts[0]
    host.make()
    assert host.run("apply").returncode == 0
    assert host.files() == AFTER
    assert wrong(host) == []
    (host.root / "etc/own.cnf").write_text("")
    shutil.rmtree(host.recipe / "saved")
    assert wrong(host)[:2] == ["etc/own.cnf is neither old nor new: ''", "no copy of etc/own.cnf is left"]
    assert BEFORE["opt/shared.conf"] in AFTER["opt/shared.conf"]


def test_a_kill_at_any_command_destroys_nothing(hosts: list[Host]) -> None:
    assert problems(hosts, "kill") == []


def test_a_disk_that_is_full_from_any_command_on_destroys_nothing(small_hosts: list[Host]) -> None:
    assert problems(small_hosts, "fill") == []
