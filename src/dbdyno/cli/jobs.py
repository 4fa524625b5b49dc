"""A run's workers as jobs of a launcher: how who begins the run has them started and follows them, and how a
worker finds out as which it was started."""

from __future__ import annotations

import math
import os
import re
import shlex
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.cli.terminal import tell
from dbdyno.errors import DynoError, UserError
from dbdyno.fleet import parts
from dbdyno.fleet.hosts import TAG, SeenHost, host_of_job, require_name, seen
from dbdyno.fleet.launcher import JobOrder, JobPlace, JobState, Launcher, WorkerJob
from dbdyno.fleet.parts import HostPart, PartState
from dbdyno.fleet.session import Session
from dbdyno.host.writers import Allowed
from dbdyno.records.store import Store
from dbdyno.registry import registry
from dbdyno.report.words.numbers import plural

LOOK_EVERY_S = 10.0
"""How often a scheduler is asked, which serves many."""
SPARE, SPARE_S = 2.0, 900.0
"""A job may take so many times what was estimated, and so much longer: builds and data take their time."""
DAY_S = 86400.0
UNKNOWN = "nobody knows its job any more"


LAUNCHERS: Mapping[str, type[Launcher]] = registry(
    {
        "kubernetes": "dbdyno.fleet.kubernetes:Kubernetes",
        "slurm": "dbdyno.fleet.slurm:Slurm",
        "ssh": "dbdyno.fleet.ssh:Ssh",
    }
)
NAMED_BY_OWNER = ("/dev/disk/by-partlabel/", "/dev/mapper/")
"""Where a device has a name that somebody gave it. Others follow the order in which disks are found."""
NAMED = re.compile(r"(\w+):(.+)")


def launcher_of(text: str) -> Launcher | None:
    """The launcher that `--fleet` names: `slurm:PARTITION,tag:big`. None where it names hosts. Raises
    UserError for one that is not known."""
    first, *others = (word.strip() for word in text.split(","))
    named = NAMED.fullmatch(first)
    if named is None or first.startswith(TAG):
        return None
    name, place = named.groups()
    if name not in LAUNCHERS:
        known = ", ".join(f"{one}:" for one in LAUNCHERS)
        raise UserError(f"--fleet names {name}:, which starts no workers", f"take one of {known}, or hosts")
    tags = [word.removeprefix(TAG) for word in others if word.startswith(TAG)]
    places = [place, *(word for word in others if word and not word.startswith(TAG))]
    return LAUNCHERS[name](",".join(places), tuple(map(require_name, tags)))


@dataclass
class JobsOfRun:
    """A run's jobs, as who begins it or goes on with it sees them. `say` tells each reason to wait once, and
    that the launcher does not answer. What is `allowed` here is allowed to each worker."""

    launcher: Launcher
    session: Session
    url: str
    run: str
    allowed: Allowed
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self.lost: dict[str, str] = {}
        """Hosts with blocks left whose job is over, and how it ended."""
        self._missed: set[str] = set()
        self._told: set[str] = set()
        self._sent: set[str] = set()
        self._asked_s = -math.inf

    def start(self, count: int, expected_s: float, require: Callable[[SeenHost], None]) -> list[str]:
        """Has workers started, and returns their hosts once as many as are wanted have looked at the study.
        Each must be what `require` does not refuse. Raises UserError where no such jobs can be, and DynoError
        where they end."""
        self._submit(limit_of(expected_s), count, self.launcher.hosts)
        self.say(f"{plural(count, 'job')} for run {self.run}: waiting until each has a host")
        while True:
            there = {one.member.name: one for one in seen(self.session) if one.connected}
            found = [part for part in parts.parts_of(self.session, self.run) if part.host in there]
            for part in found:
                require(there[part.host])
            answered = [part.host for part in found if part.state is not PartState.ASKED]
            if any(part.state is PartState.REFUSED for part in found) or len(answered) >= count:
                parts.keep_only(self.session, self.run, answered[:count])
                return answered[:count]
            self._require_jobs(count)
            self.session.wait(LOOK_EVERY_S)

    def _require_jobs(self, count: int) -> None:
        """Raises DynoError where fewer jobs than that wait or work, as far as the launcher answers."""
        jobs = self._looked()
        if jobs is not None and sum(job.state is not JobState.OVER for job in jobs) < count:
            over = "; ".join(_ended(job) for job in jobs if job.state is JobState.OVER)
            raise DynoError(
                f"jobs for run {self.run} are over before it began: {over or 'nobody knows why'}",
                f"a worker's words are {self.launcher.words(self.run)}",
            )

    def start_again(self, expected_s: float) -> None:
        """Has workers started on the hosts of a run that have blocks left and no job."""
        jobs = [job for job in self.launcher.watch(self.run) if job.state is not JobState.OVER]
        left = {part.host for part in parts.parts_of(self.session, self.run) if not part.state.over}
        wanted = tuple(sorted(left - self._by_host(jobs).keys()))
        if wanted:
            self._submit(limit_of(expected_s), hosts=wanted)
            self.say(f"{plural(len(wanted), 'job')} for run {self.run} on {', '.join(wanted)}")

    def look(self, found: list[HostPart]) -> None:
        """Finds the hosts that are lost: of which two looks find no job. One that starts again is between
        two states for a moment."""
        jobs = self._looked()
        if jobs is None:
            return
        alive = self._by_host([job for job in jobs if job.state is not JobState.OVER])
        over = self._by_host([job for job in jobs if job.state is JobState.OVER])
        missed = {part.host for part in found if not part.state.over} - alive.keys()
        lost = missed & self._missed
        self._missed = missed
        if self.launcher.from_jobs or not self._sent_after(lost, jobs):
            self.lost = {host: over[host].told if host in over else UNKNOWN for host in lost}

    def _sent_after(self, lost: set[str], jobs: list[WorkerJob]) -> bool:
        """Has a job wait, once, for each of the hosts whose own was started again on another one. False where
        there is none such."""
        told = {one.member.job: one.member.name for one in seen(self.session) if one.member.job}
        elsewhere = {told[job.id] for job in jobs if job.host and told.get(job.id, job.host) != job.host}
        if hosts := tuple(sorted((lost & elsewhere) - self._sent)):
            self._submit(DAY_S, hosts=hosts)
            self._sent.update(hosts)
            self.say(f"the job of {', '.join(hosts)} came to another host, so another one waits for it")
        return bool(hosts)

    def cancel(self, cause: BaseException | None = None) -> None:
        """Ends all jobs, which somebody else must do where the launcher does not answer. It is told unless
        that was the `cause`, which then says it."""
        try:
            self.launcher.cancel(self.run)
        except DynoError as gone:
            if not (isinstance(cause, DynoError) and cause.hint == gone.hint):
                tell(f"{gone.message}; so jobs of {self.run} may go on; {gone.hint}")

    def _submit(self, limit_s: float, count: int = 0, hosts: tuple[str, ...] = ()) -> None:
        command = start_of(self.run, self.allowed)
        self.launcher.submit(JobOrder(self.run, command, self.url, limit_s, count, hosts))

    def _by_host(self, jobs: list[WorkerJob]) -> dict[str, WorkerJob]:
        """A job that starts again has no host yet, but a worker of it told where it was."""
        told = {one.member.job: one.member.name for one in seen(self.session) if one.member.job}
        return {job.host or told.get(job.id, ""): job for job in jobs}

    def _looked(self) -> list[WorkerJob] | None:
        """The jobs; None where it is too early to ask again, or where nobody answers."""
        if time.monotonic() - self._asked_s < LOOK_EVERY_S:
            return None
        self._asked_s = time.monotonic()
        try:
            found = self.launcher.watch(self.run)
        except DynoError as gone:
            self._say_once(f"{gone.message}; jobs go on meanwhile, and it is asked again")
            return None
        for job in found:
            if job.state is JobState.WAITS and job.told:
                where = f" for {job.host}" if job.host else ""
                self._say_once(f"job {job.id} waits{where}: {job.told}")
        return found

    def _say_once(self, line: str) -> None:
        if line not in self._told:
            self.say(line)
        self._told.add(line)


def limit_of(expected_s: float) -> float:
    """How long a job may take of which so much is expected."""
    return SPARE * expected_s + SPARE_S


def start_of(run: str, allowed: Allowed) -> tuple[str, ...]:
    """What starts a worker for a run, by the Dyno that lies at the same place on all hosts."""
    called, beside = Path(sys.argv[0]).absolute(), Path(sys.executable).with_name("dyno")
    program = str(called if called.is_file() else beside)
    return (program, "fleet", "worker", "start", "--for", run, *shlex.split(allowed.options))


def require_for_all(allowed: Allowed, fleet: str) -> None:
    """Raises UserError for what may not be allowed here to all hosts of `--fleet`."""
    if not allowed.options:
        return
    option = shlex.split(allowed.options)[-1 if allowed.writes else 0]
    told = f"{option} allows something on this host, and a fleet has others"
    if allowed.servers or allowed.writes:
        raise UserError(told, "leave it out: workers take --allow-device and --allow-path alone")
    by_hand = f"dyno fleet worker {option} …"
    if launcher_of(fleet) is None:
        raise UserError(told, f"give the option to each worker: {by_hand}")
    for device in sorted(allowed.devices):
        if not str(device).startswith(NAMED_BY_OWNER):
            raise UserError(
                f"{device} may be another disk on each host, so it is not allowed to all",
                f"give it one name on all hosts, below {' or '.join(NAMED_BY_OWNER)}; "
                f"or start a worker on each host: {by_hand}, and --fleet a,b",
            )


def _ended(job: WorkerJob) -> str:
    return f"job {job.id}{f' on {job.host}' if job.host else ''}: {job.told}"


@dataclass(frozen=True)
class JobHere:
    """What this worker was started as: where its `launcher` put it, and until when, by the monotonic clock,
    it has the host for itself; None where nobody says."""

    placed: JobPlace
    launcher: str
    until_s: float | None = None


def job_here(
    session: Session, url: str, served: str | None, name: str | None, allowed: Allowed
) -> JobHere | None:
    """As what this worker was started. None where the run that it is to serve needs none here: its blocks
    are another host's, for which a job then waits. Raises UserError for a run that is not there."""
    named = name or socket.gethostname()
    if not served:
        return JobHere(JobPlace(host=named), "")
    run = parts.asked_about(session, served)
    begun = run is None
    if run is None:
        with Store(url) as store:
            run = store.run(served)
    launcher = launcher_of(run.launcher)
    placed = launcher.placed(os.environ) if launcher else JobPlace(host=named)
    if begun and placed.host not in {host.name for host in run.fleet}:
        tell(f"run {served} has no blocks for host {placed.host}")
        before = host_of_job(session, run.launcher, placed.job, placed.host)
        if launcher is not None and not launcher.from_jobs:
            tell("whoever follows the run has another job wait for the host of this one's blocks")
        elif launcher is not None and before is not None:
            limit_s, command = placed.left_s or DAY_S, start_of(served, allowed)
            _hand_over(session, launcher, JobOrder(served, command, url, limit_s, hosts=(before,)))
        return None
    left_s = placed.left_s
    return JobHere(placed, run.launcher, None if left_s is None else time.monotonic() + left_s)


def _hand_over(session: Session, launcher: Launcher, order: JobOrder) -> None:
    """Has a job wait for the host whose blocks this one was to measure, if there are some left."""
    (host,) = order.hosts
    if parts.state_of(session, order.run, host) is PartState.GIVEN:
        launcher.submit(order)
        tell(f"they are those of {host}, for which another job waits")
