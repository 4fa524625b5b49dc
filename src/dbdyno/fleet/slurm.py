"""Slurm as the launcher of a run: an array of jobs, each of which has a node to itself.

Slurm says which node, keeps everybody else off it, sends a signal before the time is over, and starts a job
again whose node failed or which was preempted. It does so on any node of the partition, and a run's blocks
belong to hosts: a worker that finds itself on another node hands over to a job that waits for the right one.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from dbdyno.errors import DynoError, UserError
from dbdyno.fleet.launcher import JobOrder, JobPlace, JobState, WorkerJob, job_name, said_by
from dbdyno.records.store import NAME

GRACE_S = 120
"""So long before its time is over a worker is told. Slurm may send the signal a minute early."""
ANSWER_S = 30.0
LOG = "/tmp/{name}-%N-%j.log"
"""What a worker says. The folder is there on every node."""
GONE = "down|drain|fail|future|maint|inval|power"
"""Of a node's state, where no job begins there."""
WAITS = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})
WORKS = frozenset({"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING"})
REFUSALS = (
    ("munge", "munge does not answer on this host", "start it: systemctl start munge"),
    ("contact slurm controller", "its controller does not answer", "see: scontrol ping"),
    ("temporarily unable to accept", "its queue is full", "wait until jobs have ended; see: squeue"),
    ("limit", "the account's or the partition's limit refuses it", "see: sacctmgr show assoc, sinfo --long"),
)
"""What an answer holds, what it means, and what to do."""


@dataclass(frozen=True)
class Slurm:
    """The nodes of a partition that have all features that `tags` name."""

    from_jobs: ClassVar[bool] = True
    place: str
    tags: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    def submit(self, order: JobOrder) -> None:
        self._require_nodes(order)
        if order.hosts:
            for host in order.hosts:
                self._submit(order, f"--nodelist={host}")
            return
        features = (f"--constraint={'&'.join(self.tags)}",) if self.tags else ()
        self._submit(order, f"--array=0-{order.count - 1}", *features)

    def _submit(self, order: JobOrder, *where: str) -> None:
        name, minutes = job_name(order.run), math.ceil((order.limit_s + GRACE_S) / 60.0)
        _answer(
            *("sbatch", "--parsable", f"--partition={self.place}"),
            *("--exclusive", "--nodes=1", "--ntasks=1", "--mem=0", *where),
            *("--requeue", f"--time={minutes}", f"--signal=B:TERM@{GRACE_S}", f"--job-name={name}"),
            # A folder of whoever submits need not be on a node.
            *("--chdir=/tmp", f"--output={LOG.format(name=name)}", "--open-mode=append"),
            # The worker takes the shell's place, so that signals arrive at it.
            script=f"#!/bin/sh\nexec {shlex.join(order.command)}\n",
            variables={"DYNO_STORE": order.store},
        )

    def watch(self, run: str) -> list[WorkerJob]:
        asked = ("squeue", "--array", "--noheader", "--states=all", f"--name={job_name(run)}")
        return [_job(*line.split("|", 4)) for line in _answer(*asked, "--format=%i|%T|%N|%n|%r")]

    def cancel(self, run: str) -> None:
        _answer("scancel", f"--name={job_name(run)}")

    def words(self, run: str) -> str:
        return f"on its host, in {LOG.format(name=job_name(run)).replace('%N-%j', '*')}"

    def placed(self, environment: Mapping[str, str]) -> JobPlace:
        host, number = environment.get("SLURMD_NODENAME"), environment.get("SLURM_JOB_ID")
        if host is None or number is None:
            raise UserError("this is no job of Slurm", "leave --for out: dyno fleet worker")
        array = environment.get("SLURM_ARRAY_JOB_ID")
        features = _answer("sinfo", "--noheader", "--Node", f"--nodes={host}", "--format=%b")
        left = _answer("squeue", "--noheader", f"--jobs={number}", "--format=%L")
        return JobPlace(
            host=host,
            tags=tuple(sorted({word for line in features for word in _features(line)})),
            job=f"{array}_{environment['SLURM_ARRAY_TASK_ID']}" if array else number,
            left_s=seconds_of("".join(left)),
        )

    def _require_nodes(self, order: JobOrder) -> None:
        """Raises UserError for a partition that is not there, and where fewer of its nodes take jobs than
        are asked for. One that works for others counts, because it is waited for."""
        nodes = [
            line.split("|", 3)
            for line in _answer(
                *("sinfo", "--noheader", "--Node", f"--partition={self.place}", "--format=%N|%T|%b|%E")
            )
        ]
        if not nodes:
            there = ", ".join(_answer("sinfo", "--noheader", "--format=%R")) or "none"
            raise UserError(f"Slurm has no partition {self.place!r}", f"there are: {there}")
        fit = [node for node in nodes if set(self.tags) <= set(_features(node[2]))]
        gone = [node for node in fit if re.search(GONE, node[1]) or node[1].endswith("*")]
        take = len(fit) - len(gone)
        if order.hosts or take >= order.count:
            return
        which = " and ".join([self.place, *self.tags])
        told = "; ".join(f"{name} is {state}: {reason}" for name, state, _, reason in gone)
        back = f", or bring one back: scontrol update NodeName={gone[0][0]} State=RESUME" if gone else ""
        raise UserError(
            f"--hosts asks for {order.count}, and of the nodes of {which} {take} take jobs"
            + (f" ({told})" if told else ""),
            f"--hosts {take}{back}" if take else f"see: sinfo --Node --long{back}",
        )


def seconds_of(text: str) -> float | None:
    """Of a time as Slurm writes it: `1-02:03:04`, `02:03`. None for one without an end."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = (int(word or 0) for word in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _features(text: str) -> list[str]:
    return [word for word in text.strip().split(",") if NAME.fullmatch(word)]


def _job(number: str, state: str, node: str, wanted: str, reason: str) -> WorkerJob:
    known = JobState.WORKS if state in WORKS else JobState.WAITS if state in WAITS else JobState.OVER
    # A job that waits again has no node, and one that is over may have been pinned to it.
    waits_for = "" if reason == "None" else reason
    told = waits_for if known is JobState.WAITS else state
    return WorkerJob(id=number, state=known, host=node.strip() or wanted.strip(), told=told)


def _answer(*command: str, script: str = "", variables: Mapping[str, str] | None = None) -> list[str]:
    """The lines of a command of Slurm's. Raises UserError where it is not installed, and DynoError for what
    it refuses, in words of the cause where that is known."""
    told = f"there is no {command[0]} here, so nobody can ask Slurm"
    missing = UserError(told, "go to a host of the cluster, or: apt install slurm-client")
    code, output, said = said_by(command, missing, ANSWER_S, script, **(variables or {}))
    if code == 0:
        return [line for line in output.splitlines() if line]
    for word, means, hint in REFUSALS:
        if word in said.lower():
            raise DynoError(f"Slurm: {means} ({_last(said)})", hint)
    raise UserError(f"Slurm refuses: {_last(said)}", f"see: man {command[0]}")


def _last(said: str) -> str:
    """The last line of what a command says, which names the cause."""
    lines = [line for line in said.splitlines() if line.strip()]
    return re.sub(r"^\w+: (error: )?", "", lines[-1].strip()) if lines else ""
