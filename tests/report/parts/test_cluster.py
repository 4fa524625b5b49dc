"""The table of a cluster whose nodes were struck."""

from __future__ import annotations

from typing import Any

from dbdyno.analyse.model import Analysis
from dbdyno.records.recovery import Clustered, Loss, Recovery
from dbdyno.report.parts import cluster as part
from dbdyno.report.parts import restarts
from dbdyno.study.act import Act
from tests.analyse.restarts_cases import FAST, analysed, kept, record_of
from tests.report.forms import as_markdown


def struck(act: Act, rejoin_s: float, **found: Any) -> Recovery:
    node = Clustered(struck="node2", rejoin_s=rejoin_s, transfer="streaming", silent_s=rejoin_s, looks=10)
    return kept(act=act, **{"cluster": node, **found})


def rounds() -> Analysis:
    first = Clustered(
        struck="node1", rejoin_s=2.0, transfer="base backup", replaced_s=1.5, looks=5, stale=3, stale_ms=8.0
    )
    lost = kept(act=Act.FIRST_LOST, permits=Loss.COMMITS, lost=7, lost_ms=12.5, cluster=first)
    left_out = Recovery(act=Act.NODE_CUT, blocked="there is no other node")
    killed = [struck(Act.NODE_KILL, seconds) for seconds in (0.5, 1.5, 1.0)]
    return analysed(record_of(0, "baseline", left_out), record_of(1, FAST, *killed, lost))


def test_each_act_on_nodes_has_a_row_with_the_spread_of_its_rounds() -> None:
    killed, lost = part.rows(rounds())
    assert killed[2:7] == ("killed node", "3", "300", "0", "3 of 3")
    assert killed[7:] == ("1.000 (0.5000 to 1.500)", "–", "1.000 (0.5000 to 1.500)", "streaming", "0 of 30")
    assert lost[2:7] == ("lost first node", "1", "100", "7 in 1 round", "1 of 1")
    assert lost[8:] == ("1.500 (1.500 to 1.500)", "2.000 (2.000 to 2.000)", "base backup", "3 of 5")


def test_what_was_left_out_has_no_row_and_no_other_table_has_one() -> None:
    analysis = rounds()
    assert "baseline" not in [row[0] for row in part.rows(analysis)]
    assert restarts.rows(analysis) == []
    page = as_markdown(analysis)
    assert part.TITLE in page and restarts.TITLE not in page


def test_how_long_a_donor_stood_still_is_told() -> None:
    given = Clustered(struck="node2", rejoin_s=9.0, transfer="SST", donor="node3", donor_still_s=2.5)
    page = as_markdown(analysed(record_of(1, FAST, kept(act=Act.NODE_EMPTY, cluster=given))))
    assert "emptied node: the node that gave another one all its data came no further for at most 2.5" in page


def test_nodes_that_differ_are_counted_and_told() -> None:
    differing = struck(Act.NODE_KILL, 1.0, damage="nodes_equal: node3 holds t: 1 rows")
    [row] = part.rows(analysed(record_of(1, FAST, differing)))
    assert row[6] == "0 of 1"


def test_a_loss_that_is_permitted_is_told_with_its_age() -> None:
    page = as_markdown(rounds())
    assert "its settings permit that the first node takes commits along" in page
    assert "the oldest stale read came 8.000 ms after the client was told" in page
