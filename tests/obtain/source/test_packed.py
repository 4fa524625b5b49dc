"""A build that travels: the same bytes whoever packs it, nothing taken that was changed or cannot run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.obtain.source import packed
from dbdyno.obtain.source.packed import Damaged, content_of, pack, require_runs, unpacked, written
from tests.needs import needs_gcc

WAITS = "int pause(void); int main(void) { return pause(); }"
STOPS = "int main(void) { __builtin_trap(); }"
ASKS = "int other(void); int main(void) { return other(); }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a build."""
    folder = tmp_path / "build"
    (folder / "prefix" / "bin").mkdir(parents=True)
    program = folder / "prefix" / "bin" / "server"
    program.write_bytes(os.urandom(5000))
    program.chmod(0o755)
    (folder / "prefix" / "server").symlink_to("bin/server")
    (folder / "build.json").write_text("{}")
    return folder


def test_one_build_is_packed_into_the_same_bytes_each_time(folder: Path, tmp_path: Path) -> None:
    first = pack(folder, tmp_path / "first")
    for name in ("account.json", "beside-ab.json", "correctness-ab.json"):
        (folder / name).write_text("of this host alone")
    os.utime(folder / "prefix" / "bin" / "server", (5.0, 5.0))
    again = pack(folder, tmp_path / "again")
    assert first == again and first.size_bytes == (tmp_path / "first").stat().st_size
    into = tmp_path / "into"
    unpacked(tmp_path / "again", into)
    assert {path.name for path in into.iterdir()} == {"build.json", "prefix"}
    assert content_of(into) == content_of(folder)
    assert (into / "prefix" / "bin" / "server").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("what", ["byte", "mode", "link", "name"])
def test_what_is_installed_is_known_by_all_that_it_is(folder: Path, what: str) -> None:
    before, program = content_of(folder), folder / "prefix" / "bin" / "server"
    if what == "byte":
        program.write_bytes(program.read_bytes()[:-1] + b"?")
    elif what == "mode":
        program.chmod(0o644)
    elif what == "link":
        (folder / "prefix" / "server").unlink()
        (folder / "prefix" / "server").symlink_to("bin")
    else:
        program.rename(program.with_name("serves"))
    assert content_of(folder) != before


def test_what_was_changed_or_cut_is_not_taken(folder: Path, tmp_path: Path) -> None:
    found = pack(folder, tmp_path / "packed")
    whole = (tmp_path / "packed").read_bytes()
    changed = bytes([*whole[:200], whole[200] ^ 1, *whole[201:]])
    for damaged in (changed, whole[:-10]):
        with pytest.raises(Damaged, match="its hash is"):
            written([damaged], tmp_path / "read", found.sha256)
    (tmp_path / "read").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Damaged, match="cannot be unpacked"):
        unpacked(tmp_path / "read", tmp_path / "into")
    written([whole[:7], whole[7:]], tmp_path / "read", found.sha256)
    assert (tmp_path / "read").read_bytes() == whole


@needs_gcc
def test_a_host_that_cannot_run_a_build_says_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, asks, stops = (tmp_path / name for name in ("libother.so", "asks", "stops"))
    _compile("int other(void) { return 0; }", library, "-shared", "-fPIC")
    _compile(ASKS, asks, str(library))
    require_runs(library, {}, "b", "the build")
    require_runs(asks, {"LD_LIBRARY_PATH": str(tmp_path)}, "b", "the build")
    library.unlink()
    with pytest.raises(UserError, match=r"host b cannot run the build: it has no .*libother\.so"):
        require_runs(asks, {}, "b", "the build")
    _compile(WAITS, stops)
    with monkeypatch.context() as patch, pytest.raises(UserError, match=r"does not end within 0\.5 s"):
        patch.setattr(packed, "ANSWER_MOST_S", 0.5)
        require_runs(stops, {}, "b", "the build")
    _compile(STOPS, stops)
    with pytest.raises(UserError, match="its CPU does not know an instruction of it"):
        require_runs(stops, {}, "b", "the build")


def _compile(code: str, into: Path, *options: str) -> None:
    command = ["gcc", "-x", "c", "-", "-x", "none", "-o", str(into), *options]
    subprocess.run(command, input=code.encode(), check=True)
