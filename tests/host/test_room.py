"""Room that is not there is said, in figures, before anything is written."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

import psutil
import pytest

from dbdyno.errors import Blocked, DynoError, UserError
from dbdyno.host.clone import sync_file_system
from dbdyno.host.room import disk_written_bytes, require_descriptors, require_disk, require_memory
from tests.needs import require_counted_disk


def test_a_disk_that_is_too_small_is_named_with_both_figures(tmp_path: Path) -> None:
    free_bytes = shutil.disk_usage(tmp_path).free
    require_disk(tmp_path, free_bytes // 2, "a trial")
    with pytest.raises(DynoError) as refused:
        require_disk(tmp_path, free_bytes * 4, "a trial")
    assert refused.value.message.startswith(f"{tmp_path} has ")
    assert " MiB free, a trial needs " in refused.value.message
    assert "XDG_CACHE_HOME" in refused.value.hint


def test_what_is_short_by_a_byte_does_not_look_as_if_it_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=5 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    require_disk(tmp_path, 5 << 20, "a trial")
    with pytest.raises(DynoError, match="has 5 MiB free, a trial needs 6 MiB"):
        require_disk(tmp_path, (5 << 20) + 1, "a trial")


def test_a_disk_counts_what_is_written_to_it_and_memory_is_none(tmp_path: Path) -> None:
    assert disk_written_bytes(Path("/proc")) is None
    require_counted_disk(tmp_path)
    sync_file_system(tmp_path)
    before = disk_written_bytes(tmp_path)
    (tmp_path / "file").write_bytes(os.urandom(1 << 20))
    sync_file_system(tmp_path)
    after = disk_written_bytes(tmp_path)
    assert before is not None and after is not None and after - before >= 1 << 20


def test_memory_that_is_not_there_blocks_the_factor() -> None:
    require_memory(1 << 20, "a RAM disk", "storage.device", "less data")
    with pytest.raises(Blocked) as blocked:
        require_memory(psutil.virtual_memory().total * 2, "a RAM disk", "storage.device", "less data")
    assert (blocked.value.factor, blocked.value.hint) == ("storage.device", "less data")
    assert " MiB of memory are available" in blocked.value.message


def test_descriptors_are_raised_as_far_as_this_user_may() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        require_descriptors(60, "60 clients")
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 64
        require_descriptors(128, "128 clients")
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (128, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_descriptors_that_nobody_grants_are_told_with_both_figures() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        pytest.skip("this user may open as many files as there are")
    with pytest.raises(
        UserError, match=f"{hard + 1:,} open files are needed for .*, and this user may have {hard:,}"
    ) as no:
        require_descriptors(hard + 1, "a storm")
    assert "ulimit -Hn" in no.value.hint
