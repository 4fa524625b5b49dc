"""The journal: every change to the host is written to disk before it is made, with what undoes it.

Each Dyno process keeps one file, locked while that process lives. A file whose lock is free belongs to a Dyno
that died: `replay_abandoned` undoes what it left, at the next start or by `dyno cleanup`. Undoing goes in
reverse, and every kind of entry can be undone twice, since a Dyno may die between the undoing and the note of
it.

A file's first line says under which start of the host it was written, and which folders were its Dyno's own.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from dbdyno.errors import DynoError
from dbdyno.host import paths

Undo = Callable[[Mapping[str, Any]], None]

_undo_of_kind: dict[str, Undo] = {}

UNDOING = (
    "dbdyno.host.cgroups",
    "dbdyno.host.kernel_values",
    "dbdyno.host.volumes.loop",
    "dbdyno.host.volumes.mounts",
)
"""Who registers kinds of its own. By name: these import the journal, and a start that has nothing to undo
needs none of them."""

OUTLASTING = ("tree",)
"""Kinds of which something is left when the host has started again: all else went with the kernel."""


def undoes(kind: str) -> Callable[[Undo], Undo]:
    """Registers how entries of a kind are undone. The function must bear being called twice."""

    def register(undo: Undo) -> Undo:
        _undo_of_kind[kind] = undo
        return undo

    return register


class Journal:
    """The changes of one Dyno process that still stand. Made by `open_journal`."""

    def __init__(self, file: IO[str], path: Path) -> None:
        self._file = file
        self._path = path
        self._standing: list[dict[str, Any]] = []
        self._count = 0
        self._resisted = False

    def note(self, kind: str, **details: str | int | float) -> None:
        """Writes what is about to change. Returns once it is on disk; the change comes after."""
        if kind not in _undo_of_kind:
            raise ValueError(f"no way is known to undo {kind!r}")
        entry = {"id": self._count, "kind": kind, **details}
        self._count += 1
        self._append(entry)
        self._standing.append(entry)

    def note_processes(self, process_ids: Iterable[int]) -> None:
        """Notes processes that must end with what is noted here. The start time of each tells it from a later
        process of the same number."""
        for process_id in process_ids:
            self.note("process", process_id=process_id, start_ticks=start_ticks(process_id) or 0)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is noted within is undone at its end, in reverse, however it ends."""
        mark = self.mark()
        try:
            yield
        finally:
            self.undo_to(mark)

    def mark(self) -> int:
        """A place to undo back to."""
        return len(self._standing)

    def undo_to(self, mark: int) -> None:
        """Undoes in reverse all that was noted since the mark. What resists is reported once the rest is
        undone."""
        failures = []
        while len(self._standing) > mark:
            entry = self._standing.pop()
            failure = _undo(entry)
            if failure:
                failures.append(failure)
            else:
                self._append({"undone": entry["id"]})
        if failures:
            self._resisted = True
            raise DynoError("could not restore: " + "; ".join(failures), f"the journal stays at {self._path}")

    def close(self) -> None:
        """Undoes what still stands and removes the file, unless something could not be undone."""
        self.undo_to(0)
        if not self._resisted:
            self._path.unlink(missing_ok=True)
        self._file.close()

    def _append(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def open_journal() -> Iterator[Journal]:
    """This process's journal, undone and removed at the end."""
    folder = paths.host() / "journal"
    folder.mkdir(exist_ok=True)
    path = folder / f"{os.getpid()}-{start_ticks(os.getpid())}-{time.time_ns()}.jsonl"
    file = _locked(path)
    journal = Journal(file, path)
    journal._append({"boot": _boot(), "folders": [str(one) for one in own_folders()]})
    _sync_folder(folder)
    try:
        yield journal
    finally:
        journal.close()


def _locked(path: Path) -> IO[str]:
    while True:
        # Nobody else may read it: whoever can could lock it too, and so keep it from being replayed.
        path.touch(mode=0o600)
        file = path.open("a", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        if path.exists():
            return file
        # Before the lock was ours, another Dyno took the file for that of one that died.
        file.close()


def replay_abandoned() -> list[str]:
    """Undoes what Dynos of this user left that died. Returns one line per entry undone; raises when an entry
    resists."""
    done: list[str] = []
    failures: list[str] = []
    left = sorted((paths.host_place() / "journal").glob("*.jsonl"))
    if left:
        # Raises for a folder that is somebody else's: what it tells is not to be done.
        paths.host()
    for path in left:
        with suppress(FileNotFoundError), path.open(encoding="utf-8") as file:
            if not _abandoned(path, file):
                continue
            kept = len(failures)
            for entry in reversed(_standing_entries(file)):
                failure = _undo(entry)
                (failures if failure else done).append(failure or _describe(entry))
            if len(failures) == kept:
                path.unlink(missing_ok=True)
    if failures:
        raise DynoError("could not restore: " + "; ".join(failures), "fix the cause, then run: dyno cleanup")
    return done


def left_by_others() -> tuple[str, ...]:
    """Users of this host whose Dynos died before they had restored all, which only they can do."""
    users: dict[str, None] = {}
    for path in (path for folder in paths.hosts_of_all() for path in (folder / "journal").glob("*.jsonl")):
        with suppress(OSError, ValueError):
            owner, (process_id, started) = path.stat().st_uid, path.name.split("-")[:2]
            if owner != os.getuid() and start_ticks(int(process_id)) != int(started):
                users[user_name(owner)] = None
    return tuple(users)


def _abandoned(path: Path, file: IO[str]) -> bool:
    """Whether the Dyno of this journal died; the journal is then locked as long as the file is open."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return path.exists()


def user_name(user_id: int) -> str:
    """A user's name, or the number of one without a name."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def _boot() -> str:
    """Which start of the host this is."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _standing_entries(file: IO[str]) -> list[dict[str, Any]]:
    """What was not undone; after another start of the host that is only what lies on disks."""
    entries: dict[int, dict[str, Any]] = {}
    header: dict[str, Any] = {}
    for line in file:
        try:
            entry = json.loads(line)
        except ValueError:
            # The last line of a Dyno that died while writing it; its change was never made.
            continue
        if "boot" in entry:
            header = entry
        elif "undone" in entry:
            entries.pop(entry["undone"], None)
        else:
            entries[entry["id"]] = {**entry, "folders": header.get("folders", [])}
    ended = header.get("boot", _boot()) != _boot()
    return [entry for entry in entries.values() if not ended or entry["kind"] in OUTLASTING]


def _undo(entry: Mapping[str, Any]) -> str:
    """Empty when the entry was undone, else why not."""
    if entry["kind"] not in _undo_of_kind:
        for module in UNDOING:
            import_module(module)
    undo = _undo_of_kind.get(entry["kind"])
    if undo is None:
        return f"{_describe(entry)}: this version of Dyno does not know how"
    try:
        undo(entry)
    except (OSError, ValueError) as error:
        return f"{_describe(entry)}: {error}"
    return ""


def _describe(entry: Mapping[str, Any]) -> str:
    details = " ".join(f"{value}" for key, value in entry.items() if key not in ("id", "kind", "folders"))
    return f"{entry['kind']} {details}"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def own_folders() -> tuple[Path, ...]:
    """The only places where Dyno ever removes a directory tree."""
    return (paths.cache(), paths.state(), paths.runtime())


def require_own(path: Path, entry: Mapping[str, Any]) -> None:
    """Raises ValueError for a path outside the folders of this Dyno, and of the one that wrote the entry."""
    of_writer = [Path(folder) for folder in entry.get("folders", [])]
    named = [folder for folder in of_writer if folder.name in ("dyno", f"dyno-{os.getuid()}")]
    homes = [home.resolve() for home in (*own_folders(), *named)]
    parent = path.parent.resolve()
    if not any(parent.is_relative_to(home) for home in homes) or path.name in ("", ".", ".."):
        raise ValueError("not inside Dyno's own folders, so it is left alone")


@undoes("tree")
def _remove_tree(entry: Mapping[str, Any]) -> None:
    """Removes a directory tree that Dyno made. Refuses every path outside Dyno's own folders."""
    path = Path(entry["path"])
    require_own(path, entry)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@undoes("process")
def _end_process(entry: Mapping[str, Any]) -> None:
    """Ends a process by number and start time, so that a number used again never hits a stranger."""
    process_id, started = int(entry["process_id"]), int(entry["start_ticks"])
    deadline = time.monotonic() + 5.0
    while start_ticks(process_id) == started:
        if time.monotonic() > deadline:
            raise ValueError("would not die within 5 s of SIGKILL")
        try:
            os.kill(process_id, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(0.01)


def start_ticks(process_id: int) -> int | None:
    """When a process started, in clock ticks since boot (/proc/PID/stat, field 22); None when it is gone
    or a zombie."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name stands in parentheses and may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
