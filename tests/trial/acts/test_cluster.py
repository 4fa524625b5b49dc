"""Nodes of a real cluster that are struck in the midst of a load, and what the others hold afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.driver.load import LoadOfNodes
from dbdyno.driver.tally import Acknowledged
from dbdyno.engines.mariadb.replication import HOW
from dbdyno.engines.nodes import ClusterNode, Nodes
from dbdyno.errors import Blocked
from dbdyno.frozen import Level
from dbdyno.layers.registry import LAYERS
from dbdyno.layers.setup import Running
from dbdyno.records.record import Evidence, Loss, Recovery
from dbdyno.study.soak import Act
from dbdyno.trial import nodes as trial_nodes
from dbdyno.trial.acts import act_on, cluster
from dbdyno.trial.acts.cluster import NodeLook, Staleness, longest_still_s, staleness
from dbdyno.trial.acts.endings import Acknowledgement, Acted
from dbdyno.trial.bench import Bench
from dbdyno.trial.observe import Observer
from dbdyno.trial.verify import exercised, verify
from tests.needs import needs_root, skipping_blocked
from tests.trial.acts.rounds_cases import round_with, running, trial_of
from tests.trials import alone_on_host

pytestmark = pytest.mark.engine

THREE: dict[str, Level] = {"cluster.nodes": 3, "config.synchronous_commit": "on"}
TWO: dict[str, Level] = {"cluster.nodes": 2, "config.synchronous_commit": "local"}
ONE: dict[str, Level] = {"cluster.nodes": 1}
VERSION = "15"
"""Its packages hold pg_basebackup, and those of npm do not."""


def nodes_of(up: Running) -> Nodes:
    assert up.setup.nodes is not None
    return up.setup.nodes


def test_three_nodes_keep_each_commit_and_a_node_that_lacks_one_is_found(homes_with_data: Path) -> None:
    at_work = running("postgresql", THREE, Act.FIRST_LOST, version=VERSION)
    with alone_on_host(), skipping_blocked(), at_work as (up, bench, undo):
        [shown, _] = verify(up, bench.levels_by_layer(trial_of(THREE, Act.FIRST_LOST)), bench.layers)
        assert shown.in_effect and shown.effective is not None, shown.reason
        words = "3 nodes: node1 primary; node2 streaming, quorum; node3 streaming, quorum"
        assert shown.effective.value == words
        nodes = nodes_of(up)
        found = act_on(up, round_with(Act.FIRST_LOST), bench, undo)
        assert found.running.server is nodes.first.server
        _all_is_there(found)
        _what_a_node_lacks_is_found(found.running, bench, undo)


def _all_is_there(found: Acted) -> None:
    recovery = found.recovery
    assert (recovery.permits, recovery.lost, recovery.damage, recovery.fault) == (Loss.NOTHING, 0, "", "")
    assert recovery.present >= recovery.acknowledged > 0
    assert recovery.cluster is not None
    assert (recovery.cluster.struck, recovery.cluster.transfer) == ("node1", "base backup")
    assert recovery.cluster.replaced_s is not None and recovery.cluster.rejoin_s is not None
    held = {check.name: check.holds for check in found.checks}
    assert held["nodes_equal"] and held["node1_balances_equal"] and held["no_transaction_twice"]


def _what_a_node_lacks_is_found(up: Running, bench: Bench, undo: ExitStack) -> None:
    """A node that receives the log and does not replay it has confirmed commits that nobody sees there."""
    nodes = nodes_of(up)
    struck, behind = nodes.others
    behind.ask("SELECT pg_wal_replay_pause()")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_nodes, "CATCH_UP_S", 1.0)
        up.ask("CREATE TABLE dyno_unseen (a INT)")
        [late] = trial_nodes.nodes_agree(up)
    assert (late.name, late.holds) == ("nodes_together", False)
    assert up.lag()["replay_lag_bytes"] > 0
    assert late.detail == f"{behind.name} did not catch up within 1 s"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "drawn", lambda _nodes, _phase: struck)
        for module in (cluster, trial_nodes):
            patch.setattr(module, "caught_up", lambda *_: True)
        patch.setattr(cluster, "COMPARISONS", 1)
        recovery = act_on(up, round_with(Act.NODE_KILL), bench, undo).recovery
    assert recovery.cluster is not None
    assert recovery.cluster.struck == struck.name
    assert recovery.cluster.rejoin_s is not None
    assert recovery.cluster.lost == {behind.name: recovery.lost} and recovery.lost > 0
    assert recovery.cluster.stale > 0
    assert f"nodes_equal: {behind.name} holds" in recovery.damage
    assert "after a killed node" in recovery.fault


@needs_root
def test_what_no_node_confirms_is_lost_with_the_first_one_and_may_be(
    homes_with_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work = running("postgresql", TWO, Act.FIRST_LOST, version=VERSION)
    with alone_on_host(), skipping_blocked(), at_work as (up, bench, undo):
        nodes = nodes_of(up)
        promote, cut = nodes.promote, ExitStack()

        def mended() -> ClusterNode:
            cut.close()
            return promote()

        monkeypatch.setattr(nodes, "promote", mended)
        # The node that is cut off is not waited for, because it never comes.
        monkeypatch.setattr(trial_nodes, "CATCH_UP_S", 3.0)
        cut.enter_context(nodes.cut_off(nodes.others[0]))
        recovery = act_on(up, round_with(Act.FIRST_LOST), bench, undo).recovery
    assert recovery.permits is Loss.COMMITS
    assert recovery.lost == recovery.acknowledged > 0
    assert (recovery.damage, recovery.fault) == ("", "")
    assert "were gone" in recovery.but(permits=Loss.NOTHING).fault
    _came_back(recovery)


def _came_back(recovery: Recovery) -> None:
    assert recovery.cluster is not None
    assert recovery.cluster.lost == {"node1": recovery.lost, "node2": recovery.lost}


def test_a_cluster_of_one_node_has_no_other_to_strike(homes_with_data: Path) -> None:
    with running("postgresql", ONE, Act.NODE_KILL, version=VERSION) as (up, bench, undo):
        with pytest.raises(Blocked, match="there is no other node"):
            act_on(up, round_with(Act.NODE_KILL), bench, undo)
        left_out = act_on(up, round_with(Act.NODE_KILL, optional=True), bench, undo)
        assert left_out.recovery.blocked == "there is no other node"
        assert left_out.running.server.alive()


def _each_node_has_clients(up: Running) -> None:
    """What they did is one tally, and each node comes to hold all of it."""
    tally = up.load.run(up.setup.job.but(duration_s=3.0))
    assert isinstance(up.load, LoadOfNodes)
    assert [(one.node, one.clients) for one in up.load.seen] == [(f"node{n}", 2) for n in (1, 2, 3)]
    assert all(one.operations for one in up.load.seen) and tally.clients == 6
    assert tally.operations == sum(one.operations for one in up.load.seen)
    assert up.lag().keys() == {"receive_queue", "flow_control_s", "node_aborts"}
    checks = (*trial_nodes.nodes_agree(up), *trial_nodes.of_others(up, Acknowledged.by([tally])))
    assert {check.name.partition("_")[0] for check in checks} == {"nodes", "node2", "node3"}
    assert all(check.holds for check in checks), checks


def test_a_cluster_of_galera_goes_on_without_its_first_node(homes_with_data: Path) -> None:
    levels: dict[str, Level] = {"cluster.nodes": 3, "cluster.load": "all"}
    at_work = running("mariadb", levels, Act.FIRST_LOST, version="11.8")
    with alone_on_host(), skipping_blocked(), at_work as (up, bench, undo):
        # All would change the row of the only branch, and one node could lose each time.
        options = {**up.setup.job.options, "simple_update": True}
        up.setup.job = up.setup.job.but(clients=6, options=options)
        [shown, dealt] = verify(up, bench.levels_by_layer(trial_of(levels, Act.FIRST_LOST)), bench.layers)
        assert shown.in_effect and shown.effective is not None, shown.reason
        words = "; ".join(f"node{number} Synced, 3 in Primary" for number in (1, 2, 3))
        assert shown.effective.value == f"3 nodes: {words}"
        assert dealt.in_effect and dealt.effective is not None, dealt.reason
        assert dealt.effective.value == "clients on node1, node2, node3"
        _each_node_has_clients(up)
        found = act_on(up, round_with(Act.FIRST_LOST), bench, undo)
        assert found.running.server is nodes_of(up).first.server
        emptied = act_on(found.running, round_with(Act.NODE_EMPTY), bench, undo)
    _kept_by_all(found, "IST", "SST")
    _kept_by_all(emptied, "SST")
    given = emptied.recovery.cluster
    assert given is not None and given.donor_still_s is not None
    assert given.donor != given.struck and given.donor in nodes_of(up).by_name


def _kept_by_all(found: Acted, *transfers: str) -> None:
    recovery = found.recovery
    assert (recovery.permits, recovery.lost, recovery.fault) == (Loss.NOTHING, 0, "")
    assert recovery.present >= recovery.acknowledged > 0
    assert recovery.cluster is not None and recovery.cluster.transfer in transfers
    assert all(check.holds for check in found.checks)


@pytest.mark.parametrize(("engine", "version"), [("mariadb", "11.8"), ("mysql", "9.7")])
def test_what_a_replica_confirmed_outlives_the_first_node(
    homes_with_data: Path, engine: str, version: str
) -> None:
    levels: dict[str, Level] = {"cluster.nodes": 2, "cluster.kind": "semi-synchronous"}
    at_work = running(engine, levels, Act.NODE_EMPTY, version=version)
    with alone_on_host(), skipping_blocked(), at_work as (up, bench, undo):
        shown = verify(up, bench.levels_by_layer(trial_of(levels, Act.NODE_EMPTY)), bench.layers)
        assert [one.factor for one in shown if one.in_effect] == ["cluster.nodes", "cluster.kind"], shown
        _how_far_it_is_behind_is_seen_each_second(up)
        emptied = act_on(up, round_with(Act.NODE_EMPTY), bench, undo)
        assert emptied.recovery.cluster is not None
        assert (emptied.recovery.cluster.struck, emptied.recovery.cluster.donor) == ("node2", "node1")
        found = act_on(emptied.running, round_with(Act.FIRST_LOST), bench, undo)
        assert nodes_of(up).first.name == "node2"
    _kept_by_all(emptied, HOW)
    _kept_by_all(found, HOW)


def _how_far_it_is_behind_is_seen_each_second(up: Running) -> None:
    """A replica that receives the log and does not apply it falls behind, and comes back."""
    [replica] = nodes_of(up).others
    replica.ask("STOP REPLICA SQL_THREAD")
    seen = Observer(up.process_ids, False, asked=up.server.url, counters=up.setup.engine.counters, lag=up.lag)
    with seen as observer, observer.looking():
        tally = up.load.run(up.setup.job.but(duration_s=3.0))
    series = observer.observation(replace(up, tally=tally)).series["transactions_behind"]
    assert len(series) == 3 and series == sorted(series) and series[-1] > 0
    replica.ask("START REPLICA SQL_THREAD")
    assert trial_nodes.caught_up(nodes_of(up), replica)
    assert up.lag() == {"transactions_behind": 0.0}


def test_a_group_elects_its_next_first_node_by_itself(homes_with_data: Path) -> None:
    levels: dict[str, Level] = {
        "cluster.nodes": 3,
        "cluster.kind": "group",
        "config.group_replication_member_expel_timeout": 0,
    }
    at_work = running("mysql", levels, Act.NODE_EMPTY, version="9.7")
    with alone_on_host(), skipping_blocked(), at_work as (up, bench, undo):
        shown = verify(up, bench.levels_by_layer(trial_of(levels, Act.NODE_EMPTY)), bench.layers)
        assert len(shown) == 3 and all(one.in_effect for one in shown), shown
        others = "; ".join(f"node{number} secondary, 3 of 3 online" for number in (2, 3))
        told = [one.effective.value for one in shown if one.effective and one.factor == "cluster.kind"]
        assert told == [f"node1 primary, 3 of 3 online; {others}"]
        emptied = act_on(up, round_with(Act.NODE_EMPTY), bench, undo)
        found = act_on(emptied.running, round_with(Act.FIRST_LOST), bench, undo)
        assert nodes_of(up).first.name in ("node2", "node3")
    _kept_by_all(emptied, HOW)
    _kept_by_all(found, "binary log")


def test_a_first_node_that_goes_on_alone_is_not_what_was_asked_for(homes_with_data: Path) -> None:
    levels: dict[str, Level] = {
        "cluster.nodes": 2,
        "cluster.kind": "semi-synchronous",
        "config.rpl_semi_sync_master_timeout": 50,
    }
    at_work = running("mariadb", levels, Act.FIRST_LOST, version="11.8")
    with alone_on_host(), skipping_blocked(), at_work as (up, bench, _):
        nodes = nodes_of(up)
        assert nodes.cluster.permits({**nodes.first.settings, **up.setup.settings}) is Loss.COMMITS
        evidence = verify(up, bench.levels_by_layer(trial_of(levels, Act.FIRST_LOST)), bench.layers)
        with_it = _shown(_after_a_load(up), evidence)
        assert with_it.in_effect and with_it.exercised is not None
        assert with_it.exercised.value == "0 commits told without the word of another node"
        with nodes.paused(nodes.others[0]):
            driven = _after_a_load(up)
        alone = _shown(driven, evidence)
    assert not alone.in_effect
    assert alone.reason.startswith("the first node went on alone during the load")


def _after_a_load(up: Running) -> Running:
    before = up.status()
    assert up.load.run(up.setup.job).operations > 0
    return replace(up, status_before=before, status_after=up.status())


def _shown(driven: Running, evidence: Sequence[Evidence]) -> Evidence:
    return next(one for one in exercised(evidence, driven, LAYERS) if one.factor == "cluster.kind")


MS = 1_000_000
TOLD = [Acknowledgement(0, 1, 10 * MS), Acknowledgement(0, 2, 20 * MS), Acknowledgement(1, 1, 15 * MS)]


def test_a_look_that_shows_what_each_client_was_told_of_is_not_stale() -> None:
    assert staleness([NodeLook(2, 30 * MS, {0: 2, 1: 1})], TOLD, [1]) == Staleness(2, 0, 0.0)


def test_a_look_on_the_node_of_a_client_says_nothing_of_that_client() -> None:
    assert staleness([NodeLook(2, 24 * MS, {0: 1, 1: 0})], TOLD, [1, 2]) == Staleness(1, 1, 4.0)
    assert staleness([NodeLook(1, 24 * MS, {0: 1, 1: 0})], TOLD, [1, 2]) == Staleness(1, 1, 9.0)


def test_a_commit_that_comes_after_the_look_is_not_missed() -> None:
    assert staleness([NodeLook(2, 17 * MS, {0: 1, 1: 1})], TOLD, [1]) == Staleness(2, 0, 0.0)
    assert staleness([NodeLook(2, 12 * MS, {0: 1})], TOLD, [1]) == Staleness(1, 0, 0.0)


def test_a_missed_commit_is_as_old_as_the_client_has_known_of_it() -> None:
    assert staleness([NodeLook(2, 24 * MS, {0: 1, 1: 1})], TOLD, [1]) == Staleness(2, 1, 4.0)
    assert staleness([NodeLook(2, 24 * MS, {})], TOLD, [1]) == Staleness(2, 2, 14.0)


def test_a_node_stands_still_between_two_moves() -> None:
    assert longest_still_s([(0.0, 5.0), (1.0, 6.0), (2.0, 6.0), (4.0, 6.0), (5.0, 7.0), (5.5, 8.0)]) == 4.0


def test_a_node_that_never_moves_stands_still_for_as_long_as_it_was_asked() -> None:
    assert longest_still_s([(1.0, 5.0), (2.0, 5.0), (4.5, 5.0)]) == 3.5
    assert longest_still_s([(1.0, 5.0)]) == longest_still_s([]) == 0.0
