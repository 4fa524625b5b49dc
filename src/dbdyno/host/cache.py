"""Make once under a lock, name it when whole: what Dyno keeps because making it takes long.

A *shelf* is a folder of the cache that holds things of one kind: fetched engines, sources, compiled objects,
builds, pristine data, images of volumes, sets of vectors, what servers said to statements, what finished runs
say. A thing is made in a `.making` folder under the lock of its key, and gets its name by a rename once it is
whole. So what bears a name is whole, and a making that failed or was killed leaves nothing but a `.making`
folder, which its own end, the next making of that key, or `sweep` removes. What can `resume` goes on in that
folder instead.

A process that takes a thing shares its `.used` lock until the process ends: such a thing is never freed. It
is not the lock of the making, because who waits to make a thing would then wait for the end of who uses it.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dbdyno.errors import DynoError
from dbdyno.host import paths
from dbdyno.host.clone import sync_file_system, tree_size_bytes

Tell = Callable[[str], None]
"""Where progress goes, a line at a time."""


class ProgressStep(str):
    """A line that names a step which may take long, and knows how much of it is done: `share`, from 0 to
    1."""

    share: Callable[[], float]

    @classmethod
    def of(cls, line: str, share: Callable[[], float]) -> ProgressStep:
        step = cls(line)
        step.share = share
        return step


def silently(line: str) -> None:
    """Tells nobody."""


Note = Callable[[Path], None]
"""Notes a folder that is about to be made."""


def unnoted(_folder: Path) -> None:
    """Notes nothing: what a killed making leaves stays until the next one, or until `sweep`."""


ACCOUNT = "account.json"
"""What a thing is and where it comes from. Things that older versions made have none."""

WHOLE = {"engines": "manifest.json", "pristine": "pristine.json", "vectors": "data.json"}
"""The file that a whole thing of a kind has, where not the account. Its time is that of the last use."""

KINDS = (
    "engines",
    "sources",
    "objects",
    "builds",
    "pristine",
    "volumes",
    "vectors",
    "statements",
    "readings",
)
PARTS = {"pristine": "volumes"}
"""Kinds that lie within a thing of another kind: they are made from it, and go with it."""

LEFTOVERS = ("*/*.making", "*/*/*.making", "*/*/*/*.making", "engines/.fetch-*", "vectors/making-*")
"""Where a making that was killed leaves its folder; the last two are those of older versions."""


_in_use: dict[Path, IO[str]] = {}
"""The locks of what this process has taken."""


@dataclass(frozen=True)
class KeptThing:
    """A whole thing. `size_bytes` is what it has allocated on disk, without its parts of another kind."""

    kind: str
    folder: Path
    what: str
    origin: str
    size_bytes: int
    made_unix_s: float
    used_unix_s: float

    @property
    def name(self) -> str:
        return self.folder.name


@dataclass(frozen=True)
class Shelf:
    """The things of one kind in one folder."""

    kind: str
    folder: Path

    def names(self) -> list[str]:
        """The names of all that is whole, sorted."""
        things = (path.parent for path in self.folder.glob(f"*/{self._whole}"))
        return sorted(thing.name for thing in things if thing.suffix != ".making")

    def holds(self, name: str) -> bool:
        """Whether there is such a thing, whole. One that a power cut left torn is none."""
        try:
            whole = json.loads((self.folder / name / self._whole).read_bytes())
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
            return False
        return isinstance(whole, dict)

    def take(self, name: str, tell: Tell = silently) -> Path | None:
        """The thing, which nobody frees until this process ends; None where there is none. Waits while it is
        being made."""
        thing = self.folder / name
        if not self.holds(name):
            _let_go(thing)
            return None
        if thing not in _in_use:
            try:
                lock = _locked(self._used(name), fcntl.LOCK_SH, tell)
            except PermissionError:
                # A cache that this user cannot write, he cannot free either.
                return thing
            if not self.holds(name):
                lock.close()
                return None
            _in_use[thing] = lock
        with suppress(PermissionError):
            os.utime(thing / self._whole)
        return thing

    @contextmanager
    def making(
        self, key: str, tell: Tell = silently, resume: bool = False, note: Note = unnoted
    ) -> Iterator[Path]:
        """An empty folder to make a thing in, under the lock of its key, noted before it is there. It is gone
        afterwards, unless `keep` gave it a name. What a killed making of this key left is removed first. With
        `resume` that stays, and so does what an interrupted making leaves."""
        # Raises where the cache cannot be made or written.
        paths.cache()
        self.folder.mkdir(parents=True, exist_ok=True)
        with held(self._lock(key), tell):
            making = self.folder / f"{key}.making"
            if not resume:
                _remove(making)
            note(making)
            making.mkdir(exist_ok=resume)
            interrupted = False
            try:
                yield making
            except KeyboardInterrupt:
                interrupted = True
                raise
            finally:
                if not (resume and interrupted):
                    _remove(making)

    def keep(self, made: Path, name: str, what: str, origin: str) -> Path:
        """Names what was made, now that it is whole, and puts it on disk before and after, so that what bears
        a name is whole after a power cut too; returns its folder. A whole thing that bears the name already
        stays."""
        account = {"what": what, "origin": origin, "made_unix_s": time.time()}
        (made / ACCOUNT).write_text(json.dumps(account, indent=2) + "\n")
        if not (made / self._whole).is_file():
            raise DynoError(
                f"what was made for {self.folder / name} lacks {self._whole}, which marks a whole thing",
                "this is a fault in Dyno: report it",
            )
        thing = self.folder / name
        if not self.holds(name):
            shutil.rmtree(thing, ignore_errors=True)
            sync_file_system(made)
            made.rename(thing)
            sync_file_system(self.folder)
        return thing

    def once(
        self,
        name: str,
        make: Callable[[Path], tuple[str, str]],
        tell: Tell = silently,
        resume: bool = False,
        note: Note = unnoted,
    ) -> Path:
        """The thing of that name, taken; `make` fills a folder where there is none, and says what it is and
        where it comes from."""
        while (thing := self.take(name, tell)) is None:
            with self.making(name, tell, resume, note) as making:
                if not self.holds(name):
                    self.keep(making, name, *make(making))
        return thing

    def kept(self) -> Iterator[KeptThing]:
        """All that is whole, by name. What is freed meanwhile is left out."""
        for name in self.names():
            with suppress(FileNotFoundError):
                yield self._kept(self.folder / name)

    def free(self, name: str) -> bool:
        """Removes a thing and its parts; False where a process uses it."""
        freed = self.folder / f"{name}.making"
        try:
            with held(self._lock(name), waiting=False), held(self._used(name), waiting=False):
                _remove(freed)
                # Under this name `sweep` finds what is left of it, should this process be killed.
                (self.folder / name).rename(freed)
                _remove(freed)
        except BlockingIOError:
            return False
        return True

    def drop(self, name: str) -> bool:
        """Removes a thing like `free`, also one that this process has taken."""
        _let_go(self.folder / name)
        return self.free(name)

    @property
    def _whole(self) -> str:
        return WHOLE.get(self.kind, ACCOUNT)

    def _lock(self, key: str) -> Path:
        return self.folder / f"{key}.lock"

    def _used(self, name: str) -> Path:
        return self.folder / f"{name}.used"

    def _kept(self, thing: Path) -> KeptThing:
        used_unix_s = (thing / self._whole).stat().st_mtime
        try:
            account = json.loads((thing / ACCOUNT).read_text())
            what, origin, made_unix_s = account["what"], account["origin"], float(account["made_unix_s"])
        except (OSError, ValueError, KeyError, TypeError):
            what, origin, made_unix_s = "", "", thing.stat().st_mtime
        size_bytes = tree_size_bytes(thing)
        if self.kind in PARTS:
            size_bytes -= tree_size_bytes(thing / PARTS[self.kind])
        return KeptThing(self.kind, thing, what, origin, size_bytes, made_unix_s, used_unix_s)


def shelf(kind: str, within: Path | None = None) -> Shelf:
    """The shelf of a kind: in the cache, or within the thing that its things are made from."""
    return Shelf(kind, (within or paths.cache_place()) / kind)


def shelves() -> list[Shelf]:
    """Every shelf of the cache; those within a thing come before the shelf that holds it."""
    found = []
    for kind in (kind for kind in KINDS if kind not in PARTS.values()):
        own = shelf(kind)
        if kind in PARTS:
            found += [shelf(PARTS[kind], own.folder / name) for name in own.names()]
        found.append(own)
    return found


def keep_beside(place: Path, text: str) -> None:
    """Writes a file into a thing's folder, whole or not at all. In a cache that this user cannot write, or on
    a full disk, it is not kept, and must be found again."""
    with suppress(OSError), paths.made_whole(place) as making:
        making.write_text(text)


def sweep() -> list[Path]:
    """Removes what makings left that were killed, on every shelf; returns what it removed."""
    swept = []
    for left in sorted({path for pattern in LEFTOVERS for path in paths.cache_place().glob(pattern)}):
        lock = left.with_suffix(".lock")
        if lock == left:
            continue
        try:
            with held(lock, waiting=False):
                _remove(left)
        except BlockingIOError:
            continue
        swept.append(left)
    return swept


def release() -> None:
    """Lets go of all that this process has taken, as its end does."""
    for thing in list(_in_use):
        _let_go(thing)


@contextmanager
def scratch(what: str) -> Iterator[Path]:
    """An empty folder of this user's alone, which is gone at the end; what a killed process leaves, `sweep`
    removes. Whoever has a journal has folders of that."""
    with shelf("scratch").making(f"{what}-{secrets.token_hex(8)}") as folder:
        folder.chmod(0o700)
        yield folder


def _let_go(thing: Path) -> None:
    if thing in _in_use:
        _in_use.pop(thing).close()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def held(path: Path, tell: Tell = silently, waiting: bool = True) -> Iterator[None]:
    """Holds a lock within, and removes its file afterwards. Raises BlockingIOError where another process
    holds it and nobody is `waiting`."""
    with _locked(path, fcntl.LOCK_EX | (0 if waiting else fcntl.LOCK_NB), tell):
        try:
            yield
        finally:
            paths.discard(path)


def _locked(path: Path, operation: int, tell: Tell) -> IO[str]:
    """The file, locked. Raises BlockingIOError for LOCK_NB where another process holds it, PermissionError
    where it cannot be opened."""
    while True:
        file = open(path, "a", opener=_for_owner)  # noqa: SIM115 - the caller closes it
        try:
            try:
                fcntl.flock(file, operation | fcntl.LOCK_NB)
            except BlockingIOError:
                if operation & fcntl.LOCK_NB:
                    raise
                tell("another dyno is making it; waiting until it is done")
                fcntl.flock(file, operation)
            # Whoever held it before may have removed the file: then it is nobody's lock any more.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _for_owner(path: str, flags: int) -> int:
    """Whoever can open a lock's file can take the lock, and so stop everybody else."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW, 0o600)
    with suppress(PermissionError):
        os.fchmod(descriptor, 0o600)
    return descriptor
