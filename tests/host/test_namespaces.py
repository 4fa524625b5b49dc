"""A maker of file systems that is told to write elsewhere cannot."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dbdyno.errors import Blocked
from dbdyno.host.journal import open_journal
from dbdyno.host.namespaces import BRIDGE, HARMLESS, SEEN, NetworkSegment, seclude
from dbdyno.host.volumes import loop, volume
from dbdyno.host.volumes.loop import path_with_sbin
from dbdyno.host.volumes.volume import MKFS, VolumeSpecification, make_file_system
from tests.needs import needs_root, require_file_system, skipping_blocked
from tests.trials import alone_on_host

pytestmark = needs_root
SIZE_BYTES = 400 << 20


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return sparse(tmp_path / "image")


def sparse(path: Path) -> Path:
    with path.open("wb") as file:
        file.truncate(SIZE_BYTES)
    return path


@contextmanager
def a_maker_that_takes(monkeypatch: pytest.MonkeyPatch, *options: str) -> Iterator[None]:
    """The options as if nobody had looked at them, so that the namespace alone is in the way."""
    known: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
        name: (program, package, (*own, *options)) for name, (program, package, own) in MKFS.items()
    }
    with monkeypatch.context() as patched:
        patched.setattr(volume, "MKFS", known)
        yield


@pytest.mark.parametrize("kind", list(MKFS))
def test_every_maker_makes_its_file_system(image: Path, kind: str) -> None:
    require_file_system(kind)
    make_file_system(image, VolumeSpecification(filesystem=kind))
    probed = subprocess.run(
        ["blkid", "--probe", "--output", "value", "--match-tag", "TYPE", str(image)],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path_with_sbin()},
        check=True,
    )
    assert probed.stdout.strip() == kind


@pytest.mark.parametrize("words", [("-E", "stride=4"), ("-Estride=4",), ("-m", "0", "-E", "stride=4")])
def test_extended_options_of_a_study_join_dynos_own(image: Path, words: tuple[str, ...]) -> None:
    """Dyno's own have the tables of inodes written before anything is measured."""
    require_file_system("ext4")
    make_file_system(image, VolumeSpecification(filesystem="ext4"))
    blocks = image.stat().st_blocks
    size_bytes = image.stat().st_size
    image.write_bytes(b"")
    os.truncate(image, size_bytes)
    make_file_system(image, VolumeSpecification(filesystem="ext4", mkfs=words))
    assert image.stat().st_blocks >= 0.9 * blocks
    told = subprocess.run(["dumpe2fs", "-h", image], env={"PATH": path_with_sbin()}, capture_output=True)
    assert b"RAID stride:              4" in told.stdout


def test_a_study_names_no_other_file(image: Path, tmp_path: Path) -> None:
    require_file_system("btrfs")
    victim = sparse(tmp_path / "victim.img")
    with pytest.raises(Blocked, match=r"victim\.img.*belongs to no option"):
        make_file_system(image, VolumeSpecification(filesystem="btrfs", mkfs=(str(victim),)))
    assert victim.stat().st_blocks == 0


def test_a_maker_that_is_given_another_file_cannot_write_to_it(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_file_system("btrfs")
    victim = sparse(tmp_path / "victim.img")
    with a_maker_that_takes(monkeypatch, str(victim)), pytest.raises(Blocked, match="failed"):
        make_file_system(image, VolumeSpecification(filesystem="btrfs"))
    assert victim.stat().st_blocks == 0


def test_a_maker_that_is_given_a_device_cannot_find_it(
    homes: Path, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_file_system("btrfs")
    victim = sparse(tmp_path / "victim.img")
    with alone_on_host(), open_journal() as journal:
        attached = loop.attach(journal, victim, "test")
        try:
            with a_maker_that_takes(monkeypatch, str(attached.path)), pytest.raises(Blocked, match="failed"):
                make_file_system(image, VolumeSpecification(filesystem="btrfs"))
        finally:
            attached.close()
    assert victim.stat().st_blocks == 0


def test_the_program_sees_its_file_and_nothing_else_that_it_may_write(image: Path, tmp_path: Path) -> None:
    script = f"ls /dev; touch {tmp_path}/other 2>&1; echo held > {SEEN}; echo > /dev/null"
    shown = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, preexec_fn=seclude(image), check=True
    )
    *seen, refused = shown.stdout.splitlines()
    assert set(seen) == {SEEN.name, *HARMLESS}
    assert "Read-only file system" in refused
    assert image.read_bytes()[:4] == b"held"
    assert not (tmp_path / "other").exists()


LISTENS = "import socket, sys; s = socket.create_server((sys.argv[1], 7000)); print(flush=True); s.accept()"
CONNECTS = "import socket, sys; socket.create_connection((sys.argv[1], 7000), timeout=1)"


def names() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


@contextmanager
def listening(segment: NetworkSegment, node: int) -> Iterator[str]:
    [enter] = segment.entering(node)
    address = segment.address(node)
    command = [sys.executable, "-c", LISTENS, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=enter) as server:
        assert server.stdout is not None and server.stdout.readline() == b"\n"
        yield address
        server.kill()


def reached(segment: NetworkSegment, node: int, address: str) -> bool:
    [enter] = segment.entering(node)
    command = [sys.executable, "-c", CONNECTS, address]
    return subprocess.run(command, stderr=subprocess.DEVNULL, preexec_fn=enter, check=False).returncode == 0


@needs_root
def test_nodes_reach_each_other_but_for_one_that_is_cut_off() -> None:
    with skipping_blocked(), closing(NetworkSegment(2)) as segment:
        with listening(segment, 1) as address:
            segment.cut(2)
            assert not reached(segment, 2, address)
            segment.mend(2)
            assert reached(segment, 2, address)
        # Others may make networks beside this test, of other names.
        assert not names() & {BRIDGE, "node1", "node2"}, "the host has none of it"
        held = list(Path("/proc/self/fd").iterdir())
    assert len(list(Path("/proc/self/fd").iterdir())) < len(held), "the kernel takes it back"
