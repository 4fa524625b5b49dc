"""The watch reads while a phase goes on, whatever fails meanwhile, and says when the disk was the fault."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from dbdyno.errors import DriverFailed, DynoError, ServerFailed
from dbdyno.host import process
from dbdyno.layers.setup import Running, Setup
from dbdyno.study.trials import Phase
from dbdyno.trial.observe import watch as watching
from dbdyno.trial.observe.watch import ProcessCounters, Watch, held, limits_of, occupied_bytes

# The child says itself that it is up: before that it may hold nothing.
FAMILY = """
import subprocess, time
subprocess.Popen(["sh", "-c", "echo up; read line"], stdin=subprocess.PIPE)
time.sleep(600)
"""
PHASE = Phase(name="sustained", duration_s=1.0, watched=True)


class Asked:
    """An engine that counts how often it was asked, and answers as it is told to."""

    def __init__(self, answer: Callable[[], dict[str, float]]) -> None:
        self.answer = answer
        self.often = threading.Semaphore(0)

    def held(self, _ask: object) -> dict[str, float]:
        self.often.release()
        return self.answer()

    def wait(self, times: int) -> None:
        """Until it was asked so often."""
        for _ in range(times):
            assert self.often.acquire(timeout=60)


def watch_of(data: Path, asked: Asked, process_ids: tuple[int, ...] = (os.getpid(),)) -> Watch:
    engine = SimpleNamespace(counters=asked, embedded=False)
    setup = cast(Setup, SimpleNamespace(engine=engine, data=data, nodes=None))
    server = SimpleNamespace(url="", process_ids=process_ids)
    return Watch(Running(setup, cast(Any, server), cast(Any, None)), PHASE)


def test_gauges_of_kernel_disk_and_engine_are_read_side_by_side(tmp_path: Path) -> None:
    asked = Asked(lambda: {"heap_bytes": 7.0})
    watch = watch_of(tmp_path, asked)
    with watch.looking():
        asked.wait(4)
    found = watch.watched()
    assert len(found.seconds) >= 4
    assert list(found.seconds) == sorted(found.seconds)
    # Whether a test's own process shares memory is its own affair.
    assert found.series.keys() - {"shared_bytes"} == {
        "resident_bytes", "private_bytes", "open_files", "threads", "disk_bytes", "heap_bytes",
    }  # fmt: skip
    assert {len(values) for values in found.series.values()} == {len(found.seconds)}
    assert set(found.series["heap_bytes"]) == {7.0}
    assert found.limits["private_bytes"].most > 0 and found.missing == {}


def test_a_server_of_several_processes_holds_what_they_hold_and_no_more(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        members = process.family(server.pid)
        with process.standing_still(members) as still:
            assert still
            each = [held([member])[0] for member in members]
            resident_bytes = ProcessCounters(members).read()[0]["resident_bytes"]
            # A server of forks names all of its processes, parents first.
            watch = watch_of(tmp_path, Asked(dict), members)
            with watch.looking():
                pass
        process.kill_family(server)
    found = watch.watched()
    assert len(members) == 2
    for gauge in ("private_bytes", "threads", "open_files"):
        assert found.series[gauge][0] == sum(one[gauge] for one in each)
    # Both hold the interpreter and its libraries, which count once.
    private_bytes = sum(one["private_bytes"] for one in each)
    assert private_bytes < resident_bytes < sum(one["resident_bytes"] for one in each)
    assert found.series["resident_bytes"][0] == resident_bytes, "a soak counts as every trial does"


def test_an_engine_that_does_not_answer_leaves_a_gap_and_a_reason(tmp_path: Path) -> None:
    answers = iter([{"heap_bytes": 1.0}])

    def once() -> dict[str, float]:
        try:
            return next(answers)
        except StopIteration:
            raise DriverFailed("too many connections") from None

    asked = Asked(once)
    watch = watch_of(tmp_path, asked)
    with watch.looking():
        asked.wait(3)
    found = watch.watched()
    assert found.series["heap_bytes"][0] == 1.0 and found.series["heap_bytes"][-1] is None
    assert "heap_bytes" not in found.missing
    assert found.missing["undo"] == "the server did not answer: too many connections"


def test_a_full_disk_is_named_in_the_place_of_what_it_led_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(dict)
    watch = watch_of(tmp_path, asked)
    with (
        pytest.raises(DynoError, match="the disk that holds the data was full after") as told,
        watch.looking(),
    ):
        monkeypatch.setattr(watching, "usable_disk_bytes", lambda folder: 1 << 20)
        raise ServerFailed("the server died under the load")
    assert "the load ended with: the server died under the load" in told.value.message
    assert not isinstance(told.value, ServerFailed), "the disk is nobody's fault of the server's"


def test_another_failure_passes_as_it_is(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, Asked(dict))
    with pytest.raises(ServerFailed, match=r"^died$"), watch.looking():
        raise ServerFailed("died")
    assert watch.watched().seconds != ()


HOLD = """
import sys
ready = sys.stdin.readline
print("up", flush=True)
ready()
memory = bytearray(b"x" * {size})
files = [open("/dev/null") for _ in range({files})]
print("held", flush=True)
ready()
"""
SIZE, FILES = 32 << 20, 20


@contextmanager
def holding() -> Iterator[tuple[int, dict[str, float]]]:
    """A process, once it holds the memory and the files; and what it held before."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD.format(size=SIZE, files=FILES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == "up\n"
        before, missing = held([child.pid])
        assert missing == {}
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "held\n"
        yield child.pid, before
        child.kill()


def test_memory_and_descriptors_that_a_process_takes_are_seen() -> None:
    with holding() as (process_id, before):
        after, _ = held([process_id])
    assert after["open_files"] - before["open_files"] == FILES
    assert SIZE <= after["private_bytes"] - before["private_bytes"] < 2 * SIZE
    assert after["resident_bytes"] >= after["private_bytes"]
    assert after["threads"] == 1


def test_several_processes_count_together_and_one_that_is_gone_does_not() -> None:
    with holding() as (process_id, _):
        alone, _ = held([process_id])
        mine, _ = held([os.getpid()])
        both, _ = held([process_id, os.getpid()])
        assert both["open_files"] >= alone["open_files"] + mine["open_files"] - 1
    gone, missing = held([process_id])
    assert set(gone.values()) == {0.0} and missing == {}


def test_memory_that_processes_share_is_told_apart() -> None:
    before, _ = held([os.getpid()])
    with mmap.mmap(-1, SIZE) as shared:
        shared.write(bytes(SIZE))
        after, _ = held([os.getpid()])
    # The kernel counts pages by the batch.
    assert after["shared_bytes"] - before.get("shared_bytes", 0.0) > 0.9 * SIZE
    assert after["private_bytes"] - before["private_bytes"] < 0.9 * SIZE


def test_files_occupy_blocks_however_long_they_seem(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "whole").write_bytes(os.urandom(1 << 20))
    with (tmp_path / "hole").open("wb") as hole:
        hole.truncate(1 << 30)
    assert 1 << 20 <= occupied_bytes(tmp_path) < 2 << 20
    assert occupied_bytes(tmp_path / "nothing") == 0.0


def test_limits_name_who_sets_them(tmp_path: Path) -> None:
    limits = limits_of([os.getpid()], tmp_path)
    assert limits["private_bytes"].most <= psutil.virtual_memory().total
    assert limits["open_files"].source == f"Max open files of /proc/{os.getpid()}/limits"
    assert limits["disk_bytes"].most > 0
    assert "open_files" not in limits_of([os.getpid(), os.getpid()], tmp_path)
    assert "disk_bytes" not in limits_of([os.getpid()], tmp_path / "raw")
