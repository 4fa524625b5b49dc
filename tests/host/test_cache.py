"""What is made once: by one of two processes, whole or not there, and freed only where nobody uses it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbdyno.errors import DynoError
from dbdyno.host import cache, paths
from dbdyno.host.cache import Shelf

pytestmark = pytest.mark.usefixtures("homes")

TAKE = "from dbdyno.host import cache; cache.shelf('builds').take('one'); print('taken', flush=True); input()"
MAKE_AND_USE = (
    "from dbdyno.host import cache\n"
    "def make(making):\n"
    "    print('making', flush=True); input()\n"
    "    return 'one', 'another process'\n"
    "cache.shelf('builds').once('one', make); print('using', flush=True); input()"
)
MAKE = (
    "from dbdyno.host import cache\n"
    "with cache.shelf('builds').making('one') as making:\n"
    "    (making / 'half').write_bytes(bytes(100_000)); print('making', flush=True); input()"
)


def builds() -> Shelf:
    return cache.shelf("builds")


def made(name: str = "one", content: str = "whole") -> Path:
    def make(making: Path) -> tuple[str, str]:
        (making / "content").write_text(content)
        return f"a build called {name}", "the test"

    return builds().once(name, make)


@contextmanager
def another(code: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has printed its first line and waits for a line of ours."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_what_is_there_is_not_made_again() -> None:
    first = made(content="first")
    cache.release()
    assert made(content="second") == first
    assert (first / "content").read_text() == "first"


def test_of_two_threads_one_makes_it() -> None:
    count = []

    def make(making: Path) -> tuple[str, str]:
        count.append(making)
        return "one", "the test"

    threads = [threading.Thread(target=lambda: builds().once("one", make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(count) == 1


def test_who_waits_is_told_why() -> None:
    told: list[str] = []
    with another(MAKE) as maker:

        def tell(line: str) -> None:
            told.append(line)
            maker.kill()

        with builds().making("one", tell) as making:
            assert list(making.iterdir()) == []
    assert told == ["another dyno is making it; waiting until it is done"]


def test_who_waits_for_a_making_does_not_wait_for_its_use() -> None:
    with another(MAKE_AND_USE) as maker:

        def tell(line: str) -> None:
            assert maker.stdin is not None and maker.stdout is not None
            maker.stdin.write("\n")
            maker.stdin.flush()
            assert maker.stdout.readline() == "using\n"

        folder = builds().once("one", lambda making: ("one", "this process"), tell)
        assert maker.poll() is None
        assert json.loads((folder / cache.ACCOUNT).read_text())["origin"] == "another process"


def test_a_making_that_fails_leaves_nothing() -> None:
    with pytest.raises(OSError, match="full"), builds().making("one") as making:
        (making / "half").touch()
        raise OSError("full")
    assert list(builds().folder.iterdir()) == []


def test_a_making_is_noted_before_it_is_there() -> None:
    noted = []

    def note(making: Path) -> None:
        assert not making.exists()
        noted.append(making)

    with builds().making("one", note=note) as making:
        assert noted == [making]


def test_a_making_that_can_resume_goes_on_in_what_was_left() -> None:
    with another(MAKE) as maker:
        maker.kill()
        maker.wait()
    with pytest.raises(KeyboardInterrupt), builds().making("one", resume=True) as making:
        assert (making / "half").exists()
        raise KeyboardInterrupt
    with pytest.raises(OSError, match="full"), builds().making("one", resume=True) as making:
        assert (making / "half").exists()
        raise OSError("full")
    assert list(builds().folder.iterdir()) == []


def test_a_making_that_cannot_resume_begins_anew() -> None:
    with pytest.raises(KeyboardInterrupt), builds().making("one", resume=True) as making:
        (making / "half").touch()
        raise KeyboardInterrupt
    with builds().making("one") as making:
        assert list(making.iterdir()) == []


def test_what_a_killed_making_left_is_swept() -> None:
    with another(MAKE) as maker:
        assert cache.sweep() == []
        maker.kill()
        maker.wait()
    left = builds().folder / "one.making"
    assert (left / "half").exists()
    assert not builds().holds("one")
    assert cache.sweep() == [left]
    assert list(builds().folder.iterdir()) == []
    assert cache.sweep() == []


@pytest.mark.parametrize("left", ["engines/.fetch-toy-12", "vectors/making-x1", "pristine/k/ext4-1.making"])
def test_what_an_older_version_left_is_swept(left: str) -> None:
    path = paths.cache() / left
    path.mkdir(parents=True)
    (path.with_suffix(".lock")).touch()
    assert cache.sweep() == [path]
    assert not path.exists()


def test_what_a_process_uses_is_not_freed_until_it_ends() -> None:
    folder = made()
    cache.release()
    with another(TAKE) as user:
        assert not builds().free("one")
        assert folder.is_dir()
        user.communicate("\n")
    assert builds().free("one")
    assert list(builds().folder.iterdir()) == []


def test_what_was_freed_is_made_again() -> None:
    made(content="first")
    cache.release()
    assert builds().free("one")
    assert (made(content="second") / "content").read_text() == "second"


def test_what_was_removed_by_hand_is_made_again_by_the_process_that_used_it() -> None:
    folder = made(content="first")
    for path in (*folder.iterdir(), folder):
        path.rmdir() if path.is_dir() else path.unlink()
    assert (made(content="second") / "content").read_text() == "second"


def test_a_folder_that_is_not_whole_is_made_again() -> None:
    (builds().folder / "one").mkdir(parents=True)
    (builds().folder / "one" / "content").write_text("torn")
    assert builds().names() == []
    assert (made() / "content").read_text() == "whole"


@pytest.mark.parametrize("torn", ["", "\0" * 80, '{"what": "a buil'], ids=["empty", "zeros", "cut"])
def test_what_a_power_cut_left_torn_is_made_again(torn: str) -> None:
    folder = made(content="first")
    cache.release()
    (folder / cache.ACCOUNT).write_text(torn)
    assert not builds().holds("one") and builds().take("one") is None
    assert (made(content="second") / "content").read_text() == "second"


def test_the_account_says_what_it_is_and_when_it_was_used() -> None:
    folder = made()
    [kept] = builds().kept()
    assert (kept.kind, kept.name, kept.what, kept.origin) == (
        "builds",
        "one",
        "a build called one",
        "the test",
    )
    assert kept.size_bytes > 0
    os.utime(folder / cache.ACCOUNT, (1000.0, 1000.0))
    assert next(builds().kept()).used_unix_s == 1000.0
    made()
    [again] = builds().kept()
    assert again.used_unix_s > 1000.0
    assert again.made_unix_s == kept.made_unix_s


@pytest.mark.parametrize("account", [None, "", "[]", '{"what": "x"}'])
def test_what_an_older_version_made_stays_usable(account: str | None) -> None:
    folder = paths.cache() / "pristine" / "abc"
    folder.mkdir(parents=True)
    (folder / "pristine.json").write_text(json.dumps({"prepared": {}, "checks": []}))
    if account is not None:
        (folder / cache.ACCOUNT).write_text(account)
    shelf = cache.shelf("pristine")
    assert shelf.take("abc") == folder
    [kept] = shelf.kept()
    assert (kept.name, kept.what, kept.origin) == ("abc", "", "")


def test_parts_are_counted_once_and_go_with_what_they_are_made_from() -> None:
    data = paths.cache() / "pristine" / "abc"
    data.mkdir(parents=True)
    (data / "pristine.json").write_text("{}")

    def make(making: Path) -> tuple[str, str]:
        (making / "volume.img").write_bytes(bytes(1 << 20))
        return "ext4", "abc"

    cache.shelf("volumes", data).once("ext4-1", make)
    cache.release()
    sizes = {kept.kind: kept.size_bytes for shelf in cache.shelves() for kept in shelf.kept()}
    assert sizes["volumes"] >= 1 << 20
    assert sizes["pristine"] < 1 << 20
    assert cache.shelf("pristine").free("abc")
    assert not data.exists()


def test_a_file_beside_a_thing_is_whole_or_not_there(tmp_path: Path) -> None:
    place = tmp_path / "found.json"
    cache.keep_beside(place, "one")
    cache.keep_beside(place, "two")
    assert place.read_text() == "two"
    cache.keep_beside(tmp_path / "nowhere" / "found.json", "one")
    (tmp_path / "taken").mkdir()
    cache.keep_beside(tmp_path / "taken", "one")
    assert {path.name for path in tmp_path.iterdir()} == {"found.json", "taken"}


def test_a_making_without_the_mark_of_a_whole_thing_is_an_error_that_names_it() -> None:
    shelf = cache.shelf("vectors")
    with pytest.raises(DynoError, match=r"vectors/torn lacks data\.json"):
        shelf.once("torn", lambda making: ("a set of vectors", "the test"))
    assert shelf.names() == [] and not list(shelf.folder.glob("*.making"))


def test_nobody_else_can_open_a_lock_and_so_take_it() -> None:
    made()
    lock = builds().folder / "one.used"
    cache.release()
    lock.unlink()
    lock.touch()
    lock.chmod(0o644)
    assert builds().take("one") is not None
    assert lock.stat().st_mode & 0o077 == 0


def test_a_scratch_folder_of_a_process_that_was_killed_is_swept() -> None:
    code = (
        "import os, signal\n"
        "from dbdyno.host.cache import scratch\n"
        "with scratch('trial') as folder:\n"
        "    (folder / 'large').write_text('rows')\n"
        "    print(folder, oct(folder.stat().st_mode)[-3:], flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    died = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    place, rights = died.stdout.split()
    assert died.returncode == -signal.SIGKILL and Path(place).exists() and rights == "700"
    assert cache.sweep() == [Path(place)] and not Path(place).exists()
    with cache.scratch("trial") as folder:
        assert cache.sweep() == [] and folder.is_dir(), "a living process keeps its own"
    assert not folder.exists()
