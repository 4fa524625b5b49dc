"""What Dyno starts ends with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from dbdyno.errors import BuildFailed, DynoError
from dbdyno.host import kernel_files, process
from dbdyno.host.process import carry_out

FOREVER = "import time; time.sleep(600)"
FAMILY = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {FOREVER!r}]); {FOREVER}"


def wait_until(condition: object, timeout_s: float = 20.0) -> bool:
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_a_killed_family_leaves_nobody(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as output:
        child = process.start([sys.executable, "-c", FAMILY], environment=os.environ, output=output)
    assert wait_until(lambda: len(process.family(child.pid)) == 2)
    members = process.family(child.pid)
    process.kill_family(child)
    assert process.family(child.pid) == ()
    assert not any(psutil.pid_exists(member) for member in members)


def test_what_the_kernel_does_not_let_go_of_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", FOREVER]) as child:
        with monkeypatch.context() as stuck:
            for each in (subprocess.Popen, psutil.Process):
                stuck.setattr(each, "kill", lambda _: None)
            stuck.setattr(process, "GONE_S", 0.01)
            with pytest.raises(DynoError, match=f"process {child.pid} was killed and is still there"):
                process.kill_family(child)
        process.kill_family(child)


def test_a_family_is_found_as_others_find_it(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as output:
        child = process.start([sys.executable, "-c", FAMILY], environment=os.environ, output=output)
    try:
        assert wait_until(lambda: len(process.family(child.pid)) == 2)
        below = [one.pid for one in psutil.Process(child.pid).children(recursive=True)]
        assert process.family(child.pid) == (child.pid, *below)
        told = process.stats_of_families([child.pid])
        assert [int(fields[1]) for fields in told.values()] == [os.getpid(), child.pid]
    finally:
        process.kill_family(child)


@pytest.mark.parametrize("told", ["all", "cut off", "hidden", "no thread"])
def test_what_the_kernel_runs_by_itself_is_not_read(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a list that is cut off the last number counts for nothing, and a container may have a process of a
    user's in the place of the first thread."""
    listed = {"2": ["0", str(1 << 21)], "5": ["2", str(1 << 21)], "51": ["2", str(1 << 21)], "7": ["1", "0"]}
    if told == "no thread":
        listed["2"][1] = "0"
    seen: list[str] = []

    def read(path: str) -> str:
        if path.endswith("children"):
            if told == "hidden":
                raise kernel_files.Gone(path)
            return "51 5" if told == "cut off" else "51 5 "
        seen.append(number := path.split("/")[2])
        parent, flags = listed[number]
        return f"{number} (a b) S {parent} 1 1 0 -1 {flags} 0"

    monkeypatch.setattr(kernel_files, "names", lambda folder: ["self", *listed])
    monkeypatch.setattr(kernel_files, "counters_text", read)
    assert process.families([7]) == (7,)
    hidden = {"all": {"5", "51"}, "cut off": {"51"}}.get(told, set())
    assert set(seen) == listed.keys() - hidden


def test_a_child_that_is_named_beside_its_parent_counts_once(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as output:
        child = process.start([sys.executable, "-c", FAMILY], environment=os.environ, output=output)
    try:
        assert wait_until(lambda: len(process.family(child.pid)) == 2)
        members = process.family(child.pid)
        assert process.families(members) == members
        assert sorted(process.families(reversed(members))) == sorted(members)
        assert process.families([]) == ()
    finally:
        process.kill_family(child)


def test_what_has_ended_is_passed_over_unless_nothing_is_left() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()

    def name(process_id: int) -> str:
        return kernel_files.text(f"/proc/{process_id}/comm")

    assert list(process.of_each([ended.pid, os.getpid()], name)) == [name(os.getpid())]
    assert list(process.of_each([], name)) == []
    with pytest.raises(kernel_files.Gone):
        list(process.of_each([ended.pid], name))


def test_a_worker_that_has_ended_does_not_hide_the_others() -> None:
    ended, other = (subprocess.Popen([sys.executable, "-c", FOREVER]) for _ in range(2))
    try:
        ended.kill()
        assert wait_until(lambda: psutil.Process(ended.pid).status() == psutil.STATUS_ZOMBIE)
        found = process.family(os.getpid())
        assert found[0] == os.getpid() and other.pid in found and ended.pid not in found
    finally:
        for each in (ended, other):
            each.kill()
            each.wait()


def test_cpu_of_a_child_counts_once_before_and_after_it_is_waited_for() -> None:
    own, began = [os.getpid()], process.cpu_taken([os.getpid()])
    child = os.fork()
    if child == 0:
        while time.process_time() < 0.25:
            pass
        os._exit(0)
    assert wait_until(lambda: process.stat_fields(child)[0] == "Z")
    ended = process.cpu_taken(own)
    assert ended.by_process[child] >= 0.25, "it is there until somebody waits for it"
    os.waitpid(child, 0)
    over = process.cpu_taken(own)
    assert child not in over.by_process
    assert over.since(began) >= 0.23, "its ticks are those of its parent now"
    assert over.since(ended) >= 0.0


def test_a_child_dies_when_dyno_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, sys, time; from dbdyno.host import process; "
        "child = process.start([sys.executable, '-c', sys.argv[1]], environment=os.environ,"
        " output=sys.stderr.buffer); "
        "print(child.pid, flush=True); time.sleep(600)"
    )
    dyno = subprocess.Popen([sys.executable, "-c", script, FOREVER], stdout=subprocess.PIPE)
    assert dyno.stdout is not None
    child = int(dyno.stdout.readline())
    assert psutil.pid_exists(child)
    dyno.send_signal(signal.SIGKILL)
    dyno.wait()
    dyno.stdout.close()
    assert wait_until(lambda: not psutil.pid_exists(child))


def test_a_child_runs_on_the_cpus_it_was_given(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    with (tmp_path / "log").open("wb") as output:
        child = process.start(
            [sys.executable, "-c", FOREVER], environment=os.environ, output=output, affinity=(cpu,)
        )
    try:
        assert os.sched_getaffinity(child.pid) == {cpu}
    finally:
        process.kill_family(child)


def tasks(process_id: int) -> list[int]:
    return [task for member in process.family(process_id) for task in process._tasks(member)]


def test_a_family_moves_to_other_cpus_with_all_its_threads(tmp_path: Path) -> None:
    threads = f"import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); {FOREVER}"
    family = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {threads!r}]); {FOREVER}"
    with (tmp_path / "log").open("wb") as output:
        child = process.start([sys.executable, "-c", family], environment=os.environ, output=output)
    try:
        assert wait_until(lambda: len(tasks(child.pid)) == 3)
        process.bind([child.pid], {min(os.sched_getaffinity(0))})
        assert {len(os.sched_getaffinity(task)) for task in tasks(child.pid)} == {1}
    finally:
        process.kill_family(child)


def test_who_stands_still_goes_on_afterwards() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        with process.standing_still([child.pid]) as still:
            assert still
            assert psutil.Process(child.pid).status() == psutil.STATUS_STOPPED
        child.stdin.write(b"awake\n")
        child.stdin.close()
        assert child.stdout.read() == b"awake\n"


def test_who_does_not_stop_is_not_called_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STILL_S", 0.0)
    monkeypatch.setattr(process, "_send", lambda *_: None)
    with process.standing_still([os.getpid()]) as still:
        assert not still
    with process.standing_still([2**22]) as still:
        assert still, "a process that is gone changes nothing any more"


def test_no_core_dump_holds_what_dyno_knows_and_a_server_may_leave_its_own(tmp_path: Path) -> None:
    code = (
        "import os, resource, signal, subprocess, sys\n"
        "from dbdyno.host.process import leave_no_core, may_leave_a_core\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_CORE)\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))\n"
        "leave_no_core()\n"
        "shown = 'import resource; print(*resource.getrlimit(resource.RLIMIT_CORE))'\n"
        "for step in (None, may_leave_a_core):\n"
        "    subprocess.run([sys.executable, '-c', shown], preexec_fn=step, check=True)\n"
        "print(hard, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert child.stdout is not None
    said = child.stdout.read()
    _, status = os.waitpid(child.pid, 0)
    of_driver, of_server, hard = (line.split() for line in said.splitlines())
    assert of_driver == ["1" if hard != ["0"] else "0", *hard] and of_server == hard * 2
    assert os.WTERMSIG(status) == signal.SIGSEGV and not os.WCOREDUMP(status)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path, as a socket's has little room."""
    with tempfile.TemporaryDirectory(prefix="dyno-") as folder:
        yield Path(folder) / "socket"


def test_the_process_at_a_socket_is_found(place: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(place))
        server.listen()
        assert process.at_socket(place) == os.getpid()
    assert process.at_socket(place) is None
    assert process.at_socket(place.with_name("nothing")) is None


def test_the_process_at_a_port_is_found() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert process.at_port(port) is None
        server.listen()
        assert process.at_port(port) == os.getpid()
    assert process.at_port(port) is None


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("", True),
        ("db.example", False),
    ],
)
def test_a_name_of_this_host_is_known(name: str, here: bool) -> None:
    assert process.is_here(name) is here


LONG_S = 600.0
Ask = Callable[[int], int]


def nothing(_question: int) -> int:
    raise AssertionError("nobody asks")


def own_pid(_ask: Ask) -> int:
    return os.getpid()


@pytest.mark.parametrize("at_a_time", [1, 2, 9])
def test_each_task_is_carried_out_by_a_process_of_its_own(at_a_time: int) -> None:
    others = psutil.Process().children()
    found = set(carry_out([own_pid] * 5, at_a_time, nothing))
    assert len(found) == 5 and not found & {None, os.getpid()}
    assert psutil.Process().children() == others


def test_no_more_tasks_go_on_than_were_asked_for(tmp_path: Path) -> None:
    def beside(_ask: Ask) -> int:
        own = tmp_path / str(os.getpid())
        own.touch()
        going = len(list(tmp_path.iterdir()))
        own.unlink()
        return going

    found = [going or 0 for going in carry_out([beside] * 30, 2, nothing)]
    assert min(found) >= 1 and max(found) <= 2


def test_what_a_task_raises_is_dropped_and_the_others_go_on() -> None:
    def fails(_ask: Ask) -> int:
        raise BuildFailed("no compiler", "install one")

    first, second = carry_out([fails, own_pid], 1, nothing)
    assert first is None and second is not None


def test_this_process_answers_what_tasks_ask() -> None:
    def asks(number: int, ask: Ask) -> tuple[int, int]:
        return ask(number), ask(number + 1)

    def answered(question: int) -> int:
        assert os.getpid() == here
        return 10 * question

    here = os.getpid()
    tasks = [partial(asks, number) for number in range(5)]
    assert carry_out(tasks, 3, answered) == [(10 * at, 10 * at + 10) for at in range(5)]


def test_a_task_that_is_killed_while_it_asks_holds_up_no_other() -> None:
    def asks(ask: Ask) -> int:
        return ask(os.getpid())

    def answered(process_id: int) -> int:
        victims.append(process_id)
        if len(victims) == 1:
            os.kill(process_id, signal.SIGKILL)
        return len(victims)

    victims: list[int] = []
    assert sorted(found or 0 for found in carry_out([asks] * 3, 2, answered)) == [0, 2, 3]


def asks_or_sleeps(asks: bool, ask: Ask) -> int:
    if asks:
        return ask(1)
    time.sleep(LONG_S)
    return 0


def test_an_interruption_ends_all_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_lines: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "wait", interrupted)
    others = psutil.Process().children()
    with pytest.raises(KeyboardInterrupt):
        carry_out([partial(asks_or_sleeps, False)] * 3, 2, nothing)
    assert psutil.Process().children() == others


def test_an_interruption_of_an_answer_ends_all_tasks() -> None:
    def interrupted(_question: int) -> int:
        raise KeyboardInterrupt

    others = psutil.Process().children()
    with pytest.raises(KeyboardInterrupt):
        carry_out([partial(asks_or_sleeps, asks) for asks in (False, True)], 2, interrupted)
    assert psutil.Process().children() == others
