"""What Galera's own words mean for a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.driver.passwords import Ask
from dbdyno.engines.mariadb import cluster

Rows = list[list[str | float | None]]


def says(size: int, status: str, state: str, ready: str) -> Ask:
    def ask(sql: str) -> Rows:
        assert sql == cluster.STATUS
        return [
            ["wsrep_cluster_size", str(size)],
            ["wsrep_cluster_status", status],
            ["wsrep_local_state_comment", state],
            ["wsrep_ready", ready],
        ]

    return ask


def whole(asks: Sequence[Ask]) -> bool:
    named = {f"node{number}": ask for number, ask in enumerate(asks, 1)}
    return cluster.membership(named, "node1").whole


def test_all_nodes_must_be_synced_in_one_primary_component() -> None:
    synced = says(2, "Primary", "Synced", "ON")
    assert whole([synced, synced])
    for other in (
        says(1, "Primary", "Synced", "ON"),
        says(2, "non-Primary", "Initialized", "OFF"),
        says(2, "Primary", "Joined", "ON"),
        says(2, "Primary", "Synced", "OFF"),
    ):
        assert not whole([synced, other])


def test_the_log_of_a_node_names_its_last_donor() -> None:
    asked = (
        "Member 1.0 (node3) requested state transfer from '*any*'. Selected 0.0 (node{})(SYNCED) as donor."
    )
    assert cluster.donor("\n".join(asked.format(number) for number in (1, 2))) == "node2"
    assert cluster.donor("it had all") == ""


def test_the_last_transfer_of_a_log_is_told() -> None:
    log = "WSREP_SST: [INFO] rsync SST completed on joiner\nWSREP_SST: [INFO] rsync IST completed on joiner"
    assert cluster.transfer(log) == "IST"
    assert cluster.transfer("no node was away") == "nothing missed"
