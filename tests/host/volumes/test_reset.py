"""Resets on a disk that shares extents: xfs, on a loop device that stands for it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from dbdyno.host import cache, paths
from dbdyno.host.clone import clone_tree, differing_file
from dbdyno.host.journal import open_journal
from dbdyno.host.volumes import loop, mounts, volume
from dbdyno.host.volumes.volume import VolumeSpecification, make_file_system
from tests.needs import needs_root, require_file_system
from tests.trials import alone_on_host

pytestmark = needs_root
ROWS = b"row" * 1_000_000


@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_a_disk_that_shares_extents_resets_without_copying(homes: Path, kind: str) -> None:
    require_file_system(kind)
    with alone_on_host(), open_journal() as journal, ExitStack() as stack:
        home = paths.cache() / "a disk"
        journal.note("tree", path=str(home))
        home.mkdir()
        with (home / "disk.img").open("wb") as file:
            file.truncate(2 << 30)
        make_file_system(home / "disk.img", VolumeSpecification(filesystem=kind))
        disk = loop.attach(journal, home / "disk.img", "test")
        stack.callback(disk.close)
        mounts.mount(journal, kind, str(disk.path), home / "point", (), "test")
        pristine = home / "point" / "pristine"
        (pristine / "data").mkdir(parents=True)
        (pristine / "data" / "rows").write_bytes(ROWS)

        cloned = clone_tree(pristine / "data", home / "point" / "copy")
        assert cloned.way == "reflink"
        assert differing_file(pristine / "data", home / "point" / "copy") == ""

        wish = VolumeSpecification(filesystem="ext4")
        image = volume.image_of(journal, pristine, "", wish)
        # A lock that is held keeps the disk from being unmounted.
        stack.callback(cache.release)
        for trial in ("first", "second"):
            with journal.scope(), ExitStack() as attached:
                scratch = home / "point" / trial
                journal.note("tree", path=str(scratch))
                scratch.mkdir()
                placed = volume.attach(journal, image, pristine, "", wish, scratch)
                attached.callback(placed.close)
                assert placed.cloned.way == "image reflink"
                # What one trial writes, the next does not see.
                assert (placed.data / "rows").read_bytes() == ROWS
                (placed.data / "rows").write_bytes(b"changed")


def test_what_is_under_a_mount_is_told_apart_from_the_mount(homes: Path) -> None:
    with alone_on_host(), open_journal() as journal:
        point = paths.cache() / "with a space"
        journal.note("tree", path=str(point))
        mounts.mount(journal, "tmpfs", "tmpfs", point, ("size=1m", "noatime"), "test")
        found = mounts.mounted_at(point / "file")
        assert (found.filesystem, "noatime" in found.options) == ("tmpfs", True)
        assert str(point) not in Path("/proc/1/mountinfo").read_text().replace("\\040", " ")
    assert not point.exists()


def test_a_device_is_overwritten_to_the_last_hole(homes: Path) -> None:
    with alone_on_host(), open_journal() as journal:
        backing, image = paths.cache() / "disk", paths.cache() / "image"
        backing.write_bytes(b"\xff" * (2 << 20))
        with image.open("wb") as file:
            file.seek(1 << 20)
            file.write(b"data")
            file.truncate(2 << 20)
        device = loop.attach(journal, backing, "test", direct_io=False)
        try:
            volume.write_to_device(image, device.path)
            with device.path.open("rb") as written:
                assert written.read() == image.read_bytes()
        finally:
            device.close()
