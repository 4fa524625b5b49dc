"""Who places the workers of a run where nobody starts them by hand: one interface, and what it speaks of.

A launcher keeps no list: it finds what it started by the run's name, so whoever goes on with a run finds it
too. Which host measures what, and whose record counts, is the store's business, as without a launcher.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from dbdyno.errors import UserError
from dbdyno.frozen import Frozen

HOST = "DYNO_JOB_HOST"
"""Says to a worker where it is, of a launcher that has no such variable."""


class JobState(StrEnum):
    """Of a job: it waits for a host, its worker is at work, or neither."""

    WAITS = "waits"
    WORKS = "works"
    OVER = "over"


class WorkerJob(Frozen):
    """What was started for a run. `host` is where it is or must be; empty where that is not decided. `told`
    is what the launcher says of it: why it waits, or how it ended."""

    id: str
    state: JobState
    host: str = ""
    told: str = ""


class JobPlace(Frozen):
    """Where a worker finds itself: the host as its launcher calls it, its tags, the job, and how long the
    host is this job's alone; None where nobody says."""

    host: str
    tags: tuple[str, ...] = ()
    job: str = ""
    left_s: float | None = None


@dataclass(frozen=True)
class JobOrder:
    """Workers that a run needs: `count` of them on any hosts, or one on each of these `hosts`. `command`
    starts one, with the store's URL in `DYNO_STORE`, and may take `limit_s`."""

    run: str
    command: tuple[str, ...]
    store: str
    limit_s: float
    count: int = 0
    hosts: tuple[str, ...] = ()


class Launcher(Protocol):
    """Starts workers for a run, says how they are, and ends them. Each raises UserError for what the user
    can mend, and DynoError where the launcher itself does not answer."""

    from_jobs: ClassVar[bool]
    """Whether a job can start another one. Where it cannot, who follows the run does."""

    def __init__(self, place: str, tags: tuple[str, ...]) -> None:
        """`place` and `tags` are what stands behind its name in `--fleet`."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Those that its words name; none where it finds some."""

    def submit(self, order: JobOrder) -> None: ...

    def watch(self, run: str) -> list[WorkerJob]:
        """All jobs of a run that it still knows."""

    def cancel(self, run: str) -> None:
        """Ends all jobs of a run. Each restores its host before it ends."""

    def words(self, run: str) -> str:
        """Where a user finds what workers of a run said."""

    def placed(self, environment: Mapping[str, str]) -> JobPlace:
        """Where this process is, as a job that it started finds it."""


def job_name(run: str) -> str:
    """By which a launcher finds what it started for a run."""
    return f"dyno-{run}"


def said_by(
    command: Sequence[str], missing: UserError, answer_s: float, text: str = "", **variables: str
) -> tuple[int, str, str]:
    """The exit code of a scheduler's command that reads `text`, what it says, and its complaint. One that
    says nothing for `answer_s` failed. Raises `missing` where it is not installed."""
    environment = {**os.environ, **variables, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, input=text, env=environment, capture_output=True, text=True, timeout=answer_s
        )
    except FileNotFoundError:
        raise missing from None
    except subprocess.TimeoutExpired as late:
        said = late.stderr.decode(errors="replace") if isinstance(late.stderr, bytes) else late.stderr or ""
        return 1, "", said if said.strip() else f"{command[0]} said nothing for {answer_s:g} s"
    return done.returncode, done.stdout, done.stderr
