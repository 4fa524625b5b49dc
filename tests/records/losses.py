"""What a user was told has ended is in the store afterwards, whatever happened to the store meanwhile.

`python -m tests.records.losses cut 200 SEED` cuts the power of the volume under store, cache and spool so
often, each time at a drawn moment of a run of short SQLite trials, which then goes on from what is there:
what was written and not synced is gone, as ext4's own shutdown leaves it. Beside the run another process
puts things into the cache. `locked SECONDS`, `restarted TIMES` and `full TIMES` do the other three things to
a store during a run. Each prints a line of JSON with what it counted, and fails where something is lost.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from dbdyno.errors import DynoError
from dbdyno.host import cache, paths
from dbdyno.host.journal import Journal, open_journal, replay_abandoned
from dbdyno.host.volumes import loop, mounts
from dbdyno.host.volumes.power import SHUTDOWN, WITHOUT_FLUSH
from dbdyno.kinds.registry import ask_for
from dbdyno.records.record import Record
from dbdyno.records.store import Store
from dbdyno.run import RunSide, run_study
from tests.fakes import Stages, make_run
from tests.records.postgresql import PostgreSQL
from tests.trials import bench_of, study_of

KINDS = ("pristine", "builds", "volumes")
VOLUME_BYTES, SMALL = 2 << 30, "size=3m"
ENDLESS = 100_000
"""So many trials end in no test."""
LONGEST_S = 120
"""How long a run may take to its next trial."""


class Told(Stages):
    """Tells the numbers of trials that have ended to whoever reads the pipe."""

    def __init__(self, pipe: int) -> None:
        super().__init__()
        self._pipe = pipe

    def trial_ended(self, record: Record) -> None:
        os.write(self._pipe, f"{record.trial}\n".encode())


class Going:
    """A run that goes on in a process of its own, and what has been told of it."""

    def __init__(self, url: str, trials: int) -> None:
        self._reads, writes = os.pipe()
        self.process_id = child(lambda: carry_on(url, trials, writes))
        os.close(writes)
        self.told: list[int] = []
        self._rest = b""

    def read(self, within_s: float = 0.0) -> bool:
        """Takes what has been told until now; False at the end of the run."""
        os.set_blocking(self._reads, False)
        deadline = time.monotonic() + within_s
        while True:
            with suppress(BlockingIOError):
                while found := os.read(self._reads, 4096):
                    lines = (self._rest + found).split(b"\n")
                    self._rest = lines.pop()
                    self.told += map(int, lines)
                return False
            if time.monotonic() >= deadline:
                return True
            time.sleep(0.002)

    def until(self, count: int) -> None:
        """Waits until so many trials of this process have ended, or it has."""
        deadline = time.monotonic() + LONGEST_S
        while len(self.told) < count and self.read(0.01):
            assert time.monotonic() < deadline, "the run stands still"

    def end(self) -> int:
        """How the process ended, with all that it told."""
        self.until(ENDLESS)
        os.close(self._reads)
        return os.waitpid(self.process_id, 0)[1]


def child(act: Callable[[], None]) -> int:
    """The number of a process that acts, and then ends."""
    sys.stdout.flush()
    process_id = os.fork()
    if process_id == 0:
        status = 1
        try:
            act()
            status = 0
        except (DynoError, OSError) as ended:
            if "DYNO_LOSSES_TOLD" in os.environ:
                print(repr(ended), file=sys.stderr)
        finally:
            os._exit(status)
    return process_id


def carry_on(url: str, trials: int, pipe: int) -> None:
    """What `dyno run` and `dyno run --resume` do, with real trials of SQLite."""
    replay_abandoned()
    study = study_of("sqlite", {"config.synchronous": "FULL"}, blocks=trials)
    study = study.but(workload=study.workload.but(duration_s=0.1))
    run = make_run(study)
    with Store(url) as store, open_journal() as journal:
        store.add_run(run)
        bench = replace(bench_of(study, journal), run=run)
        run_study(RunSide(ask_for(run), bench, Told(pipe)), store)


def stored(url: str) -> list[int]:
    """The trials whose whole records the store has, and waiting ones that it takes."""
    with Store(url) as store:
        return [record.trial for record in store.records("first") if record.whole]


def counted(what: str, told: list[int], url: str, **more: object) -> int:
    """Prints what became of the trials that were told. A trial that is told twice was lost between."""
    found = stored(url)
    lost, again = sorted(set(told) - set(found)), len(told) - len(set(told))
    print(json.dumps({"what": what, "told": len(told), "lost": lost, "done again": again, **more}))
    return 1 if lost or again else 0


def locked(root: Path, seconds: int) -> int:
    """Another process locks the store for so long, and the run goes on."""
    file = root / "data" / "store.sqlite"
    file.parent.mkdir()
    url = f"sqlite:///{file}"
    going = Going(url, 6 + seconds)
    going.until(2)
    with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN EXCLUSIVE")
        time.sleep(seconds)
        other.execute("COMMIT")
    status = going.end()
    return counted("locked", going.told, url, seconds=seconds, status=status) or status


def restarted(root: Path, times: int) -> int:
    """The server of the store starts again at once, as after a crash, so many times."""
    with PostgreSQL() as server:
        going = Going(server.url, 3 * times + 3)
        for number in range(times):
            going.until(3 * number + 2)
            server.restart()
        status = going.end()
        return counted("restarted", going.told, server.url, times=times, status=status) or status


def full(root: Path, times: int) -> int:
    """The disk of the store is full, first with room for the spool elsewhere, and then with none at all."""
    small = root / "small"
    told, ended = list[int](), list[int]()
    with open_journal() as journal:
        mounts.mount(journal, "tmpfs", "tmpfs", _own(small), (SMALL,), "storage.mount")
        url = f"sqlite:///{_own(small) / 'store.sqlite'}"
        for number in range(times):
            os.environ["XDG_STATE_HOME"] = str(_own(small) if number % 2 else root / "state")
            going = Going(url, ENDLESS)
            going.until(2)
            _fill(_own(small) / "filler")
            going.until(len(going.told) + 4)
            (_own(small) / "filler").unlink()
            if number % 2 == 0:
                going.until(len(going.told) + 2)
                os.kill(going.process_id, signal.SIGKILL)
            ended.append(going.end())
            told += going.told
            # What waits is found where it was left.
            stored(url)
        return counted("full", told, url, times=times, status=ended)


def _own(small: Path) -> Path:
    """A mount lies in a folder of Dyno's own."""
    return paths.runtime() / small.name


def _fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))


def cut(root: Path, times: int, seed: int) -> int:
    """Cuts the power so many times. What has a name in the cache must be whole after each."""
    random_of, told, bad, items = random.Random(seed), list[int](), list[str](), 0
    with open_journal() as journal, _volume(journal, root) as (mount, point):
        for variable in ("DATA", "CACHE", "STATE"):
            os.environ[f"XDG_{variable}_HOME"] = str(point / variable.lower())
        url = f"sqlite:///{point / 'store.sqlite'}"
        for number in range(times):
            if random_of.random() < 0.3:
                _forget()
            before = len(told)
            going, filler = Going(url, ENDLESS), child(partial(_make_things, seed, number))
            going.until(random_of.randrange(4))
            time.sleep(random_of.uniform(0.0, 0.6))
            descriptor = os.open(point, os.O_RDONLY | os.O_DIRECTORY)
            # What is told from here on was told before the cut was.
            fcntl.ioctl(descriptor, SHUTDOWN, WITHOUT_FLUSH)
            going.read()
            os.close(descriptor)
            for each in (filler, going.process_id):
                os.kill(each, signal.SIGKILL)
            os.waitpid(filler, 0)
            going.end()
            told += going.told
            mounts.unmount(point)
            mount()
            found = stored_elsewhere(url)
            bad += [f"cut {number}: trial {one} is lost" for one in set(told[before:]) - set(found)]
            seen, wrong = _things()
            items = max(items, seen)
            bad += [f"cut {number}: {one}" for one in wrong]
        return counted("cut", told, url, cuts=times, seed=seed, bad=bad, things=items) or int(bool(bad))


def stored_elsewhere(url: str) -> list[int]:
    """The same as `stored`, in a process that keeps no file of the volume open."""
    reads, writes = os.pipe()
    process_id = child(lambda: _write(writes, json.dumps(stored(url)) if _exists(url) else "[]"))
    os.close(writes)
    with os.fdopen(reads) as file:
        said = file.read()
    os.waitpid(process_id, 0)
    found: list[int] = json.loads(said or "[]")
    return found


def _write(pipe: int, text: str) -> None:
    with os.fdopen(pipe, "w") as file:
        file.write(text)


def _exists(url: str) -> bool:
    """Whether a store was made at all before the cut, with its run."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as found:
        return bool(found.execute("SELECT 1 FROM sqlite_master WHERE name = 'dyno_records'").fetchall())


def _make_things(seed: int, number: int) -> None:
    """Puts things into the cache without end. A thing's name says what is in it."""
    for count in range(ENDLESS):
        content = random.Random(f"{seed} {number} {count}").randbytes(60_000)
        name = hashlib.sha256(content).hexdigest()[:32]

        def make(making: Path, content: bytes = content) -> tuple[str, str]:
            (making / "deeper").mkdir()
            (making / "first").write_bytes(content[:20_000])
            (making / "deeper" / "second").write_bytes(content[20_000:])
            (making / "pristine.json").write_text("{}")
            return "a thing", "the test"

        cache.shelf(KINDS[count % len(KINDS)]).once(name, make)


def _things() -> tuple[int, list[str]]:
    """How many things have a name in the cache, and which of them are not whole."""
    seen, wrong = 0, []
    for kind in KINDS:
        shelf = cache.shelf(kind)
        for name in shelf.names():
            if not shelf.holds(name):
                continue
            seen += 1
            if not _whole(shelf.folder / name):
                wrong.append(f"{kind}/{name} is not whole")
    return seen, wrong


def _whole(thing: Path) -> bool:
    if (thing / "data").is_dir():
        return _sound(thing / "data")
    try:
        content = (thing / "first").read_bytes() + (thing / "deeper" / "second").read_bytes()
    except OSError:
        return False
    return hashlib.sha256(content).hexdigest()[:32] == thing.name


def _sound(data: Path) -> bool:
    """Whether the pristine data of the run are a database with all its rows."""
    [file] = [path for path in data.rglob("*") if path.is_file() and path.read_bytes()[:6] == b"SQLite"]
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as found:
        rows = found.execute("SELECT count(*) FROM pgbench_accounts").fetchone()
        return bool(rows == (100_000,) and found.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def _forget() -> None:
    """Lets the next run make its data anew, and keeps the cache small."""
    for kind in KINDS:
        for name in cache.shelf(kind).names():
            cache.shelf(kind).free(name)


@contextmanager
def _volume(journal: Journal, root: Path) -> Iterator[tuple[Callable[[], None], Path]]:
    """A volume of this test's own with ext4, and what mounts it again."""
    image, point = root / "image", paths.runtime() / "volume"
    with image.open("wb") as file:
        file.truncate(VOLUME_BYTES)
    quick = "lazy_itable_init=1,lazy_journal_init=1"
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", quick, image], check=True)
    with closing(loop.attach(journal, image, "storage.device", direct_io=False)) as device:
        mounts.mount(journal, "ext4", str(device.path), point, (), "storage.mount")
        yield lambda: mounts.mount_again("ext4", str(device.path), point, (), "storage.mount"), point


def main(what: str, times: int, seed: int) -> int:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="dyno-l-", dir=memory if memory.is_dir() else None) as name:
        root = Path(name)
        for variable in ("DATA", "CACHE", "STATE", "CONFIG"):
            os.environ[f"XDG_{variable}_HOME"] = str(root / variable.lower())
        os.environ["XDG_RUNTIME_DIR"] = name
        os.environ[paths.HOST_VARIABLE] = str(root / "host")
        if what == "cut":
            return cut(root, times, seed)
        return {"locked": locked, "restarted": restarted, "full": full}[what](root, times)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1))
