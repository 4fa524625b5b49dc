"""Who is in a fleet, who speaks for a host, and what becomes of the runs of one that is taken out."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest

from dbdyno.errors import DynoError, UserError
from dbdyno.fleet import hosts, parts
from dbdyno.fleet.hosts import (
    Lease,
    Replaced,
    chosen_hosts,
    end_leases,
    length_s,
    register,
    remove,
    renew,
    require_speaker,
    seen,
    speak_again,
    take,
)
from dbdyno.fleet.parts import PartState
from dbdyno.fleet.session import Session
from dbdyno.records.database import LeaseOver, Spool, Unavailable
from dbdyno.records.store import Store
from tests.fakes import make_study
from tests.fleet.asleep import switches_of
from tests.fleet.cases import member, record_of, run_on, speaks
from tests.records.postgresql import PostgreSQL


def test_hosts_are_found_by_name_and_by_tag(url: str, session: Session) -> None:
    with Session(url) as other, Session(url) as third:
        register(session, member("a", "big"), "1", lambda line: None)
        register(other, member("b", "big", "old"), "2", lambda line: None)
        register(third, member("c"), "3", lambda line: None)
        found = [one.member.name for one in chosen_hosts(session, ["tag:big", "c", "a"])]
        assert found == ["a", "b", "c"]
        assert [one.member.name for one in chosen_hosts(session, ["tag:old"])] == ["b"]


@pytest.mark.parametrize(
    ("word", "said", "hint"),
    [
        (
            "z",
            "no host is called 'z' in the fleet of PostgreSQL .*; there are: a",
            "dyno fleet worker --name z",
        ),
        ("tag:big", "no host has the tag 'big'", "dyno fleet worker --tag big"),
    ],
)
def test_a_host_that_is_not_there_is_named_with_what_to_do(
    session: Session, word: str, said: str, hint: str
) -> None:
    speaks(session, "a")
    with pytest.raises(UserError, match=said) as error:
        chosen_hosts(session, [word])
    assert hint in error.value.hint


def test_a_worker_that_died_is_silent_at_once(url: str, session: Session) -> None:
    with Session(url) as other:
        speaks(other, "a")
        assert [one.connected for one in seen(session)] == [True]
    while seen(session)[0].connected:
        pass
    with pytest.raises(UserError, match="host a is silent since"):
        chosen_hosts(session, ["a"])


def test_a_second_worker_of_a_host_is_refused_while_the_first_lives(
    url: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "PATIENCE_S", 0.0)
    speaks(session, "a")
    with Session(url) as other, pytest.raises(UserError, match="another worker speaks for host a"):
        speaks(other, "a", worker="second")


def test_a_worker_whose_connection_broke_speaks_again(url: str, session: Session) -> None:
    place = speaks(session, "a")
    with Session(url) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
    with pytest.raises(Unavailable):
        while True:
            session.execute("SELECT 1")
    speak_again(session, place)
    assert seen(session)[0].connected


def test_the_next_worker_of_a_host_ends_the_lease_of_the_one_before(url: str, session: Session) -> None:
    with Session(url) as other:
        fence = take(other, speaks(other, "a"), "first", 600.0)
    place = speaks(session, "a", worker="second")
    assert take(session, place, "first", 600.0) > fence
    with Store(url) as store:
        store.add_run(run_on("a"))
        with pytest.raises(LeaseOver):
            store.add_record(record_of(0, "a", fence))


def test_a_host_that_is_taken_out_leaves_its_runs_and_stores_nothing_more(url: str, session: Session) -> None:
    place, run = speaks(session, "a"), run_on("a", "b")
    fence = take(session, place, run.run, 600.0)
    with Store(url) as store, Session(url) as controller:
        store.add_run(run)
        parts.give(controller, run)
        assert remove(controller, "a") == [run.run]
        with pytest.raises(LeaseOver):
            store.add_record(record_of(0, "a", fence))
        assert [host.left_out for host in store.run(run.run).fleet] == [True, False]
        assert [part.state for part in parts.parts_of(controller, run.run)] == [
            PartState.LEFT_OUT,
            PartState.GIVEN,
        ]
        assert seen(controller) == []
    with pytest.raises(Replaced, match="was taken out of the fleet"):
        require_speaker(session, place)


def test_a_run_whose_last_host_is_taken_out_is_over(url: str, session: Session) -> None:
    speaks(session, "a")
    with Store(url) as store:
        run = run_on("a")
        store.add_run(run)
        parts.give(session, run)
        remove(session, "a")
        assert store.summary(run).finished


def test_a_name_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(UserError, match="cannot be the name"):
        hosts.require_name("no host")


LONG_S = 600.0


def late(session: Session) -> list[tuple[object, ...]]:
    return list(session.execute("SELECT trial, fence FROM dyno_late ORDER BY trial"))


def wait_until_over(session: Session, fence: int) -> None:
    over = "SELECT 1 FROM dyno_leases WHERE fence = %s AND upper(during) < clock_timestamp()"
    while not session.execute(over, fence):
        time.sleep(0.01)


def test_the_database_itself_refuses_leases_of_a_host_that_overlap(session: Session) -> None:
    place = speaks(session, "a")
    take(session, place, "first", LONG_S)
    with pytest.raises(psycopg.errors.ExclusionViolation):
        session.execute(
            "INSERT INTO dyno_leases (number, run, during)"
            " VALUES (%s, 'second', tstzrange(now() + interval '1 min', now() + interval '2 min'))",
            place.number,
        )


def test_the_number_of_a_lease_is_above_those_before_it(session: Session) -> None:
    place = speaks(session, "a")
    fences = [take(session, place, "first", LONG_S) for _ in range(3)]
    assert fences == sorted(set(fences))


def test_a_record_is_kept_under_the_lease_in_force_alone(url: str, session: Session) -> None:
    place = speaks(session, "a")
    first = take(session, place, "first", LONG_S)
    with Store(url) as store:
        store.add_run(run_on("a"))
        store.add_record(record_of(0, "a", first))
        second = take(session, place, "first", LONG_S)
        with pytest.raises(LeaseOver, match=f"lease {first} of this host is over"):
            store.add_record(record_of(1, "a", first))
        store.add_record(record_of(2, "a", second))
        assert [record.trial for record in store.records("first")] == [0, 2]
    assert late(session) == [(1, first)]


def test_a_lease_of_one_run_keeps_no_record_of_another(url: str, session: Session) -> None:
    fence = take(session, speaks(session, "a"), "first", LONG_S)
    with Store(url) as store:
        store.add_run(run_on("a", name="second"))
        with pytest.raises(LeaseOver):
            store.add_record(record_of(0, "a", fence, run="second"))


def test_a_lease_ends_by_the_clock_of_the_database_and_is_not_renewed_then(
    url: str, session: Session
) -> None:
    fence = take(session, speaks(session, "a"), "first", 0.05)
    wait_until_over(session, fence)
    assert not renew(session, fence, LONG_S)
    with Store(url) as store:
        store.add_run(run_on("a"))
        with pytest.raises(LeaseOver):
            store.add_record(record_of(0, "a", fence))


def test_a_record_that_waited_on_disk_is_kept_or_refused_by_its_lease(url: str, session: Session) -> None:
    place = speaks(session, "a")
    with Store(url) as store:
        store.add_run(run_on("a"))
        spool = Spool(store.key_of_place)
    old = take(session, place, "first", LONG_S)
    now = take(session, place, "first", LONG_S)
    for trial, fence in enumerate((old, now)):
        document = record_of(trial, "a", fence).model_dump_json()
        spool.keep(("first", trial, "baseline", 0, "measured", document))
    with Store(url) as store:
        assert [record.trial for record in store.records("first")] == [1]
    assert spool.empty and late(session) == [(0, old)]


def test_a_lease_goes_on_while_its_process_lives_and_ends_with_it(session: Session) -> None:
    place = speaks(session, "a")
    with Lease(session, place, "first", 0.4) as lease:
        before_s = until_s(session, lease.fence)
        while until_s(session, lease.fence) == before_s:
            time.sleep(0.01)
        lease.require_in_force()
    assert not renew(session, lease.fence, LONG_S)


def test_nothing_renews_a_lease_while_a_slice_is_measured(session: Session) -> None:
    place = speaks(session, "a")
    with Lease(session, place, "first", 0.2) as lease:
        lease.stage_began(timed=True)
        wait_until_over(session, lease.fence)
        lease.stage_began(timed=True)
        with pytest.raises(LeaseOver, match="time ran out"):
            lease.require_in_force()


def test_the_thread_of_a_lease_does_not_wake_while_a_slice_is_measured(session: Session) -> None:
    with Lease(session, speaks(session, "a"), "first", 0.4) as lease:
        lease.stage_began(timed=True)
        status = Path(f"/proc/self/task/{lease._thread.native_id}/status")
        time.sleep(0.1)
        before = switches_of(status)
        time.sleep(1.0)
        assert switches_of(status) == before


def until_s(session: Session, fence: int) -> float:
    ((until,),) = session.execute(
        "SELECT extract(epoch FROM upper(during))::float8 FROM dyno_leases WHERE fence = %s", fence
    )
    return float(until)


def test_a_lease_outlives_a_store_that_starts_again(store_server: PostgreSQL, session: Session) -> None:
    place = speaks(session, "a")
    # It is due for renewal after a quarter, and by then the store has started again.
    with Lease(session, place, "first", 40.0) as lease:
        store_server.restart()
        with pytest.raises(Unavailable):
            session.execute("SELECT 1")
        before_s = time.monotonic()
        while time.monotonic() - before_s < 40.0 and session._connection.closed:
            lease.stage_began(timed=False)
            time.sleep(0.05)
        lease.require_in_force()
        assert renew(session, lease.fence, LONG_S)


def test_who_was_stopped_beyond_its_lease_loses_its_host_to_the_next_worker(
    url: str, session: Session
) -> None:
    place = speaks(session, "a", worker="stopped")
    fence = take(session, place, "first", 0.05)
    wait_until_over(session, fence)
    with Session(url) as other:
        register(other, member("a"), "next", lambda line: None)
        with pytest.raises(DynoError):
            session.execute("SELECT 1")
        session.reopen()
        with pytest.raises(Replaced, match="another worker speaks for host a"):
            take(session, place, "first", LONG_S)


def test_a_lease_is_longer_than_twice_what_nothing_interrupts() -> None:
    study = make_study(1, 2, blocks=2)
    longest_s = study.workload.duration_s + study.workload.warmup_s
    assert length_s(study) > hosts.LEAST_S + longest_s
    assert length_s(study, lost=2) == 4.0 * length_s(study)


def test_a_lease_that_ended_stays_in_the_history(session: Session) -> None:
    place = speaks(session, "a")
    take(session, place, "first", LONG_S)
    end_leases(session, place.number)
    take(session, place, "first", LONG_S)
    assert session.execute("SELECT count(*) FROM dyno_leases WHERE number = %s", place.number) == [(2,)]
