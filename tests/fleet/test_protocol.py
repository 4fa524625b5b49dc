"""Workers of hosts that begin, measure, are stopped, lose their connection or die, in any order.

No two leases of a host overlap, and the store has just the records of leases that were in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dbdyno.fleet import hosts, parts
from dbdyno.fleet.hosts import HeldHost, Replaced, remove, renew, seen, speak_again, take
from dbdyno.fleet.session import Session
from dbdyno.records.database import LeaseOver, Unavailable
from dbdyno.records.store import Store
from tests.fleet.cases import record_of, run_on, speaks
from tests.fleet.judge import OVERLAPS

HOSTS = ("a", "b")
LONG_S = 3600.0


@dataclass
class Worker:
    """What the model knows of a worker: whether it speaks for its host, and whether its lease counts."""

    host: str
    session: Session
    place: HeldHost
    fence: int = 0
    counts: bool = False
    replaced: bool = False


class Fleet(RuleBasedStateMachine):
    """`url` is set by the test. Every worker that ever lived may go on at any later moment."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.store, self.session = Store(self.url), Session(self.url)
        with self.store._transaction() as execute:
            for table in ("dyno_records", "dyno_runs", "dyno_chain"):
                execute(f"DELETE FROM {table}")
        for table in ("hosts", "leases", "parts", "late"):
            self.session.execute(f"DELETE FROM dyno_{table}")
        self.run, self.workers, self.begun = run_on(*HOSTS, blocks=64), list[Worker](), 0
        self.store.add_run(self.run)
        parts.give(self.session, self.run)
        self.kept, self.late, self.trial = set[int](), set[int](), 0

    def teardown(self) -> None:
        for worker in self.workers:
            worker.session.__exit__()
        self.session.__exit__()
        self.store.__exit__()

    def speaker(self, host: str) -> Worker | None:
        return next((one for one in self.workers if one.host == host and not one.replaced), None)

    def live(self, number: int) -> Worker:
        return self.workers[number % len(self.workers)]

    @rule(host=st.sampled_from(HOSTS))
    def begin(self, host: str) -> None:
        """A worker begins where the host has none, or one whose session has ended or whose lease ran out."""
        before = self.speaker(host)
        held = before is not None and not before.session._connection.closed
        if held and before is not None and not (before.fence and not before.counts):
            return
        session = Session(self.url)
        self.begun += 1
        place = speaks(session, host, worker=f"worker-{self.begun}")
        if before is not None:
            before.replaced, before.counts = True, False
        self.workers.append(Worker(host, session, place))

    @precondition(lambda self: self.workers)
    @rule(number=st.integers(0, 9))
    def lease(self, number: int) -> None:
        worker = self.live(number)
        try:
            fence = take(worker.session, worker.place, self.run.run, LONG_S)
        except Unavailable:
            assert worker.session._connection.closed
        except Replaced:
            assert worker.replaced
        else:
            assert not worker.replaced and fence > worker.fence
            worker.fence, worker.counts = fence, True

    @precondition(lambda self: self.workers)
    @rule(number=st.integers(0, 9))
    def keep(self, number: int) -> None:
        """A trial ends. The store does not need the worker's session."""
        worker = self.live(number)
        if not worker.fence:
            return
        self.trial += 1
        try:
            self.store.add_record(record_of(self.trial, worker.host, worker.fence))
        except LeaseOver:
            assert not worker.counts
            self.late.add(self.trial)
        else:
            assert worker.counts
            self.kept.add(self.trial)

    @precondition(lambda self: self.workers)
    @rule(number=st.integers(0, 9))
    def run_out(self, number: int) -> None:
        """A worker is stopped, until its lease is over by the database's clock."""
        worker = self.live(number)
        self.session.execute(
            "UPDATE dyno_leases SET during = tstzrange(lower(during), clock_timestamp())"
            " WHERE fence = %s AND upper(during) > clock_timestamp()",
            worker.fence,
        )
        worker.counts = False

    @precondition(lambda self: self.workers)
    @rule(number=st.integers(0, 9))
    def renewed(self, number: int) -> None:
        worker = self.live(number)
        try:
            assert renew(worker.session, worker.fence, LONG_S) == worker.counts
        except Unavailable:
            assert worker.session._connection.closed

    @precondition(lambda self: self.workers)
    @rule(number=st.integers(0, 9))
    def die(self, number: int) -> None:
        worker = self.live(number)
        worker.session._connection.close()
        while any(one.connected and one.member.name == worker.host for one in seen(self.session)):
            if (speaker := self.speaker(worker.host)) is not worker and speaker is not None:
                break

    @precondition(lambda self: self.workers)
    @rule(number=st.integers(0, 9))
    def come_back(self, number: int) -> None:
        worker = self.live(number)
        try:
            speak_again(worker.session, worker.place)
        except Replaced:
            assert worker.replaced
        except Unavailable:
            # The next worker of the host has ended this one's session, which shows with the first statement.
            assert worker.replaced and worker.session._connection.closed
        else:
            assert not worker.replaced

    @rule(host=st.sampled_from(HOSTS))
    def take_out(self, host: str) -> None:
        if any(one.member.name == host for one in seen(self.session)):
            remove(self.session, host)
            for worker in self.workers:
                if worker.host == host:
                    worker.replaced, worker.counts = True, False

    @invariant()
    def the_store_has_what_it_took(self) -> None:
        assert self.session.execute(OVERLAPS) == []
        assert self.store.trials_of(self.run.run) == self.kept
        late = self.session.execute("SELECT trial FROM dyno_late")
        assert {trial for (trial,) in late} == self.late


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The next worker does not wait long."""
    monkeypatch.setattr(hosts, "ASK_AGAIN_S", 0.01)
    monkeypatch.setattr(hosts, "PATIENCE_S", 5.0)
    yield


@pytest.mark.usefixtures("impatient")
def test_in_any_order_only_leases_in_force_keep_records(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fleet, "url", url)
    # A quarter of what the profile says, because each step is a statement of a server's.
    examples = (settings.default or settings()).max_examples // 4
    run_state_machine_as_test(Fleet, settings=settings(max_examples=examples, stateful_step_count=25))
