"""Where a run of the tests is: how many of how many, the minutes left, and each failure when it happens.

`--progress` prints lines for a log in place of pytest's dots. What pytest says at the end stays as it is.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import pytest

from tests.needs import missing

EVERY_S = 20.0
KEPT_AS, FAILED_AS, RUNS_KEPT = "dyno/seconds", "dyno/failed", 10
USUAL_S = 0.15
LONG_S = 4.0
"""What a test takes of a file that is among those that take longest, and what any other, until a run has
timed them here."""
KNOWN_AFTER_S = 60.0
"""From then on what was seen says more of the minutes left than what is known beforehand."""


def weights_of(
    tests: Iterable[str], seconds: Mapping[str, float], long: Container[str] = ()
) -> dict[str, float]:
    """The seconds that each test is likely to take. `seconds` are those of one of a file that was timed."""
    return {name: seconds.get(file := _file(name), LONG_S if file in long else USUAL_S) for name in tests}


def _file(test: str) -> str:
    return test.partition("::")[0].removeprefix("tests/")


@dataclass
class Progress:
    """Counts tests that ended, and says so at most every `EVERY_S`. `seconds` are those of a test of each
    file that was timed, and `long` are the files that take longest. `failures` are those of earlier
    runs."""

    seconds: dict[str, float]
    say: Callable[[str], None]
    long: Collection[str] = ()
    failures: list[list[str]] = field(default_factory=list)
    clock: Callable[[], float] = time.monotonic
    workers: int = 1
    weights: dict[str, float] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    took_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    began_s: float = 0.0
    said_s: float = 0.0

    def begin(self, tests: Iterable[str]) -> None:
        """Every worker collects the same tests."""
        if self.weights:
            return
        self.weights = weights_of(tests, self.seconds, self.long)
        self.began_s = self.said_s = self.clock()
        lacks = f" This machine has no {', '.join(missing())}: what needs it is skipped." if missing() else ""
        self.say(f"{len(self.weights):,} tests, about {_minutes(self.left_s())}.{lacks}")
        if before := sorted({name for run in self.failures for name in run}):
            self.say(f"In the last {len(self.failures)} runs failed at least once: {', '.join(before)}")

    def left_s(self) -> float:
        """Seconds until the last test ends, by those that ended; at first as when the files were timed."""
        done = sum(self.weights[name] for name in self.ended if name in self.weights)
        passed_s = self.clock() - self.began_s
        each = (passed_s + KNOWN_AFTER_S) / (done + KNOWN_AFTER_S * self.workers)
        return each * (sum(self.weights.values()) - done)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self.begin(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[object]) -> None:
        self.workers = len(specs)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self.begin(ids)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(
        self,
    ) -> Generator[None, tuple[str, object, object], tuple[str, object, object]]:
        """Without a letter nothing stands between the lines."""
        category, _, _ = yield
        return category, "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
            self.say(f"FAILED {report.nodeid} ({report.when}): {_reason(report)}")
        self.took_s[report.nodeid] += report.duration
        if report.when == "teardown":
            self.ended.add(report.nodeid)
            if self.clock() - self.said_s >= EVERY_S:
                self.said_s = self.clock()
                self.say(self.line())

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keeps what this run timed for the next one."""
        timed: dict[str, list[float]] = {}
        for name in self.ended:
            timed.setdefault(_file(name), []).append(self.took_s[name])
        if late := self.late({file: sum(each) for file, each in timed.items()}):
            self.say(f"Longer than half of the files that begin first (LONG): {', '.join(late)}")
        self.seconds |= {file: sum(each) / len(each) for file, each in timed.items()}
        if session.config.cache is not None:
            session.config.cache.set(KEPT_AS, self.seconds)
            session.config.cache.set(FAILED_AS, [*self.failures, sorted(self.failed)][-RUNS_KEPT:])

    def late(self, took_s: Mapping[str, float]) -> list[str]:
        """Files that took longer than half of those that take longest, and are not among them: a worker may
        begin one when the others have nothing left. A part of the tests tells none."""
        if not self.long or not set(self.long) <= took_s.keys():
            return []
        usual_s = median(took_s[file] for file in self.long)
        return sorted(file for file in took_s.keys() - self.long if took_s[file] > usual_s)

    def line(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"{len(self.ended):,} of {len(self.weights):,} tests, {_minutes(self.left_s())} left{failed}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext.strip()
    return (text.splitlines() or [""])[0][:200]
