"""The power of volumes: cut for real on loop devices, and on nothing that is not Dyno's."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import Blocked
from dbdyno.host import cache, paths
from dbdyno.host.journal import open_journal
from dbdyno.host.launch import read_only_host
from dbdyno.host.process import confine
from dbdyno.host.volumes import mounts, power, volume
from dbdyno.host.volumes.power import PowerSwitch, pages_in_flight, tear
from dbdyno.host.volumes.volume import Volume, VolumeSpecification
from tests.needs import needs_root, require_file_system
from tests.trials import alone_on_host

pytestmark = needs_root
PAGE_BYTES = 8192
KINDS = ["ext4", "xfs"]


@contextmanager
def a_volume(kind: str) -> Iterator[Volume]:
    """A volume with a file `rows` of ten pages, all on the device."""
    require_file_system(kind)
    with alone_on_host(), open_journal() as journal, ExitStack() as stack:
        home = paths.cache() / "power"
        journal.note("tree", path=str(home))
        (home / "pristine" / "data").mkdir(parents=True)
        (home / "pristine" / "data" / "rows").write_bytes(b"o" * PAGE_BYTES * 10)
        wish = VolumeSpecification(filesystem=kind)
        image = volume.image_of(journal, home / "pristine", "", wish)
        stack.callback(cache.release)
        with journal.scope():
            scratch = home / "scratch"
            scratch.mkdir()
            attached = volume.attach(journal, image, home / "pristine", "", wish, scratch)
            stack.callback(attached.close)
            yield attached


def write(path: Path, content: bytes, offset: int = 0, synced: bool = False) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.pwrite(descriptor, content, offset)
        if synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_in_flight(volume: Volume, *offsets: int) -> tuple[bytes, list[power.PageInFlight]]:
    """Writes pages until all are in flight at once, and returns what stands in each with them: a `sync` of
    anybody on this machine takes them to the device."""
    for letter in b"nmlkjihgfedcba":
        content = bytes([letter]) * PAGE_BYTES
        for offset in offsets:
            write(volume.data / "rows", content, offset)
        if len(found := pages_in_flight(volume, PAGE_BYTES)) == len(offsets):
            return content, found
    raise AssertionError("each time the kernel wrote a page back at once")


def cut(cut_volume: Volume) -> None:
    with PowerSwitch(cut_volume) as switch:
        switch.off()


def test_a_volume_is_off_when_the_namespace_of_a_server_that_ends_has_let_go_of_it(homes: Path) -> None:
    """Else the file system that was shut down would be mounted again, and answer nothing."""
    with a_volume("ext4") as found:
        server = subprocess.Popen(
            ["sleep", "1"], preexec_fn=confine(before_exec=read_only_host([found.data]))
        )
        cut(found)
        power.lift(found)
        power.put_on(found)
        assert (found.data / "rows").read_bytes() == b"o" * PAGE_BYTES * 10
        server.wait()


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_synced_is_there_after_a_cut_and_what_was_not_is_gone(homes: Path, kind: str) -> None:
    with a_volume(kind) as found:
        write(found.data / "synced", b"s" * PAGE_BYTES, synced=True)
        _, [page] = write_in_flight(found, 0)
        write(found.data / "unsynced", b"u" * PAGE_BYTES)
        cut(found)
        with pytest.raises(OSError, match="error"):
            write(found.data / "late", b"l", synced=True)
        power.lift(found)
        power.put_on(found)
        assert (found.data / "synced").read_bytes() == b"s" * PAGE_BYTES
        assert not (found.data / "unsynced").exists() or (found.data / "unsynced").read_bytes() == b""
        assert (found.data / "rows").read_bytes() == page.held + b"o" * PAGE_BYTES * 9
        assert found.mount == mounts.mounted_at(found.data)
        write(found.data / "after", b"a", synced=True)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_shelf_keeps_is_whole_after_a_cut(homes: Path, kind: str) -> None:
    with a_volume(kind) as found:
        shelf = cache.Shelf("builds", found.data / "builds")

        def make(making: Path) -> tuple[str, str]:
            (making / "inner").mkdir()
            (making / "inner" / "rows").write_bytes(b"r" * PAGE_BYTES * 100)
            return "rows", "here"

        shelf.once("whole", make)
        cache.release()
        cut(found)
        power.lift(found)
        power.put_on(found)
        assert shelf.holds("whole")
        assert (shelf.folder / "whole" / "inner" / "rows").read_bytes() == b"r" * PAGE_BYTES * 100
        assert json.loads((shelf.folder / "whole" / cache.ACCOUNT).read_text())["origin"] == "here"


def test_another_device_than_the_volume_s_is_never_shut_down(homes: Path, tmp_path: Path) -> None:
    with a_volume("ext4") as found:
        elsewhere = replace(found, data=tmp_path / "data")
        elsewhere.data.mkdir()
        with pytest.raises(Blocked, match="not on the volume's device"):
            PowerSwitch(elsewhere)
        write(tmp_path / "still", b"w", synced=True)


def test_what_the_host_has_mounted_is_never_shut_down(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_volume("ext4") as found:
        number = found.data.stat().st_dev
        named = f"{os.major(number)}:{os.minor(number)}"
        monkeypatch.setattr(mounts, "devices_of_host", lambda: frozenset({named}))
        with pytest.raises(Blocked, match="the host has mounted it"):
            PowerSwitch(found)
        monkeypatch.setattr(mounts, "devices_of_host", frozenset)
        monkeypatch.setattr(mounts, "is_private", lambda: False)
        with pytest.raises(Blocked, match="where others see it"):
            PowerSwitch(found)
        write(found.data / "still", b"w", synced=True)


@pytest.mark.parametrize("kind", ["raw", "tmpfs", "btrfs", "jfs"])
def test_a_volume_without_a_switch_is_refused(kind: str) -> None:
    with pytest.raises(Blocked, match=f"{kind} cannot be cut") as refused:
        power.require_switch(VolumeSpecification(filesystem=kind))
    assert "xfs" in refused.value.hint


@pytest.mark.parametrize("kind", KINDS)
def test_only_pages_that_the_device_lacks_are_in_flight(homes: Path, kind: str) -> None:
    with a_volume(kind) as found:
        assert pages_in_flight(found, PAGE_BYTES) == []
        write(found.data / "rows", b"s" * PAGE_BYTES, PAGE_BYTES, synced=True)
        assert pages_in_flight(found, PAGE_BYTES) == []
        content, [page] = write_in_flight(found, 3 * PAGE_BYTES)
        assert page.written == content != page.held
        assert page.file == found.data / "rows"
        assert pages_in_flight(found, power.SECTOR_BYTES) == [], "a sector cannot be torn"


@pytest.mark.parametrize("first", [True, False])
def test_half_of_a_torn_page_is_new(homes: Path, first: bool) -> None:
    with a_volume("ext4") as found:
        content, [torn, whole] = write_in_flight(found, 3 * PAGE_BYTES, 5 * PAGE_BYTES)
        cut(found)
        power.lift(found)
        reached = replace(whole, held=b"x" * PAGE_BYTES)
        assert tear(found, [torn, reached], [first, first]) == 1, "the other is not as it was"
        power.put_on(found)
        rows = (found.data / "rows").read_bytes()
        half = PAGE_BYTES // 2
        halves = content[:half] + torn.held[half:] if first else torn.held[:half] + content[half:]
        assert rows[3 * PAGE_BYTES : 4 * PAGE_BYTES] == halves
        assert rows[5 * PAGE_BYTES : 6 * PAGE_BYTES] == whole.held
