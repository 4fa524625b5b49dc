"""The clients' own ledger of one phase: what they were told, against what the database holds afterwards.

The driver notes each transaction that was acknowledged, as soon as its client is told, in a file of the
trial's runtime folder, which lies on no volume; and the transaction itself wrote a row, which commits with it
or not at all. So what is owed is known one by one, however the engine and the load process ended.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from threading import Event
from typing import NamedTuple

from dbdyno.driver import job
from dbdyno.engines.engine import Ask
from dbdyno.errors import DriverFailed

_ENTRY = struct.Struct("<QQQ")
"""Client, number of its row, and when it was told (ns of the monotonic clock): `count/ledger.rs`."""
LOOK_S = 0.01
BEGINS_S = 120.0
"""How long a load may take to its first transaction: connecting, and the first pages from a cold disk."""
WINDOW_S = 0.1
FULL_SHARE = 0.9
"""Of the speed before an act, what counts as full speed after it."""
WINDOWS_LEAST = 6
NS = 1_000_000_000

Row = tuple[int, int]
"""A client and the number of one of its rows."""


class Entry(NamedTuple):
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
    def of_job(self) -> job.Ledger:
        return job.Ledger(path=str(self.path), cut=self.cut)

    def begins(self, over: Event) -> bool:
        """Waits for the first acknowledgement. False where the load is over before, or none comes."""
        for _ in range(int(BEGINS_S / LOOK_S)):
            if self.path.stat().st_size >= _ENTRY.size:
                return True
            if over.wait(LOOK_S):
                return False
        return False

    def entries(self) -> list[Entry]:
        """All acknowledgements. A process that was killed may have left a part of the last one."""
        written = self.path.read_bytes()
        whole = len(written) // _ENTRY.size * _ENTRY.size
        return [Entry(*fields) for fields in _ENTRY.iter_unpack(written[:whole])]

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


def losses(entries: Iterable[Entry], rows: Iterable[Row], end_ns: int) -> Losses:
    """What is missing among the rows of what clients were told before the end."""
    there = set(rows)
    owed = [entry for entry in entries if entry.told_ns < end_ns]
    missing = [entry for entry in owed if (entry.client, entry.number) not in there]
    first_ns = min((entry.told_ns for entry in missing), default=end_ns)
    return Losses(len(owed), len(missing), (end_ns - first_ns) / 1e6)


def doubled(rows: Sequence[Row]) -> int:
    """How many rows stand twice: a transaction that took effect more than once."""
    return len(rows) - len(set(rows))


def longest_silence_s(entries: Iterable[Entry]) -> float:
    """The longest time between two acknowledgements that follow one another."""
    told = sorted(entry.told_ns for entry in entries)
    return max((after - before for before, after in pairwise(told)), default=0) / NS


def windows_of(entries: Iterable[Entry], end_ns: int) -> list[int]:
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
    full = FULL_SHARE * before_per_s * WINDOW_S
    reached = next((window for window, count in enumerate(counts, 1) if count >= full), len(counts))
    return round(reached * WINDOW_S, 3)
