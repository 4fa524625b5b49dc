"""A process that sees the host read-only writes to its own folders, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dbdyno.host import process
from dbdyno.host.launch import SHARED_MEMORY, SHORT_LIVED, Launch, read_only_host, servers_text, why_writable
from dbdyno.host.process import confine
from tests.needs import IS_ROOT, needs_root
from tests.trials import alone_on_host

ROOT = Path(__file__).parents[2]
WRITE = "import os, sys; [os.open(path, os.O_WRONLY | os.O_CREAT) for path in sys.argv[1:]]"
NOBODY = 65534


def confined() -> bool:
    return why_writable() == ""


needs_confinement = pytest.mark.skipif(
    not confined(), reason=f"this host refuses a read-only view: {why_writable()}"
)


def write_to(*paths: Path, own: Sequence[Path], before: Callable[[], None] = lambda: None) -> str:
    """What a process says that opens these paths for writing, where `own` are its folders."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", WRITE, *map(str, paths)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=confine(before_exec=(before, *read_only_host(own))),
    )
    return done.stderr.strip().splitlines()[-1] if done.stderr else ""


@needs_confinement
def test_it_writes_to_its_own_folders_and_nowhere_else(outside: Path) -> None:
    own, others = outside / "own", outside / "others"
    own.mkdir()
    others.write_text("kept")
    assert write_to(own / "file", own=[own]) == ""
    assert (own / "file").exists()
    for path in (others, outside / "next"):
        assert "Read-only file system" in write_to(path, own=[own]), path
    # An ordinary user may not write there anyway, and the kernel says that first.
    refused = "Read-only file system" if IS_ROOT else "Permission denied"
    for path in (Path("/sys/kernel/mm/ksm/run"), Path("/proc/sys/vm/swappiness")):
        assert refused in write_to(path, own=[own]), path
    assert others.read_text() == "kept"
    assert os.access(others, os.W_OK)


@needs_confinement
def test_it_writes_to_a_file_of_its_own_and_beside_one_that_is_not_there_yet(outside: Path) -> None:
    there, next_to = outside / "there", outside / "folder"
    there.touch()
    next_to.mkdir()
    assert write_to(there, own=[there]) == ""
    assert "Read-only" in write_to(outside / "other", own=[there])
    assert write_to(next_to / "log", own=[next_to / "log"]) == ""


@needs_confinement
def test_short_lived_places_and_its_own_files_of_the_kernel_stay(tmp_path: Path) -> None:
    names = [place / f"dyno-test-{os.getpid()}" for place in (*SHORT_LIVED, SHARED_MEMORY)]
    try:
        assert write_to(*names, Path("/proc/self/comm"), Path("/dev/null"), own=[]) == ""
    finally:
        for name in names:
            name.unlink(missing_ok=True)


@needs_confinement
def test_it_stays_in_its_folder_and_writes_there(outside: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", "echo kept >relative"],
        cwd=outside,
        preexec_fn=confine(before_exec=read_only_host([outside])),
    )
    assert done.returncode == 0
    assert (outside / "relative").read_text() == "kept\n"


@needs_root
def test_a_user_without_rights_is_confined_as_well(outside: Path) -> None:
    """As one whose folders they are: elsewhere the permissions would refuse already."""
    own = outside / "own"
    own.mkdir()
    for path in (outside, own):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o755)
    said = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(own), str(outside)], capture_output=True, text=True, cwd="/"
    )
    why, *wrote = said.stdout.splitlines()
    if why:
        pytest.skip(f"this host refuses a read-only view: {why}")
    assert wrote == ["0", "Read-only file system"]


AS_NOBODY = f"""
import ctypes, os, subprocess, sys
from pathlib import Path
from dbdyno.host import process
from dbdyno.host.launch import Launch
from dbdyno.host.process import confine
from dbdyno.host.launch import read_only_host, why_writable
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: its files below /proc are its own again.
own, outside = map(Path, sys.argv[1:])
print(why_writable())
def write(path):
    steps = confine(before_exec=read_only_host([own]))
    command = ["/bin/sh", "-c", f": >{{path}}"]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, preexec_fn=steps)
if not why_writable():
    print(write(own / "file").returncode)
    print(write(outside / "file").stderr.strip().rpartition(": ")[2])
"""


@needs_root
@needs_confinement
def test_a_server_that_is_up_keeps_no_volume_of_another_busy(homes: Path) -> None:
    """In a process of its own, because the namespace stays."""
    with alone_on_host():
        done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["seen: True", "seen: False", "busy: False"], done.stderr


BUSY = """
import subprocess, sys
from pathlib import Path
from dbdyno.host import paths
from dbdyno.host.journal import open_journal
from dbdyno.host import process
from dbdyno.host.launch import Launch
from dbdyno.host.process import confine
from dbdyno.host.launch import read_only_host
from dbdyno.host.volumes import mounts
point = paths.cache() / "trials" / "volume"
with open_journal() as journal:
    with journal.scope():
        mounts.mount(journal, "tmpfs", "dyno-first", point.with_name("first"), (), "storage.filesystem")
        other = subprocess.Popen(["sleep", "60"], preexec_fn=confine(before_exec=read_only_host([])))
        mounts.mount(journal, "tmpfs", "dyno-second", point, (), "storage.filesystem")
        table = Path(f"/proc/{other.pid}/mountinfo")
        print("seen:", "dyno-first" in table.read_text() and "dyno-second" in table.read_text())
    print("seen:", "dyno-first" in table.read_text() or "dyno-second" in table.read_text())
    print("busy:", other.poll() is not None)
    other.kill()
    other.wait()
"""


def test_a_host_that_refuses_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    why_writable.cache_clear()
    monkeypatch.setattr("dbdyno.host.launch.refusal", lambda _step: 38)
    try:
        assert why_writable() == "this kernel is older than 5.12"
        assert read_only_host([Path("/tmp")]) == ()
        assert servers_text().startswith("nothing keeps servers from writing")
    finally:
        why_writable.cache_clear()


def test_whoever_is_allowed_everything_is_not_confined() -> None:
    assert read_only_host([Path("/")]) == ()


SHARING = """
import ctypes, sys, time
from pathlib import Path
Path("/dev/shm", sys.argv[1]).write_text("shared")
assert ctypes.CDLL(None).shmget(int(sys.argv[2]), 56, 0o1600) >= 0
print("made", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(bool(why_writable()), reason="this host permits no mount namespace of a server's own")
def test_what_a_killed_server_shared_with_itself_is_gone(tmp_path: Path) -> None:
    name, key = f"dyno-shared-{os.getpid()}", 0x64000000 + os.getpid() % 0xFFFFFF
    with (tmp_path / "output").open("wb") as output:
        command = [sys.executable, "-c", SHARING, name, str(key)]
        server = process.start(
            command, environment=os.environ, output=output, before_exec=Launch().steps(tmp_path)
        )
        try:
            while not (tmp_path / "output").read_text():
                assert server.poll() is None
                time.sleep(0.01)
            segments = [line.split()[0] for line in Path("/proc/sysvipc/shm").read_text().splitlines()]
            assert str(key) not in segments and not Path("/dev/shm", name).exists()
        finally:
            server.kill()
            server.wait()
    assert (tmp_path / "output").read_text() == "made\n"


def test_data_in_memory_stay_where_they_are() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, tempfile.TemporaryFile() as output:
        command = [sys.executable, "-c", f"open('{folder}/written', 'w')"]
        steps = Launch().steps(Path(folder))
        assert process.start(command, environment=os.environ, output=output, before_exec=steps).wait() == 0
        assert (Path(folder) / "written").exists()
