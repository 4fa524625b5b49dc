"""How each act ends an engine: cleanly after the load, by a kill in its midst, or without power.

And what each act came to, which `judged` says once it is over.

The clients' own ledger of one phase: what they were told, against what the database holds afterwards.

The driver notes each transaction that was acknowledged, as soon as its client is told, in a file of the
trial's runtime folder, which lies on no volume; and the transaction itself wrote a row, which commits with it
or not at all. So what is owed is known one by one, however the engine and the load process ended.

A bit that is wrong on the disk: does the engine say so, or does it hand out another row?

A table of its own holds one row with a text that is nowhere else. The engine is stopped cleanly, and one bit
of the text is turned in the file that holds it. Then the engine is started and asked for the row. Afterwards
the bit is turned back, so that nothing of it outlives the round.
"""

from __future__ import annotations

import mmap
import os
import random
import string
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from threading import Event
from typing import NamedTuple

from dbdyno.driver import job
from dbdyno.driver.job import Closed, Job
from dbdyno.driver.load import Invariant
from dbdyno.driver.tally import Acknowledged
from dbdyno.engines.engine import Ask
from dbdyno.engines.server import untold
from dbdyno.errors import Blocked, DriverFailed, LoadDied, ServerFailed
from dbdyno.host.process import standing_still
from dbdyno.host.volumes import power
from dbdyno.host.volumes.power import PageInFlight, pages_in_flight
from dbdyno.host.volumes.volume import Volume
from dbdyno.layers.setup import Running, Setup
from dbdyno.records.meanwhile import windows_to_full
from dbdyno.records.record import Check, Recovery
from dbdyno.study.nouns import KEEPS_LEDGER
from dbdyno.study.soak import CLEANLY, Act
from dbdyno.study.trials import Phase
from dbdyno.trial.acts.engine import in_the_midst, kill_under_load, lives, start_again, stopped_s, strike
from dbdyno.trial.bench import OpenLoad
from dbdyno.trial.nodes import checks_of_invariants

LETTERS = 40
"""Of a mark. None stands there twice, so that no engine finds anything to compress."""
BITS = 5
"""So many low bits of a letter make another character of it, which is a whole one in every encoding."""
OF_DYNO = frozenset({"user", "internal"})
"""Kinds of the driver's failures of which the engine knows nothing."""
PLACES_MOST = 8
"""So many places are tried at most: a log may hold the row as well, and is not read again."""


@dataclass(frozen=True)
class TextPlace:
    """Where a file holds a text, and the text with one bit of it turned."""

    file: Path
    offset: int
    right: bytes
    wrong: bytes

    def turn(self) -> bool:
        """Turns the bit, on the disk as well. False where the file does not hold the text any more."""
        return self._replace(self.right, self.wrong)

    def turn_back(self) -> None:
        """Turns the bit back, unless the engine has put something else there: a log goes round."""
        self._replace(self.wrong, self.right)

    def _replace(self, old: bytes, new: bytes) -> bool:
        try:
            descriptor = os.open(self.file, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            there = os.pread(descriptor, len(old), self.offset) == old
            if there:
                os.pwrite(descriptor, new, self.offset)
                os.fsync(descriptor)
            return there
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class MarkedRow:
    """A row that is known: its table, its text, and the bit of it that is turned."""

    table: str
    text: str
    letter: int
    value: int

    @staticmethod
    def drawn(number: int, seed: int) -> MarkedRow:
        """Whose table has that number."""
        draw = random.Random(f"{seed} flip {number}")
        text = "".join(draw.sample(string.ascii_letters, LETTERS))
        return MarkedRow(f"dyno_flip_{number}", text, draw.randrange(LETTERS), 1 << draw.randrange(BITS))

    def write(self, ask: Ask) -> None:
        ask(f"CREATE TABLE {self.table} (letters VARCHAR({LETTERS}) NOT NULL)")
        ask(f"INSERT INTO {self.table} VALUES ('{self.text}')")

    def places(self, data: Path) -> Iterator[TextPlace]:
        """Where files hold it, file by file in the order of their names."""
        right, place = self.text.encode(), self.letter
        wrong = right[:place] + bytes((right[place] ^ self.value,)) + right[place + 1 :]
        for path in sorted(data.rglob("*")):
            if path.is_file() and path.stat().st_size:
                for start in _found(path, right):
                    yield TextPlace(path, start, right, wrong)


def told_of(mark: MarkedRow, running: Running, open_load: OpenLoad, undo: ExitStack) -> bool | None:
    """Whether the engine, which has ended, says of a turned bit that something is wrong, by an error or by
    its own end. False where it hands out another row. None where it hands out the right one, because it did
    not read the bit. The engine has ended afterwards as well; `undo` ends what is started.

    Raises Blocked where no file holds the row as it was written, and DriverFailed where it was Dyno itself
    that failed.
    """
    places = list(mark.places(running.setup.data))[:PLACES_MOST]
    if not places:
        reason = "no file holds the row as it was written, so no bit of it can be turned"
        raise Blocked("restarts.flipped_bits", reason, "leave compression, encryption and raw devices out")
    for place in places:
        if not place.turn():
            continue
        try:
            told = _told(mark, running, open_load, undo)
        finally:
            place.turn_back()
        if told is not None:
            return told
    return None


def _told(mark: MarkedRow, running: Running, open_load: OpenLoad, undo: ExitStack) -> bool | None:
    again = running
    try:
        again = start_again(running, open_load, undo)
        rows = again.ask(f"SELECT letters FROM {mark.table}")
    except (ServerFailed, LoadDied):
        return True
    except DriverFailed as failure:
        if failure.kind in OF_DYNO and lives(again):
            raise
        return True
    finally:
        again.load.kill()
        again.server.kill()
    return None if rows == [[mark.text]] else False


def _found(path: Path, text: bytes) -> Iterator[int]:
    """Where a file holds a text."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = content.find(text)
        while start >= 0:
            yield start
            start = content.find(text, start + 1)


_ENTRY = struct.Struct("<QQQ")
"""Client, number of its row, and when it was told (ns of the monotonic clock): `count/ledger.rs`."""
LOOK_S = 0.01
BEGINS_S = 120.0
"""How long a load may take to its first transaction: connecting, and the first pages from a cold disk."""
WINDOW_S = 0.1
WINDOWS_LEAST = 6
NS = 1_000_000_000

Row = tuple[int, int]
"""A client and the number of one of its rows."""


class Acknowledgement(NamedTuple):
    """One acknowledgement."""

    client: int
    number: int
    told_ns: int


class Losses(NamedTuple):
    """What of the acknowledged is gone. `first_ms` is how long before the end its first client was told."""

    acknowledged: int
    lost: int
    first_ms: float


class Ledger:
    """The ledger of a trial's phase, in the trial's runtime folder. Its rows have the number `cut`, which no
    earlier ledger of the trial has."""

    def __init__(self, folder: Path) -> None:
        self.cut = 1 + sum(1 for _ in folder.glob("ledger-*"))
        self.path = folder / f"ledger-{self.cut}"
        self.path.touch()

    @property
    def of_job(self) -> job.LedgerFile:
        return job.LedgerFile(path=str(self.path), cut=self.cut)

    def begins(self, over: Event) -> bool:
        """Waits for the first acknowledgement. False where the load is over before, or none comes."""
        for _ in range(int(BEGINS_S / LOOK_S)):
            if self.path.stat().st_size >= _ENTRY.size:
                return True
            if over.wait(LOOK_S):
                return False
        return False

    def entries(self) -> list[Acknowledgement]:
        """All acknowledgements. A process that was killed may have left a part of the last one."""
        written = self.path.read_bytes()
        whole = len(written) // _ENTRY.size * _ENTRY.size
        return [Acknowledgement(*fields) for fields in _ENTRY.iter_unpack(written[:whole])]

    def rows(self, ask: Ask) -> list[Row]:
        """The rows of this phase that the database holds; none where it has lost their table."""
        try:
            found = ask(f"SELECT client, entry FROM dyno_ledger WHERE cut = {self.cut}")
        except DriverFailed as failure:
            if failure.kind != "server":
                raise
            return []
        return [(int(client or 0), int(entry or 0)) for client, entry in found]


def make_table(ask: Ask) -> None:
    """Makes the table of rows where there is none: a cut may have taken it along."""
    try:
        ask("SELECT entry FROM dyno_ledger WHERE 1 = 0")
    except DriverFailed as failure:
        if failure.kind != "server":
            raise
        columns = ", ".join(f"{name} INTEGER NOT NULL" for name in ("cut", "client", "entry"))
        ask(f"CREATE TABLE dyno_ledger ({columns})")


def losses(entries: Iterable[Acknowledgement], rows: Iterable[Row], end_ns: int) -> Losses:
    """What is missing among the rows of what clients were told before the end."""
    there = set(rows)
    owed = [entry for entry in entries if entry.told_ns < end_ns]
    missing = [entry for entry in owed if (entry.client, entry.number) not in there]
    first_ns = min((entry.told_ns for entry in missing), default=end_ns)
    return Losses(len(owed), len(missing), (end_ns - first_ns) / 1e6)


def doubled(rows: Sequence[Row]) -> int:
    """How many rows stand twice: a transaction that took effect more than once."""
    return len(rows) - len(set(rows))


def longest_silence_s(entries: Iterable[Acknowledgement]) -> float:
    """The longest time between two acknowledgements that follow one another."""
    told = sorted(entry.told_ns for entry in entries)
    return max((after - before for before, after in pairwise(told)), default=0) / NS


def windows_of(entries: Iterable[Acknowledgement], end_ns: int) -> list[int]:
    """How many acknowledgements each `WINDOW_S` had until the end, from the first of them on. Empty where
    there are too few windows to tell a speed."""
    told = sorted(entry.told_ns for entry in entries if entry.told_ns < end_ns)
    windows = int((end_ns - told[0]) / (WINDOW_S * NS)) if told else 0
    if windows < WINDOWS_LEAST:
        return []
    counts = [0] * windows
    for told_ns in told:
        window = int((told_ns - told[0]) / (WINDOW_S * NS))
        if window < windows:
            counts[window] += 1
    return counts


def speed_per_s(counts: Sequence[int]) -> float:
    """What a load came to: the median of its second half, in acknowledgements per second. 0 where it was too
    short to tell."""
    return median(counts[len(counts) // 2 :]) / WINDOW_S if counts else 0.0


def full_speed_s(counts: Sequence[int], before_per_s: float) -> float | None:
    """Seconds from the first acknowledgement until a window was nearly as fast as the load `before`; all of
    them where none was. None where one of the two loads was too short to tell."""
    if not counts or not before_per_s:
        return None
    return round((windows_to_full(counts, before_per_s * WINDOW_S) or len(counts)) * WINDOW_S, 3)


@dataclass(frozen=True)
class Acted:
    """The server that runs again, how it came there, and whether all is there that any client was told. `log`
    is that of one that did not come back."""

    running: Running
    recovery: Recovery
    checks: tuple[Check, ...] = ()
    log: str = ""


def judged(invariants: Sequence[Invariant], rows: Sequence[Row]) -> tuple[Check, ...]:
    """The workload's invariants, and that no transaction took effect twice."""
    twice = doubled(rows)
    detail = f"{twice} of {len(rows)} transactions took effect twice" if twice else ""
    return (
        *checks_of_invariants(invariants),
        Check(name="no_transaction_twice", holds=not twice, detail=detail),
    )


def broken(checks: Sequence[Check]) -> str:
    """What does not hold; empty where all does."""
    return "; ".join(f"{check.name}: {check.detail}" for check in checks if not check.holds)


def log_after(act: Act, again: Running) -> tuple[Running, tuple[Check, ...]]:
    """What the server's log says of its start after an act: a check that holds, because an invariant must
    judge it; none where the log says nothing that it has not said before."""
    logged = again.server.log_problems()
    problems = untold(logged, again.logged)
    log = Check(name=f"server_log_after_{act.value}", holds=True, detail=" | ".join(problems))
    return replace(again, logged=tuple(logged)), (log,) if problems else ()


BEYOND_S = 60.0
"""How long the load would go on after the act, which is far beyond what the act takes."""
TRIES, BETWEEN_TRIES_S = 20, 0.05
"""How often pages are looked for until some are in flight."""


@dataclass
class ActUnderWay:
    """An act under way. The `ledger` is its witness where one is kept; without one, `told` is what clients
    were told in the act. `at_ns`, of the monotonic clock, is when the engine was last whole: what
    clients were told until then is owed. Those of `in_flight` are torn before power comes back. Of the row
    `mark` a bit is turned before the engine starts."""

    running: Running
    phase: Phase
    ledger: Ledger | None = None
    told: Acknowledged = field(default_factory=Acknowledged)
    at_ns: int = 0
    stop_s: float | None = None
    in_flight: Sequence[PageInFlight] = ()
    mark: MarkedRow | None = None
    over: Event = field(default_factory=Event)

    def job(self, ledger: Ledger) -> Job:
        """The load up to the act, which the ledger witnesses: at full speed, and all in one piece."""
        beyond_s = 0.0 if self.phase.then in CLEANLY else BEYOND_S
        job = self.running.setup.job
        return job.but(
            load=Closed(),
            clients=self.phase.clients or job.clients,
            ramp_s=0.0,
            warmup_s=0.0,
            duration_s=self.phase.duration_s + beyond_s,
            slices=None,
            settle_s=0.0,
            operations=None,
            ledger=ledger.of_job,
        )


def require_volume(setup: Setup) -> Volume:
    """The volume whose power an act cuts. Raises Blocked where there is none, or none with a switch."""
    if setup.powerless is not None:
        raise Blocked(power.FACTOR, setup.powerless.message, setup.powerless.hint)
    if setup.volume is None:
        reason = "the data lie on the host's file system, which is not cut"
        raise Blocked(power.FACTOR, reason, power.HAVE_SWITCH)
    return setup.volume


def _require_ledger(ending: ActUnderWay) -> Ledger:
    """The ledger of a power cut, whose losses nobody could tell otherwise. Raises Blocked without one."""
    if ending.ledger is None:
        raise Blocked(
            "workload.name",
            f"what a power cut takes along is not known under {ending.running.setup.job.workload}",
            f"take a workload that keeps a ledger and writes: {', '.join(KEEPS_LEDGER)}",
        )
    return ending.ledger


def _stop(ending: ActUnderWay) -> None:
    """Lets the load come to its end, where a ledger witnesses it, then stops the engine cleanly and times
    that."""
    running = ending.running
    if ending.ledger is not None:
        running.load.run(ending.job(ending.ledger))
    ending.at_ns = time.monotonic_ns()
    ending.stop_s = stopped_s(running)


def _flip(ending: ActUnderWay) -> None:
    """Writes a row that is known before the load, so that a bit of it can be turned afterwards."""
    assert ending.ledger is not None, "a round keeps a ledger"
    ending.mark = MarkedRow.drawn(ending.ledger.cut, ending.running.setup.job.seed)
    ending.mark.write(ending.running.ask)
    _stop(ending)


def _kill(ending: ActUnderWay) -> None:
    """Kills the engine while all clients of the phase are at work."""
    if ending.ledger is None:
        ending.told = kill_under_load(ending.running, ending.phase.clients)
        return

    def kill() -> None:
        ending.at_ns = time.monotonic_ns()

    _in_the_midst(ending, ending.ledger, kill)


def _cut(ending: ActUnderWay) -> None:
    ledger = _require_ledger(ending)
    with power.PowerSwitch(require_volume(ending.running.setup)) as switch:

        def cut() -> None:
            ending.at_ns = time.monotonic_ns()
            switch.off()

        _in_the_midst(ending, ledger, cut)


def _tear(ending: ActUnderWay) -> None:
    ledger, setup = _require_ledger(ending), ending.running.setup
    volume = require_volume(setup)
    page_bytes = setup.engine.settings.page_bytes(setup.settings)
    with power.PowerSwitch(volume) as switch:

        def cut() -> None:
            for number in range(TRIES):
                ending.at_ns = time.monotonic_ns()
                with standing_still(ending.running.process_ids) as still:
                    # Of a server that goes on, other pages are on their way by the cut.
                    ending.in_flight = pages_in_flight(volume, page_bytes) if still else ()
                    if ending.in_flight or number == TRIES - 1:
                        switch.off()
                        return
                ending.over.wait(BETWEEN_TRIES_S)

        _in_the_midst(ending, ledger, cut)


ENDINGS: Mapping[Act, Callable[[ActUnderWay], None]] = {
    Act.STOP: _stop,
    Act.KILL: _kill,
    Act.CUT: _cut,
    Act.TEAR: _tear,
    Act.FLIP: _flip,
}
"""Each ends the engine. Raises Blocked where it cannot be done here, and ServerFailed where the engine does
not end."""


def _in_the_midst(ending: ActUnderWay, ledger: Ledger, act: Callable[[], None]) -> None:
    """Puts the load on, acts when it has gone on for as long as the phase says, and then ends the engine.
    Raises what the engine did wrong where it ended before."""
    running = ending.running

    def when_due() -> bool:
        return ledger.begins(ending.over) and strike(running, ending.over, ending.phase.duration_s, act)

    in_the_midst(running, partial(running.load.run, ending.job(ledger)), when_due, ending.over)
