"""Clients beside those of the load: load processes that come and go, wait, are stopped or are killed, and
sockets that say nothing. Whatever a client can do to a server, its process can be made to do by a signal."""

from __future__ import annotations

import os
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dbdyno.driver.job import Closed, Job, Open
from dbdyno.driver.load import LoadDriver
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import DriverFailed, LoadDied
from dbdyno.layers.setup import Running
from dbdyno.records.record import Guested
from dbdyno.study.phases import options_of
from dbdyno.study.soak import Disturbance
from dbdyno.study.trials import Guest, Phase
from dbdyno.trial.bench import OpenLoad

QUESTIONS = Path(__file__).with_name("guests.toml")
CHURN_S = 1.0
"""How long clients stay that come and go."""
STOPPED_AFTER_S = 1.0
"""When clients are killed or stopped: in the midst of an answer, because they do nothing but ask."""
SLOW_S = (0.9, 0.1)
"""For how long slow clients read nothing, and then read."""
SILENT_S = 5.0
"""How long sockets say nothing; most servers then close them themselves before long."""
AGAIN_S = 0.5
"""The wait after a server refused."""
LEAVE_S = 30.0
"""How long guests may take to leave by themselves."""


@dataclass
class GuestVisit:
    """One guest at work. `come` lasts until `over`, in a thread of its own; its load processes are killed
    where they must be, or do not end by themselves in time."""

    guest: Guest
    running: Running
    duration_s: float
    open_load: OpenLoad
    over: Event = field(default_factory=Event)
    rounds: int = 0
    operations: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    _handles: set[int] = field(default_factory=set)

    def come(self) -> None:
        """Does what the guest is here for, again and again where a server refuses or a round ends."""
        behave = BEHAVIOURS[self.guest.disturbance]
        while not self.over.is_set():
            try:
                behave(self)
            except (DriverFailed, OSError) as failure:
                self.errors[failure.message if isinstance(failure, DriverFailed) else str(failure)] += 1
                self.over.wait(AGAIN_S)

    def leave(self) -> None:
        """Has `come` end. Clients that stopped in the midst of an answer are never to read it."""
        self.over.set()
        if self.guest.disturbance not in POLITE:
            self.kill()

    def kill(self) -> None:
        """Ends the guest's processes at once."""
        for handle in tuple(self._handles):
            _signal(handle, signal.SIGKILL)

    def told(self) -> Guested:
        """What came of it."""
        return Guested(
            name=self.guest.name,
            clients=self.guest.clients,
            rounds=self.rounds,
            operations=self.operations,
            errors=dict(self.errors),
        )

    @contextmanager
    def process(self) -> Iterator[tuple[LoadDriver, int]]:
        """A load process of the guest's own, and a handle that never means another one (pidfd_open(2))."""
        load = self.open_load(self.running.server.driver_environment, self.running.setup.load_launch)
        handle = os.pidfd_open(load.process_id)
        self._handles.add(handle)
        try:
            yield load, handle
            load.close()
        finally:
            load.kill()
            self._handles.discard(handle)
            os.close(handle)

    def job(self, **changes: Any) -> Job:
        """What the guest's clients do: they ask for made-up rows, as fast as they are answered."""
        asks: dict[str, Any] = {
            "workload": "script",
            "options": {"file": str(QUESTIONS)},
            "clients": self.guest.clients,
            "threads": 0,
            "duration_s": self.duration_s,
            "load": Closed(),
            "ramp_s": 0.0,
            "warmup_s": 0.0,
            "slices": None,
        }
        return self.running.setup.job.but(**{**asks, **changes})

    def count(self, tally: Tally) -> None:
        """Adds what a round did that came to its end."""
        self.rounds += 1
        self.operations += tally.operations
        self.errors.update(tally.errors)


@contextmanager
def guests_of(running: Running, phase: Phase, open_load: OpenLoad) -> Iterator[Sequence[GuestVisit]]:
    """Has a phase's guests come, and leave at its end, however it ends."""
    visits = [GuestVisit(guest, running, phase.takes_s, open_load) for guest in phase.guests]
    # The pool waits for its threads: whoever does not leave is sent away.
    ends = [Timer(LEAVE_S, visit.kill) for visit in visits]
    try:
        with ThreadPoolExecutor(len(visits) or 1, thread_name_prefix="guests") as pool:
            comings = [pool.submit(visit.come) for visit in visits]
            try:
                yield visits
            finally:
                for visit, end in zip(visits, ends, strict=True):
                    visit.leave()
                    end.start()
    finally:
        for end in ends:
            end.cancel()
    for coming in comings:
        coming.result()


def _idle(visit: GuestVisit) -> None:
    """A load that waits for its first slice is as silent as can be, with all its connections open."""
    with visit.process() as (load, _):
        load.begin(visit.job(slices=1, warmup_s=0.1))
        visit.rounds += 1
        visit.over.wait()


def _churn(visit: GuestVisit) -> None:
    with visit.process() as (load, _):
        while not visit.over.is_set():
            visit.count(load.run(visit.job(duration_s=CHURN_S)))


def _killed(visit: GuestVisit) -> None:
    _run_under(visit, signal.SIGKILL)


def _half_open(visit: GuestVisit) -> None:
    _run_under(visit, signal.SIGSTOP)


def _run_under(visit: GuestVisit, number: signal.Signals) -> None:
    """A load whose process gets a signal in its midst. It ends by a kill: this one, or that of `leave`."""
    with visit.process() as (load, handle):
        strike = Timer(STOPPED_AFTER_S, _signal, [handle, number])
        strike.start()
        try:
            with suppress(LoadDied):
                visit.count(load.run(visit.job(duration_s=visit.duration_s + LEAVE_S)))
                return
        finally:
            strike.cancel()
            strike.join()
        visit.rounds += 1


def _slow(visit: GuestVisit) -> None:
    with visit.process() as (load, handle):
        stutter = Thread(target=_stutter, args=(visit, handle), daemon=True)
        stutter.start()
        try:
            visit.count(load.run(visit.job()))
            visit.over.wait()
        finally:
            stutter.join()


def _stutter(visit: GuestVisit, handle: int) -> None:
    """Lets a process run for a tenth of the time, until the visit is over."""
    stopped_s, running_s = SLOW_S
    while not visit.over.wait(running_s):
        _signal(handle, signal.SIGSTOP)
        visit.over.wait(stopped_s)
        _signal(handle, signal.SIGCONT)


def _signal(handle: int, number: signal.Signals) -> None:
    """Where the process is gone there is nothing to do."""
    with suppress(OSError):
        signal.pidfd_send_signal(handle, number)


def _silent(visit: GuestVisit) -> None:
    [path] = parse_qs(urlsplit(visit.running.server.url).query)["socket"]
    with ExitStack() as stack:
        for _ in range(visit.guest.clients):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            connection.settimeout(SILENT_S)
            connection.connect(path)
        visit.rounds += 1
        visit.over.wait(SILENT_S)


def _sent(visit: GuestVisit) -> None:
    """The transactions of another script, on the tables of the load."""
    rate_per_s = visit.guest.rate_per_s
    assert rate_per_s is not None, "a script beside the load has a rate"
    options = {**visit.running.setup.job.options, **options_of(visit.guest.file)}
    with visit.process() as (load, _):
        visit.count(load.run(visit.job(options=options, load=Open(rate_per_s=rate_per_s))))
        visit.over.wait()


def _work(visit: GuestVisit) -> None:
    """Another workload, with tables of its own and their invariants."""
    if visit.guest.file:
        _sent(visit)
        return
    workload = {"workload": visit.guest.workload, "options": {}}
    with visit.process() as (load, _):
        load.prepare(visit.job(**workload))
        tally = load.run(visit.job(**workload))
        visit.count(tally)
        invariants = load.check(visit.job(**workload), Acknowledged.by([tally]))
        visit.errors.update(f"{one.name}: {one.detail}" for one in invariants if not one.holds)
        visit.over.wait()


BEHAVIOURS: Mapping[Disturbance | None, Callable[[GuestVisit], None]] = {
    Disturbance.IDLE: _idle,
    Disturbance.CHURN: _churn,
    Disturbance.SLOW: _slow,
    Disturbance.KILLED: _killed,
    Disturbance.HALF_OPEN: _half_open,
    Disturbance.SILENT: _silent,
    None: _work,
}
POLITE = (Disturbance.IDLE, Disturbance.CHURN, Disturbance.SLOW, Disturbance.SILENT, None)
"""Who leaves by itself when it is asked to."""
