"""What Slurm refuses is one message each, and what it says of jobs and nodes is understood."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dbdyno.errors import DynoError, UserError
from dbdyno.fleet import slurm
from dbdyno.fleet.launcher import JobOrder, JobState
from dbdyno.fleet.slurm import Slurm, seconds_of
from tests.fleet.machines import wait_for
from tests.fleet.slurm_cluster import NODES, Cluster, cluster
from tests.needs import needs_root, needs_slurm

START = ("/bin/sleep", "60")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    with cluster("MaxJobCount=3") as made:
        yield made


@pytest.fixture
def here(nodes: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    for name, value in nodes.variables.items():
        monkeypatch.setenv(name, value)
    return nodes


def order(run: str, count: int) -> JobOrder:
    return JobOrder(run, START, "postgresql://db.example/dyno", 60.0, count)


@needs_root
@needs_slurm
@pytest.mark.parametrize(
    ("place", "tags", "count", "said", "hint"),
    [
        ("nope", (), 1, "Slurm has no partition 'nope'", "main, low, urgent"),
        ("main", (), 4, "--hosts asks for 4, and of the nodes of main 3 take jobs", "--hosts 3"),
        ("main", ("fast",), 2, "of the nodes of main and fast 1 take jobs", "--hosts 1"),
        ("main", ("slow",), 1, "of the nodes of main and slow 0 take jobs", "sinfo --Node --long"),
    ],
)
def test_what_a_partition_does_not_have_is_told(
    here: Cluster, place: str, tags: tuple[str, ...], count: int, said: str, hint: str
) -> None:
    with pytest.raises(UserError, match=said) as error:
        Slurm(place, tags).submit(order("refused", count))
    assert hint in error.value.hint and here.ask("squeue", "-h") == ""


@needs_root
@needs_slurm
def test_a_drained_node_is_named_with_its_reason(here: Cluster) -> None:
    here.ask("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=a disk fails")
    try:
        with pytest.raises(UserError, match=r"2 take jobs \(n2 is drained: a disk fails\)") as error:
            Slurm("main").submit(order("drained", 3))
        assert "scontrol update NodeName=n2 State=RESUME" in error.value.hint
    finally:
        here.ask("scontrol", "update", "NodeName=n2", "State=RESUME")
    wait_for("it is back", lambda: here.state_of("n2") == "idle", 60.0)


@needs_root
@needs_slurm
def test_jobs_are_found_by_their_run_and_a_full_queue_is_told(
    here: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "ANSWER_S", 3.0)
    launcher = Slurm("main", ("big",))
    launcher.submit(order("first", 2))
    wait_for("both work", lambda: len(here.jobs()) == 2, 60.0)
    found = launcher.watch("first")
    assert {job.host for job in found} < set(NODES) and {job.state for job in found} == {JobState.WORKS}
    assert launcher.watch("second") == []
    with pytest.raises(DynoError, match="Slurm: its queue is full") as error:
        launcher.submit(order("second", 2))
    assert "squeue" in error.value.hint
    variables = {"SLURMD_NODENAME": "n1", "SLURM_JOB_ID": found[0].id, "SLURM_ARRAY_JOB_ID": "7"}
    placed = launcher.placed({**variables, "SLURM_ARRAY_TASK_ID": "3"})
    assert (placed.host, placed.tags, placed.job) == ("n1", ("big", "fast"), "7_3")
    assert placed.left_s is not None and 0.0 < placed.left_s <= 60.0 + slurm.GRACE_S
    launcher.cancel("first")
    wait_for("none is left", lambda: here.ask("squeue", "-h") == "", 60.0)
    assert {job.state for job in launcher.watch("first")} == {JobState.OVER}
    assert {job.told for job in launcher.watch("first")} == {"CANCELLED"}


@needs_root
@needs_slurm
@pytest.mark.parametrize(
    ("daemon", "said", "hint"),
    [
        ("munged", "munge does not answer on this host", "systemctl start munge"),
        ("slurmctld", "its controller does not answer", "scontrol ping"),
    ],
)
def test_a_daemon_that_is_gone_is_named(here: Cluster, daemon: str, said: str, hint: str) -> None:
    here.stop(daemon)
    try:
        for ask in (lambda: Slurm("main").submit(order("none", 1)), lambda: Slurm("main").watch("none")):
            with pytest.raises(DynoError, match=said) as error:
                ask()
            assert hint in error.value.hint and error.value.exit_code == 1
    finally:
        here.start(daemon)
    wait_for("it is back", lambda: here.ask("sinfo", "-h") != "", 60.0)


def test_a_host_without_slurm_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="there is no squeue here") as error:
        Slurm("main").watch("none")
    assert "apt install slurm-client" in error.value.hint
    with pytest.raises(UserError, match="this is no job of Slurm"):
        Slurm("main").placed({"SLURM_JOB_ID": "1"})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5:00", 300.0), ("1:02:03", 3723.0), ("2-00:00:01", 172801.0), ("UNLIMITED", None), ("INVALID", None)],
)
def test_a_time_of_slurm_is_read(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds
