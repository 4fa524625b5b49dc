"""Whoever waits for a fleet's word sleeps until it comes, and hears what came with another answer."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.fleet.session import Session, require_server
from dbdyno.records.database import Unavailable
from tests.fleet.asleep import switches_of
from tests.records.postgresql import PostgreSQL


def test_a_word_that_came_with_an_answer_is_heard(url: str, session: Session) -> None:
    session.listen("first")
    session.wait(0.0)
    with Session(url) as other:
        other.tell("first")
    # Its answer brings the word along, so the socket has nothing left to read.
    session.execute("SELECT 1")
    session.wait(60.0)


def test_who_waits_is_not_awake(url: str, session: Session) -> None:
    session.listen("first")
    session.wait(0.0)
    switches = {}

    def sleep() -> None:
        status = Path(f"/proc/self/task/{threading.get_native_id()}/status")
        switches["before"] = switches_of(status)
        session.wait()
        switches["after"] = switches_of(status)

    waiting = threading.Thread(target=sleep)
    waiting.start()
    time.sleep(1.0)
    with Session(url) as other:
        other.tell(*["another"] * 20, "first")
    waiting.join()
    # To fall asleep, and to read the word; a look ten times a second would be ten more.
    assert switches["after"] - switches["before"] < 8


def test_a_server_that_ends_is_told_to_who_waits(store_server: PostgreSQL, session: Session) -> None:
    session.wait(0.0)
    store_server.restart()
    with pytest.raises(Unavailable):
        session.wait(60.0)
    session.reopen()
    session.execute("SELECT 1")


def test_a_file_is_no_store_of_a_fleet() -> None:
    with pytest.raises(UserError, match="a fleet needs a store that all its hosts reach") as error:
        require_server("sqlite:///store.sqlite")
    assert "postgresql://" in error.value.hint
