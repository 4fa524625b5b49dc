"""Archives of others."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from dbdyno.obtain.tarball import harmless, lead_inside, unpack


def member(name: str, kind: bytes = tarfile.REGTYPE, linkname: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname = kind, linkname
    found.size = 1 if kind == tarfile.REGTYPE else 0
    return found


def unpacked(target: Path, *members: tarfile.TarInfo, without: tuple[str, ...] = ()) -> Path:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for one in members:
            archive.addfile(one, io.BytesIO(b"x" * one.size))
    packed.seek(0)
    target.mkdir()
    with tarfile.open(fileobj=packed) as archive:
        unpack(archive, target, without)
    return target


def archive_of(*members: tarfile.TarInfo) -> tarfile.TarFile:
    """What says of itself that it holds these, without their bytes."""
    archive = tarfile.TarFile(fileobj=io.BytesIO(), mode="w")
    archive.members = list(members)  # type: ignore[attr-defined]
    archive._loaded = True  # type: ignore[attr-defined]
    return archive


@pytest.mark.parametrize(
    "members",
    [
        (member("../outside"),),
        (member("link", tarfile.SYMTYPE, ".."), member("link/outside")),
        (member("link", tarfile.LNKTYPE, "../outside"), member("link")),
        (
            member("link", tarfile.SYMTYPE, ".."),
            member("hard", tarfile.LNKTYPE, "link/outside"),
            member("hard"),
        ),
    ],
    ids=["name", "symbolic-link", "hard-link", "hard-link-through-symbolic-link"],
)
def test_nothing_is_written_outside(tmp_path: Path, members: tuple[tarfile.TarInfo, ...]) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    with pytest.raises(tarfile.TarError, match="outside of"):
        unpacked(tmp_path / "target", *members)
    assert outside.read_text() == "untouched"


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_a_device_is_refused(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(tarfile.TarError, match="null is a device or a pipe"):
        unpacked(tmp_path / "target", member("null", kind))
    assert not (tmp_path / "target" / "null").exists()


def test_what_has_no_room_on_the_disk_is_refused_before_it_is_written(tmp_path: Path) -> None:
    free_bytes = shutil.disk_usage(tmp_path).free
    halves = [member("one"), member("two")]
    for each in halves:
        # The first holds nothing on the disk, as a file with holes does.
        each.size = free_bytes * 2 // 3
    with pytest.raises(tarfile.TarError, match="has no room for two"):
        list(harmless(archive_of(*halves), tmp_path))


def test_what_is_unpacked_can_be_removed_again(tmp_path: Path) -> None:
    closed = member("folder", tarfile.DIRTYPE)
    closed.mode = 0
    inside = member("folder/file")
    inside.mode = 0
    target = unpacked(tmp_path / "target", closed, inside)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (target / "folder", target / "folder/file")}
    assert modes == {"folder": 0o700, "file": 0o600}


def test_links_that_stay_inside_are_unpacked(tmp_path: Path) -> None:
    hard = member("bin/other", tarfile.LNKTYPE, "/bin/program")
    target = unpacked(tmp_path / "target", member("/bin/program"), hard)
    assert (target / "bin" / "other").samefile(target / "bin" / "program")


def test_a_link_of_debian_that_leads_away_stays_as_it_is(tmp_path: Path) -> None:
    target = unpacked(tmp_path / "target", member("program", tarfile.SYMTYPE, "/etc/alternatives/program"))
    assert str((target / "program").readlink()) == "/etc/alternatives/program"


def test_what_is_unpacked_belongs_to_who_unpacks_it(tmp_path: Path) -> None:
    foreign = [member("file"), member("folder", tarfile.DIRTYPE), member("link", tarfile.SYMTYPE, "file")]
    for one in foreign:
        one.uid, one.gid, one.uname, one.gname = 4242, 4242, "nobody", "nogroup"
    target = unpacked(tmp_path / "target", *foreign)
    owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in target.iterdir()}
    assert owners == {(os.geteuid(), os.getegid())}


def test_folders_that_nobody_needs_are_left_out(tmp_path: Path) -> None:
    kept, left = member("./lib/modules-load"), member("./lib/modules/6.1/net.ko")
    target = unpacked(tmp_path / "target", kept, left, without=("lib/modules",))
    assert (target / "lib/modules-load").is_file()
    assert not (target / "lib/modules").exists()


def test_absolute_links_of_a_root_lead_to_its_own_files(tmp_path: Path) -> None:
    library = tmp_path / "lib" / "libtoy.so.1"
    library.parent.mkdir()
    library.write_text("toy")
    links = tmp_path / "usr" / "lib"
    links.mkdir(parents=True)
    (links / "libtoy.so").symlink_to("/lib/libtoy.so.1")
    (links / "libother.so").symlink_to("libtoy.so")
    lead_inside(tmp_path)
    assert (links / "libtoy.so").read_text() == "toy" == (links / "libother.so").read_text()
    assert (links / "libtoy.so").resolve() == library
