"""`dyno run --live`: the pages beside a run follow it, end with it, and never hold it up."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.cli.calls import complaint
from tests.serve.served import PATIENCE_S, Visitor, following, visitor_of
from tests.study_texts import STUDY
from tests.warm import Process


@pytest.fixture
def study(homes: Path) -> Path:
    path = homes / "study.toml"
    path.write_text(STUDY)
    return path


@dataclass
class Live:
    """A run with its pages, what it has said so far, and who has been given the address."""

    process: Process
    visitor: Visitor
    page: str
    said: list[str] = field(default_factory=list)

    @property
    def server(self) -> psutil.Process:
        """The process that serves the pages."""
        children = psutil.Process(self.process.pid).children()
        [found] = [child for child in children if "dbdyno.serve.child" in child.cmdline()]
        return found

    def wait_for(self, words: str) -> None:
        """Until the run says so."""
        assert self.process.stderr is not None
        while not self.said or words not in self.said[-1]:
            line = self.process.stderr.readline()
            assert line, self.said
            self.said.append(line)

    def end(self) -> tuple[int, str]:
        """How the run ended, and all that it said."""
        assert self.process.stderr is not None
        rest = self.process.stderr.read()
        return self.process.wait(PATIENCE_S), "".join(self.said) + rest


@contextmanager
def live(study: Path, *arguments: str) -> Iterator[Live]:
    """A run with its pages, once these can be asked for."""
    process = Process(
        "run", "--live", str(study), *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        found = Live(process, Visitor(0, ""), "")
        found.wait_for("pages: ")
        address = found.said[-1].removeprefix("pages: ")
        found.visitor = visitor_of(address)
        found.page = re.sub(r"http://[^/]*|\?.*\s", "", address)
        found.visitor.enter()
        yield found
    finally:
        process.kill()
        process.wait()


def test_a_page_follows_its_run_and_keeps_the_last(study: Path) -> None:
    seen: list[str] = []
    with live(study, "--blocks", "4") as found:
        assert re.fullmatch(r"/run/[\w-]+", found.page)
        reader = following(found.visitor, found.page, seen)
        code, said = found.end()
        reader.join()
    assert code == 0, said
    *under_way, last, over = seen
    assert over.startswith("Dyno no longer")
    assert any("Under way<" in page and " of 8 trials have ended" in page for page in under_way)
    assert "have ended, in" not in last and "8 trials" in last
    assert "ended before the run" not in said


def test_the_run_that_is_under_way_has_one_address(study: Path) -> None:
    with live(study, "--blocks", "6") as found:
        answer = found.visitor.ask("/live")
        assert (answer.status, answer.headers.get("location")) == (303, found.page)


def test_two_runs_of_pages_do_not_meet(study: Path) -> None:
    with live(study, "--blocks", "6") as found:
        second = complaint("run", str(study), "--live", code=1)
        assert "another dyno measures on this machine" in second
        # While a block is measured, a page that was not drawn yet asks to come again.
        until_s = time.monotonic() + PATIENCE_S
        while (status := found.visitor.ask("/").status) == 503 and time.monotonic() < until_s:
            time.sleep(0.05)
        assert status == 200


def test_a_port_that_is_in_use_is_told_before_anything_is_measured(study: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} of 127.0.0.1 is in use" in complaint("run", str(study), "--live", str(port))
    with Store(store_url()) as store:
        assert store.runs() == []


def test_a_server_that_dies_leaves_the_run_alone(study: Path) -> None:
    with live(study) as found:
        found.server.kill()
        code, said = found.end()
    assert code == 0 and "the server of the pages ended before the run did" in said
    with Store(store_url()) as store:
        assert [summary.finished for summary in store.runs()] == [True]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_server_ends_with_its_run(study: Path, number: signal.Signals) -> None:
    with live(study, "--blocks", "50") as found:
        server = found.server
        found.wait_for("[")
        found.process.send_signal(number)
        code, said = found.end()
        deadline_s = time.monotonic() + PATIENCE_S
        while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
    assert code == (130 if number is signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in said


def test_a_server_that_stands_still_does_not_hold_up_the_end(study: Path) -> None:
    with live(study) as found:
        found.server.suspend()
        code, _ = found.end()
    assert code == 0
