"""The journal: every change to the host is written to disk before it is made, with what undoes it.

Each Dyno process keeps one file, locked while that process lives. A file whose lock is free belongs to a Dyno
that died: `replay_abandoned` undoes what it left, at the next start or by `dyno cleanup`. Undoing goes in
reverse, and every kind of entry can be undone twice, since a Dyno may die between the undoing and the note of
it. The lock of the folder lets one Dyno of a user at a time replay, or claim what it will change.

A file's first line says under which start of the host it was written, and which folders were its Dyno's own.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pwd
import secrets
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from dbdyno.errors import DynoError, remedy
from dbdyno.host import kernel_files, paths
from dbdyno.host.clone import sync_folder
from dbdyno.interrupts import shielded

Undo = Callable[[Mapping[str, Any]], None]
May = Callable[[Mapping[str, Any]], bool]

_undo_of_kind: dict[str, Undo] = {}

UNDOING = (
    "dbdyno.engines.put_back",
    "dbdyno.host.cgroups",
    "dbdyno.host.kernel_values",
    "dbdyno.host.volumes.loop",
    "dbdyno.host.volumes.mounts",
)
"""Who registers kinds of its own. By name: these import the journal, and a start that has nothing to undo
needs none of them."""

FREEING = {"postmaster.pid": "dbdyno.engines.postgresql.settings"}
"""Files of servers that were killed, and the modules whose `free` frees what they left outside of a tree."""

ROOM_BYTES = 64 << 10
"""How much is set aside at once for what a journal will hold."""
UNDONE_BYTES = 64
"""At least what the note of an undoing takes."""
DYING_S = 5.0
"""How long the kernel may take to end the locks of a process that died."""
RESTORING_S = 120.0
"""How long one Dyno waits for another that restores the host."""
ASK_AGAIN_S = 0.01
OWN_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A link is not followed, and a pipe not waited for."""

OF_SERVERS = ("server setting", "server schema", "server ledger", "server in move", "server astray")
"""Kinds of changes on servers that ran already. Only the user's word has them undone for a Dyno that died."""
OUTLASTING = ("tree", *OF_SERVERS)
"""Kinds of which something is left when the host has started again: all else went with the kernel."""


class LeavesAnother(ValueError):
    """An undoing that failed, and left behind what is to be noted as another entry."""

    def __init__(self, message: str, **entry: str) -> None:
        super().__init__(message)
        self.entry = entry


def undoes(kind: str) -> Callable[[Undo], Undo]:
    """Registers how entries of a kind are undone. The function must bear being called twice."""

    def register(undo: Undo) -> Undo:
        _undo_of_kind[kind] = undo
        return undo

    return register


class Journal:
    """The changes of one Dyno process that still stand. Made by `open_journal`, or by the one that takes over
    from a Dyno that died. Closed, it lets go of its file's lock."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        header, self._standing, self._end_bytes = _read(descriptor)
        self._room_bytes = os.fstat(descriptor).st_size
        self._count = 1 + max((entry["id"] for entry in self._standing), default=-1)
        if header.get("boot", _boot()) != _boot():
            # After another start of the host only what lies on disks is left.
            self._standing = [entry for entry in self._standing if entry["kind"] in OUTLASTING]

    def note(self, kind: str, **details: str | int | float) -> None:
        """Writes what is about to change. Returns once it is on disk; the change comes after. Raises
        DynoError where it cannot be written; nothing may change then."""
        if kind not in _undo_of_kind:
            raise ValueError(f"no way is known to undo {kind!r}")
        entry = {"id": self._count, "kind": kind, **details}
        self._count += 1
        self._append(entry)
        self._standing.append(entry)

    def note_tree(self, path: Path, home: Path | None = None) -> None:
        """Notes a folder or file that is about to be made, and goes with all that is in it. It lies in
        Dyno's own folders, or in a `home` of that name which a user's level asks for. A home that is about to
        be made as well goes with the last folder in it."""
        if home is None:
            self.note("tree", path=str(path))
        else:
            self.note("tree", path=str(path), home=str(home), makes_home=not home.exists())

    @contextmanager
    def folder(self, prefix: str) -> Iterator[Path]:
        """An empty folder, noted before it is made, which is gone at the end with all that is noted since."""
        path = paths.cache() / f"{prefix}{secrets.token_hex(4)}"
        with self.scope():
            self.note_tree(path)
            path.mkdir(mode=0o700)
            yield path

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
        """Undoes in reverse all that was noted since the mark; Ctrl-C waits until that is done. What resists
        still stands, and is reported once the rest is undone."""
        _, failures = self.undo_since(mark)
        if failures:
            raise DynoError("could not restore: " + "; ".join(failures), f"the journal stays at {self._path}")

    def undo_since(self, mark: int, may: May = lambda _: True) -> tuple[list[str], list[str]]:
        """The same, with a line for each entry that was undone, and one for each that resists. What it `may`
        not undo stays."""
        done, failures = list[str](), list[str]()
        with shielded():
            for place in reversed(range(mark, len(self._standing))):
                entry = self._standing[place]
                if not may(entry):
                    continue
                if failure := _undo(entry, self.note):
                    failures.append(failure)
                    continue
                del self._standing[place]
                done.append(_describe(entry))
                # Without this note the entry is undone twice, which every kind bears.
                with suppress(DynoError):
                    self._append({"undone": entry["id"]})
        return done, failures

    def forget(self, given_up: Callable[[Mapping[str, Any]], bool]) -> list[str]:
        """Gives up entries, which nobody undoes any more. Returns a line for each."""
        forgotten = [entry for entry in self._standing if given_up(entry)]
        self._standing = [entry for entry in self._standing if entry not in forgotten]
        for entry in forgotten:
            self._append({"undone": entry["id"]})
        return [_describe(entry) for entry in forgotten]

    def close(self) -> None:
        """Undoes what still stands and removes the file, unless something could not be undone."""
        try:
            self.undo_to(0)
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Ends the lock, and removes the file where nothing stands."""
        if not self._standing:
            # A mark whose journal is gone would never be removed.
            paths.discard(_mark_of(self._path))
            paths.discard(self._path)
        os.close(self._descriptor)

    def standing(self) -> tuple[Mapping[str, Any], ...]:
        """The entries that were not undone."""
        return tuple(self._standing)

    def has_value(self, path: str) -> bool:
        """Whether a change of what lies at this path still stands."""
        return any(entry.get("path") == path for entry in self._standing)

    def _append(self, line: Mapping[str, Any]) -> None:
        """Writes a line with room behind it for a note of each undoing, so that a full disk stops none."""
        text = json.dumps(line).encode() + b"\n"
        try:
            needed_bytes = self._end_bytes + len(text) + UNDONE_BYTES * (len(self._standing) + 1)
            if "undone" not in line and needed_bytes > self._room_bytes:
                more_bytes = needed_bytes - self._room_bytes + ROOM_BYTES
                os.posix_fallocate(self._descriptor, self._room_bytes, more_bytes)
                self._room_bytes += more_bytes
            written_bytes = 0
            while written_bytes < len(text):
                part = text[written_bytes:]
                written_bytes += os.pwrite(self._descriptor, part, self._end_bytes + written_bytes)
            os.fsync(self._descriptor)
        except OSError as error:
            raise _unwritten(self._path, error) from None
        self._end_bytes += len(text)


@contextmanager
def open_journal() -> Iterator[Journal]:
    """This process's journal, undone and removed at the end."""
    path = paths.journals() / f"{os.getpid()}-{start_ticks(os.getpid())}-{time.time_ns()}.jsonl"
    with _nobody_else():
        try:
            # Nobody else may read it: whoever can could lock it too, and so keep it from being replayed.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | OWN_FILE, 0o600)
        except OSError as error:
            raise _unwritten(path, error) from None
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        journal = Journal(descriptor, path)
        folders = [str(one) for one in own_folders()]
        try:
            journal._append({"boot": _boot(), "folders": folders, "processes": _process_namespace()})
            sync_folder(path.parent)
        except BaseException:
            journal.let_go()
            raise
        paths.marks()
        with suppress(OSError):
            _mark_of(path).touch(mode=0o644)
    try:
        yield journal
    finally:
        journal.close()


def of_host(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is of this host, and needs nobody's word to be undone."""
    return entry["kind"] not in OF_SERVERS


def replay_abandoned(may: May = of_host) -> list[str]:
    """Undoes what Dynos of this user left that died, as far as it `may`, and waits for another Dyno that does
    so. Returns one line per entry undone; raises when an entry resists."""
    # Without a journal nothing is made, and one that is somebody else's is refused.
    if not any((paths.host_place() / "journal").glob("*.jsonl")):
        return []
    paths.journals()
    with _nobody_else():
        done, failures = _replay(may)
    if failures:
        raise DynoError("could not restore: " + "; ".join(failures), "fix the cause, then run: dyno cleanup")
    return done


def waiting_servers() -> dict[str, list[str]]:
    """What Dynos of this user that died left on servers: a line for each change, by the server's URL."""
    found = dict[str, list[str]]()
    if not any((paths.host_place() / "journal").glob("*.jsonl")):
        return found
    with _nobody_else():
        for left in _abandoned():
            for entry in left.standing():
                if not of_host(entry):
                    found.setdefault(str(entry["url"]), []).append(_describe(entry))
            left.let_go()
    return found


def forget_abandoned(given_up: Callable[[Mapping[str, Any]], bool]) -> list[str]:
    """Gives up entries that Dynos of this user left that died. Returns a line for each."""
    lines = list[str]()
    with _nobody_else():
        for left in _abandoned():
            lines += left.forget(given_up)
            left.let_go()
    return lines


@contextmanager
def claiming(path: Path) -> Iterator[None]:
    """Within, no other Dyno of this user restores or claims anything, and what is at the path is no dead
    Dyno's. Raises DynoError where that one's change resists."""
    with _nobody_else():
        _replay(of_host)
        for left in _abandoned():
            stands = left.has_value(str(path))
            left.let_go()
            if stands:
                reason = f"a Dyno that died changed {path}, and it cannot be put back"
                raise DynoError(reason, "run: dyno cleanup, which says why")
        yield


def _replay(may: May) -> tuple[list[str], list[str]]:
    done, failures = list[str](), list[str]()
    for left in _abandoned():
        try:
            undone, resisting = left.undo_since(0, may)
            done += undone
            failures += resisting
        finally:
            left.let_go()
    return done, failures


def _abandoned() -> Iterator[Journal]:
    """The journals of Dynos that died, each locked until it is let go of."""
    for path in sorted(paths.journals().glob("*.jsonl")):
        with suppress(FileNotFoundError):
            descriptor = _own(path)
            if descriptor is not None and _lock_of_dead(path, descriptor):
                yield Journal(descriptor, path)
            elif descriptor is not None:
                os.close(descriptor)


def _own(path: Path) -> int | None:
    """The file opened, where it is a plain one of this user's; else None. Nobody else's is obeyed."""
    try:
        descriptor = os.open(path, os.O_RDWR | OWN_FILE)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            return None
        raise
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid():
        return descriptor
    os.close(descriptor)
    return None


def _lock_of_dead(path: Path, descriptor: int) -> bool:
    """Locks a journal whose Dyno died; False where it lives. The kernel may still be taking a dead one's
    lock away."""
    deadline = time.monotonic() + DYING_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if _lives(path, descriptor) or time.monotonic() > deadline:
                return False
        time.sleep(ASK_AGAIN_S)


def _lives(path: Path, descriptor: int) -> bool:
    """Whether the process that a journal's name tells of lives; a number from elsewhere tells nothing."""
    header, _, _ = _read(descriptor)
    if header.get("processes", _process_namespace()) != _process_namespace():
        return True
    try:
        process_id, started = path.name.removesuffix(".jsonl").split("-")[:2]
        return start_ticks(int(process_id)) == int(started)
    except ValueError:
        return False


@contextmanager
def _nobody_else() -> Iterator[None]:
    """One Dyno of this user at a time makes, replays or claims. Raises DynoError where another stays."""
    descriptor = os.open(paths.journals(), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + RESTORING_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    reason = f"another dyno has been restoring the host for {RESTORING_S:.0f} s"
                    raise DynoError(reason, "wait until it ends, then run: dyno cleanup") from None
            time.sleep(ASK_AGAIN_S)
        yield
    finally:
        os.close(descriptor)


def left_by_others() -> tuple[str, ...]:
    """Users of this host whose Dynos died before they had restored all, which only they can do."""
    users: dict[str, None] = {}
    # Journals are private, so each has an empty file of its name where others can see it.
    folders = [folder / each for folder in paths.hosts_of_all() for each in ("journal", paths.MARKS)]
    for path in (path for folder in folders for path in folder.glob("*.jsonl")):
        with suppress(OSError, ValueError, kernel_files.UnreadableFile):
            owner, (process_id, started) = path.lstat().st_uid, path.name.split("-")[:2]
            if owner != os.getuid() and start_ticks(int(process_id)) != int(started):
                users[user_name(owner)] = None
    return tuple(users)


def _mark_of(path: Path) -> Path:
    """What tells other users that a journal stands."""
    return paths.host_place() / paths.MARKS / path.name


def _unwritten(path: Path, error: OSError) -> DynoError:
    return DynoError(
        f"the journal of the host cannot be written ({path}): {error.strerror}",
        f"{remedy(error) or 'look at that folder'}, or set {paths.HOST_VARIABLE} to another one",
    )


def of_dead(entry: Mapping[str, Any]) -> bool:
    """Whether an entry was read from a journal, and not noted by this process."""
    return "folders" in entry


def user_name(user_id: int) -> str:
    """A user's name, or the number of one without a name."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def _boot() -> str:
    """Which start of the host this is."""
    return kernel_files.text("/proc/sys/kernel/random/boot_id")


def _process_namespace() -> str:
    """In which world a process's number counts."""
    return kernel_files.link("/proc/self/ns/pid")


def _read(descriptor: int) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """A journal's first line, what was not undone, and where its last whole line ends. Behind that may be the
    line of a Dyno that died while writing it, whose change was never made, and room."""
    text = os.pread(descriptor, os.fstat(descriptor).st_size, 0).partition(b"\0")[0]
    end_bytes = text.rfind(b"\n") + 1
    entries: dict[int, dict[str, Any]] = {}
    header: dict[str, Any] = {}
    for line in text[:end_bytes].splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            # Written by a Dyno that died, before another went on in its file.
            continue
        if not isinstance(entry, dict):
            continue
        if "boot" in entry:
            header = entry
        elif "undone" in entry:
            entries.pop(entry["undone"], None)
        elif isinstance(entry.get("id"), int) and isinstance(entry.get("kind"), str):
            entries[entry["id"]] = {**entry, "folders": header.get("folders", [])}
    return header, list(entries.values()), end_bytes


def _undo(entry: Mapping[str, Any], note: Callable[..., None]) -> str:
    """Empty when the entry was undone, else why not."""
    if entry["kind"] not in _undo_of_kind:
        for module in UNDOING:
            import_module(module)
    undo = _undo_of_kind.get(entry["kind"])
    if undo is None:
        return f"{_describe(entry)}: this version of Dyno does not know how"
    try:
        undo(entry)
    except LeavesAnother as failed:
        note(**failed.entry)
        return f"{_describe(entry)}: {failed}"
    except (OSError, ValueError, KeyError, TypeError, kernel_files.UnreadableFile) as error:
        return f"{_describe(entry)}: {error}"
    return ""


def _describe(entry: Mapping[str, Any]) -> str:
    """An entry in a line: what it says of itself, or all that it holds."""
    if "says" in entry:
        return f"{entry['kind']} {entry['says']}"
    details = " ".join(f"{value}" for key, value in entry.items() if key not in ("id", "kind", "folders"))
    return f"{entry['kind']} {details}"


HOME = "dyno"
"""How a folder of Dyno's is called that lies in one of the user's."""


def own_folders() -> tuple[Path, ...]:
    """The only places where Dyno ever removes a directory tree."""
    return (paths.cache(), paths.state(), paths.runtime())


def require_own_path(path: Path, entry: Mapping[str, Any]) -> None:
    """Raises ValueError for a path outside the folders of this Dyno, and of the one that wrote the entry."""
    # A link has the name of what it leads to.
    of_writer = [Path(folder).resolve() for folder in entry.get("folders", [])]
    named = [folder for folder in of_writer if folder.name in ("dyno", f"dyno-{os.getuid()}")]
    asked = Path(entry.get("home", "")).resolve()
    named += [asked] if asked.name == HOME else []
    homes = [*(home.resolve() for home in own_folders()), *named]
    parent = path.parent.resolve()
    if not any(parent.is_relative_to(home) for home in homes) or path.name in ("", ".", ".."):
        raise ValueError("not inside Dyno's own folders, so it is left alone")


@undoes("tree")
def _remove_tree(entry: Mapping[str, Any]) -> None:
    """Removes a directory tree that Dyno made. Refuses every path outside Dyno's own folders."""
    path = Path(entry["path"])
    require_own_path(path, entry)
    if path.is_dir() and not path.is_symlink():
        for name, module in FREEING.items():
            for left in path.rglob(name):
                import_module(module).free(left)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if entry.get("makes_home"):
        # It is not empty where another Dyno has its data there, and stays for that.
        with suppress(OSError):
            Path(entry["home"]).rmdir()


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
        text = kernel_files.text(f"/proc/{process_id}/stat")
    except kernel_files.Gone:
        return None
    # The command's name stands in parentheses and may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
