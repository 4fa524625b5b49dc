"""Leases: a host is one run's alone while one is in force, by the database's clock.

A lease is renewed where nothing is timed: when it is due, before a slice begins, by the process that
measures; and from a thread of that process while a trial is prepared, checked or restored. While a slice is
measured, the thread waits without a time, so nothing wakes.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import psycopg

from dbdyno.errors import DynoError
from dbdyno.fleet.hosts import Place, Replaced, end_leases, require_speaker, speak_again
from dbdyno.fleet.session import Session
from dbdyno.records.database import LeaseOver, Unavailable
from dbdyno.study import Study
from dbdyno.study.trials import phases_of

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


def take(session: Session, place: Place, run: str, seconds: float) -> int:
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


class Lease:
    """A lease of this host while it lasts; a context manager, which gives it back."""

    def __init__(self, session: Session, place: Place, run: str, seconds: float) -> None:
        self.place = place
        self._session, self._run, self._seconds = session, run, seconds
        self._condition = threading.Condition()
        self._timed = self._ended = False
        self._lost: DynoError | None = None
        self._renewed_s = time.monotonic()
        self._due_s = self._renewed_s + RENEWED_AFTER * seconds
        self.fence = take(session, place, run, seconds)
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._condition:
            self._ended = True
            self._condition.notify()
        self._thread.join()
        # What cannot be given back now runs out.
        with suppress(DynoError), self._session.transaction():
            require_speaker(self._session, self.place)
            end_leases(self._session, self.place.number)

    def stage_began(self, timed: bool) -> None:
        """Called where a stage of a trial begins. Renews the lease when that is due; from a `timed` stage on
        the thread sleeps."""
        with self._condition:
            self._renew_when_due()
            if timed != self._timed:
                self._timed = timed
                self._condition.notify()

    def require_in_force(self) -> None:
        """Raises LeaseOver where nothing that is measured from here on could count."""
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
