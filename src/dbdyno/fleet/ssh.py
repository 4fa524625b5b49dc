"""Hosts that SSH logs in on as the launcher of a run: a worker is started on each, and nobody allocates them.

The worker lives on without the connection, and is known by a file of its number in its user's home. The
store's URL goes over the client's input, because every user of a host reads arguments.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

from dbdyno.driver.remote.ssh import FAILED, not_reached, on_host
from dbdyno.errors import DynoError, UserError
from dbdyno.fleet.hosts import require_name
from dbdyno.fleet.launcher import HOST, JobOrder, JobPlace, JobState, WorkerJob, job_name

LOGS = "~/.cache/dyno/jobs"
ANSWER_S = 60.0
# A number may be another process's by now, so its arguments must name the run.
_JOB = """folder="$HOME/.cache/dyno/jobs"; job="$folder/{job}"; number=$(cat "$job.pid" 2>/dev/null)
alive() {{ [ -n "$number" ] && grep -qa -- {run} "/proc/$number/cmdline" 2>/dev/null; }}
"""
_START = """read -r DYNO_STORE; export DYNO_STORE {variable}={host}; umask 077; mkdir -p "$folder" || exit
if alive; then exit; fi
command -v {program} >/dev/null || {{ echo 'there is no {program}' >&2; exit 127; }}
nohup {command} >>"$job.log" 2>&1 </dev/null & echo $! >"$job.pid"
"""
_WATCH = 'if alive; then echo works; elif [ -n "$number" ]; then echo over; fi\n'
_CANCEL = 'if alive; then kill -TERM "$number"; fi\n'


@dataclass(frozen=True)
class Ssh:
    """Hosts by the names by which `ssh` reaches them, which are those in the fleet as well."""

    from_jobs: ClassVar[bool] = True
    place: str
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.tags:
            raise UserError("SSH knows no tags of hosts", "name each host: --fleet ssh:a,b")
        for host in self.hosts:
            _require_host(host)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.place.split(",")))

    def submit(self, order: JobOrder) -> None:
        command = shlex.join(order.command)
        start = {"variable": HOST, "program": shlex.quote(order.command[0]), "command": command}
        for host in order.hosts:
            _asked(host, order.run, _START.format(host=shlex.quote(host), **start), f"{order.store}\n")

    def watch(self, run: str) -> list[WorkerJob]:
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            found = pool.map(lambda host: _job(host, run), self.hosts)
            return [job for job in found if job is not None]

    def cancel(self, run: str) -> None:
        refused = []
        for host in self.hosts:
            try:
                _asked(host, run, _CANCEL)
            except DynoError as error:
                refused.append(error)
        if refused:
            raise refused[0]

    def words(self, run: str) -> str:
        return f"on its host, in {LOGS}/{job_name(run)}-*.log"

    def placed(self, environment: Mapping[str, str]) -> JobPlace:
        if HOST not in environment:
            raise UserError("no `--fleet ssh:` started this worker", "leave --for out: dyno fleet worker")
        return JobPlace(host=environment[HOST])


def _require_host(host: str) -> None:
    """Raises UserError for what reaches a host and cannot be its name in the fleet."""
    try:
        require_name(host)
    except UserError as error:
        hint = f"{error.hint}; a user and a port stand in ~/.ssh/config"
        raise UserError(error.message, hint) from None


def _job(host: str, run: str) -> WorkerJob | None:
    try:
        said = _asked(host, run, _WATCH).strip()
    except DynoError as error:
        # Its worker may be at work, which the store tells.
        return WorkerJob(id=f"of {host}", state=JobState.WAITS, host=host, told=error.message)
    if not said:
        return None
    state = JobState.WORKS if said.endswith("works") else JobState.OVER
    told = f"ended; its words are there, in {LOGS}/{job_name(run)}-{host}.log"
    return WorkerJob(id=f"of {host}", state=state, host=host, told=told)


def _asked(host: str, run: str, script: str, line: str = "") -> str:
    """What a script says that runs on a host. Raises UserError for one that nobody reaches or that lacks
    Dyno."""
    job = _JOB.format(job=f"{job_name(run)}-{host}", run=shlex.quote(run))
    try:
        done = subprocess.run(
            on_host(host, job + script),
            input=line,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
        )
    except FileNotFoundError:
        raise UserError("there is no ssh here", "apt install openssh-client") from None
    except subprocess.TimeoutExpired:
        raise DynoError(f"{host} does not answer within {ANSWER_S:g} s", f"try it: ssh {host}") from None
    said = done.stderr.strip()
    if done.returncode == FAILED:
        error = not_reached(host, done.returncode, said)
        raise UserError(error.message, error.hint)
    if done.returncode != 0:
        raise UserError(
            f"no worker begins on {host}: {said.splitlines()[-1] if said else done.returncode}",
            "install Dyno there at the same path as here",
        )
    return done.stdout
