"""What a run wants of its hosts: asked, given, withdrawn and given again, and over when all are."""

from __future__ import annotations

import threading

import pytest

from dbdyno.fleet import parts
from dbdyno.fleet.hosts import Replaced
from dbdyno.fleet.parts import PartState
from dbdyno.fleet.session import Session
from dbdyno.records.store import Store
from tests.fleet.cases import run_on, speaks


def states(session: Session, run: str = "first") -> list[PartState]:
    return [part.state for part in parts.parts_of(session, run)]


def test_a_question_is_answered_once(session: Session) -> None:
    run, place = run_on("a", "b").but(fleet=()), speaks(session, "a")
    parts.ask(session, run, ["a", "b"])
    asked = parts.asked_of(session, "a")
    assert asked == run
    parts.answer(session, place, run.run, PartState.REFUSED, "no engine")
    assert parts.asked_of(session, "a") is None
    parts.answer(session, place, run.run, PartState.READY, "late")
    assert [(part.state, part.told) for part in parts.parts_of(session, run.run)] == [
        (PartState.REFUSED, "no engine"),
        (PartState.ASKED, ""),
    ]


def test_a_worker_that_was_replaced_answers_nothing(session: Session) -> None:
    run, place = run_on("a").but(fleet=()), speaks(session, "a")
    parts.ask(session, run, ["a"])
    session.execute("UPDATE dyno_hosts SET worker = 'another' WHERE host = 'a'")
    with pytest.raises(Replaced):
        parts.answer(session, place, run.run, PartState.READY, "this machine")
    assert states(session) == [PartState.ASKED]


def test_what_is_asked_holds_no_password(session: Session) -> None:
    run = run_on("a").but(study_text="engine = 'postgresql://u:secret@h/d'")
    parts.ask(session, run, ["a"])
    ((kept,),) = session.execute("SELECT document FROM dyno_asked")
    assert "secret" not in kept and "postgresql://u:***@h/d" in kept


def test_a_host_goes_on_with_the_run_that_began_first(url: str, session: Session) -> None:
    later, earlier = (run_on("a", name=name).but(created_unix_s=s) for name, s in (("x", 9.0), ("y", 3.0)))
    with Store(url) as store:
        for run in (later, earlier):
            store.add_run(run)
            parts.give(session, run)
    assert parts.next_run(session, "a") == "y"
    parts.withdraw(session, "y")
    assert parts.next_run(session, "a") == "x"


def test_what_was_withdrawn_is_given_again_and_what_is_done_stays_done(url: str, session: Session) -> None:
    place, run = speaks(session, "a"), run_on("a", "b")
    with Store(url) as store:
        store.add_run(run)
    parts.give(session, run)
    parts.end(session, place, run.run, PartState.DONE)
    parts.withdraw(session, run.run)
    assert states(session) == [PartState.DONE, PartState.WITHDRAWN]
    parts.give(session, run)
    assert states(session) == [PartState.DONE, PartState.GIVEN]


def test_a_withdrawn_part_is_not_done_by_who_was_late(url: str, session: Session) -> None:
    place, run = speaks(session, "a"), run_on("a")
    with Store(url) as store:
        store.add_run(run)
        parts.give(session, run)
        parts.withdraw(session, run.run)
        parts.end(session, place, run.run, PartState.DONE)
        assert states(session) == [PartState.WITHDRAWN] and not store.summary(run).finished


def test_a_run_is_over_when_hosts_end_at_the_same_moment(url: str, session: Session) -> None:
    with Store(url) as store, Session(url) as other:
        places = [(session, speaks(session, "a")), (other, speaks(other, "b"))]
        for number in range(20):
            run = run_on("a", "b", name=f"run-{number}")
            store.add_run(run)
            parts.give(session, run)
            ends = [
                threading.Thread(target=parts.end, args=(one, place, run.run, PartState.DONE))
                for one, place in places
            ]
            for each in ends:
                each.start()
            for each in ends:
                each.join()
            assert store.summary(run).finished
