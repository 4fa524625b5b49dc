"""`dyno run --fleet slurm:PARTITION` on a real Slurm: a run over its nodes, and all that can befall a job;
and `--fleet ssh:a,b` by a real sshd."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dbdyno.cli import jobs
from dbdyno.cli.jobs import launcher_of
from dbdyno.errors import UserError
from dbdyno.fleet import parts
from dbdyno.fleet.launcher import HOST, JobState
from dbdyno.fleet.session import Session
from dbdyno.fleet.slurm import Slurm
from dbdyno.host import paths
from dbdyno.host.writers import NOTHING_ALLOWED
from dbdyno.kinds.comparison import RunOptions, begin
from dbdyno.kinds.fleet import answer_of, draft_of, run_on
from dbdyno.prepare_run.begun import code_digest, keep_run
from dbdyno.records.record import Outcome
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.cli.jobs_cases import STUDY
from tests.cli.jobs_cases import slurm as slurm
from tests.cli.jobs_cases import study as study
from tests.fleet.judge import OVERLAPS, faults
from tests.fleet.kubectl import Kubectl, job, pod
from tests.fleet.machines import folders_in, wait_for
from tests.fleet.slurm_cluster import Cluster
from tests.load_hosts import NAME, OTHER_NAME, apart
from tests.needs import needs_root, needs_slurm
from tests.records.postgresql import PostgreSQL
from tests.warm import Process

SQUEUE = ("squeue", "--noheader", "--array")


class Controller:
    """`dyno run` beside the test, and what it says."""

    def __init__(self, folder: Path, url: str, *words: str) -> None:
        self.said = folder / "said"
        with self.said.open("wb") as file:
            self.process = Process("run", *words, "--store", url, stdout=subprocess.DEVNULL, stderr=file)

    def ended(self) -> tuple[int, str]:
        code = self.process.wait(180.0)
        return code or 0, self.said.read_text()


def trials(url: str, name: str) -> int:
    """How many trials of a run are kept; 0 before it began."""
    with Store(url) as store:
        found = [one.run.run for one in store.runs() if one.name == name]
        return len(store.trials_of(found[0])) if found else 0


def require_whole(url: str, name: str, blocks: int) -> None:
    """Each trial of a run is kept once, under leases of which no two overlap."""
    with Store(url) as store, Session(url) as session:
        run = store.run(name)
        assert [record.trial for record in store.records(run.run)] == list(range(2 * blocks))
        assert store.summary(run).finished and session.execute(OVERLAPS) == []


@pytest.mark.engine
@needs_root
@needs_slurm
def test_three_nodes_measure_what_one_host_does(
    study: Path, slurm: Cluster, store_server: PostgreSQL, homes: Path
) -> None:
    url, seed = store_server.url, ("--seed", "3")
    where = ("--fleet", "slurm:main,tag:big", "--hosts", "3")
    over = dyno("run", str(study), *where, *seed, "--store", url, "--name", "on-three")
    assert over.returncode == 0, over.stderr
    assert dyno("run", str(study), *seed, "--blocks", "6", "--store", url, "--name", "alone").returncode == 0
    with Store(url) as store, Session(url) as session:
        run = store.run("on-three")
        assert faults(store, session, run, store.records(store.run("alone").run)) == []
        assert [host.name for host in run.fleet] == ["n1", "n2", "n3"]
        # A lease lasts as long as the node is the job's, so none was renewed.
        rows = session.execute("SELECT DISTINCT upper(during) - lower(during) FROM dyno_leases")
        assert all(released.total_seconds() < 900.0 for (released,) in rows)
    wait_for("all jobs are over", lambda: not slurm.jobs(), 60.0)
    told = dyno("fleet", "hosts", "--store", url).stdout
    assert "big, fast" in told and told.count("away") == 3
    assert "3 jobs for run" in over.stderr
    assert slurm.journals() == []


@pytest.mark.engine
@needs_root
@needs_slurm
def test_a_cancelled_job_is_told_and_the_run_goes_on_whatever_comes(
    study: Path, slurm: Cluster, store_server: PostgreSQL, homes: Path
) -> None:
    url = store_server.url
    begun = Controller(
        homes, url, str(study), "--blocks", "8", "--fleet", "slurm:main", "--hosts", "1", "--name", "struck"
    )
    wait_for("its first trial", lambda: trials(url, "struck") > 0, 120.0)
    [(job, node)] = slurm.jobs()
    slurm.ask("scancel", job)
    code, said = begun.ended()
    assert code == 1 and f"host {node} has blocks left, and its job is over: CANCELLED" in said
    assert "dyno run --resume" in said and slurm.journals() == []
    kept = trials(url, "struck")
    again = Controller(homes, url, "--resume", "struck")
    wait_for("its next trial", lambda: trials(url, "struck") > kept, 120.0)
    # The controller of Slurm starts again meanwhile, of which a job knows nothing.
    slurm.stop("slurmctld")
    slurm.start("slurmctld")
    wait_for("Slurm answers", lambda: slurm.jobs() != [], 60.0)
    again.process.send_signal(signal.SIGINT)
    code, said = again.ended()
    assert code == 130 and "withdrawn: each host stops" in said
    wait_for("its job is over", lambda: not slurm.jobs(), 60.0)
    assert slurm.journals() == []
    assert dyno("run", "--resume", "struck", "--store", url).returncode == 0
    require_whole(url, "struck", 8)


@pytest.mark.engine
@needs_root
@needs_slurm
def test_a_job_that_starts_again_on_another_node_hands_over(
    study: Path, slurm: Cluster, store_server: PostgreSQL, homes: Path
) -> None:
    url = store_server.url
    words = (str(study), "--blocks", "8", "--fleet", "slurm:main", "--hosts", "1", "--name", "elsewhere")
    begun = Controller(homes, url, *words)
    wait_for("its first trial", lambda: trials(url, "elsewhere") > 0, 120.0)
    [(job, node)] = slurm.jobs()
    slurm.ask("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=a disk fails")
    slurm.ask("scontrol", "requeue", job)
    wait_for("it waits", lambda: slurm.jobs("PENDING") != [], 60.0)
    assert slurm.journals() == []
    slurm.hurry()
    # A job for that node alone comes in its place.
    wanted = (*SQUEUE, "-t", "PENDING", "-o", "%n")
    wait_for("a job waits for its node", lambda: slurm.ask(*wanted) == node, 120.0)
    slurm.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
    slurm.hurry()
    code, said = begun.ended()
    assert code == 0, said
    require_whole(url, "elsewhere", 8)
    with Store(url) as store:
        assert {one.fleet_host for one in store.records(store.run("elsewhere").run)} == {node}


@pytest.mark.engine
@needs_root
@needs_slurm
def test_a_node_that_fails_and_a_job_that_is_preempted_lose_nothing(
    study: Path, slurm: Cluster, store_server: PostgreSQL, homes: Path
) -> None:
    url = store_server.url
    study.write_text(STUDY.replace("0.3s", "1.5s"))
    where = ("--fleet", "slurm:low,tag:fast", "--hosts", "1")
    begun = Controller(homes, url, str(study), "--blocks", "6", *where, "--name", "failing")
    wait_for("its first trial", lambda: trials(url, "failing") > 0, 120.0)
    urgent = ("sbatch", "--partition=urgent", "--nodelist=n1", "--exclusive", "--output=/dev/null")
    slurm.ask(*urgent, "--wrap=:")
    wait_for("it has lost its node", lambda: slurm.ask(*SQUEUE, "-p", "low", "-t", "PENDING"), 90.0)
    wait_for("the other job ends", lambda: not slurm.ask(*SQUEUE, "-p", "urgent"), 90.0)
    assert slurm.journals() == []
    kept = trials(url, "failing")
    assert kept < 12

    def goes_on() -> bool:
        # A job that is still on its way back into the queue is told to wait after it was told to hurry.
        slurm.hurry()
        return trials(url, "failing") > kept

    wait_for("its next trial", goes_on, 180.0)
    slurm.stop("n1", signal.SIGKILL)
    wait_for("Slurm has noticed", lambda: slurm.state_of("n1").startswith("down"), 90.0)
    slurm.start("n1")
    wait_for("Slurm has it back", lambda: slurm.state_of("n1") in ("idle", "allocated"), 90.0)
    slurm.hurry()
    code, said = begun.ended()
    assert code == 0, said
    require_whole(url, "failing", 6)
    assert slurm.journals() == []


def of_pod(made: dict[str, Any], secret: dict[str, Any], host: str, folder: Path, url: str) -> Process:
    """The process that a kubelet would start for the first pod of a manifest."""
    (container,) = made["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    variables |= {HOST: host, "JOB_COMPLETION_INDEX": "0", "DYNO_STORE": secret["stringData"]["store"]}
    return Process(*container["args"], env={**os.environ, **folders_in(folder / host), **variables})


@pytest.mark.engine
def test_pods_by_their_manifest_measure_and_return_to_their_node(
    homes: Path, store_server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, study, played = store_server.url, homes / "study.toml", Kubectl(homes, monkeypatch)
    study.write_text(STUDY)
    words = ("--blocks", "8", "--fleet", "kubernetes:bench", "--hosts", "1", "--name", "in-pods")
    played.plays("jobs,pods", job("just-made"))
    begun = Controller(homes, url, str(study), *words)
    wait_for("its job and its secret", lambda: len(played.asked("create")) == 2, 60.0)
    made, secret = played.created()
    name = made["metadata"]["name"]
    played.plays("jobs,pods", job(name), pod(name, 0, "Running", "n1"))
    first = of_pod(made, secret, "n1", homes, url)
    wait_for("its first trial", lambda: trials(url, "in-pods") > 0, 120.0)
    first.kill()
    first.wait(30.0)
    # Its node has failed, and it starts again on another one, which has no blocks.
    moved = of_pod(made, secret, "n2", homes, url)
    assert moved.wait(60.0) == 0
    played.plays("jobs,pods", job(name), pod(name, 0, "Succeeded", "n2"))
    wait_for("a job for its node", lambda: len(played.asked("create")) == 4, 90.0)
    made, secret = played.created()[2:]
    again = made["metadata"]["name"]
    played.plays("jobs,pods", job(name), pod(name, 0, "Succeeded", "n2"), job(again, host="n1"))
    assert of_pod(made, secret, "n1", homes, url).wait(120.0) == 0
    code, said = begun.ended()
    assert code == 0, said
    assert "the job of n1 came to another host, so another one waits for it" in said
    require_whole(url, "in-pods", 8)
    with Store(url) as store:
        assert {one.fleet_host for one in store.records(store.run("in-pods").run)} == {"n1"}


@pytest.mark.engine
@needs_root
def test_hosts_that_ssh_logs_in_on_measure_and_are_left_alone(
    homes: Path, store_server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, study = store_server.url, homes / "study.toml"
    study.write_text(STUDY)
    begin = jobs.start_of
    folder = f"DYNO_HOST_FOLDER={homes / 'host-of-both'}"
    monkeypatch.setattr(jobs, "start_of", lambda *asked: ("env", folder, *begin(*asked)))
    (homes / "of-ssh").mkdir()
    with apart(homes / "of-ssh", monkeypatch):
        where = f"ssh:{NAME},{OTHER_NAME}"
        assert f"--fleet {where} names its hosts" in complaint(
            "run", str(study), "--fleet", where, "--hosts", "2", "--store", url
        )
        over = dyno("run", str(study), "--fleet", where, "--store", url, "--name", "by-ssh")
        assert over.returncode == 0, over.stderr
        require_whole(url, "by-ssh", 4)
        launcher = launcher_of(where)
        with Store(url) as store:
            run = store.run("by-ssh")
        assert [host.name for host in run.fleet] == [NAME, OTHER_NAME] and launcher is not None
        wait_for(
            "both workers are over",
            lambda: [job.state for job in launcher.watch(run.run)] == [JobState.OVER] * 2,
            60.0,
        )
    assert not list((homes / "host-of-both" / "journal").glob("*"))


LOGGED = """
title  = "Does a general log elsewhere cost less?"
engine = "mariadb@11.8"
blocks = 2
images = 1
[workload]
name       = "point_select"
table_size = 100
warmup     = "0s"
duration   = "0.3s"
[settings]
"config.general_log" = true
[factors]
"config.general_log_file" = ["general.log", "{outside}/general.log"]
"""


@pytest.mark.engine
@needs_root
def test_what_is_allowed_here_reaches_the_workers_that_ssh_starts(
    homes_with_data: Path, store_server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, homes = store_server.url, homes_with_data
    outside, study = homes / "outside", homes / "study.toml"
    outside.mkdir()
    study.write_text(LOGGED.format(outside=outside))
    begin, where = jobs.start_of, f"ssh:{NAME}"
    folders = (f"DYNO_HOST_FOLDER={homes / 'there'}", f"XDG_CACHE_HOME={paths.cache().parent}")
    monkeypatch.setattr(jobs, "start_of", lambda *asked: ("env", *folders, *begin(*asked)))
    (homes / "of-ssh").mkdir()
    with apart(homes / "of-ssh", monkeypatch):
        said = complaint("run", str(study), "--fleet", where, "--store", url)
        assert f"--allow-path {outside}/general.log" in said
        words = ("--allow-path", str(outside), "--store", url, "--name", "logged")
        over = dyno("run", str(study), "--fleet", where, *words)
        assert over.returncode == 0, over.stderr
        require_whole(url, "logged", 2)
        assert (outside / "general.log").stat().st_size > 0
        with Store(url) as store:
            name = store.run("logged").run
            assert {one.outcome for one in store.records(name)} == {Outcome.MEASURED}
        wait_for("its worker is over", lambda: no_worker(where, name), 60.0)


@pytest.mark.engine
@needs_root
def test_a_host_whose_launched_dyno_is_another_one_measures_nothing(
    homes: Path, store_server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, study = store_server.url, homes / "study.toml"
    study.write_text(STUDY)
    where, start_of = f"ssh:{NAME},{OTHER_NAME}", jobs.start_of
    changed, start = homes / "changed", homes / "start"
    shutil.copytree(paths.PACKAGE, changed / paths.PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    with (changed / paths.PACKAGE.name / "errors.py").open("a") as file:
        file.write("# Other code of the same version.\n")
    start.write_text(
        f"#!/bin/sh\n[ ${HOST} != {OTHER_NAME} ] || [ ! -e {changed} ] || export PYTHONPATH={changed}\n"
        f'DYNO_HOST_FOLDER={homes / "host-of-both"} exec "$@"\n'
    )
    start.chmod(0o755)
    monkeypatch.setattr(jobs, "start_of", lambda *asked: (str(start), *start_of(*asked)))
    (homes / "of-ssh").mkdir()
    with apart(homes / "of-ssh", monkeypatch):
        said = complaint("run", str(study), "--fleet", where, "--store", url)
        found = re.search(
            r"host (\w+): the worker runs Dyno \S+ with code (\w+) .* and run (\S+) began", said
        )
        assert found is not None and found[1] == OTHER_NAME and found[2] != code_digest()[:12], said
        assert f"with code {code_digest()[:12]} and driver" in said and "install the Dyno there" in said
        with Store(url) as store, Session(url) as session:
            assert not store.has_run(found[3]) and parts.parts_of(session, found[3]) == []
            options = RunOptions(path=study, calibration=False)
            draft = draft_of(begin(store, options, lambda _: None), lambda _: None)
            answers = [answer_of(draft, name, NOTHING_ALLOWED, lambda _: None) for name in (NAME, OTHER_NAME)]
            run = run_on(draft.but(launcher=where), answers, lambda _: None)
            keep_run(store, run, "goes-on", "")
        wait_for("its workers are over", lambda: no_worker(where, found[3]), 60.0)
        said = complaint("run", "--resume", "goes-on", "--quiet", "--store", url, code=1)
        assert f"host {OTHER_NAME}: the worker runs Dyno" in said and found[2] in said
        assert f"dyno run --resume {run.run}" in said and said.count("with code") == 2
        with Store(url) as store:
            kept = store.records(run.run)
            assert {one.fleet_host for one in kept} == {NAME} and len(kept) == 4
        changed.rename(homes / "gone")
        assert dyno("run", "--resume", "goes-on", "--store", url).returncode == 0
        require_whole(url, "goes-on", 4)
        with Store(url) as store:
            assert store.records(run.run)[:4] == kept


def no_worker(where: str, run: str) -> bool:
    """Whether no worker that was started for a run is at work."""
    launcher = launcher_of(where)
    assert launcher is not None
    return all(job.state is JobState.OVER for job in launcher.watch(run))


def test_the_words_of_fleet_name_a_launcher_or_hosts() -> None:
    assert launcher_of("a,b") is None and launcher_of("tag:big") is None and launcher_of("") is None
    found = launcher_of("slurm:main, tag:big")
    assert isinstance(found, Slurm) and (found.place, found.tags) == ("main", ("big",))
    with pytest.raises(UserError, match="--fleet names pbs:, which starts no workers") as error:
        launcher_of("pbs:main")
    assert "slurm:" in error.value.hint
