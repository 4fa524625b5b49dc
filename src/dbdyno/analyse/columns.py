"""The trials of a run as columns, because an array is read a hundred times faster than as many objects.

A *figure* is a number of each trial, and NaN where it has none. A *fact* is what many trials have in common:
the distinct values, and for each trial which of them it has. Both are read from records once. What needs more
of a record than this reads that record.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dbdyno.analyse.latency import Histogram, added, summed
from dbdyno.analyse.model import TrialResult
from dbdyno.records import metrics
from dbdyno.records.record import Doubt, Outcome, Record

Block = tuple[str, int]
"""A block is a host and a number: only trials of one host can be paired."""
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
"""Which rows of the columns, from 0 on."""


class Figures(NamedTuple):
    """Numbers that are read of a record together, by name; None where it has none of them."""

    name: str
    read: Callable[[Record], Mapping[str, float] | None]


class Fact(NamedTuple):
    """Something that many trials have in common."""

    name: str
    read: Callable[[Record], Hashable]


REQUESTS = "application_requests"
"""What an observation of an application holds."""

TRIAL = Figures("trial", lambda record: {"trial": record.trial, "block": record.block})
HOST = Fact("host", lambda record: record.host)
VARIANT = Fact("variant", lambda record: record.variant)
OUTCOME = Fact("outcome", lambda record: record.outcome.value)
DOUBTS = Fact("doubts", lambda record: tuple(doubt.value for doubt in record.doubts))

HAS_PLANS = Fact("has_plans", lambda one: one.plans is not None)
HAS_STATEMENTS = Fact("has_statements", lambda one: one.tally is not None and bool(one.tally.by_statement))
HAS_REPLAY = Fact("has_replay", lambda one: one.tally is not None and one.tally.replay is not None)
HAS_REQUESTS = Fact(
    "has_requests", lambda one: one.observation is not None and REQUESTS in one.observation.totals
)
"""What few runs have, and what is told of it needs whole records."""


class Distribution(NamedTuple):
    """The latencies of some trials: the units of their histograms, and their sum; None where one of them is
    no histogram."""

    units: frozenset[str]
    histogram: Histogram | None


Judge = Callable[[Sequence[Record]], list[TrialResult]]
"""What makes the results of trials."""


class Columns(ABC):
    """The trials of some blocks, in the order of their index."""

    @abstractmethod
    def judge(self, judge: Judge, mixed: Mapping[int, str]) -> None:
        """Says how the results of trials are made, and of which trials the data came back by another way."""

    @abstractmethod
    def results_of(self, places: Places) -> Sequence[TrialResult]:
        """The results of these trials."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def metric(self, name: str) -> Floats:
        """A metric of each measured trial; NaN where it has none, and for other trials."""

    @abstractmethod
    def figures(self, figures: Figures) -> Mapping[str, Floats]:
        """The figures of each trial by name, those that come first in a trial first."""

    @abstractmethod
    def fact(self, fact: Fact) -> tuple[Places, list[Any]]:
        """Which of the distinct values each trial has, and these values."""

    @abstractmethod
    def records(self, places: Iterable[int]) -> Iterator[Record]:
        """The whole records of some trials."""

    @abstractmethod
    def distribution(self, places: Places) -> Distribution:
        """The latencies of these trials, which are measured ones."""

    @abstractmethod
    def warned(self, places: Places) -> dict[Doubt, int]:
        """How many of these trials carry each warning."""

    @abstractmethod
    def logs(self, metric: str) -> Floats:
        """The logs of a metric, NaN where it cannot stand in a ratio."""

    def having(self, fact: Fact, places: Places, *values: object) -> Places:
        """Those of the places whose fact is one of these values."""
        codes, table = self.fact(fact)
        chosen = [code for code, value in enumerate(table) if value in values]
        return places[np.isin(codes[places], chosen)]

    def seen(self, fact: Fact, places: Places) -> list[Any]:
        """The distinct values of these trials, in the order in which they come."""
        codes, table = self.fact(fact)
        found, first = np.unique(codes[places], return_index=True)
        return [table[code] for code in found[np.argsort(first)].tolist()]

    def whole(self, fact: Fact, places: Places) -> list[Record]:
        """The records of the places at which a fact holds."""
        return list(self.records(self.having(fact, places, True).tolist()))

    @property
    def places(self) -> Places:
        """All of them."""
        return np.arange(len(self))

    def trials(self, places: Places) -> Places:
        """The index of each of these trials."""
        found: Places = self.figures(TRIAL)["trial"][places].astype(np.int64) if len(places) else places
        return found


def or_zero(numbers: Floats) -> Floats:
    """With 0 for a trial that has no figure."""
    found: Floats = np.where(np.isnan(numbers), 0.0, numbers)
    return found


def logs_of(numbers: Floats) -> Floats:
    """By the C library, whose last digit does not depend on how many numbers there are."""
    logs = np.full(len(numbers), math.nan)
    usable = np.isfinite(numbers) & (numbers > 0.0)
    logs[usable] = list(map(math.log, numbers[usable].tolist()))
    return logs


class OfRecords(Columns):
    """Columns of records that are in memory. Each is read when it is asked for, and once. Records that are
    added later have a higher index than all before."""

    def __init__(self, records: Iterable[Record] = (), results: Sequence[TrialResult] = ()) -> None:
        self._records = list(records)
        self._results = results
        self._metrics: dict[str, Floats] = {}
        self._logs: dict[str, Floats] = {}
        self._figures: dict[str, tuple[int, dict[str, Floats]]] = {}
        self._facts: dict[str, tuple[Places, dict[Hashable, int]]] = {}

    def judge(self, judge: Judge, mixed: Mapping[int, str]) -> None:
        self._results = judge(self._records)

    def results_of(self, places: Places) -> Sequence[TrialResult]:
        return tuple(self._results[place] for place in places.tolist())

    def extend(self, records: Sequence[Record]) -> None:
        self._records += records

    def __len__(self) -> int:
        return len(self._records)

    def metric(self, name: str) -> Floats:
        known = self._metrics.get(name, np.zeros(0))
        if len(known) < len(self._records):
            read = metrics.find(name).read
            values = [
                read(record) if record.outcome is Outcome.MEASURED else None
                for record in self._records[len(known) :]
            ]
            later = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
            known = self._metrics[name] = np.concatenate((known, later))
        return known

    def logs(self, metric: str) -> Floats:
        known = self._logs.get(metric, np.zeros(0))
        if len(known) < len(self._records):
            later = logs_of(self.metric(metric)[len(known) :])
            known = self._logs[metric] = np.concatenate((known, later))
        return known

    def figures(self, figures: Figures) -> Mapping[str, Floats]:
        count, known = self._figures.get(figures.name, (0, {}))
        if count < len(self._records):
            each = [figures.read(record) or {} for record in self._records[count:]]
            for name in dict.fromkeys([*known, *(name for found in each for name in found)]):
                later = np.array([found.get(name, math.nan) for found in each], dtype=np.float64)
                known[name] = np.concatenate((known.get(name, np.full(count, math.nan)), later))
            self._figures[figures.name] = len(self._records), known
        return known

    def fact(self, fact: Fact) -> tuple[Places, list[Any]]:
        codes, table = self._facts.get(fact.name, (np.zeros(0, dtype=np.int64), {}))
        if len(codes) < len(self._records):
            values = map(fact.read, self._records[len(codes) :])
            later = np.array([table.setdefault(value, len(table)) for value in values], dtype=np.int64)
            codes = np.concatenate((codes, later))
            self._facts[fact.name] = codes, table
        return codes, list(table)

    def records(self, places: Iterable[int]) -> Iterator[Record]:
        return map(self._records.__getitem__, places)

    def distribution(self, places: Places) -> Distribution:
        return distribution_of(self.records(places.tolist()))

    def warned(self, places: Places) -> dict[Doubt, int]:
        counts = Counter(doubt for place in places.tolist() for doubt in self._results[place].warnings)
        return {doubt: counts[doubt] for doubt in Doubt if counts[doubt]}


def distribution_of(records: Iterable[Record]) -> Distribution:
    """The latencies of measured trials."""
    tallies = [record.tally for record in records if record.tally is not None]
    units = frozenset(tally.histogram_unit for tally in tallies)
    try:
        return Distribution(units, summed(tally.histogram for tally in tallies if tally.histogram))
    except ValueError:
        return Distribution(units, None)


def merged_latencies(parts: Sequence[Distribution]) -> Distribution:
    """The latencies of all parts."""
    units = frozenset(unit for part in parts for unit in part.units)
    sums = [part.histogram for part in parts if part.histogram is not None]
    return Distribution(units, added(sums) if len(sums) == len(parts) else None)


class Rows(Mapping[Block, TrialResult]):
    """Some trials of the columns by block, in the order of their index."""

    def __init__(self, columns: Columns, places: Places) -> None:
        self.columns = columns
        codes, hosts = columns.fact(HOST)
        self.hosts = tuple(sorted(hosts))
        ranks = np.array([self.hosts.index(host) for host in hosts], dtype=np.int64)
        blocks = columns.figures(TRIAL)["block"][places].astype(np.int64) if len(columns) else places
        keys = (ranks[codes[places]] << BITS) + blocks if len(places) else places
        self.places, self.block_keys = _latest_of_each(places, keys)

    @classmethod
    def of(cls, by_block: Mapping[Block, TrialResult]) -> Rows:
        """Of trials that are in memory."""
        results = list(by_block.values())
        columns = OfRecords([result.record for result in results], results)
        return cls(columns, np.arange(len(results)))

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)

    def __getitem__(self, block: Block) -> TrialResult:
        return self.columns.results_of(np.array([self._place_of[block]]))[0]

    @cached_property
    def blocks(self) -> list[Block]:
        return blocks_of(self.hosts, self.block_keys)

    @cached_property
    def _place_of(self) -> dict[Block, int]:
        return dict(zip(self.blocks, self.places.tolist(), strict=True))

    @cached_property
    def _by_outcome(self) -> dict[Outcome, Places]:
        codes, table = self.columns.fact(OUTCOME)
        own = codes[self.places]
        return {Outcome(value): self.places[own == code] for code, value in enumerate(table)}

    def only(self, places: Places) -> Rows:
        """Some of them."""
        return Rows(self.columns, places)

    def ended(self, outcome: Outcome) -> Places:
        """The places of those that ended so."""
        return self._by_outcome.get(outcome, self.places[:0])

    def record(self, block: Block) -> Record | None:
        """The whole record of a block's trial; None where it has none."""
        place = self._place_of.get(block)
        return None if place is None else next(self.columns.records([place]))

    def trials_of(self, pairs: Pairs) -> Places:
        """The index of the trial in each of these blocks, all of which have one."""
        return self.columns.trials(self._places_of(pairs))

    def told(self, fact: Fact, pairs: Pairs) -> tuple[Places, list[Any]]:
        """Which of the distinct values the trial in each of these blocks has, and these values."""
        codes, table = self.columns.fact(fact)
        return codes[self._places_of(pairs)], table

    def _places_of(self, pairs: Pairs) -> Places:
        order = np.argsort(keys := _within(pairs.hosts, self.hosts, self.block_keys), kind="stable")
        found: Places = self.places[order][np.searchsorted(keys[order], pairs.block_keys)]
        return found


BITS = 32
"""A block's number takes so many bits at most, and the rank of its host stands above them."""


def blocks_of(hosts: Sequence[str], keys: Places) -> list[Block]:
    ranks = (keys + (1 << BITS - 1)) >> BITS
    return list(zip(map(hosts.__getitem__, ranks.tolist()), (keys - (ranks << BITS)).tolist(), strict=True))


def _latest_of_each(places: Places, keys: Places) -> tuple[Places, Places]:
    """One place for each key: the last of those that share it stands where the first one did."""
    if bool((np.diff(keys) > 0).all()) or bool((np.diff(np.sort(keys)) > 0).all()):
        return places, keys
    latest = dict(zip(keys.tolist(), places.tolist(), strict=True))
    return np.array(list(latest.values()), dtype=np.int64), np.array(list(latest), dtype=np.int64)


class BlockValues(Mapping[Block, float]):
    """A figure of each block, in any order, with its logs (NaN where it cannot stand in a ratio)."""

    def __init__(self, hosts: tuple[str, ...], block_keys: Places, numbers: Floats, logs: Floats) -> None:
        self.hosts, self.block_keys = hosts, block_keys
        self.numbers, self.logs = numbers, logs

    @classmethod
    def measured(cls, rows: Rows, metric: str) -> BlockValues:
        """A metric of the measured trials that have it."""
        numbers = rows.columns.metric(metric)[rows.places]
        kept = np.isfinite(numbers)
        return cls(
            rows.hosts, rows.block_keys[kept], numbers[kept], rows.columns.logs(metric)[rows.places[kept]]
        )

    @classmethod
    def of(cls, values: Mapping[Block, float]) -> BlockValues:
        hosts = tuple(sorted({host for host, _ in values}))
        keys = [(hosts.index(host) << BITS) + block for host, block in values]
        numbers = np.array(list(values.values()), dtype=np.float64)
        return cls(hosts, np.array(keys, dtype=np.int64), numbers, logs_of(numbers))

    @cached_property
    def _by_block(self) -> dict[Block, float]:
        return dict(zip(blocks_of(self.hosts, self.block_keys), self.numbers.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.block_keys)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._by_block)

    def __getitem__(self, block: Block) -> float:
        return self._by_block[block]

    def within(self, hosts: tuple[str, ...]) -> BlockValues:
        """The same with keys for these hosts, which hold its own."""
        if hosts == self.hosts:
            return self
        return BlockValues(hosts, _within(hosts, self.hosts, self.block_keys), self.numbers, self.logs)

    def at(self, hosts: tuple[str, ...], keys: Places) -> Floats | None:
        """The figures of these blocks; None where one of them has none that can stand in a ratio."""
        if not set(hosts) <= set(self.hosts):
            return None
        own = _within(self.hosts, hosts, keys)
        order = np.argsort(self.block_keys, kind="stable")
        if len(order) == 0:
            return None
        found = order[np.minimum(np.searchsorted(self.block_keys[order], own), len(order) - 1)]
        if not ((self.block_keys[found] == own) & self.usable[found]).all():
            return None
        return self.numbers[found]

    @cached_property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Which of them can stand in a ratio."""
        return ~np.isnan(self.logs)


def _within(hosts: tuple[str, ...], of: tuple[str, ...], keys: Places) -> Places:
    """Keys of some hosts, as those of more hosts."""
    if hosts == of or len(keys) == 0:
        return keys
    ranks = np.array([hosts.index(host) for host in of], dtype=np.int64)
    own = (keys + (1 << BITS - 1)) >> BITS
    found: Places = (keys - (own << BITS)) + (ranks[own] << BITS)
    return found


class Pairs(NamedTuple):
    """The log ratios of two sides, in the order of blocks, and the key of each block."""

    hosts: tuple[str, ...]
    block_keys: Places
    logs: Floats

    @property
    def blocks(self) -> list[Block]:
        return blocks_of(self.hosts, self.block_keys)


def paired(ours: BlockValues, theirs: BlockValues) -> Pairs:
    """Of the blocks in which both sides can stand in a ratio."""
    hosts = ours.hosts if ours.hosts == theirs.hosts else tuple(sorted({*ours.hosts, *theirs.hosts}))
    ours, theirs = ours.within(hosts), theirs.within(hosts)
    keys, left, right = np.intersect1d(
        ours.block_keys[ours.usable],
        theirs.block_keys[theirs.usable],
        assume_unique=True,
        return_indices=True,
    )
    return Pairs(hosts, keys, ours.logs[ours.usable][left] - theirs.logs[theirs.usable][right])
