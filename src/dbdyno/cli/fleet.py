"""`dyno run --fleet`: asks hosts, gives them their parts of a run, and follows what they do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dbdyno.cli import jobs
from dbdyno.cli.jobs import JobsOfRun
from dbdyno.cli.progress import shown
from dbdyno.cli.terminal import tell
from dbdyno.errors import BaselineFailed, DynoError, UserError
from dbdyno.fleet import kept_builds, parts
from dbdyno.fleet.hosts import SeenHost, chosen_hosts, require_connected, seen
from dbdyno.fleet.launcher import Launcher
from dbdyno.fleet.parts import HostAnswer, HostPart, PartState
from dbdyno.fleet.session import Session, of_run
from dbdyno.host.host_lock import LookBetweenBlocks
from dbdyno.host.writers import Allowed
from dbdyno.kinds.comparison import RunOptions, begin
from dbdyno.kinds.fleet import draft_of, run_on
from dbdyno.plan import restarts
from dbdyno.prepare_run.begun import DynoThere, keep_run, require_same_dyno
from dbdyno.prepare_run.estimate import run_estimate
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.database import Unavailable
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import about_text, plural
from dbdyno.run import Unwatched
from dbdyno.study import Study
from dbdyno.study.designs import trials_in_all

ANSWER_S = 600.0
"""So long a host may take to say what it makes of a study, beside the runs that it measures."""
LOOK_EVERY_S = 60.0
"""How often somebody looks whether the workers live, where none of them says anything."""
PAUSE_S = 0.5
"""How long words are gathered before somebody looks."""
LONGEST_WAIT_S = 30.0


def hosts_named(text: str) -> list[str]:
    """The names and tags of `--fleet a,b,tag:big`. Raises UserError where there is none."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise UserError("--fleet names no host", "--fleet a,b, or --fleet tag:big; see: dyno fleet hosts")
    return words


@dataclass(frozen=True)
class Controller:
    """Who begins a run on a fleet, or goes on with it. Its death stops nobody."""

    store: Store
    session: Session
    url: str
    launcher: Launcher | None
    allowed: Allowed
    quiet: bool

    def begin(self, options: RunOptions, name: str | None, note: str) -> Run:
        """A new run, which its hosts may carry out when this returns. Raises UserError for a host that is not
        there, and with what each host finds in the way."""
        hosts = _chosen(self.session, options, self.launcher)
        # What a calibration of this host found is none of other hosts' business.
        beginning = begin(self.store, replace(options, calibration=False), self._say)
        draft = draft_of(beginning, self._say).but(launcher=options.fleet or "" if self.launcher else "")
        names = [one.member.name for one in hosts]
        for one in hosts:
            _require_same_code(draft, one)
        self.session.listen(of_run(draft.run))
        parts.ask(self.session, draft, names)
        try:
            if (placing := self._jobs(draft.run, self._say)) is not None:
                count = options.hosts or len(placing.launcher.hosts)
                names = placing.start(count, beginning.whole_s, partial(_require_same_code, draft))
            run = run_on(draft, self._answers(draft.run, names), self._say)
            keep_run(self.store, run, name, note)
        except BaseException as cause:
            parts.forget(self.session, draft.run)
            self._cancel(draft.run, cause)
            raise
        self._say(_header(run, beginning.whole_s))
        parts.give(self.session, run)
        return run

    def go_on(self, run: Run) -> None:
        """Gives hosts what is left of a run. Raises UserError for one whose worker does not live."""
        if (placing := self._jobs(run.run, self._say)) is not None:
            parts.give(self.session, run)
            placing.start_again(run_estimate(self.store, study_of(run)).trials_s / len(run.fleet))
            return
        known = {one.member.name: one for one in seen(self.session)}
        over = {part.host for part in parts.parts_of(self.session, run.run) if part.state is PartState.DONE}
        for host in run.fleet:
            if host.left_out or host.name in over:
                continue
            if host.name not in known:
                told = f"host {host.name} of run {run.run} is not in the fleet of {self.session.place}"
                raise UserError(told, f"start its worker there: dyno fleet worker --name {host.name}")
            require_connected(host.name, known[host.name])
            _require_same_code(run, known[host.name])
        parts.give(self.session, run)

    def follow(self, run: Run) -> tuple[Run, list[Record]]:
        """Shows what hosts do until all are over, and returns the run with its records. Raises DynoError with
        what went wrong on each host, BaselineFailed where one of them had no baseline, and DynoError where
        somebody has withdrawn the run."""
        study = study_of(run)
        self.session.listen(of_run(run.run))
        following = FollowedRun(self.store, self.session, run, self._jobs(run.run, tell))
        if self.quiet:
            found = following.to_the_end(Unwatched())
        else:
            expected_s = run_estimate(self.store, study).trials_s / len(run.fleet)
            with shown(trials_in_all(study), study, expected_s) as progress:
                found = following.to_the_end(progress)
        self._say_left_out(found)
        records = self.store.records(run.run)
        _require_all_over(run, study, records, found)
        if following.jobs is not None and following.jobs.lost:
            lost = following.jobs.lost.items()
            told = "; ".join(f"host {name} has blocks left, and its job is over: {why}" for name, why in lost)
            raise DynoError(told, f"when that is mended: dyno run --resume {run.run}")
        return self.store.run(run.run), records

    def withdraw(self, run: Run | None) -> None:
        """Takes back what hosts have not carried out, and says so."""
        if run is None:
            return
        try:
            parts.withdraw(self.session, run.run)
        except Unavailable as gone:
            tell(f"{gone.message}; so hosts go on with {run.run} until it is withdrawn")
            return
        tell("withdrawn: each host stops at the end of its trial")
        self._cancel(run.run)

    def _jobs(self, run: str, say: Callable[[str], None]) -> JobsOfRun | None:
        """The jobs of a run whose workers a launcher starts."""
        if self.launcher is None:
            return None
        return JobsOfRun(self.launcher, self.session, self.url, run, self.allowed, say)

    def _cancel(self, run: str, cause: BaseException | None = None) -> None:
        if (ended := self._jobs(run, tell)) is not None:
            ended.cancel(cause)

    def _answers(self, run: str, names: Sequence[str]) -> list[HostAnswer]:
        """What all hosts make of the run. Raises UserError with all that is in the way, by host."""
        until_s, told = time.monotonic() + ANSWER_S, False
        while True:
            found = {part.host: part for part in parts.parts_of(self.session, run)}
            waiting = [name for name in names if name in found and found[name].state is PartState.ASKED]
            if not waiting or time.monotonic() > until_s:
                break
            if not told:
                self._say(f"asking {', '.join(names)}; a host that measures answers after its pair of blocks")
                told = True
            self.session.wait(min(LOOK_EVERY_S, max(0.0, until_s - time.monotonic())))
            for one in seen(self.session):
                if one.member.name in waiting:
                    require_connected(one.member.name, one)
                    until_s = time.monotonic() + ANSWER_S if one.run else until_s
        faults = [_fault(name, found.get(name)) for name in names]
        if any(faults):
            raise UserError(
                "; ".join(filter(None, faults)), "mend that there, or name other hosts; nothing was measured"
            )
        return [HostAnswer.model_validate_json(found[name].told) for name in names]

    def _say_left_out(self, found: Sequence[HostPart]) -> None:
        for part in found:
            if part.state is PartState.LEFT_OUT:
                tell(f"host {part.host} was taken out: what it had not measured by then is left out")

    def _say(self, line: str) -> None:
        if not self.quiet:
            tell(line)


@dataclass
class FollowedRun:
    """A run that is followed: its trials are told as they come, and hosts whose workers die, once."""

    store: Store
    session: Session
    run: Run
    jobs: JobsOfRun | None = None

    def __post_init__(self) -> None:
        self._told = self.store.trials_of(self.run.run)
        self._silent: set[str] = set()
        self._making: set[str] = set()

    def to_the_end(self, progress: Unwatched) -> list[HostPart]:
        """How all parts ended."""
        progress.asked(len(self._told))
        wait_s, lost = 1.0, dict[str, str]()
        if self.jobs is not None:
            self.jobs.say = progress.say
        while True:
            try:
                self.session.reopen()
                # On a host that measures, nobody looks before its block is over.
                with LookBetweenBlocks():
                    found = self.look(progress)
                    if self.jobs is not None:
                        self.jobs.look(found)
                        lost = self.jobs.lost
                if all(part.state.over or part.host in lost for part in found):
                    return found
                self.session.wait(LOOK_EVERY_S if self.jobs is None else jobs.LOOK_EVERY_S)
                # Of many hosts some trial ends at every moment.
                time.sleep(PAUSE_S)
                wait_s = 1.0
            except Unavailable as gone:
                progress.say(f"{gone.message}; hosts go on meanwhile, and it is asked again")
                time.sleep(wait_s)
                wait_s = min(2.0 * wait_s, LONGEST_WAIT_S)

    def look(self, progress: Unwatched) -> list[HostPart]:
        """Tells what is new, and returns how far all parts are."""
        found = parts.parts_of(self.session, self.run.run)
        fresh = sorted(self.store.trials_of(self.run.run) - self._told)
        for record in self.store.records_of_trials(self.run.run, fresh):
            if record.whole:
                progress.trial_ended(record.but(variant=f"{record.fleet_host}: {record.variant}"))
                self._told.add(record.trial)
        self._tell_silent(progress, found)
        self._tell_makers(progress)
        return found

    def _tell_makers(self, progress: Unwatched) -> None:
        """Says which host makes a build, because no trial ends meanwhile."""
        for maker in kept_builds.makers_for(self.session, self.run.run):
            line = f"host {maker.host}: {maker.words}"
            if line not in self._making:
                progress.say(line)
            self._making.add(line)

    def _tell_silent(self, progress: Unwatched, found: Sequence[HostPart]) -> None:
        working = {part.host for part in found if not part.state.over}
        silent = {one.member.name for one in seen(self.session) if not one.connected} & working
        for name in sorted(silent - self._silent):
            how = "Start its worker there" if self.jobs is None else "Its job starts again there"
            progress.say(
                f"host {name} is silent; its blocks wait for it. {how}, "
                f"or take it out: dyno fleet hosts remove {name}"
            )
        self._silent = silent


def _chosen(session: Session, options: RunOptions, launcher: Launcher | None) -> list[SeenHost]:
    """The hosts that `--fleet` names; none where a launcher finds some. Raises UserError."""
    named = options.fleet or ""
    if launcher is None:
        if options.hosts is not None:
            raise UserError("--hosts goes with a launcher, and --fleet names hosts", "leave --hosts out")
        return chosen_hosts(session, hosts_named(named))
    if launcher.hosts:
        if options.hosts is not None:
            raise UserError(f"--fleet {named} names its hosts", "leave --hosts out")
        return []
    if options.hosts is None:
        raise UserError(f"--fleet {named} does not say how many hosts", f"--fleet {named} --hosts 2")
    return []


def _require_same_code(run: Run, one: SeenHost) -> None:
    """Raises UserError for a host whose Dyno is another one than that of the run."""
    member = one.member
    require_same_dyno(run, DynoThere(member.dyno_version, member.code, member.driver), member.name)


def _fault(name: str, part: HostPart | None) -> str:
    """What is in the way on a host; empty where nothing is."""
    if part is None:
        return f"host {name} was taken out of the fleet"
    if part.state is PartState.ASKED:
        return f"host {name} does not answer, though its worker is connected"
    return f"host {name}: {part.told}" if part.state is PartState.REFUSED else ""


def _require_all_over(run: Run, study: Study, records: Sequence[Record], found: Sequence[HostPart]) -> None:
    failed = [part for part in found if part.state is PartState.FAILED]
    if failed:
        told = "; ".join(f"host {part.host}: {part.told}" for part in failed)
        # A host tells words alone. Its records say whether it had no baseline.
        alone = any(_has_no_baseline(part.host, run, study, records) for part in failed)
        fault = BaselineFailed if alone else DynoError
        raise fault(told, f"when that is mended: dyno run --resume {run.run}")
    if any(part.state is PartState.WITHDRAWN for part in found):
        raise DynoError(f"run {run.run} was withdrawn", f"to go on with it: dyno run --resume {run.run}")


def _has_no_baseline(host: str, run: Run, study: Study, records: Sequence[Record]) -> bool:
    try:
        restarts.ask_of_host(host, study, run, records)
    except BaselineFailed:
        return True
    return False


def _header(run: Run, expected_s: float) -> str:
    """What begins. Hosts work at the same time, each about as long as one host would."""
    names = ", ".join(host.name for host in run.fleet)
    blocks = plural(run.blocks // len(run.fleet), "block")
    study = study_of(run)
    return (
        f"{study.title}\nrun {run.run} on {names}: {blocks} on each, "
        f"{plural(trials_in_all(study), 'trial')} in all; about {about_text(expected_s)}"
    )
