"""Replication by the binary log of MariaDB and MySQL: a first node, and replicas that apply its log."""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from dbdyno.driver.passwords import Ask, conversation, query
from dbdyno.engines.cluster import Founded, Membership, Peer, Site
from dbdyno.engines.mariadb.server import verifier
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.clone import clone_tree
from dbdyno.host.process import standing_still
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Loss

ASYNCHRONOUS, SEMI_SYNCHRONOUS = "asynchronous", "semi-synchronous"
REPLICA = "dyno_replica"
PASSWORD = secrets.token_hex(16)
"""Of the account that replicas come with. It lives as long as this process does."""
GIVEN_UP_S = 4
"""After so long without a word a replica gives its first node up and connects again: the default is a minute,
which no round could wait for."""
NEVER_MS = 2**31
"""A first node that stops to wait is asynchronous from then on. So it waits longer than any trial lasts."""
PROMOTION_S, LOOK_S = 60.0, 0.05
HOW = "copy of the first node, which stood still"


@dataclass(frozen=True)
class Words:
    """What a server calls things. `change` takes `host`, `port`, `user` and `password`. `made` makes the
    replicas' account, and lets the binary log begin with nothing in it. `begun` is done before a replica
    connects. `applied` asks a node what it has, as GTIDs, and `progress` how far that is as a number.
    `has_applied` asks a replica whether it has applied all that it received, and `runs` whether both of its
    threads do. `sent` asks the first node to how many it sends its log. `source` and `replica` are the names
    in the variables of semi-synchronous replication. `own` are files of a data folder that no two nodes may
    share."""

    start: str
    stop: str
    leave: str
    change: str
    made: Sequence[str]
    begun: Sequence[str]
    applied: str
    progress: str
    has_applied: Callable[[Ask], bool]
    runs: Callable[[Ask], bool]
    sent: str
    source: str
    replica: str
    settings: Mapping[str, Level]
    semi_settings: Mapping[str, Level]
    own: Sequence[str] = ()


def transactions(gtids: str) -> int:
    """How many transactions a set of GTIDs names at most: the highest number of MariaDB's domain (`0-1-57`),
    or the sum of MySQL's ranges (`uuid:1-57:59,uuid:1-3`)."""
    numbers = re.findall(r"\b\d+-\d+-(\d+)(?![\w-])", gtids) if ":" not in gtids else []
    if numbers:
        return max(map(int, numbers))
    ranges = re.findall(r":(\d+)(?:-(\d+))?", gtids)
    return sum(int(last or first) - int(first) + 1 for first, last in ranges)


class Replication:
    """A first node and its replicas. With `semi` a commit is told to a client once a replica has its log."""

    PORT = 3306
    AWAY_S = GIVEN_UP_S + 3.0
    EACH_WRITES = False
    WHO = "SELECT CONCAT('node', @@server_id)"
    NOW = "UNIX_TIMESTAMP(NOW(6))"
    FOUNDING: Mapping[str, Level] = {}

    def __init__(self, words: Words, semi: bool) -> None:
        self.words, self.semi = words, semi
        self.PROGRESS = words.progress
        self._source_on = f"rpl_semi_sync_{words.source}_enabled"
        self._replica_on = f"rpl_semi_sync_{words.replica}_enabled"
        self.SETTINGS = frozenset({"server_id", "bind_address", "port", self._source_on, self._replica_on})
        self.TOLD_ALONE = (f"Rpl_semi_sync_{words.source}_no_tx",) if semi else ()

    def require(self, _installation: Installation) -> None:
        """It is part of every server."""

    def require_rejoin(self, _installation: Installation) -> None:
        """A copy needs no tool."""

    def environment(self, _site: Site) -> Mapping[str, str]:
        return {}

    def settings(self, site: Site, peers: Sequence[Peer], _network: str) -> Mapping[str, Level]:
        own = site.peer
        given: dict[str, Level] = {
            "skip_networking": False,
            "bind_address": own.address,
            "port": own.port,
            "server_id": own.number,
            "log_bin": "binlog",
            "relay_log": "relay",
            **self.words.settings,
        }
        if self.semi:
            first = own == peers[0]
            given |= {
                **self.words.semi_settings,
                self._source_on: first and len(peers) > 1,
                self._replica_on: not first,
                f"rpl_semi_sync_{self.words.source}_timeout": NEVER_MS,
            }
        return given

    def found(self, start: Callable[[], Founded]) -> None:
        """Makes the account with which replicas come, without a trace in the log that they will read."""
        server = start()
        with conversation(server.url) as ask:
            for statement in (*self._prepared(ask), *self.words.made):
                ask(statement)
        server.stop()

    def _prepared(self, _ask: Ask) -> Sequence[str]:
        """What is done to the data before the account is made."""
        return ()

    def again(self, _site: Site, _settings: Mapping[str, Level], _alone: bool) -> Mapping[str, Level]:
        return {}

    def permits(self, settings: Mapping[str, Level]) -> Loss:
        """A study that bounds how long the first node waits lets it go on alone."""
        given = settings.get(f"rpl_semi_sync_{self.words.source}_timeout", NEVER_MS)
        return Loss.NOTHING if self.semi and given == NEVER_MS else Loss.COMMITS

    def follow(self, site: Site, _first: Peer) -> None:
        for name in self.words.own:
            (site.data / "database" / name).unlink(missing_ok=True)

    def begin(self, _ask: Ask) -> None:
        """A first node waits for no other to come."""

    def attach(self, ask: Ask, own: Peer, first: Peer) -> None:
        """All that a node has applied stands in its own binary log, whatever it was before."""
        if own == first:
            return
        ask(self.words.stop)
        self._play(ask, first=False)
        change = self.words.change.format(
            host=first.address, port=first.port, user=REPLICA, password=PASSWORD
        )
        for statement in (*self.words.begun, change, self.words.start):
            ask(statement)

    def _play(self, ask: Ask, first: bool) -> None:
        """Has a node wait for replicas, or confirm what it receives."""
        if self.semi:
            ask(f"SET GLOBAL {self._source_on} = {'ON' if first else 'OFF'}")
            ask(f"SET GLOBAL {self._replica_on} = {'OFF' if first else 'ON'}")

    def membership(self, asks: Mapping[str, Ask], first: str) -> Membership:
        """A replica takes part when both its threads run and the first node sends it the log. Which of them
        confirm commits, both sides say."""
        others = {name: ask for name, ask in asks.items() if name != first}
        [[sent]] = asks[first](self.words.sent)
        word, waits = self._first_word(asks[first])
        told = [f"{first} sends the log to {int(float(sent or 0))}{word}"]
        whole = int(float(sent or 0)) == len(others) and waits == (len(others) if self.semi else 0)
        for name, ask in others.items():
            runs, confirms = self.words.runs(ask), self._is_on(ask, self.words.replica)
            whole = whole and runs and confirms is self.semi
            word = " and confirms" if confirms else ""
            told.append(f"{name} applies it{word}" if runs else f"{name} does not apply it{self._why(ask)}")
        return Membership(whole, "; ".join(told))

    def _first_word(self, ask: Ask) -> tuple[str, int]:
        """What the first node says of waiting, and on how many replicas that confirm."""
        if not self._is_on(ask, self.words.source):
            return ", and waits for none", 0
        source = f"rpl_semi_sync_{self.words.source}"
        clients = int(_status(ask, f"{source}_clients") or 0)
        [[point]] = ask(f"SELECT @@{source}_wait_point")
        return f", and waits for one of {clients} ({point})", clients

    def _is_on(self, ask: Ask, role: str) -> bool:
        return _status(ask, f"rpl_semi_sync_{role}_status") == "ON"

    def _why(self, ask: Ask) -> str:
        """The error that stopped a replica, where it tells one."""
        rows = [str(value) for row in ask("SHOW REPLICA STATUS") for value in row]
        said = [one for one in rows if re.search("error", one, re.IGNORECASE)]
        return f": {max(said, key=len)}" if said else ""

    def lag(self, asks: Mapping[str, Ask], first: str) -> Mapping[str, float]:
        """How many transactions the replica that is furthest behind has not applied."""
        come = {name: transactions(_gtids(ask, self.words.applied)) for name, ask in asks.items()}
        return {"transactions_behind": float(max(0, come[first] - min(come.values())))}

    def position(self, ask: Ask) -> str:
        return _gtids(ask, self.words.applied)

    def reached(self, ask: Ask, position: str) -> bool:
        return transactions(_gtids(ask, self.words.applied)) >= transactions(position)

    def transfer(self, _log: str) -> str:
        return "binary log"

    def refill(self, site: Site, first: Site, url: str) -> str:
        return self._copied(site, first, url)

    def donor(self, _log: str) -> str:
        return ""

    def promote(self, asks: Mapping[str, Ask], peers: Mapping[str, Peer]) -> str:
        """The one that has most, once each has applied all that it received. What any replica has confirmed,
        that one has."""
        deadline_s = time.monotonic() + PROMOTION_S
        while not all(map(self.words.has_applied, asks.values())):
            if time.monotonic() > deadline_s:
                raise ServerFailed(
                    f"no replica has applied what it received after {PROMOTION_S:g} s", "look at their logs"
                )
            time.sleep(LOOK_S)
        best = max(asks, key=lambda name: transactions(_gtids(asks[name], self.words.applied)))
        asks[best](self.words.stop)
        asks[best](self.words.leave)
        self._play(asks[best], first=True)
        for name, ask in asks.items():
            if name != best:
                self.attach(ask, peers[name], peers[best])
        return best

    def rejoin(self, site: Site, first: Site, url: str) -> str:
        """Its log may end with what no other node has, so its data are thrown away."""
        return self._copied(site, first, url)

    def _copied(self, site: Site, first: Site, url: str) -> str:
        """Puts a copy of the first node's data in the place of a node's own. While no thread of that server
        moves, its files are what a crash would leave, from which the copy recovers."""
        shutil.rmtree(site.data)
        [process_file] = first.runtime.glob("*.pid")
        process_id = int(process_file.read_text())
        with self._without_waiters(partial(query, url)), standing_still([process_id]) as still:
            if not still:
                raise ServerFailed(
                    f"{first.peer.name} did not stand still for a copy", "run again on a quieter machine"
                )
            clone_tree(first.data, site.data)
        self.follow(site, first.peer)
        return HOW

    @contextmanager
    def _without_waiters(self, ask: Ask) -> Iterator[None]:
        """A copy holds a commit that waits, so its node would never confirm it, and the first node would wait
        for ever. So those that wait are let go right before."""
        if not self.semi:
            yield
            return
        ask(f"SET GLOBAL {self._source_on} = OFF")
        try:
            deadline_s = time.monotonic() + PROMOTION_S
            while int(_status(ask, f"Rpl_semi_sync_{self.words.source}_wait_sessions") or 0):
                if time.monotonic() > deadline_s:
                    raise ServerFailed("commits of the first node wait and are not let go", "look at its log")
                time.sleep(LOOK_S)
            yield
        finally:
            ask(f"SET GLOBAL {self._source_on} = ON")


def _gtids(ask: Ask, sql: str) -> str:
    [[told]] = ask(sql)
    return str(told or "").replace("\n", "")


def _status(ask: Ask, name: str) -> str:
    """A status variable; empty where the server has none of that name."""
    return next((str(value) for _, value in ask(f"SHOW GLOBAL STATUS LIKE '{name}'")), "")


def _has_applied(ask: Ask) -> bool:
    """What was received stands behind how GTIDs are used: versions differ in the columns before that."""
    for row in ask("SHOW REPLICA STATUS"):
        values = [str(value) for value in row]
        if "Slave_Pos" in values[:-1]:
            received = transactions(values[values.index("Slave_Pos") + 1])
            return transactions(_gtids(ask, APPLIED)) >= received
    return False


APPLIED = "SELECT @@gtid_binlog_pos"
MARIADB_WORDS = Words(
    start="START REPLICA",
    stop="STOP REPLICA",
    leave="RESET REPLICA ALL",
    change="CHANGE MASTER TO MASTER_HOST = '{host}', MASTER_PORT = {port}, MASTER_USER = '{user}',"
    " MASTER_PASSWORD = '{password}', MASTER_CONNECT_RETRY = 1, MASTER_SSL = 0,"
    " MASTER_SSL_VERIFY_SERVER_CERT = 0, MASTER_USE_GTID = slave_pos",
    made=(
        "SET SESSION sql_log_bin = 0",
        f"CREATE OR REPLACE USER {REPLICA}@'%' IDENTIFIED VIA mysql_native_password"
        f" USING '{verifier(PASSWORD)}'",
        f"GRANT REPLICATION SLAVE ON *.* TO {REPLICA}@'%'",
        "RESET MASTER",
    ),
    begun=("SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos",),
    applied=APPLIED,
    progress="SELECT SUBSTRING_INDEX(@@gtid_binlog_pos, '-', -1)",
    has_applied=_has_applied,
    runs=lambda ask: _status(ask, "Slave_running") == "ON",
    sent="SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'",
    source="master",
    replica="slave",
    settings={
        "binlog_format": "ROW",
        "log_slave_updates": True,
        "gtid_strict_mode": True,
        "skip_slave_start": True,
        "slave_net_timeout": GIVEN_UP_S,
    },
    semi_settings={},
)
