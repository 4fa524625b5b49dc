"""The journal: written before the change, undone in reverse, replayed after a death, and only its own."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dbdyno.cli import VERBS, dyno
from dbdyno.errors import DynoError
from dbdyno.host import journal as journal_module
from dbdyno.host import kernel_values, paths
from dbdyno.host.journal import left_by_others, open_journal, replay_abandoned, start_ticks, undoes
from tests.conftest import DYNO
from tests.needs import IS_ROOT, needs_root
from tests.structure import ROOT
from tests.trials import alone_on_host

undone: list[str] = []


@pytest.fixture(autouse=True)
def kinds(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A kind that notes its undoing, and one that always resists."""
    for module in journal_module.UNDOING:
        import_module(module)
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


def test_an_entry_is_on_disk_before_note_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        sync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append(f"{path.name}/" if path.is_dir() else path.read_text())

    monkeypatch.setattr(os, "fsync", watched)
    with open_journal() as journal:
        journal.note("noted", name="here")
        assert '"name": "here"' in synced[-1]
        assert "journal/" in synced, "the name of a new journal is in its folder"
        with journal.scope():
            journal.note("noted", name="there")
            assert '"name": "there"' in synced[-1]
        assert '"undone"' in synced[-1]


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


def test_what_was_undone_beside_one_that_resists_is_not_undone_again() -> None:
    abandon({"kind": "noted", "name": "a"}, {"kind": "resists", "name": "b"}, tail='{"id": 2, "ki')
    for _ in range(2):
        with pytest.raises(DynoError, match="could not restore: resists b: busy"):
            replay_abandoned()
    assert undone == ["a"]


def test_what_resists_keeps_nobody_from_reading_and_everybody_from_measuring() -> None:
    abandon({"kind": "from the future"})
    read = subprocess.run([*DYNO, "runs"], capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    assert "warning: could not restore: from the future" in read.stderr
    measured = subprocess.run([*DYNO, "probe"], capture_output=True, text=True, check=False)
    assert measured.returncode == 1 and "dyno cleanup" in measured.stderr


def test_ctrl_c_waits_until_a_scope_is_undone() -> None:
    @undoes("interrupted")
    def interrupt(entry: Mapping[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)
        undone.append(entry["name"])

    with pytest.raises(KeyboardInterrupt), open_journal() as journal:
        journal.note("interrupted", name="outer")
        with journal.scope():
            journal.note("noted", name="first")
            journal.note("interrupted", name="second")
    assert undone == ["second", "first", "outer"]
    assert journals() == []


def test_what_resisted_is_tried_again_and_the_journal_stays_while_it_stands() -> None:
    held = [True]

    @undoes("held")
    def hold(entry: Mapping[str, Any]) -> None:
        if held[0]:
            raise OSError("busy")
        undone.append(entry["name"])

    with open_journal() as journal:
        with pytest.raises(DynoError, match="busy"), journal.scope():
            journal.note("held", name="stuck")
        assert '"undone"' not in journals()[0].read_text()
        held[0] = False
    assert undone == ["stuck"]
    assert journals() == []


FULL = """
import os, subprocess, sys
from pathlib import Path
from dbdyno.errors import DynoError
from dbdyno.host import kernel_values, paths
from dbdyno.host.journal import open_journal, undoes
from dbdyno.host.volumes.mounts import enter_private_namespace

@undoes("printed")
def tell(entry):
    print(entry["name"])

enter_private_namespace("test")
folder = paths.host()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(folder)], check=True)
with open_journal() as journal:
    for number in range(300):
        journal.note("printed", name=number)
    [path] = (folder / "journal").iterdir()
    with (folder / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError:
            pass
    with journal.scope():
        try:
            while True:
                journal.note("printed", name="x" * 1000)
        except DynoError as full:
            print(full.message, "|", full.hint)
    journal.undo_to(0)
    noted = path.read_bytes().count(b'"undone"')
print("noted", noted)
print("left", len(list((folder / "journal").iterdir())))
"""


@needs_root
def test_a_full_disk_below_the_journal_stops_no_undoing() -> None:
    ended = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    [full] = [line for line in lines if " | " in line]
    assert full.startswith("the journal of the host cannot be written (") and "No space left" in full
    assert "make room on that disk, or set" in full
    told = lines[lines.index(full) + 1 :]
    large = sum(line.startswith("x") for line in told)
    assert told[large:] == [*map(str, reversed(range(300))), f"noted {300 + large}", "left 0"]


REPLAYS = """
import sys
from pathlib import Path
from dbdyno.host.journal import replay_abandoned, undoes

@undoes("slow")
def undo(entry):
    print("undoing", flush=True)
    input()
    Path(entry["path"]).touch()

print("begun", flush=True)
replay_abandoned()
print(Path(sys.argv[1]).exists(), flush=True)
"""


def test_a_second_start_waits_for_the_one_that_restores(tmp_path: Path) -> None:
    restored = tmp_path / "restored"
    abandon({"kind": "slow", "path": str(restored)})
    command = [sys.executable, "-c", REPLAYS, str(restored)]
    # Without a buffer, which would hide from `select` a line that came with the one before it.
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    with subprocess.Popen(command, **pipes) as first, subprocess.Popen(command, **pipes) as second:
        assert first.stdout and first.stdin and second.stdout
        by = {each: [each.stdout.readline()] for each in (first, second) if each.stdout}
        assert set(map(tuple, by.values())) == {(b"begun\n",)}
        ready, _, _ = select.select([first.stdout, second.stdout], [], [], 60)
        undoing = first if first.stdout in ready else second
        other = second if undoing is first else first
        assert undoing.stdout and undoing.stdout.readline() == b"undoing\n"
        # It had its time to go by the one that restores.
        assert other.stdout and not select.select([other.stdout], [], [], 1.0)[0]
        assert undoing.stdin
        undoing.stdin.write(b"\n")
        assert undoing.stdout.readline() == b"True\n"
        assert other.stdout.readline() == b"True\n"
    assert journals() == []


@pytest.mark.parametrize("mask", [0o000, 0o002, 0o077])
def test_the_journals_folder_is_private_whatever_the_umask(mask: int) -> None:
    before = os.umask(mask)
    try:
        with open_journal():
            place = paths.host_place()
            assert (place / "journal").stat().st_mode & 0o777 == 0o700
            assert place.stat().st_mode & 0o022 == 0
            assert (place / paths.MARKS).stat().st_mode & 0o022 == 0
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"kind": "mount", "point": "FOLDER"}, "left alone"),
        ({"kind": "kernel_value", "path": "FOLDER/value", "before": "0"}, "not a kernel value"),
        ({"kind": "kernel_value", "path": "/sys/../FOLDER/value", "before": "0"}, "not a kernel value"),
        ({"kind": "cgroup", "path": "FOLDER"}, "not a group of Dyno's"),
        ({"kind": "cgroup_delegation", "path": "FOLDER/value", "controller": "cpu"}, "not a control group's"),
    ],
    ids=["mount", "value of no kernel", "value that climbs out", "group", "delegation"],
)
def test_what_is_not_dynos_is_left_alone(tmp_path: Path, entry: dict[str, str], said: str) -> None:
    folder = tmp_path / "somebody"
    folder.mkdir()
    (folder / "value").write_text("1")
    path = abandon({key: value.replace("FOLDER", str(folder).lstrip("/" if ".." in value else ""))
                    for key, value in entry.items()})  # fmt: skip
    with pytest.raises(DynoError) as refused:
        replay_abandoned()
    assert said in refused.value.message
    assert (folder / "value").read_text() == "1"
    assert path.exists(), "what was not undone stays written down"


@contextmanager
def attached(theirs: Path) -> Iterator[Path]:
    """A loop device that serves somebody's file."""
    attach = subprocess.run(
        ["losetup", "--find", "--show", str(theirs)], capture_output=True, text=True, check=False
    )
    if attach.returncode != 0:
        pytest.skip(f"no loop device can be had: {attach.stderr.strip()}")
    device = attach.stdout.strip()
    try:
        yield Path(device)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@needs_root
def test_a_loop_device_that_serves_somebody_else_is_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(bytes(1 << 20))
    with attached(theirs) as device:
        abandon({"kind": "loop", "device": str(device), "backing": str(tmp_path / "mine")})
        replay_abandoned()
        held = Path("/sys/block") / device.name / "loop" / "backing_file"
        assert held.read_text().strip() == str(theirs)


@needs_root
@pytest.mark.parametrize(("value", "left"), [("mq-deadline", "none"), ("kyber", "mq-deadline")])
def test_whoever_has_inherited_a_scheduler_of_dynos_has_the_one_before(
    tmp_path: Path, value: str, left: str
) -> None:
    """A killed Dyno's loop device is free with its scheduler, and somebody else may take it before the next
    Dyno starts. Another scheduler is of their own choice."""
    theirs = tmp_path / "theirs"
    theirs.write_bytes(bytes(1 << 20))
    with alone_on_host(), attached(theirs) as device:
        scheduler = Path("/sys/block") / device.name / "queue" / "scheduler"
        before = kernel_values.read(scheduler)
        if "mq-deadline" not in kernel_values.choices(scheduler):
            pytest.skip("this host offers no scheduler for loop devices")
        scheduler.write_text("mq-deadline")
        try:
            own = {"before": "none", "value": value, "device": "of another life"}
            abandon({"kind": "kernel_value", "path": str(scheduler), **own})
            replay_abandoned()
            assert kernel_values.read(scheduler) == left
        finally:
            scheduler.write_text(before)


def test_every_verb_undoes_what_a_dead_dyno_left_but_those_that_touch_nothing() -> None:
    clears = {}
    for verb in VERBS:
        path = abandon({"kind": "tree", "path": str(paths.cache() / "gone")})
        CliRunner().invoke(dyno, [verb, "--help"], catch_exceptions=False)
        clears[verb] = not path.exists()
        path.unlink(missing_ok=True)
    spared = {verb for verb, cleared in clears.items() if not cleared}
    text = " ".join((ROOT / "docs/concepts/proofs.md").read_text().split())
    sentence = text[text.index("If Dyno is killed") :].split(". ")[0]
    assert spared - {"cleanup"} == set(re.findall(r"`(\w+)`", sentence))


@needs_root
def test_a_planted_journal_is_not_obeyed() -> None:
    planted = abandon({"kind": "noted", "name": "a"})
    os.chown(planted, 65534, -1)
    assert replay_abandoned() == []
    assert planted.exists()


def test_a_journal_is_a_plain_file(tmp_path: Path) -> None:
    real = abandon({"kind": "noted", "name": "a"}).rename(tmp_path / "real")
    (paths.journals() / "link.jsonl").symlink_to(real)
    os.mkfifo(paths.journals() / "pipe.jsonl")
    (paths.journals() / "folder.jsonl").mkdir()
    assert replay_abandoned() == []
    assert undone == []


def test_a_folder_of_a_journal_is_known_by_what_a_link_leads_to(tmp_path: Path) -> None:
    stranger = tmp_path / "precious" / "data"
    stranger.mkdir(parents=True)
    link = tmp_path / "elsewhere" / "dyno"
    link.parent.mkdir()
    link.symlink_to(stranger.parent)
    abandon({"kind": "tree", "path": str(stranger)}, header={"boot": "b", "folders": [str(link)]})
    with pytest.raises(DynoError, match="left alone"):
        replay_abandoned()
    assert stranger.exists()


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
    # Another process that has the number now must live.
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.3)
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
from dbdyno.host import kernel_values, paths
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


@pytest.mark.skipif(not IS_ROOT, reason="only root can make files of another user")
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


@needs_root
def test_what_another_users_dyno_left_is_told_by_a_mark() -> None:
    with open_journal():
        [journal] = journals()
        [mark] = paths.marks().iterdir()
        assert mark.name == journal.name and mark.stat().st_mode & 0o444 == 0o444
    assert list(paths.marks().iterdir()) == []
    dead = paths.marks() / "4194305-1-1.jsonl"
    dead.touch()
    os.chown(dead, 65534, -1)
    assert left_by_others() == ("nobody",)


def test_a_mark_does_not_outlive_its_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = Path.unlink

    def dies(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), open_journal():
        patch.setattr(Path, "unlink", dies)
    assert list(paths.marks().iterdir()) == []


def test_a_folder_of_a_dyno_that_was_killed_is_removed() -> None:
    code = (
        "import os\nfrom dbdyno.host.journal import open_journal\n"
        "with open_journal() as journal, journal.folder('counted-') as folder:\n"
        "    (folder / 'counted.1').write_text('')\n    os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code])
    [left] = paths.cache().glob("counted-*")
    assert replay_abandoned() == [f"tree {left}"] and not left.exists()
    with open_journal() as journal, journal.folder("counted-") as folder:
        assert list(folder.iterdir()) == []
    assert not folder.exists()
