"""What a study must say before clients are dealt out over all nodes of a cluster."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dbdyno.errors import StudyError
from dbdyno.study import Study, parse_study, workload_offers
from tests.study.catalogue import CATALOGUE, WORKLOADS

FLEXASYNC = {"name": "flexasync", "options": [], "transactions": ["insert"]}
NAMES = replace(
    CATALOGUE,
    workloads=workload_offers(json.dumps([*WORKLOADS, FLEXASYNC])),
    layers={**CATALOGUE.layers, "cluster": lambda *_: []},
    each_writes=frozenset({"mariadb"}),
)
STUDY = """\
engine = "mariadb"
[workload]
name = "tpcb"
clients = 4
[factors]
"cluster.nodes" = [1, 3]
"cluster.load" = ["one", "all"]
"""


def read(text: str) -> Study:
    return parse_study(text.encode(), NAMES)


def mistakes(text: str) -> list[str]:
    with pytest.raises(StudyError) as caught:
        read(text)
    return [f"{one.line}: {one.message}" for one in caught.value.mistakes]


def test_a_load_goes_to_all_nodes_where_each_of_them_takes_writes() -> None:
    assert [factor.levels for factor in read(STUDY).factors] == [(1, 3), ("one", "all")]
    said = "7: in a cluster of postgresql the first node alone takes writes"
    assert mistakes(STUDY.replace("mariadb", "postgresql")) == [said]


def test_reads_go_to_all_nodes_of_any_engine_unless_one_of_them_is_struck() -> None:
    reads = STUDY.replace("mariadb", "postgresql").replace("tpcb", "point_select")
    assert read(reads).workload.name == "point_select"
    assert "takes writes" in " ".join(mistakes(f"{reads}[restarts]\nnodes_killed = 1\n"))


def test_a_load_on_all_nodes_needs_a_cluster_and_a_client_for_each_node() -> None:
    alone = STUDY.replace('"cluster.nodes" = [1, 3]\n', "")
    assert mistakes(alone) == ["6: `cluster.load` is of a cluster, and there is none"]
    assert mistakes(STUDY.replace("clients = 4", "clients = 2")) == ["7: 3 nodes are to share 2 clients"]


def test_clients_that_wait_for_each_other_stay_on_one_node() -> None:
    [found] = mistakes(STUDY.replace("tpcb", "flexasync"))
    assert found.startswith("7: `cluster.load = all` and `workload.name = flexasync` exclude")
