"""Who is in a fleet, who speaks for a host, and what becomes of the runs of one that is taken out."""

from __future__ import annotations

import pytest

from dbdyno.errors import UserError
from dbdyno.fleet import hosts, parts
from dbdyno.fleet.hosts import Replaced, chosen, register, remove, require_speaker, seen, speak_again
from dbdyno.fleet.leases import take
from dbdyno.fleet.parts import State
from dbdyno.fleet.session import Session
from dbdyno.records.database import LeaseOver, Unavailable
from dbdyno.records.store import Store
from tests.fleet.cases import member, record_of, run_on, speaks


def test_hosts_are_found_by_name_and_by_tag(url: str, session: Session) -> None:
    with Session(url) as other, Session(url) as third:
        register(session, member("a", "big"), "1", lambda line: None)
        register(other, member("b", "big", "old"), "2", lambda line: None)
        register(third, member("c"), "3", lambda line: None)
        found = [one.member.name for one in chosen(session, ["tag:big", "c", "a"])]
        assert found == ["a", "b", "c"]
        assert [one.member.name for one in chosen(session, ["tag:old"])] == ["b"]


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
        chosen(session, [word])
    assert hint in error.value.hint


def test_a_worker_that_died_is_silent_at_once(url: str, session: Session) -> None:
    with Session(url) as other:
        speaks(other, "a")
        assert [one.connected for one in seen(session)] == [True]
    while seen(session)[0].connected:
        pass
    with pytest.raises(UserError, match="host a is silent since"):
        chosen(session, ["a"])


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
        assert [part.state for part in parts.parts_of(controller, run.run)] == [State.LEFT_OUT, State.GIVEN]
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
