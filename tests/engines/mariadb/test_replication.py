"""What MariaDB's and MySQL's own words mean for replicas."""

from __future__ import annotations

import pytest

from dbdyno.driver.passwords import Ask
from dbdyno.engines.mariadb.replication import MARIADB_WORDS, NEVER_MS, Replication, Words, transactions
from dbdyno.engines.mysql.replication import MYSQL_WORDS
from dbdyno.records.record import Loss

Rows = list[list[str | float | None]]
KINDS = {semi: Replication(MARIADB_WORDS, semi) for semi in (False, True)}


def says(**status: str) -> Ask:
    """A node with these status variables, which sends its log to `sent`."""

    def ask(sql: str) -> Rows:
        if sql == MARIADB_WORDS.sent:
            return [[status.get("sent", "0")]]
        if sql.startswith("SELECT @@rpl_semi_sync"):
            return [["AFTER_SYNC"]]
        if sql == "SHOW REPLICA STATUS":
            return [["Waiting", "Error 'Duplicate entry' on query"]]
        name = sql.split("'")[1].lower()
        return [[name, status[name]]] if name in status else []

    return ask


FIRST = says(sent="1", rpl_semi_sync_master_status="OFF")
WAITING = says(sent="1", rpl_semi_sync_master_status="ON", rpl_semi_sync_master_clients="1")
REPLICA = says(slave_running="ON", rpl_semi_sync_slave_status="OFF")
CONFIRMING = says(slave_running="ON", rpl_semi_sync_slave_status="ON")
STOPPED = says(slave_running="OFF", rpl_semi_sync_slave_status="OFF")


def whole(semi: bool, first: Ask, other: Ask) -> bool:
    return KINDS[semi].membership({"node1": first, "node2": other}, "node1").whole


def test_nodes_are_of_a_kind_where_both_sides_say_so() -> None:
    assert whole(False, FIRST, REPLICA) and whole(True, WAITING, CONFIRMING)
    assert not whole(True, FIRST, REPLICA) and not whole(False, WAITING, CONFIRMING)
    assert not whole(True, WAITING, REPLICA) and not whole(True, FIRST, CONFIRMING)
    assert not whole(False, says(sent="0", rpl_semi_sync_master_status="OFF"), REPLICA)


def test_a_replica_that_stopped_tells_its_error() -> None:
    found = KINDS[False].membership({"node1": FIRST, "node2": STOPPED}, "node1")
    assert not found.whole
    assert found.words == (
        "node1 sends the log to 1, and waits for none; "
        "node2 does not apply it: Error 'Duplicate entry' on query"
    )


@pytest.mark.parametrize(
    ("gtids", "count"),
    [
        ("", 0),
        ("0-1-57", 57),
        ("0-2-60,1-1-5", 60),
        ("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-57:59,4e11fa47-71ca-11e1-9e33-c80aa9429562:1-3", 61),
        ("3e11fa47-71ca-11e1-9e33-c80aa9429562:5", 1),
    ],
)
def test_gtids_of_both_servers_are_counted(gtids: str, count: int) -> None:
    assert transactions(gtids) == count


@pytest.mark.parametrize(("words", "source"), [(MARIADB_WORDS, "master"), (MYSQL_WORDS, "source")])
def test_who_waits_for_ever_loses_nothing_and_who_goes_on_alone_may(words: Words, source: str) -> None:
    timeout = f"rpl_semi_sync_{source}_timeout"
    waiting = Replication(words, semi=True)
    assert waiting.permits({timeout: NEVER_MS}) is Loss.NOTHING
    assert waiting.permits({timeout: 10_000}) is Loss.COMMITS
    assert Replication(words, semi=False).permits({}) is Loss.COMMITS
