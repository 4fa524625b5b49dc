"""The journal: written before the change, undone in reverse, replayed after a death, and only its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dbdyno import journal as journal_module
from dbdyno import paths
from dbdyno.errors import DynoError
from dbdyno.journal import open_journal, replay_abandoned, start_ticks, undoes
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
    return sorted((paths.state() / "journal").glob("*"))


def abandon(*entries: dict[str, Any], tail: str = "") -> Path:
    """A journal whose Dyno has died."""
    path = paths.state() / "journal" / "1-1.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = [json.dumps({"id": number, **entry}) for number, entry in enumerate(entries)]
    path.write_text("\n".join(lines) + "\n" + tail)
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
        "from dbdyno.journal import open_journal\n"
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
