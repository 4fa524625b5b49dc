"""What PostgreSQL's settings promise of a cluster, and what makes a standby a member."""

from __future__ import annotations

import pytest

from dbdyno.engines.postgresql import cluster
from dbdyno.frozen import Level
from dbdyno.records.record import Loss

Rows = list[list[str | float | None]]


@pytest.mark.parametrize(
    ("names", "level", "permitted"),
    [
        ("ANY 1 (node2)", "on", Loss.NOTHING),
        ("ANY 1 (node2)", "remote_write", Loss.NOTHING),
        ("ANY 1 (node2)", "local", Loss.COMMITS),
        ("ANY 1 (node2)", "off", Loss.COMMITS),
        ("", "on", Loss.COMMITS),
    ],
)
def test_a_commit_that_no_standby_confirms_may_go_with_the_primary(
    names: str, level: str, permitted: Loss
) -> None:
    settings: dict[str, Level] = {"synchronous_standby_names": names, "synchronous_commit": level}
    assert cluster.permits(settings) is permitted


@pytest.mark.parametrize(
    ("sent", "received", "whole"),
    [
        ([["node2", "streaming", "quorum"]], [["streaming"]], True),
        ([["node2", "catchup", "quorum"]], [["streaming"]], False),
        ([["node2", "streaming", "quorum"]], [], False),
        ([], [["streaming"]], False),
    ],
)
def test_primary_and_standby_must_both_say_that_they_stream(sent: Rows, received: Rows, whole: bool) -> None:
    asks = {"node1": lambda _: sent, "node2": lambda _: received}
    assert cluster.membership(asks, "node1").whole is whole
