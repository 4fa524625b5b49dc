"""MariaDB's clusters: Galera, whose nodes all hold each commit before a client is told of it."""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from dbdyno.driver.passwords import Ask, query
from dbdyno.engines.cluster import Founded, Membership, Peer, Site
from dbdyno.engines.mariadb import server as galera
from dbdyno.engines.mariadb.server import WITHOUT_CERTIFICATE, command_of
from dbdyno.engines.mariadb.settings import arguments
from dbdyno.engines.upgrade import run_tool
from dbdyno.errors import DriverFailed, ServerFailed
from dbdyno.frozen import Level
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Loss

PORT = 4567
TRANSFER_PORTS = 1
"""A state transfer of the missing transactions alone has the next port."""
AWAY_S = 8.0
"""Galera gives a node up that was silent for five seconds."""
SETTINGS = frozenset(
    {
        "wsrep_cluster_address",
        "wsrep_node_address",
        "wsrep_node_name",
        "wsrep_provider_options",
        "wsrep_start_position",
    }
)
FOUNDING: Mapping[str, Level] = {"wsrep_cluster_address": "gcomm://"}
TOLD_ALONE: Sequence[str] = ()
EACH_WRITES = True
PROGRESS = "SHOW GLOBAL STATUS LIKE 'wsrep\\_last\\_committed'"
WHO = "SELECT @@wsrep_node_name"
NOW = "UNIX_TIMESTAMP(NOW(6))"
FULL, READY, PRIMARY, SYNCED = "wsrep_cluster_size", "wsrep_ready", "Primary", "Synced"
STATUS = "SHOW GLOBAL STATUS LIKE 'wsrep\\_%'"
"""A node that does not take part answers this, and no SELECT."""
ALL_APPLIED = "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT COUNT(*) FROM mysql.db WHERE 1 = 0"
"""The node waits with it until it has applied what the cluster had committed by then."""
FIRST_TRANSACTION = (
    "CREATE TABLE dyno_position (a INT PRIMARY KEY)",
    "INSERT INTO dyno_position VALUES (1)",
    "DROP TABLE dyno_position",
)
READY_S, PROMOTION_S, LOOK_S = 60.0, 60.0, 0.05
ALONE_S = 15.0
"""After so long without a majority the nodes that are left are declared to be one, as an operator would."""
TRANSFERRED = re.compile(r"rsync ([IS]ST) completed on joiner")
DONOR = re.compile(r"Selected \S+ \((\S+?)\)\(\w+\) as donor")
DECLARE_WHOLE = (
    "SET GLOBAL wsrep_provider_pc_bootstrap = ON",
    "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=YES'",
)
POSITION = re.compile(r"Recovered position:?\s*(\S+:-?\d+)")


def require(installation: Installation) -> None:
    galera.provider(installation)


def require_rejoin(installation: Installation) -> None:
    galera.provider(installation)


def environment(site: Site) -> Mapping[str, str]:
    return galera.environment(galera.provider(site.installation), site.runtime / "transfer")


def settings(site: Site, peers: Sequence[Peer], network: str) -> Mapping[str, Level]:
    """State is transferred by rsync, which is what MariaDB does without a word of the user."""
    own = site.peer
    addresses = ",".join(f"{peer.address}:{peer.port}" for peer in peers)
    listens = f"gmcast.listen_addr=tcp://{own.address}:{own.port}"
    transfers = f"ist.recv_addr=tcp://{own.address}:{own.port + TRANSFER_PORTS}"
    return {
        "binlog_format": "ROW",
        "innodb_autoinc_lock_mode": 2,
        "wsrep_cluster_address": f"gcomm://{addresses}",
        "wsrep_cluster_name": "dyno",
        "wsrep_node_address": own.address,
        "wsrep_node_name": own.name,
        "wsrep_on": "ON",
        "wsrep_provider": str(galera.provider(site.installation).library),
        "wsrep_provider_options": f"{listens};{transfers}",
        "wsrep_sst_method": "rsync",
    }


def permits(_settings: Mapping[str, Level]) -> Loss:
    return Loss.NOTHING


def found(start: Callable[[], Founded]) -> None:
    """Data know their position among the cluster's transactions from the first of them on."""
    server = start()
    deadline_s = time.monotonic() + READY_S
    while not membership({"": partial(query, server.url)}, "").whole:
        if time.monotonic() > deadline_s:
            raise ServerFailed(
                f"it is no cluster of one after {READY_S:g} s", "look at its log", server.log()
            )
        time.sleep(LOOK_S)
    for statement in FIRST_TRANSACTION:
        query(server.url, statement)
    server.stop()


def follow(_site: Site, _first: Peer) -> None:
    """Clones of the first node's data have its position."""


def again(site: Site, settings: Mapping[str, Level], alone: bool) -> Mapping[str, Level]:
    """A server that was killed does not know its position. It finds that in its data, if asked for that
    alone."""
    state = site.data / "database" / "grastate.dat"
    if alone:
        state.write_text(state.read_text().replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1"))
    command = [
        *command_of(site.installation, site.data),
        "--skip-networking",
        WITHOUT_CERTIFICATE,
        f"--socket={site.runtime / 'recovery.sock'}",
        *arguments(settings),
        "--wsrep-recover",
    ]
    environment = {**site.installation.environment}
    said = run_tool("MariaDB with --wsrep-recover", command, environment, site.steps, site.data / "database")
    positions = POSITION.findall(said)
    return {"wsrep_start_position": positions[-1]} if positions else {}


def begin(_ask: Ask) -> None:
    """Its settings say that it founds the cluster."""


def attach(_ask: Ask, _own: Peer, _first: Peer) -> None:
    """Its settings name all nodes."""


def membership(asks: Mapping[str, Ask], _first: str) -> Membership:
    told, whole = [], True
    for name, ask in asks.items():
        seen = _status(ask)
        state = seen.get("wsrep_local_state_comment", "unknown")
        size, kind = seen.get(FULL, "0"), seen.get("wsrep_cluster_status", "unknown")
        whole = whole and (size, kind, state) == (str(len(asks)), PRIMARY, SYNCED) and _ready(seen)
        told.append(f"{name} {state}, {size} in {kind}")
    return Membership(whole, "; ".join(told))


def lag(asks: Mapping[str, Ask], _first: str) -> Mapping[str, float]:
    """The longest queue of write sets that a node has yet to apply, the longest time for which one was held
    back, and how many transactions lost to those of other nodes, on all nodes."""
    told = [_status(ask) for ask in asks.values()]

    def of(name: str) -> list[float]:
        return [float(one.get(f"wsrep_{name}", 0)) for one in told]

    return {
        "receive_queue": max(of("local_recv_queue")),
        "flow_control_s": max(of("flow_control_paused_ns")) / 1e9,
        "node_aborts": sum(of("local_cert_failures")) + sum(of("local_bf_aborts")),
    }


def position(_ask: Ask) -> str:
    return "all that is committed"


def reached(ask: Ask, _position: str) -> bool:
    with suppress(DriverFailed):
        ask(ALL_APPLIED)
        return True
    return False


def transfer(log: str) -> str:
    """Galera calls the transfer of missing transactions IST, and that of all data SST. Its script says which
    of the two it was the last time."""
    return next(reversed(TRANSFERRED.findall(log)), "nothing missed")


def refill(site: Site, _first: Site, _url: str) -> str:
    """A node without any data asks for all of them when it starts."""
    data = site.data / "database"
    had = data.stat()
    shutil.rmtree(data)
    data.mkdir(stat.S_IMODE(had.st_mode))
    os.chown(data, had.st_uid, had.st_gid)
    return ""


def donor(log: str) -> str:
    return next(reversed(DONOR.findall(log)), "")


def promote(asks: Mapping[str, Ask], _peers: Mapping[str, Peer]) -> str:
    """Any node that goes on. Where those that are left are no majority, they are told to go on."""
    began_s, told = time.monotonic(), False
    while time.monotonic() - began_s < PROMOTION_S:
        for name, ask in asks.items():
            with suppress(DriverFailed):
                seen = _status(ask)
                gone = int(seen.get(FULL, "0")) <= len(asks)
                if gone and seen.get("wsrep_cluster_status") == PRIMARY and _ready(seen):
                    return name
                if not told and gone and time.monotonic() - began_s > ALONE_S:
                    told = True
                    _declare_whole(ask)
        time.sleep(LOOK_S)
    raise ServerFailed(f"no other node goes on after {PROMOTION_S:g} s", "look at their logs")


def _declare_whole(ask: Ask) -> None:
    """The older statement is refused where the provider's options are settings of the server."""
    for statement in DECLARE_WHOLE:
        with suppress(DriverFailed):
            ask(statement)


def rejoin(_site: Site, _first: Site, _url: str) -> str:
    """It joins as any other node does."""
    return ""


def _status(ask: Ask) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in ask(STATUS)}


def _ready(seen: Mapping[str, str]) -> bool:
    return seen.get(READY) == "ON"
