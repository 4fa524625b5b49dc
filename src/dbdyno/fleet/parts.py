"""What a run wants of each host, and how far that is: the queue of a fleet.

A part is all blocks of one run on one host. It holds no list of work: what is left of it follows from the run
and its records, so the queue cannot disagree with what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from dbdyno.fleet.hosts import HeldHost, finish, require_speaker
from dbdyno.fleet.session import ADVISORY, Session, of_host, of_run
from dbdyno.frozen import Frozen
from dbdyno.passwords import json_without_passwords, without_passwords
from dbdyno.records.run import FleetHost, Run, run_of_document
from dbdyno.study import Arrangement

STALE = "interval '1 day'"
"""So long a question is kept whose controller died before the run began."""


ASKING = ADVISORY - 2
"""The class of the advisory lock of whoever asks hosts, by which they know that he lives."""


class PartState(StrEnum):
    """Of a part, in the order in which they come. A worker answers what was asked by `ready` or `refused`."""

    ASKED = "asked"
    READY = "ready"
    REFUSED = "refused"
    GIVEN = "given"
    WITHDRAWN = "withdrawn"
    FAILED = "failed"
    DONE = "done"
    LEFT_OUT = "left_out"

    @property
    def over(self) -> bool:
        """Whether the host does nothing of it any more, unless it is given anew."""
        return self in (PartState.WITHDRAWN, PartState.FAILED, PartState.DONE, PartState.LEFT_OUT)


class BuildThere(Frozen):
    """A build of a study as a host would make it. Its `name` on the shelf of builds follows from the digest
    of its `source`, its compiler, and what that makes of `native` there (`target`)."""

    words: str
    name: str
    source: str
    compiler: str
    target: tuple[str, ...]


class HostAnswer(Frozen):
    """What a host makes of a study: itself with its engine, and how it would arrange the trials, and why;
    the architecture of its CPU; and the builds that the study asks for, in their order."""

    host: FleetHost
    arrangement: Arrangement
    why: str
    machine: str = ""
    builds: tuple[BuildThere, ...] = ()


class HostPart(Frozen):
    """How far a host is with a run. `told` is the HostAnswer of one that is ready, and why one refused or
    failed."""

    host: str
    state: PartState
    told: str


def ask(session: Session, run: Run, hosts: Sequence[str]) -> None:
    """Asks hosts what they make of a run that has not begun."""
    with session.transaction():
        old = f"SELECT run FROM dyno_asked WHERE asked_at < now() - {STALE}"
        unbegun = "state IN ('asked', 'ready', 'refused')"
        session.execute(f"DELETE FROM dyno_parts WHERE {unbegun} AND run IN ({old})")
        session.execute(f"DELETE FROM dyno_asked WHERE asked_at < now() - {STALE}")
        document = json_without_passwords(run.model_dump_json())
        session.execute("INSERT INTO dyno_asked (run, document) VALUES (%s, %s)", run.run, document)
        for host in hosts:
            _put(session, run.run, host, PartState.ASKED)
    session.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", ASKING, run.run)
    session.tell(*map(of_host, hosts))


def enlist(session: Session, place: HeldHost, run: str) -> bool:
    """Offers a host for a run about which hosts are asked and that names none. False where the run has begun
    or is not wanted any more."""
    with session.transaction():
        require_speaker(session, place)
        if not session.execute("SELECT 1 FROM dyno_asked WHERE run = %s FOR SHARE", run):
            return False
        _put(session, run, place.name, PartState.ASKED)
    return True


def somebody_asks(session: Session, run: str) -> bool:
    """Whether the controller lives that asked hosts about a run."""
    ((gone,),) = session.execute("SELECT pg_try_advisory_lock_shared(%s, hashtext(%s))", ASKING, run)
    if gone:
        session.execute("SELECT pg_advisory_unlock_shared(%s, hashtext(%s))", ASKING, run)
    return not gone


def keep_only(session: Session, run: str, hosts: Sequence[str]) -> None:
    """Takes back what other hosts were asked, because a run has as many as it wants."""
    session.execute("DELETE FROM dyno_parts WHERE run = %s AND NOT host = ANY(%s)", run, list(hosts))
    session.tell(of_run(run))


def forget(session: Session, run: str) -> None:
    """Takes back what was asked of a run that does not begin."""
    with session.transaction():
        session.execute("DELETE FROM dyno_asked WHERE run = %s", run)
        session.execute("DELETE FROM dyno_parts WHERE run = %s", run)
    session.tell(of_run(run))


def asked_about(session: Session, run: str) -> Run | None:
    """A run that has not begun, as hosts are asked about it; None where nobody asks."""
    rows = session.execute("SELECT document FROM dyno_asked WHERE run = %s", run)
    return run_of_document(rows[0][0]) if rows else None


def asked_of(session: Session, host: str, run: str = "") -> Run | None:
    """The run about which a host is asked, the oldest question first; only that one which is named."""
    rows = session.execute(
        "SELECT document FROM dyno_asked JOIN dyno_parts USING (run) WHERE host = %s AND state = 'asked'"
        " AND %s IN ('', run) ORDER BY asked_at, run LIMIT 1",
        *(host, run),
    )
    return run_of_document(rows[0][0]) if rows else None


def answer(session: Session, place: HeldHost, run: str, state: PartState, told: str) -> None:
    """Answers, unless nobody waits for it any more. Raises Replaced where this worker does not speak for the
    host any more, because another one may be on another machine."""
    with session.transaction():
        require_speaker(session, place)
        session.execute(
            "UPDATE dyno_parts SET state = %s, told = %s WHERE run = %s AND host = %s AND state = 'asked'",
            *(state.value, without_passwords(told), run, place.name),
        )
    session.tell(of_run(run))


def give(session: Session, run: Run) -> None:
    """Gives all hosts of a run their parts, also again after a withdrawal or a failure. What is done, or left
    out, stays so."""
    with session.transaction():
        session.execute("SELECT 1 FROM dyno_runs WHERE run = %s FOR UPDATE", run.run)
        session.execute("DELETE FROM dyno_asked WHERE run = %s", run.run)
        # What kept a build from being made may have been mended.
        session.execute("DELETE FROM dyno_build_failures WHERE run = %s", run.run)
        kept = {part.host: part.state for part in parts_of(session, run.run)}
        for host in run.fleet:
            if not host.left_out and kept.get(host.name) not in (PartState.DONE, PartState.LEFT_OUT):
                _put(session, run.run, host.name, PartState.GIVEN)
    session.tell(of_run(run.run), *(of_host(host.name) for host in run.fleet))


def withdraw(session: Session, run: str) -> None:
    """Takes back what hosts have not carried out: they stop at the end of a trial."""
    rows = session.execute(
        "UPDATE dyno_parts SET state = 'withdrawn' WHERE run = %s AND state = 'given' RETURNING host", run
    )
    session.tell(of_run(run), *(of_host(host) for (host,) in rows))


def next_run(session: Session, host: str, run: str = "") -> str | None:
    """The run that a host is to go on with: of those that were given to it, the one that began first; only
    that one which is named."""
    rows = session.execute(
        "SELECT run FROM dyno_runs JOIN dyno_parts USING (run) WHERE host = %s AND state = 'given'"
        " AND %s IN ('', run) ORDER BY created_unix_s, run LIMIT 1",
        *(host, run),
    )
    return str(rows[0][0]) if rows else None


def is_given(session: Session, run: str, host: str) -> bool:
    """Whether a host is still to go on with a run."""
    return bool(
        session.execute(
            "SELECT 1 FROM dyno_parts WHERE run = %s AND host = %s AND state = 'given'", run, host
        )
    )


def state_of(session: Session, run: str, host: str) -> PartState | None:
    """How far a host is with a run; None where nothing of it was asked or given to it."""
    rows = session.execute("SELECT state FROM dyno_parts WHERE run = %s AND host = %s", run, host)
    return PartState(rows[0][0]) if rows else None


def end(session: Session, place: HeldHost, run: str, state: PartState, told: str = "") -> None:
    """Ends a host's part as done or failed, and the run with the last one. Raises Replaced where this worker
    does not speak for the host any more."""
    with session.transaction():
        require_speaker(session, place)
        session.execute("SELECT 1 FROM dyno_runs WHERE run = %s FOR UPDATE", run)
        session.execute(
            "UPDATE dyno_parts SET state = %s, told = %s WHERE run = %s AND host = %s AND state = 'given'",
            *(state.value, without_passwords(told), run, place.name),
        )
        finish(session, run)
    session.tell(of_run(run))


def parts_of(session: Session, run: str) -> list[HostPart]:
    """How far all hosts of a run are, by name."""
    rows = session.execute("SELECT host, state, told FROM dyno_parts WHERE run = %s ORDER BY host", run)
    return [HostPart(host=host, state=PartState(state), told=told) for host, state, told in rows]


def _put(session: Session, run: str, host: str, state: PartState) -> None:
    session.execute(
        "INSERT INTO dyno_parts VALUES (%s, %s, %s, '') ON CONFLICT (run, host)"
        " DO UPDATE SET state = EXCLUDED.state, told = ''",
        *(run, host, state.value),
    )
