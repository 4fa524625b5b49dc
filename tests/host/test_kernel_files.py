"""Each way to read what the kernel tells, with files that are hidden, gone or not for this user."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import psutil
import pytest

from dbdyno.host import kernel_files
from dbdyno.host.kernel_files import Gone, UnreadableFile

NOBODY = 2**22 + 1
"""More than the kernel ever numbers a process (proc_sys_kernel(5), pid_max)."""


def test_what_is_there_is_read_without_the_blanks_around_it() -> None:
    assert kernel_files.text("/proc/self/comm") == Path("/proc/self/comm").read_text()[:-1]
    assert str(os.getpid()) in kernel_files.names("/proc/self/task")
    assert kernel_files.link("/proc/self/exe") == str(Path("/proc/self/exe").readlink())


def test_what_is_gone_is_told_from_what_is_hidden() -> None:
    for read in (kernel_files.text, kernel_files.names, kernel_files.link):
        with pytest.raises(Gone, match=f"there is no /proc/{NOBODY}/stat"):
            read(f"/proc/{NOBODY}/stat")
    with pytest.raises(UnreadableFile, match="/proc/self cannot be read: Is a directory") as hidden:
        kernel_files.text("/proc/self")
    assert not isinstance(hidden.value, Gone)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ESRCH, errno.ENODEV, errno.ENXIO])
def test_what_goes_while_it_is_read_is_gone(number: int) -> None:
    assert isinstance(kernel_files.refused("/sys/block/loop0", OSError(number, os.strerror(number))), Gone)


def test_an_empty_file_hides_what_is_never_empty(tmp_path: Path) -> None:
    masked = tmp_path / "boot_id"
    masked.touch()
    with pytest.raises(UnreadableFile, match="boot_id is empty"):
        kernel_files.text(masked)
    assert kernel_files.text(masked, may_be_empty=True) == ""
    assert kernel_files.text_or_none(masked) is None


def test_psutil_that_finds_no_line_says_which_file() -> None:
    def read() -> int:
        found: dict[str, int] = {}
        return found["MemTotal:"]

    with pytest.raises(UnreadableFile, match="/proc/meminfo does not hold"):
        kernel_files.by_psutil(read, "/proc/meminfo")
    assert kernel_files.by_psutil(psutil.virtual_memory, "/proc/meminfo").total > 0


def test_a_limit_of_this_process_is_no_sandbox() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            kernel_files.text("/proc/stat")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_letters_that_cannot_be_stored_are_replaced(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.write_bytes(b"disk \xff\n")
    assert kernel_files.text(model) == os.fsdecode(b"disk \xff")
    assert kernel_files.text_or_none(model) == "disk \N{REPLACEMENT CHARACTER}"
