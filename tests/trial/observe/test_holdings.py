"""What processes hold is read from the kernel: of real processes that hold a known amount."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from dbdyno.trial.observe.holdings import held, limits_of, occupied_bytes

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
