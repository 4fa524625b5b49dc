"""MySQL's group replication: nodes that agree on each commit, and elect the one that takes writes."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dbdyno.driver.passwords import Ask
from dbdyno.engines.cluster import Membership, Peer, Site
from dbdyno.engines.mariadb.replication import LOOK_S, PASSWORD, PROMOTION_S, REPLICA, Replication
from dbdyno.engines.mysql.replication import MYSQL_WORDS
from dbdyno.engines.mysql.settings import plugin_folder
from dbdyno.engines.values import same_value
from dbdyno.errors import Blocked, DriverFailed, ServerFailed
from dbdyno.frozen import Level
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Loss
from dbdyno.study.nodes import KIND

GROUP, PLUGIN = "group", "group_replication.so"
NAME = "d1a05e75-0000-4000-8000-000000000001"
"""Of the group. It may be the same always, because no two groups are on one network."""
JOIN_S, AGAIN_S = 120.0, 0.5
"""How long the others may take until they have a node that was killed. As long as it counts among them, they
do not take it: they give it up as they do a silent one."""
MEMBERS = (
    "SELECT member_state, member_role, member_id = @@GLOBAL.server_uuid, @@GLOBAL.super_read_only"
    " FROM performance_schema.replication_group_members"
)
JOIN = f"START GROUP_REPLICATION USER = '{REPLICA}', PASSWORD = '{PASSWORD}'"
BE_FIRST = "SELECT group_replication_set_as_primary(@@GLOBAL.server_uuid)"
BOOTSTRAP = "SET GLOBAL group_replication_bootstrap_group"
WITHOUT_KEY = """SELECT t.table_schema, t.table_name FROM information_schema.tables t
  LEFT JOIN information_schema.table_constraints c ON c.table_schema = t.table_schema
  AND c.table_name = t.table_name AND c.constraint_type = 'PRIMARY KEY'
  WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' AND c.constraint_name IS NULL"""
KEY = "ADD COLUMN my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY FIRST"
"""As `sql_generate_invisible_primary_key` gives it to tables that are made later."""


class _View(NamedTuple):
    """A node's word on the group: its own role, how many members are online and how many are primary of how
    many, and whether it takes writes."""

    role: str
    online: int
    primaries: int
    members: int
    writes: bool

    @property
    def words(self) -> str:
        return f"{self.role.lower() or 'no member'}, {self.online} of {self.members} online"


class Group(Replication):
    """A group with one primary, the first node. The others are secondaries, which do not write."""

    AWAY_S = 26.0
    """A silent node is suspected after five seconds, and given up five later by who looks every 15."""

    def __init__(self) -> None:
        super().__init__(MYSQL_WORDS, semi=False)
        own = {"group_replication_local_address", "report_host", "report_port"}
        self.SETTINGS = self.SETTINGS | own

    def require(self, installation: Installation) -> None:
        if not (plugin_folder(installation) / PLUGIN).is_file():
            reason = f"the package of MySQL {installation.version} has no {PLUGIN}"
            raise Blocked(KIND, reason, "`dyno engines fetch mysql@9` obtains one that has it")

    def settings(self, site: Site, peers: Sequence[Peer], network: str) -> Mapping[str, Level]:
        if len(peers) == 2:
            reason = "of two nodes none is a majority, so a group of two outlives neither"
            raise Blocked(KIND, reason, 'take one node, or three and more: "cluster.nodes" = 3')
        own = site.peer
        return {
            **super().settings(site, peers, network),
            "plugin_load_add": PLUGIN,
            "report_host": own.address,
            "report_port": own.port,
            "sql_generate_invisible_primary_key": True,
            "group_replication_group_name": NAME,
            "group_replication_local_address": _place(own),
            "group_replication_group_seeds": ",".join(map(_place, peers)),
            "group_replication_ip_allowlist": f"127.0.0.1/32,{network}",
            "group_replication_recovery_get_public_key": True,
            "group_replication_start_on_boot": False,
        }

    def permits(self, _settings: Mapping[str, Level]) -> Loss:
        """A majority has a commit before a client is told of it."""
        return Loss.NOTHING

    def _prepared(self, ask: Ask) -> Sequence[str]:
        """A group takes no row of a table without a primary key."""
        tables = [f"`{schema}`.`{name}`" for schema, name in ask(WITHOUT_KEY)]
        return ["SET SESSION sql_log_bin = 0", *(f"ALTER TABLE {table} {KEY}" for table in tables)]

    def begin(self, ask: Ask) -> None:
        ask(f"{BOOTSTRAP} = ON")
        try:
            ask(JOIN)
        finally:
            ask(f"{BOOTSTRAP} = OFF")

    def attach(self, ask: Ask, own: Peer, first: Peer) -> None:
        deadline_s = time.monotonic() + JOIN_S
        while True:
            try:
                ask(JOIN)
                break
            except DriverFailed as refused:
                if time.monotonic() > deadline_s:
                    reason = f"the group did not take {own.name} within {JOIN_S:g} s: {refused.message}"
                    raise ServerFailed(reason, "look at the logs of all nodes") from None
                time.sleep(AGAIN_S)
        if own == first:
            ask(BE_FIRST)

    def membership(self, asks: Mapping[str, Ask], first: str) -> Membership:
        """Each node must see all of them online and one primary, which is the first one and takes writes."""
        told, whole = [], True
        for name, ask in asks.items():
            seen = _view(ask)
            leads = name == first
            whole = whole and seen.online == seen.members == len(asks) and seen.primaries == 1
            whole = whole and (seen.role == "PRIMARY") is leads and seen.writes is leads
            told.append(f"{name} {seen.words}")
        return Membership(whole, "; ".join(told))

    def promote(self, asks: Mapping[str, Ask], _peers: Mapping[str, Peer]) -> str:
        """The one that the group elects by itself."""
        deadline_s = time.monotonic() + PROMOTION_S
        while time.monotonic() < deadline_s:
            for name, ask in asks.items():
                seen = _view(ask)
                if seen.role == "PRIMARY" and seen.writes and seen.online == seen.members == len(asks):
                    return name
            time.sleep(LOOK_S)
        raise ServerFailed(f"the group has elected nobody after {PROMOTION_S:g} s", "look at their logs")

    def rejoin(self, _site: Site, _first: Site, _url: str) -> str:
        """A node commits nothing that the group did not agree on, so its data stay."""
        return ""


def _place(peer: Peer) -> str:
    """Where the group finds a node: beside the server's own port. A member must know its address as that of
    an interface, of which the loopback has one."""
    loopback = ipaddress.ip_address(peer.address).is_loopback
    return f"{'127.0.0.1' if loopback else peer.address}:{peer.port + 1}"


def _view(ask: Ask) -> _View:
    rows = [[str(one or "") for one in row] for row in ask(MEMBERS)]
    role = next((role for _, role, own, _ in rows if same_value(True, own)), "")
    states = [state for state, *_ in rows]
    primaries = sum(role == "PRIMARY" for _, role, *_ in rows)
    writes = bool(rows) and not any(same_value(True, read_only) for *_, read_only in rows)
    return _View(role, states.count("ONLINE"), primaries, len(rows), writes)
