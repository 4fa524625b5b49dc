"""The journal: written before the change, undone in reverse, replayed after a death, and only its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dbdyno.errors import DynoError
from dbdyno.host import journal as journal_module
from dbdyno.host import paths
from dbdyno.host.journal import left_by_others, open_journal, replay_abandoned, start_ticks, undoes
from tests.conftest import DYNO

undone: list[str] = []


@pytest.fixture(autouse=True)
def kinds(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A kind that notes its undoing, and one that always resists."""
    monkeypatch.setattr(journal_module, "_undo_of_kind", dict(journal_module._undo_of_kind))
    undone.clear()

    @undoes("noted")
    def note(entry: Mapping[str, Any]) -> None:
        undone.append(entry["name"])

    @undoes("resists")
    def resist(entry: Mapping[str, Any]) -> None:
        raise OSError("busy")

    yield


def journals() -> list[Path]:
    return sorted((paths.host() / "journal").glob("*"))


def abandon(*entries: dict[str, Any], tail: str = "", header: dict[str, Any] | None = None) -> Path:
    """A journal whose Dyno has died."""
    path = paths.host() / "journal" / "1-1.jsonl"
    path.parent.mkdir(exist_ok=True, parents=True)
    lines = [json.dumps({"id": number, **entry}) for number, entry in enumerate(entries)]
    path.write_text("\n".join([*([json.dumps(header)] if header else []), *lines]) + "\n" + tail)
    return path


def test_a_scope_undoes_its_own_in_reverse() -> None:
    with open_journal() as journal:
        journal.note("noted", name="outer")
        with journal.scope():
            journal.note("noted", name="first")
            journal.note("noted", name="second")
        assert undone == ["second", "first"]
    assert undone == ["second", "first", "outer"]
    assert journals() == []


def test_an_entry_is_on_disk_before_note_returns() -> None:
    with open_journal() as journal:
        journal.note("noted", name="here")
        [path] = journals()
        assert '"name": "here"' in path.read_text()


def test_an_unknown_kind_is_refused_before_the_change() -> None:
    with open_journal() as journal, pytest.raises(ValueError, match="no way is known to undo"):
        journal.note("mystery", path="/")


def test_what_resists_does_not_keep_the_rest_from_being_undone() -> None:
    with pytest.raises(DynoError, match="busy"), open_journal() as journal:
        journal.note("noted", name="early")
        journal.note("resists", name="stuck")
    assert undone == ["early"]


def test_an_abandoned_journal_is_replayed_in_reverse_and_removed() -> None:
    abandon({"kind": "noted", "name": "a"}, {"kind": "noted", "name": "b"}, tail='{"id": 2, "ki')
    assert replay_abandoned() == ["noted b", "noted a"]
    assert undone == ["b", "a"]
    assert journals() == []


def test_what_was_undone_already_is_not_undone_again() -> None:
    abandon({"kind": "noted", "name": "a"}, {"kind": "noted", "name": "b"}, tail='{"undone": 1}\n')
    replay_abandoned()
    assert undone == ["a"]


def test_the_journal_of_a_living_dyno_is_left_alone() -> None:
    code = (
        "from dbdyno.host.journal import open_journal\n"
        "with open_journal() as journal:\n"
        "    journal.note('tree', path='/nowhere')\n"
        "    print('ready', flush=True)\n"
        "    input()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert child.stdout is not None
    child.stdout.readline()
    assert replay_abandoned() == []
    assert len(journals()) == 1
    child.kill()
    child.communicate()


def test_a_journal_that_cannot_be_undone_stays() -> None:
    path = abandon({"kind": "from the future"}, {"kind": "noted", "name": "b"})
    with pytest.raises(DynoError, match="does not know how"):
        replay_abandoned()
    assert undone == ["b"]
    assert path.exists()


def test_a_tree_outside_dynos_own_folders_is_never_removed(tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    abandon({"kind": "tree", "path": str(stranger)})
    with pytest.raises(DynoError, match="left alone"):
        replay_abandoned()
    assert stranger.exists()


@pytest.mark.parametrize("path", ["..", ".", "../../stranger", ""])
def test_a_path_that_climbs_out_is_never_removed(path: str, tmp_path: Path) -> None:
    (tmp_path / "stranger").mkdir()
    abandon({"kind": "tree", "path": str(paths.cache() / path)})
    with pytest.raises(DynoError, match="left alone"):
        replay_abandoned()
    assert (tmp_path / "stranger").exists()
    assert paths.cache().exists()


def test_a_symbolic_link_is_removed_and_not_followed(tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    link = paths.cache() / "link"
    link.symlink_to(stranger)
    abandon({"kind": "tree", "path": str(link)})
    replay_abandoned()
    assert not link.is_symlink()
    assert stranger.exists()


def test_a_process_is_ended_by_its_number_and_start() -> None:
    child = subprocess.Popen(["sleep", "60"])
    ticks = start_ticks(child.pid)
    abandon({"kind": "process", "process_id": child.pid, "start_ticks": (ticks or 0) + 1})
    replay_abandoned()
    time.sleep(0)
    assert child.poll() is None, "another process that has the number now must live"
    abandon({"kind": "process", "process_id": child.pid, "start_ticks": ticks})
    replay_abandoned()
    assert child.wait(10) == -9


def test_a_fresh_dyno_knows_how_to_undo_every_kind(homes: Path) -> None:
    """As `dyno cleanup` does it: a process that has loaded nothing but the journal."""
    point = paths.cache() / "trials" / "gone"
    abandon(
        {"kind": "tree", "path": str(point)},
        {"kind": "process", "process_id": 2**22 + 1, "start_ticks": 1},
        {"kind": "loop", "device": "/dev/loop4095", "backing": str(point)},
        {"kind": "mount", "point": str(point)},
        {"kind": "cgroup", "path": "/sys/fs/cgroup/cpu/dyno-gone"},
        {"kind": "cgroup_delegation", "path": "/sys/gone/cgroup.subtree_control", "controller": "cpu"},
        {"kind": "kernel_value", "path": "/sys/gone", "before": "1"},
    )
    ended = subprocess.run([*DYNO, "cleanup"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert len(ended.stdout.splitlines()) == 7
    assert journals() == []


DIES = """
import os, signal
from dbdyno.host import paths
from dbdyno.host.journal import open_journal
with open_journal() as journal:
    folder = paths.cache() / "trials" / "left"
    journal.note("tree", path=str(folder))
    folder.mkdir(parents=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_dyno_with_other_folders_puts_back_what_one_left(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-c", DIES], check=False)
    left = paths.cache() / "trials" / "left"
    assert left.is_dir() and len(journals()) == 1
    for variable in ("DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(homes / "elsewhere"))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    ended = subprocess.run([*DYNO, "cleanup"], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == (f"tree {left}\n", 0), ended.stderr
    assert not left.exists()
    assert journals() == []


def test_folders_that_a_journal_names_are_dynos_own_by_name(tmp_path: Path) -> None:
    stranger = tmp_path / "precious" / "data"
    stranger.mkdir(parents=True)
    abandon({"kind": "tree", "path": str(stranger)}, header={"boot": "b", "folders": [str(stranger.parent)]})
    with pytest.raises(DynoError, match="left alone"):
        replay_abandoned()
    assert stranger.exists()


def test_after_another_start_of_the_host_only_files_are_left() -> None:
    left = paths.cache() / "trials"
    left.mkdir()
    header = {"boot": "an earlier one", "folders": [str(paths.cache())]}
    abandon(
        {"kind": "noted", "name": "a value of the kernel"}, {"kind": "tree", "path": str(left)}, header=header
    )
    assert replay_abandoned() == [f"tree {left}"]
    assert undone == [] and not left.exists() and journals() == []


def test_a_journal_is_nobody_elses_to_read() -> None:
    with open_journal():
        [path] = journals()
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.parent.stat().st_mode & 0o022 == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_what_another_users_dyno_left_is_told_and_not_touched() -> None:
    with open_journal():
        [living] = journals()
        os.chown(living, 65534, -1)
        assert left_by_others() == (), "its Dyno lives"
        os.chown(living, 0, -1)
    dead = abandon({"kind": "noted", "name": "a"}).rename(paths.host() / "journal" / "4194305-1-1.jsonl")
    assert left_by_others() == (), "its own are for the replay"
    os.chown(dead, 65534, -1)
    assert left_by_others() == ("nobody",)


def test_every_user_of_the_host_meets_at_one_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(paths.HOST_VARIABLE)
    lock = paths.run_lock()
    assert lock == paths.CPUS_ONLINE
    assert lock.stat().st_mode & 0o444 == 0o444
