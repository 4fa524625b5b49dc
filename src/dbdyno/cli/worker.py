"""`dyno fleet worker`: lends this host to the runs of a fleet, and sleeps while there is nothing to do. A
unit of systemd can start it."""

from __future__ import annotations

import json
import math
import os
import secrets
import shlex
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from dbdyno import __version__
from dbdyno.calibrate.kept import kept_here
from dbdyno.cli.jobs import job_here
from dbdyno.cli.measuring import carry_out_pair, records_of_host
from dbdyno.cli.terminal import tell
from dbdyno.driver import _driver
from dbdyno.errors import DynoError, StudyError
from dbdyno.fleet import parts
from dbdyno.fleet.hosts import (
    LEAST_S,
    Allocation,
    HeldHost,
    Lease,
    Member,
    Replaced,
    end_leases,
    length_s,
    register,
    require_name,
    require_speaker,
    speak_again,
)
from dbdyno.fleet.parts import PartState
from dbdyno.fleet.session import Session, of_run, require_server
from dbdyno.host import paths
from dbdyno.host.fingerprint import fingerprint
from dbdyno.host.host_lock import alone
from dbdyno.host.journal import open_journal
from dbdyno.host.probe import probe
from dbdyno.host.writers import Allowed
from dbdyno.kinds.fleet import Depot, answer_of, begun_here, builds_handed_on
from dbdyno.plan import restarts
from dbdyno.plan.blocks import expected_duration_s
from dbdyno.prepare_run.begun import Begun, code_digest, driver_digest
from dbdyno.prepare_run.building import why_counted, wishes_of
from dbdyno.prepare_run.estimate import overhead_s
from dbdyno.records.database import LeaseOver, Unavailable
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome, Record, Stage
from dbdyno.records.run import BLOCKS_IN_PAIR
from dbdyno.records.store import Store, writable_store
from dbdyno.run import Unwatched
from dbdyno.study.designs import variants_of
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Leased

UNIT = "dyno-worker.service"
SYSTEM = Path("/etc/systemd/system")
_TEXT = """[Unit]
Description=Dyno's worker of host {name}
After=network-online.target
Wants=network-online.target

[Service]
EnvironmentFile={environment}
ExecStart={start}
Restart=on-failure
RestartSec=10
# A mistake of the user's is not mended by another start.
RestartPreventExitStatus=2
# It was asked to end.
SuccessExitStatus=130
# The worker restores the host before it ends.
KillMode=mixed
TimeoutStopSec=10min

[Install]
WantedBy={target}
"""


def unit_files(name: str, tags: Sequence[str], url: str, system: bool, output: Path | None) -> Iterator[str]:
    """Writes the unit and the file with the store's URL, and yields what was written and what to type. Raises
    DynoError where a file cannot be written."""
    unit = output or (SYSTEM if system else paths.config_place().parent / "systemd" / "user") / UNIT
    environment = unit.with_suffix(".env").absolute()
    words = [str(Path(sys.argv[0]).absolute()), "fleet", "worker", "start", "--name", name]
    words += [word for tag in tags for word in ("--tag", tag)]
    text = _TEXT.format(
        name=name,
        environment=environment,
        # A command's words may hold specifiers and variables, which are doubled to stand for themselves.
        start=" ".join(_quoted(word).replace("%", "%%").replace("$", "$$") for word in words),
        target="multi-user.target" if system else "default.target",
    )
    try:
        unit.parent.mkdir(parents=True, exist_ok=True)
        _write_own(environment, f"DYNO_STORE={_quoted(url)}\n")
        unit.write_text(text)
    except OSError as error:
        raise DynoError(
            f"cannot write {error.filename or unit}: {error.strerror}", "--output FILE writes it elsewhere"
        ) from None
    yield f"{unit}"
    yield f"{environment}: the store's URL, which only you can read"
    yield "then:"
    how = "systemctl" if system else "systemctl --user"
    given = f" {shlex.quote(str(unit.absolute()))}" if output else f" {UNIT}"
    yield f"  {how} enable --now{given}"
    if not system:
        yield "  loginctl enable-linger    # so that it runs while you are not logged in"


def _write_own(path: Path, text: str) -> None:
    """A file that nobody else reads at any moment."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


def _quoted(word: str) -> str:
    """A word as systemd reads it, in a command and in a file of variables."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


PROBE_S, LOOK_EVERY_S = 10.0, 60.0
"""About what a look at the host takes, and how often a worker of one run looks whether who began it lives."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 30.0
"""How long a store that does not answer is left alone: twice as long each time."""


def start(
    name: str | None,
    tags: tuple[str, ...],
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    least_s: float | None,
    store: str | None,
    served: str | None,
) -> None:
    url = store_url(store)
    require_server(url)
    with writable_store(url):
        pass
    with Session(url) as session:
        allowed = Allowed.of(devices, allowed_paths)
        job = job_here(session, url, served, name, allowed)
        if job is None:
            return
        name = require_name(job.placed.host)
        member = _member(name, tuple(map(require_name, (*tags, *job.placed.tags))))
        member = member.but(launcher=job.launcher, job=job.placed.job)
        place = register(session, member, secrets.token_hex(8), tell)
        tell(f"host {name} is in the fleet of {session.place}; Ctrl-C takes its worker away")
        try:
            Worker(session, url, place, allowed, least_s or LEAST_S, job.until_s).serve(served or "")
        except Replaced as over:
            # It is no failure, and systemd must not start it again.
            tell(f"{over.message}; {over.hint}")


def _member(name: str, tags: tuple[str, ...]) -> Member:
    """What this host is and offers."""
    ring = json.loads(_driver.capabilities())["io_uring"]
    with alone("a worker's look at its host", PROBE_S, math.inf, tell), open_journal() as journal:
        findings = list(probe(journal, "" if ring["available"] else ring["why"]))
    return Member(
        name=name,
        tags=tags,
        host=fingerprint(),
        dyno_version=__version__,
        code=code_digest(),
        driver=driver_digest(),
        offers={finding.name: finding.answer for finding in findings},
        calibrations=len(kept_here(time.time())),
    )


def install(
    name: str | None, tags: tuple[str, ...], system: bool, output: Path | None, store: str | None
) -> None:
    url = store_url(store)
    require_server(url)
    written = unit_files(require_name(name or socket.gethostname()), tags, url, system, output)
    for line in written:
        click.echo(line)


@dataclass
class Worker:
    """This host's worker: the store at `url`, its `session` there, and the least length of a lease. A
    scheduler gives the host to it alone `until_s`."""

    session: Session
    url: str
    place: HeldHost
    allowed: Allowed
    least_s: float
    until_s: float | None = None
    _begun: dict[str, Begun] = field(default_factory=dict)
    _has_builds_of: str = ""
    _lost: int = 0

    def serve(self, run: str = "") -> None:
        """Does what there is to do, until another worker speaks for this host or it is taken out; of one run
        that is named, until that is over here."""
        if run:
            # What its controller takes back before it begins.
            self.session.listen(of_run(run))
            parts.enlist(self.session, self.place, run)
        while True:
            try:
                require_speaker(self.session, self.place)
                if self._answer(run) or self._go_on(run):
                    continue
                if run and self._is_over(run):
                    return
                self.session.wait(LOOK_EVERY_S if run else None)
            except LeaseOver as over:
                self._lost += 1
                tell(f"{over.message}; {over.hint}")
                self._come_back()
            except Unavailable as gone:
                tell(f"{gone.message}; the worker asks again until it answers")
                self._come_back()

    def _come_back(self) -> None:
        """Waits for the store, and speaks for this host again."""
        wait_s = FIRST_WAIT_S
        while True:
            try:
                speak_again(self.session, self.place)
                with self.session.transaction():
                    require_speaker(self.session, self.place)
                    # What could not be given back must not look like the lease of one who was stopped.
                    end_leases(self.session, self.place.number)
                return
            except Unavailable:
                time.sleep(wait_s)
                wait_s = min(2.0 * wait_s, LONGEST_WAIT_S)

    def _is_over(self, run: str) -> bool:
        """Whether a run wants nothing of this host any more."""
        state = parts.state_of(self.session, run, self.place.name)
        if state is None or state.over:
            tell(f"run {run} is over here: {state.value if state else 'nobody wants this host'}")
            return True
        if state is PartState.GIVEN or parts.somebody_asks(self.session, run):
            return False
        tell(f"who began run {run} is gone, and it never began")
        return True

    def _answer(self, only: str) -> bool:
        """Says what this host makes of a study, where somebody asks."""
        run = parts.asked_of(self.session, self.place.name, only)
        if run is None:
            return False
        try:
            state, told = (
                PartState.READY,
                answer_of(run, self.place.name, self.allowed, tell).model_dump_json(),
            )
        except (DynoError, OSError) as error:
            state, told = PartState.REFUSED, words_of(error)
        except Exception as fault:
            # Whoever starts the worker again would ask the same again.
            parts.answer(self.session, self.place, run.run, PartState.REFUSED, fault_of_dyno(fault))
            raise
        tell(f"asked about {run.study_path}: {state.value}")
        parts.answer(self.session, self.place, run.run, state, told)
        return True

    def _go_on(self, only: str = "") -> bool:
        """Carries out the next pair of blocks of the run that began first; False where there is none."""
        name = parts.next_run(self.session, self.place.name, only)
        if name is None:
            return False
        try:
            with Store(self.url) as store:
                begun = self._begun.get(name) or begun_here(store.run(name), self.place.name, self.allowed)
                self._begun = {name: begun}
                over = self._pair(store, begun)
        except (LeaseOver, Unavailable, Replaced):
            raise
        except (DynoError, OSError) as error:
            tell(f"run {name} failed here: {words_of(error)}")
            parts.end(self.session, self.place, name, PartState.FAILED, words_of(error))
            return True
        except Exception as fault:
            parts.end(self.session, self.place, name, PartState.FAILED, fault_of_dyno(fault))
            raise
        if over:
            tell(f"run {name}: all blocks of this host are over")
            parts.end(self.session, self.place, name, PartState.DONE)
        return True

    def _pair(self, store: Store, begun: Begun) -> bool:
        """Carries out a pair of blocks under a lease. True where the store has all that this host is to do,
        and there was nothing left."""
        study, run, host = begun.study, begun.run, self.place.name
        if not restarts.ask_of_host(host, study, run, records_of_host(store, run, host)):
            return True
        trials = BLOCKS_IN_PAIR * len(variants_of(study))
        pair_s = expected_duration_s(trials, study, overhead_s(study))
        with (
            alone(study.title, pair_s, math.inf, tell, run.run),
            self.session.deaf(),
            self._lease(begun) as lease,
        ):
            if not self._holds_builds(begun, store, lease.fence):
                return False
            carry_out_pair(
                begun,
                Leased(host, lease.fence),
                OnFleet(self.session, lease, run.run, bool(why_counted(study))),
                store,
                self.allowed,
                lambda: self._is_given(run.run),
            )
        self._lost = 0
        return False

    def _lease(self, begun: Begun) -> Allocation:
        """A lease for a pair of blocks, as long as the host is this worker's alone, or one to be renewed."""
        run = begun.run.run
        if self.until_s is not None:
            return Allocation(self.session, self.place, run, max(1.0, self.until_s - time.monotonic()))
        return Lease(self.session, self.place, run, length_s(begun.study, self.least_s, self._lost))

    def _holds_builds(self, begun: Begun, store: Store, fence: int) -> bool:
        """Has this host hold the builds of a run before its first trial here; False where nobody wants it any
        more. Nobody frees them while this worker lives."""
        run, host = begun.run, self.place.name
        if self._has_builds_of == run.run or not wishes_of(begun.study):
            return True
        with Session(self.url) as session:
            depot = Depot(session, run.run, host, fence, tell, lambda: self._is_given(run.run))
            held = builds_handed_on(begun, depot, self.allowed, lambda: records_of_host(store, run, host))
        self._has_builds_of = run.run if held else ""
        return held

    def _is_given(self, run: str) -> bool:
        """Whether nobody has withdrawn the run, as far as the store tells."""
        try:
            return parts.is_given(self.session, run, self.place.name)
        except Unavailable:
            return True


class OnFleet(Unwatched):
    """Keeps the lease where nothing is timed, and says how trials ended: here, and to who waits for it. Where
    all work is `counted`, nothing is."""

    def __init__(self, session: Session, lease: Allocation, run: str, counted: bool) -> None:
        self._session, self._lease, self._run, self._counted = session, lease, run, counted

    def stage_began(self, trial: Trial, stage: Stage) -> None:
        counted = self._counted or trial.counts_instructions
        self._lease.stage_began(timed=stage is Stage.DRIVE and not counted)
        # What restores the host is never held up.
        if stage in (Stage.PREPARE, Stage.DRIVE):
            self._lease.require_in_force()

    def trial_ended(self, record: Record) -> None:
        ended = record.outcome.value if record.outcome is Outcome.MEASURED else record.cause
        tell(f"run {record.run}, block {record.block + 1}: {record.variant}: {ended}")
        with suppress(Unavailable):
            self._session.tell(of_run(self._run))

    def say(self, line: str) -> None:
        tell(line)


def fault_of_dyno(fault: Exception) -> str:
    """What a host says of a fault that is Dyno's own. Its details stay on that host."""
    return f"Dyno failed there: {type(fault).__name__}; its worker says where the details are"


def words_of(error: DynoError | OSError) -> str:
    """An error in one line, with all mistakes of a study and what to do."""
    if not isinstance(error, DynoError):
        return str(error)
    told = [error.message]
    if isinstance(error, StudyError):
        for one in error.mistakes:
            place = f"line {one.line}: " if one.line else ""
            told.append(f"{place}{one.message}" + (f" ({one.hint})" if one.hint else ""))
    return "; ".join([*told, *filter(None, [error.hint])])
