"""PostgreSQL's clusters: a primary, and standbys that stream its write-ahead log."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dbdyno.driver.passwords import Ask, query
from dbdyno.engines.cluster import Founded, Membership, Peer, Site
from dbdyno.engines.postgresql.dumping import release_of
from dbdyno.engines.postgresql.server import PORT as PORT
from dbdyno.engines.postgresql.server import SERVER, tool
from dbdyno.engines.server import ACCOUNT
from dbdyno.engines.upgrade import run_tool
from dbdyno.engines.values import same_value
from dbdyno.errors import Blocked, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.namespaces import step_down
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import programs
from dbdyno.records.record import Loss

GIVEN_UP_S = 5
"""After so long without a word a primary gives a standby up, and a standby its primary: the default is a
minute, which no round could wait for."""
AWAY_S = GIVEN_UP_S + 2.0
PROMOTION_S = 60
KEPT = "1GB"
"""How much log a primary keeps for standbys that are away."""
SETTINGS = frozenset({"cluster_name", "hba_file", "listen_addresses", "port", "synchronous_standby_names"})
UNCONFIRMED = ("off", "local")
"""Levels of synchronous_commit with which no standby is waited for."""
TELLING = ("wal_log_hints", "data_checksums")
"""With one of these on, pg_rewind can tell which pages differ."""
FOUNDING: Mapping[str, Level] = {}
TOLD_ALONE: Sequence[str] = ()
EACH_WRITES = False
PROGRESS = (
    "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END"
    " - '0/0'::pg_lsn"
)
WHO = "SHOW cluster_name"
NOW = "EXTRACT(EPOCH FROM statement_timestamp())"


def require(_installation: Installation) -> None:
    """Replication is part of every server."""


def environment(_site: Site) -> Mapping[str, str]:
    return {}


def settings(site: Site, peers: Sequence[Peer], network: str) -> Mapping[str, Level]:
    """Of the other nodes any one must confirm a commit."""
    own = site.peer
    access = site.runtime / "nodes_hba.conf"
    rules = [f"local all {ACCOUNT} trust"]
    rules += [f"host {database} {ACCOUNT} {network} trust" for database in ("all", "replication")]
    access.write_text("\n".join([*rules, ""]))
    others = ", ".join(peer.name for peer in peers if peer != own)
    return {
        "cluster_name": own.name,
        "hba_file": str(access),
        "listen_addresses": own.address,
        "port": own.port,
        "synchronous_standby_names": f"ANY 1 ({others})" if others else "",
        "wal_keep_size": KEPT,
        "wal_receiver_timeout": f"{GIVEN_UP_S}s",
        "wal_retrieve_retry_interval": "500ms",
        "wal_sender_timeout": f"{GIVEN_UP_S}s",
    }


def permits(settings: Mapping[str, Level]) -> Loss:
    names = settings.get("synchronous_standby_names", "")
    level = settings.get("synchronous_commit", "on")
    waits = names and not any(same_value(level, one) for one in UNCONFIRMED)
    return Loss.NOTHING if waits else Loss.COMMITS


def found(_start: Callable[[], Founded]) -> None:
    """Each data folder can be that of a primary."""


def again(_site: Site, _settings: Mapping[str, Level], _alone: bool) -> Mapping[str, Level]:
    return {}


def follow(site: Site, first: Peer) -> None:
    (site.data / "database" / "standby.signal").touch()
    _write(site.data, "primary_conninfo", _reached(first, site.peer))


def begin(_ask: Ask) -> None:
    """A primary waits for none."""


def attach(_ask: Ask, _own: Peer, _first: Peer) -> None:
    """Its data name the first node."""


def membership(asks: Mapping[str, Ask], first: str) -> Membership:
    """A standby takes part when the primary sends it the log, and it says itself that it receives it."""
    rows = asks[first]("SELECT application_name, state, sync_state FROM pg_stat_replication")
    sent = {str(name): (str(state), str(kind)) for name, state, kind in rows}
    told, whole = [f"{first} primary"], True
    for name, ask in asks.items():
        if name == first:
            continue
        received = ask("SELECT status FROM pg_stat_wal_receiver")
        state, kind = sent.get(name, ("absent", "absent"))
        status = str(received[0][0]) if received else "absent"
        joined = state == status == "streaming"
        whole = whole and joined
        told.append(f"{name} {state}, {kind}" if joined else f"{name} {state}, and says {status}")
    return Membership(whole, "; ".join(told))


def lag(asks: Mapping[str, Ask], first: str) -> Mapping[str, float]:
    """By pg_stat_replication. A standby that has been idle for a while tells no time."""
    sql = (
        "SELECT EXTRACT(EPOCH FROM MAX(COALESCE(replay_lag, '0'))),"
        " MAX(pg_current_wal_lsn() - replay_lsn) FROM pg_stat_replication"
    )
    [[seconds, behind]] = asks[first](sql)
    return {"replay_lag_s": float(seconds or 0), "replay_lag_bytes": float(behind or 0)}


def position(ask: Ask) -> str:
    return str(ask("SELECT pg_current_wal_lsn()")[0][0])


def reached(ask: Ask, position: str) -> bool:
    [[come]] = ask(f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn")
    return same_value(True, str(come))


def transfer(_log: str) -> str:
    return "streaming"


def refill(site: Site, first: Site, _url: str) -> str:
    _base_backed_up(site, first)
    return "base backup"


def donor(_log: str) -> str:
    return ""


def promote(asks: Mapping[str, Ask], peers: Mapping[str, Peer]) -> str:
    """The one that has received most. What any standby has confirmed, that one holds."""
    received = "SELECT GREATEST(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0'::pg_lsn"
    best = max(asks, key=lambda name: int(float(asks[name](received)[0][0] or 0)))
    [[done]] = asks[best](f"SELECT pg_promote(true, {PROMOTION_S})")
    if not same_value(True, str(done)):
        raise ServerFailed(f"{best} was not promoted within {PROMOTION_S} s", "look at its log")
    for name, ask in asks.items():
        if name != best:
            ask(f"ALTER SYSTEM SET primary_conninfo = '{_reached(peers[best], peers[name])}'")
            ask("SELECT pg_reload_conf()")
    return best


def require_rejoin(installation: Installation) -> None:
    if _base_backup(installation) is None:
        raise Blocked(
            "cluster.nodes",
            f"pg_basebackup of PostgreSQL {installation.version}, by which a lost node rejoins, is not here",
            "take PostgreSQL as Debian's packages have it; npm's packages hold no such programs",
        )


def rejoin(site: Site, first: Site, url: str) -> str:
    """By pg_rewind where it is here and settings allow it. Else by a base backup, and so where it fails."""
    source = _source(first)
    telling = {name: str(query(url, f"SHOW {name}")[0][0]) for name in TELLING}
    how = "base backup"
    if any(same_value(True, value) for value in telling.values()) and _rewind(site).is_file():
        # Until its first checkpoint a new primary's control file names its old timeline.
        query(url, "CHECKPOINT")
        # It first recovers the data by a server of its own, which reads settings from their folder alone.
        _write(site.data, "wal_log_hints", telling["wal_log_hints"])
        _write(site.data, "wal_keep_size", KEPT)
        options = [f"--target-pgdata={site.data / 'database'}", f"--source-server={source} dbname=postgres"]
        try:
            _run(site, [*tool(site.installation, "pg_rewind"), *options])
        except ServerFailed:
            how = "base backup after a pg_rewind that failed"
        else:
            follow(site, first.peer)
            return "pg_rewind"
    _base_backed_up(site, first)
    return how


def _base_backed_up(site: Site, first: Site) -> None:
    """Puts a copy of the first node's data in the place of a node's own, and has it follow."""
    base_backup = _base_backup(site.installation)
    assert base_backup is not None, "it was looked for"
    shutil.rmtree(site.data / "database")
    source = _source(first)
    _run(site, [*base_backup, "-D", str(site.data / "database"), "-d", source, "--checkpoint=fast"])
    follow(site, first.peer)


def _source(first: Site) -> str:
    return f"host={first.peer.address} port={first.peer.port} user={ACCOUNT}"


def _run(site: Site, command: list[str]) -> None:
    steps = (*site.steps, *step_down("engine", "PostgreSQL"))
    run_tool("the tool that brings a node back", command, site.installation.environment, steps, site.runtime)


def _rewind(site: Site) -> Path:
    return Path(tool(site.installation, "pg_rewind")[-1])


def _write(data: Path, name: str, value: str) -> None:
    """Sets what the server reads from its data folder. The last line of a name holds."""
    with (data / "database" / "postgresql.auto.conf").open("a") as configuration:
        configuration.write(f"{name} = '{value}'\n")


def _reached(first: Peer, own: Peer) -> str:
    return f"host={first.address} port={first.port} user={ACCOUNT} application_name={own.name}"


def _base_backup(installation: Installation) -> list[str] | None:
    """The command of a pg_basebackup that the server takes: one of its own major version, or of a later
    one."""
    needed = int(installation.version.partition(".")[0])
    for command in programs(installation, SERVER.client, "pg_basebackup"):
        release = release_of(command)
        if release and int(release.partition(".")[0]) >= needed:
            return command
    return None
