"""What a group of MySQL says of itself, and what its nodes need."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.driver.passwords import Ask
from dbdyno.engines.cluster import Peer, Site
from dbdyno.engines.mysql.group import MEMBERS, PLUGIN, Group
from dbdyno.errors import Blocked
from dbdyno.obtain.installation import Installation

GROUP = Group()
Rows = list[list[str | float | None]]


def says(own: int, *members: tuple[str, str], read_only: int = 0) -> Ask:
    """A node that is the `own`-th of these members, each with its state and role."""

    def ask(sql: str) -> Rows:
        assert sql == MEMBERS
        return [[*member, int(number == own), read_only] for number, member in enumerate(members)]

    return ask


FIRST, OTHER, GONE = ("ONLINE", "PRIMARY"), ("ONLINE", "SECONDARY"), ("UNREACHABLE", "SECONDARY")
LEADS, FOLLOWS = says(0, FIRST, OTHER), says(1, FIRST, OTHER, read_only=1)


def whole(first: Ask, other: Ask) -> bool:
    return GROUP.membership({"node1": first, "node2": other}, "node1").whole


def test_a_group_is_whole_where_all_see_all_online_and_the_first_node_alone_writes() -> None:
    assert whole(LEADS, FOLLOWS)
    assert not whole(says(0, FIRST, OTHER, read_only=1), FOLLOWS)
    assert not whole(LEADS, says(1, FIRST, OTHER))
    assert not whole(says(0, FIRST, GONE), FOLLOWS)
    assert not whole(LEADS, says(0))
    assert not whole(says(1, FIRST, OTHER), says(0, FIRST, OTHER, read_only=1))
    assert not whole(says(0, FIRST), says(0, FIRST, read_only=1))


def test_each_node_tells_its_part() -> None:
    found = GROUP.membership({"node1": says(0, FIRST, GONE), "node2": says(0)}, "node1")
    assert found.words == "node1 primary, 1 of 2 online; node2 no member, 0 of 0 online"


def installation(prefix: Path) -> Installation:
    return Installation("mysql", "9.7.4", "nowhere", prefix, (str(prefix / "sbin/mysqld"),), "0")


def test_a_package_without_the_plugin_is_named(tmp_path: Path) -> None:
    with pytest.raises(Blocked, match=r"the package of MySQL 9\.7\.4 has no group_replication\.so"):
        GROUP.require(installation(tmp_path))
    (tmp_path / "lib/mysql/plugin").mkdir(parents=True)
    (tmp_path / "lib/mysql/plugin" / PLUGIN).touch()
    GROUP.require(installation(tmp_path))


@pytest.mark.parametrize(
    ("address", "places"),
    [
        ("10.98.0.", "10.98.0.1:4001,10.98.0.2:4002,10.98.0.3:4003"),
        # A member must know its address as that of an interface.
        ("127.0.98.", "127.0.0.1:4001,127.0.0.1:4002,127.0.0.1:4003"),
    ],
)
def test_members_meet_beside_their_servers_ports(tmp_path: Path, address: str, places: str) -> None:
    peers = [Peer(f"node{number}", number, f"{address}{number}", 4000 + number - 1) for number in (1, 2, 3)]
    with pytest.raises(Blocked, match="a group of two outlives neither"):
        GROUP.settings(Site(peers[1], installation(tmp_path), tmp_path, tmp_path), peers[:2], "")
    site = Site(peers[1], installation(tmp_path), tmp_path, tmp_path)
    given = GROUP.settings(site, peers, f"{address}0/24")
    assert given["group_replication_group_seeds"] == places
    assert given["group_replication_local_address"] == places.split(",")[1]
    assert given["report_host"] == f"{address}2"
