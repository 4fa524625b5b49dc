"""The hosts of a fleet: who is there, whether its worker lives, who speaks for a host, and the leases by
which it is one run's alone.

One worker speaks for a host. It holds an advisory lock of its session, which the server frees at once when
the worker dies. A worker that was stopped keeps its session; its lease runs out, and the next worker of the
host takes over.

A lease is renewed where nothing is timed: when it is due, before a slice begins, by the process that
measures; and from a thread of that process while a trial is prepared, checked or restored. While a slice is
measured, the thread waits without a time, so nothing wakes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Self

import psycopg

from dbdyno.errors import DynoError, UserError
from dbdyno.fleet.session import ADVISORY, Session, of_host, of_run
from dbdyno.frozen import Frozen, absent
from dbdyno.host.cache import Tell
from dbdyno.host.fingerprint import Host
from dbdyno.records.database import LeaseOver, Unavailable
from dbdyno.records.run import run_of_document
from dbdyno.records.store import NAME
from dbdyno.study import Study
from dbdyno.study.trials import phases_of

TAG = "tag:"
PATIENCE_S = 150.0
"""Longer than the server takes to notice that a host went without a word."""
ASK_AGAIN_S = 0.5
_HOLDERS = (
    "FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = %s"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


class Replaced(DynoError):
    """Another worker speaks for this host now, or the host was taken out of the fleet."""


class Member(Frozen):
    """What a worker tells of its host when it starts: the fingerprint, what a probe found by its name, and
    how many calibrations hold there. `code` and `driver` are the digests of Dyno's own code. A worker that a
    launcher started serves one run alone, and names the `job` that it is there."""

    name: str
    tags: tuple[str, ...]
    host: Host
    dyno_version: str
    code: str
    offers: dict[str, str]
    calibrations: int
    driver: str = absent("")
    launcher: str = absent("")
    job: str = absent("")


class SeenHost(Frozen):
    """A host as the database knows it. `connected` says that its worker's session lives; `signed_unix_s` is
    when it last wrote. `run` is what it measures under a lease that ends at `until_unix_s`."""

    member: Member
    connected: bool
    signed_unix_s: float
    run: str = ""
    until_unix_s: float = 0.0


class HeldHost(Frozen):
    """A host as its worker holds it: its number in the database, and the word that tells this worker from
    others of the same host."""

    name: str
    number: int
    worker: str


def require_name(name: str) -> str:
    """Raises UserError for what no host and no tag can be called."""
    if not NAME.fullmatch(name):
        raise UserError(
            f"{name!r} cannot be the name of a host, or its tag",
            "letters, digits, dots, dashes and underscores; at most 64",
        )
    return name


def register(session: Session, member: Member, worker: str, tell: Tell) -> HeldHost:
    """Enters a host, or what is known of it anew, and speaks for it from now on: leases of a worker before
    this one end. Raises UserError where another worker of the host lives."""
    session.listen(of_host(member.name))
    row = (member.name, worker, member.model_dump_json())
    statement = "INSERT INTO dyno_hosts (host, worker, signed_at, document) VALUES (%s, %s, now(), %s)"
    session.execute(f"{statement} ON CONFLICT DO NOTHING", *row)
    ((number,),) = session.execute("SELECT number FROM dyno_hosts WHERE host = %s", member.name)
    _wait_for_lock(session, member.name, number, tell)
    with session.transaction():
        session.execute(
            "UPDATE dyno_hosts SET worker = %s, document = %s, signed_at = now() WHERE number = %s",
            *(worker, member.model_dump_json(), number),
        )
        end_leases(session, number)
    return HeldHost(name=member.name, number=number, worker=worker)


def speak_again(session: Session, place: HeldHost) -> None:
    """After a connection was lost: opens it, and takes the lock from what is left of the one before. Raises
    Replaced where another speaks for the host now, and Unavailable where the server is not there."""
    session.reopen()
    require_speaker(session, place)
    # The server may not know yet that the old connection is gone.
    if not _locked(session, place.number):
        _end_sessions(session, place.number)
        _wait_for_lock(session, place.name, place.number, lambda _: None)


def require_speaker(session: Session, place: HeldHost) -> None:
    """Raises Replaced where this worker does not speak for the host any more. Within a transaction that stays
    so until its end."""
    found = session.execute("SELECT worker FROM dyno_hosts WHERE number = %s FOR UPDATE", place.number)
    if not found:
        raise Replaced(
            f"host {place.name} was taken out of the fleet", "to bring it back, start its worker again"
        )
    if found[0][0] != place.worker:
        raise Replaced(
            f"another worker speaks for host {place.name} now", "one worker a host is enough; this one ends"
        )


def end_leases(session: Session, number: int) -> None:
    """Ends what is in force of a host's leases. Waits for a record that is being kept under one."""
    session.execute(
        "UPDATE dyno_leases SET during = tstzrange(lower(during), clock_timestamp()), released = TRUE"
        " WHERE number = %s AND NOT released AND upper(during) > clock_timestamp()",
        number,
    )
    session.execute("UPDATE dyno_leases SET released = TRUE WHERE number = %s AND NOT released", number)


def seen(session: Session) -> list[SeenHost]:
    """All hosts, by name."""
    rows = session.execute(
        "SELECT document, objid IS NOT NULL, extract(epoch FROM signed_at)::float8, lease.run, lease.until"
        f" FROM dyno_hosts LEFT JOIN (SELECT DISTINCT objid {_HOLDERS}) AS holders ON objid = number::oid"
        " LEFT JOIN LATERAL (SELECT run, extract(epoch FROM upper(during))::float8 AS until"
        " FROM dyno_leases WHERE dyno_leases.number = dyno_hosts.number AND NOT released"
        " AND upper(during) > clock_timestamp() ORDER BY fence DESC LIMIT 1) AS lease ON TRUE ORDER BY host",
        ADVISORY,
    )
    return [
        SeenHost(
            member=Member.model_validate_json(document),
            connected=lives,
            signed_unix_s=signed,
            run=run or "",
            until_unix_s=until or 0.0,
        )
        for document, lives, signed, run, until in rows
    ]


def chosen_hosts(session: Session, wanted: Iterable[str]) -> list[SeenHost]:
    """The hosts that names and tags (`tag:big`) mean, by name. Raises UserError for one that is not there or
    whose worker does not live, and for a tag that no host has."""
    known = {one.member.name: one for one in seen(session)}
    found: dict[str, SeenHost] = {}
    for word in wanted:
        tag = word.removeprefix(TAG) if word.startswith(TAG) else None
        meant = [one for one in known.values() if tag in one.member.tags] if tag else [known.get(word)]
        if not meant or None in meant:
            told = f"no host has the tag {tag!r}" if tag else f"no host is called {word!r}"
            there = ", ".join(known) or "none yet"
            start = f"dyno fleet worker --tag {tag}" if tag else f"dyno fleet worker --name {word}"
            raise UserError(
                f"{told} in the fleet of {session.place}; there are: {there}", f"start one there: {start}"
            )
        found |= {one.member.name: one for one in meant if one is not None}
    for name, one in found.items():
        require_connected(name, one)
    return [found[name] for name in sorted(found)]


def require_connected(name: str, one: SeenHost) -> None:
    """Raises UserError for a host whose worker does not live."""
    if not one.connected:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.signed_unix_s))
        raise UserError(
            f"host {name} is silent since {since}: its worker is not connected",
            f"start it there: dyno fleet worker --name {name}; or leave {name} out",
        )


def remove(session: Session, name: str) -> list[str]:
    """Takes a host out of the fleet. Its blocks of runs that go on are left out; returns these runs. Raises
    UserError where there is none of that name."""
    with session.transaction():
        found = session.execute("SELECT number FROM dyno_hosts WHERE host = %s FOR UPDATE", name)
        if not found:
            raise UserError(
                f"no host is called {name!r} in the fleet of {session.place}", "see: dyno fleet hosts"
            )
        end_leases(session, found[0][0])
        session.execute("DELETE FROM dyno_hosts WHERE host = %s", name)
        runs = session.execute(
            "SELECT run, document FROM dyno_runs JOIN dyno_parts USING (run)"
            " WHERE host = %s AND NOT finished AND state <> 'done' ORDER BY run FOR UPDATE OF dyno_runs",
            name,
        )
        for run, document in runs:
            whole = run_of_document(document)
            fleet = [one.but(left_out=one.left_out or one.name == name) for one in whole.fleet]
            changed = whole.but(fleet=tuple(fleet)).model_dump_json()
            session.execute("UPDATE dyno_runs SET document = %s WHERE run = %s", changed, run)
            session.execute(
                "UPDATE dyno_parts SET state = 'left_out', told = '' WHERE run = %s AND host = %s", run, name
            )
            finish(session, run)
        session.execute("DELETE FROM dyno_parts WHERE host = %s AND state IN ('asked', 'ready')", name)
    session.tell(of_host(name), *(of_run(run) for run, _ in runs))
    return [run for run, _ in runs]


def finish(session: Session, run: str) -> None:
    """Marks a run whose hosts are all done or left out, within a transaction that has locked the run."""
    session.execute(
        "UPDATE dyno_runs SET finished = TRUE WHERE run = %s AND NOT EXISTS (SELECT 1 FROM dyno_parts"
        " WHERE run = %s AND state NOT IN ('done', 'left_out'))",
        *(run, run),
    )


def host_of_job(session: Session, launcher: str, job: str, other_than: str) -> str | None:
    """The host that a job of a launcher registered before it came to another one; None where it did not."""
    rows = session.execute(
        "SELECT host FROM dyno_hosts WHERE document::jsonb ->> 'launcher' = %s"
        " AND document::jsonb ->> 'job' = %s AND host <> %s ORDER BY signed_at DESC LIMIT 1",
        *(launcher, job, other_than),
    )
    return str(rows[0][0]) if rows else None


def _locked(session: Session, number: int) -> bool:
    ((taken,),) = session.execute("SELECT pg_try_advisory_lock(%s, %s)", ADVISORY, number)
    return bool(taken)


def _wait_for_lock(session: Session, name: str, number: int, tell: Tell) -> None:
    until_s, told = time.monotonic() + PATIENCE_S, False
    while not _locked(session, number):
        if _is_stopped(session, number):
            _end_sessions(session, number)
        elif not told:
            tell(f"another worker of host {name} is connected; waiting for its end")
            told = True
        if time.monotonic() > until_s:
            raise UserError(
                f"another worker speaks for host {name}",
                "one worker a host is enough: end that one, or give this host another --name",
            )
        time.sleep(ASK_AGAIN_S)


def _is_stopped(session: Session, number: int) -> bool:
    """Whether the host's worker let a lease run out that it had not given back, though its session lives."""
    return bool(
        session.execute(
            "SELECT 1 FROM dyno_leases"
            " WHERE number = %s AND NOT released AND upper(during) < clock_timestamp()",
            number,
        )
    )


def _end_sessions(session: Session, number: int) -> Sequence[object]:
    return session.execute(
        f"SELECT pg_terminate_backend(pid) {_HOLDERS} AND objid = %s::oid AND pid <> pg_backend_pid()",
        *(ADVISORY, number),
    )


LEAST_S = 60.0
"""A lease outlives a store that starts again."""
LOST_MOST = 6
"""Leases that were lost in a row, of which each makes the next one twice as long."""
RENEWED_AFTER, ASKED_AGAIN_AFTER = 0.25, 0.05
"""Of its length; the second where the store did not answer."""


def length_s(study: Study, least_s: float = LEAST_S, lost: int = 0) -> float:
    """How long a lease is: the longest stretch of load that nothing interrupts fits into it twice. After so
    many that were `lost` in a row it is longer, because a load can take longer than its study says."""
    stretches_s = [seconds for phase in phases_of(study) for seconds in phase.stretches_s]
    return (least_s + 2.0 * max(stretches_s, default=0.0)) * 2.0 ** min(lost, LOST_MOST)


def take(session: Session, place: HeldHost, run: str, seconds: float) -> int:
    """A lease of this host from now on; returns its number, which is above those of all before it. Raises
    Replaced where another worker speaks for the host."""
    ends = "clock_timestamp() + make_interval(secs => %s)"
    with session.transaction():
        require_speaker(session, place)
        # One that could not be given back, because the store was gone.
        end_leases(session, place.number)
        try:
            ((fence,),) = session.execute(
                "INSERT INTO dyno_leases (number, run, during)"
                f" VALUES (%s, %s, tstzrange(clock_timestamp(), {ends})) RETURNING fence",
                *(place.number, run, seconds),
            )
        except psycopg.errors.ExclusionViolation:
            raise Replaced(
                f"another lease of host {place.name} is in force", "see: dyno fleet hosts"
            ) from None
        session.execute("UPDATE dyno_hosts SET signed_at = now() WHERE number = %s", place.number)
    return int(fence)


def renew(session: Session, fence: int, seconds: float) -> bool:
    """Makes a lease last so long from now on; False where it is over."""
    ends = "clock_timestamp() + make_interval(secs => %s)"
    return bool(
        session.execute(
            f"UPDATE dyno_leases SET during = tstzrange(lower(during), {ends})"
            " WHERE fence = %s AND NOT released AND upper(during) > clock_timestamp() RETURNING 1",
            *(seconds, fence),
        )
    )


class Allocation:
    """A lease of a host that a scheduler has given to this worker alone, until that takes it back: one that
    is as long, so nothing renews it. What it is for is its number, which records bear. A context manager,
    which gives it back."""

    def __init__(self, session: Session, place: HeldHost, run: str, seconds: float) -> None:
        self.place = place
        self._session, self._seconds = session, seconds
        self.fence = take(session, place, run, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # What cannot be given back now runs out.
        with suppress(DynoError), self._session.transaction():
            require_speaker(self._session, self.place)
            end_leases(self._session, self.place.number)

    def stage_began(self, timed: bool) -> None:
        """Called where a stage of a trial begins."""

    def require_in_force(self) -> None:
        """Raises LeaseOver where nothing that is measured from here on could count."""


class Lease(Allocation):
    """A lease of a host that nobody allocates, which is renewed while it lasts."""

    def __init__(self, session: Session, place: HeldHost, run: str, seconds: float) -> None:
        super().__init__(session, place, run, seconds)
        self._condition = threading.Condition()
        self._timed = self._ended = False
        self._lost: DynoError | None = None
        self._renewed_s = time.monotonic()
        self._due_s = self._renewed_s + RENEWED_AFTER * seconds
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._ended = True
            self._condition.notify()
        self._thread.join()
        super().__exit__()

    def stage_began(self, timed: bool) -> None:
        """Renews the lease when that is due; from a `timed` stage on the thread sleeps."""
        with self._condition:
            self._renew_when_due()
            if timed != self._timed:
                self._timed = timed
                self._condition.notify()

    def require_in_force(self) -> None:
        with self._condition:
            if self._lost is not None:
                raise LeaseOver(
                    f"lease {self.fence} of host {self.place.name} is over: {self._lost.message}",
                    self._lost.hint,
                )

    def _keep(self) -> None:
        with self._condition:
            while not self._ended:
                left_s = max(0.0, self._due_s - time.monotonic())
                self._condition.wait(None if self._timed or self._lost is not None else left_s)
                if not (self._timed or self._ended):
                    self._renew_when_due()

    def _renew_when_due(self) -> None:
        now_s = time.monotonic()
        if self._lost is not None or now_s < self._due_s:
            return
        try:
            try:
                holds = renew(self._session, self.fence, self._seconds)
            except Unavailable:
                speak_again(self._session, self.place)
                holds = renew(self._session, self.fence, self._seconds)
        except Unavailable as gone:
            # To find that out may have taken long.
            self._due_s = time.monotonic() + ASKED_AGAIN_AFTER * self._seconds
            if now_s - self._renewed_s > self._seconds:
                self._lost = gone
            return
        except DynoError as replaced:
            self._lost = replaced
            return
        self._renewed_s, self._due_s = now_s, now_s + RENEWED_AFTER * self._seconds
        if not holds:
            told = "its time ran out before it was renewed"
            self._lost = Replaced(told, "the worker goes on under its next lease")
