"""Callgrind on a real process: what runs within is counted, what runs outside is not."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbdyno.errors import Blocked, DynoError
from dbdyno.host.callgrind import Callgrind
from tests.needs import needs_valgrind


@contextmanager
def echoing(counter: Callgrind) -> Iterator[subprocess.Popen[str]]:
    """A small process under callgrind that gives each line back at once."""
    with subprocess.Popen(
        [*counter.wrapper, "/bin/cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        echo(child, 1)
        yield child
        assert child.stdin is not None
        child.stdin.close()


def echo(child: subprocess.Popen[str], times: int) -> None:
    assert child.stdin is not None and child.stdout is not None
    for _ in range(times):
        child.stdin.write("3\n")
        child.stdin.flush()
        assert child.stdout.readline() == "3\n"


def instructions(counter: Callgrind) -> int:
    return sum(counts[0] for dump in counter.dumps() for counts in dump.own.values())


@needs_valgrind
def test_each_count_is_of_what_happens_within(tmp_path: Path) -> None:
    counter, counts = Callgrind(tmp_path), []
    with echoing(counter) as child:
        for times in (10, 10, 20):
            echo(child, 7)
            with counter.counting(child.pid):
                echo(child, times)
            counts.append(instructions(counter))
    assert counts[1] == pytest.approx(counts[0], rel=0.005)
    assert counts[2] == pytest.approx(2 * counts[1], rel=0.1)


@needs_valgrind
def test_caches_and_branches_are_simulated_on_request(tmp_path: Path) -> None:
    counter = Callgrind(tmp_path, cache_sim=True, branch_sim=True)
    with echoing(counter) as child, counter.counting(child.pid):
        echo(child, 1)
    dump = counter.dumps()[0]
    assert {"Ir", "Dr", "D1mr", "DLmw", "Bc", "Bcm", "Bim"} <= set(dump.events)


@needs_valgrind
def test_a_process_that_is_gone_is_told(tmp_path: Path) -> None:
    counter = Callgrind(tmp_path)
    with echoing(counter) as child:
        pass
    with pytest.raises(DynoError, match="instrumentation on"), counter.counting(child.pid):
        pass


@needs_valgrind
def test_nothing_counted_is_no_count(tmp_path: Path) -> None:
    with pytest.raises(DynoError, match="counted nothing"):
        Callgrind(tmp_path).dumps()


def test_without_valgrind_it_is_blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Blocked, match="valgrind is not on this machine") as refused:
        Callgrind(tmp_path)
    assert refused.value.hint == "install it: apt install valgrind"
