"""The columns of a run that is over, as they are kept: an analysis of them reads few records again.

`Keeping` makes them of records, a thousand at a time, so that a run of any length fits into memory. Its
arrays and its `Head` are what is kept. `KeptColumns` are those again, whoever has kept them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, overload

import numpy as np

from dbdyno.analyse.analysis import TRIALS_TOGETHER, AnalysisInput, results_of
from dbdyno.analyse.columns import (
    DOUBTS,
    HAS_PLANS,
    HAS_REPLAY,
    HAS_REQUESTS,
    HAS_STATEMENTS,
    HOST,
    OUTCOME,
    TRIAL,
    VARIANT,
    Columns,
    Distribution,
    Fact,
    Figures,
    Floats,
    Judge,
    OfRecords,
    Places,
    distribution_of,
    logs_of,
    merged_latencies,
)
from dbdyno.analyse.effects import HAS_CODE, IDLE
from dbdyno.analyse.estimate import FLEET_HOST, IMAGE, WAY
from dbdyno.analyse.found import ReadAgain
from dbdyno.analyse.latency import Histogram
from dbdyno.analyse.model import TrialResult
from dbdyno.analyse.museum import VIOLATED
from dbdyno.analyse.split import (
    HAS_VIEW,
    MICROSECONDS,
    OF_ENGINE,
    OF_HARDWARE,
    SECONDS,
    STAGES,
    TITLES,
    UNCOUNTED,
    WALL,
)
from dbdyno.frozen import Frozen
from dbdyno.records import metrics
from dbdyno.records.record import Doubt, Outcome, Record, leaves_out

FIGURES = (TRIAL, MICROSECONDS, OF_HARDWARE, OF_ENGINE, SECONDS, WALL)
FACTS = (
    HOST, VARIANT, OUTCOME, DOUBTS, HAS_PLANS, HAS_STATEMENTS, HAS_REPLAY, HAS_REQUESTS, HAS_CODE, IDLE,
    VIOLATED, WAY, HAS_VIEW, TITLES, STAGES, UNCOUNTED, IMAGE,
    FLEET_HOST,
)  # fmt: skip
METRIC, UNSETTLED = "metric", "unsettled"

Arrays = Mapping[str, Floats | Places]
"""By `figures/name`, `metric/name`, `fact` or `unsettled`."""
Read = Callable[[str], Floats | Places]
"""Reads one of these arrays."""
Reread = Callable[[Sequence[int]], Iterator[Record]]
"""Reads the records of some trials again, in their order."""


class KeptHistogram(Frozen):
    """The latencies of all `trials` of a variant that were measured. Without `values` one of them is none."""

    trials: int
    units: tuple[str, ...]
    values: tuple[int, ...] | None
    counts: tuple[int, ...]


class Head(Frozen):
    """What is kept beside the arrays: their `names`, the distinct values of each fact, the latencies of each
    variant, and the trials whose whole records an analysis is given."""

    trials: int
    names: tuple[str, ...]
    tables: dict[str, tuple[Any, ...]]
    latencies: dict[str, KeptHistogram]
    beside: tuple[int, ...]
    leave_out: tuple[int, ...]


class Keeping:
    """Makes columns of records that come in the order of their trials, each trial once."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Floats | Places]] = {}
        self._count = 0
        self._tables: dict[str, dict[Hashable, int]] = {fact.name: {} for fact in FACTS}
        self._latencies: dict[str, tuple[int, Distribution]] = {}
        self._beside: list[int] = []
        self._leave_out: list[int] = []

    def add_all(self, records: Iterable[Record]) -> Keeping:
        """Takes up records, not so many at a time that they fill memory."""
        each = iter(records)
        while some := list(islice(each, TRIALS_TOGETHER)):
            self._add(some)
        return self

    def _add(self, records: Sequence[Record]) -> None:
        whole = [record for record in records if record.whole]
        self._beside += [record.trial for record in whole if record.of_no_block]
        self._leave_out += [record.trial for record in records if leaves_out(record)]
        own = [record for record in whole if not record.of_no_block]
        if not own:
            return
        columns = OfRecords(own)
        for figures in FIGURES:
            for name, values in columns.figures(figures).items():
                self._put(f"{figures.name}/{name}", values)
        for name in metrics.METRICS:
            if not np.isnan(values := columns.metric(name)).all():
                self._put(f"{METRIC}/{name}", values)
        for fact in FACTS:
            self._put(fact.name, self._codes(fact, columns))
        results = results_of(own, next(iter(metrics.METRICS)))
        self._put(UNSETTLED, np.array([Doubt.NOT_SETTLED in one.warnings for one in results], dtype=np.int64))
        self._add_latencies(own)
        self._count += len(own)

    def _put(self, name: str, values: Floats | Places) -> None:
        parts = self._parts.setdefault(name, [])
        lacking = self._count - sum(map(len, parts))
        if lacking:
            parts.append(np.full(lacking, math.nan))
        parts.append(values)

    def _codes(self, fact: Fact, columns: Columns) -> Places:
        codes, table = columns.fact(fact)
        known = self._tables[fact.name]
        found: Places = np.array([known.setdefault(value, len(known)) for value in table])[codes]
        return found

    def _add_latencies(self, records: Sequence[Record]) -> None:
        by_variant: dict[str, list[Record]] = {}
        for record in records:
            if record.outcome is Outcome.MEASURED:
                by_variant.setdefault(record.variant, []).append(record)
        for variant, measured in by_variant.items():
            count, earlier = self._latencies.get(variant, (0, merged_latencies([])))
            found = merged_latencies([earlier, distribution_of(measured)])
            self._latencies[variant] = count + len(measured), found

    def arrays(self) -> Arrays:
        """All arrays, each of so many numbers as there are trials."""
        found: dict[str, Floats | Places] = {}
        for name in list(self._parts):
            self._put(name, np.zeros(0))
            joined: Any = np.concatenate(self._parts.pop(name))
            found[name] = joined
        return found

    def head(self) -> Head:
        """What stands beside the arrays. It is asked for before they are."""
        return Head(
            trials=self._count,
            names=tuple(self._parts),
            tables={name: tuple(table) for name, table in self._tables.items()},
            latencies={name: _kept(count, found) for name, (count, found) in self._latencies.items()},
            beside=tuple(self._beside),
            leave_out=tuple(self._leave_out),
        )


def _kept(trials: int, found: Distribution) -> KeptHistogram:
    units, sums = tuple(sorted(found.units)), found.histogram
    if sums is None:
        return KeptHistogram(trials=trials, units=units, values=None, counts=())
    return KeptHistogram(
        trials=trials, units=units, values=tuple(sums.values.tolist()), counts=tuple(sums.counts.tolist())
    )


def kept_input(head: Head, read: Read, reread: Reread) -> AnalysisInput:
    """What an analysis is given of a run whose columns were kept."""
    return AnalysisInput(
        columns=KeptColumns(head, read, reread),
        beside=list(reread(head.beside)),
        leave_out=list(reread(head.leave_out)),
    )


class KeptColumns(Columns):
    """Columns whose arrays are read when they are asked for. The results of trials are made of their records,
    which are read again."""

    def __init__(self, head: Head, read: Read, reread: Reread) -> None:
        self._head, self._read, self._reread = head, read, reread
        self._tables = {name: list(map(_hashable, table)) for name, table in head.tables.items()}
        self._known: dict[str, Floats | Places] = {}
        self._judge: Judge | None = None
        self._mixed: Mapping[int, str] = {}

    def __len__(self) -> int:
        return self._head.trials

    def judge(self, judge: Judge, mixed: Mapping[int, str]) -> None:
        self._judge, self._mixed = judge, mixed

    def results_of(self, places: Places) -> Sequence[TrialResult]:
        return Results(self, places)

    def made(self, places: Places) -> list[TrialResult]:
        """The results of these trials, all at once."""
        assert self._judge is not None  # an analysis says first how they are made
        return self._judge(list(self.records(places.tolist())))

    def metric(self, name: str) -> Floats:
        found: Floats = self._array(f"{METRIC}/{name}", keep=True)
        return found

    def logs(self, metric: str) -> Floats:
        key = f"logs of {metric}"
        if key not in self._known:
            self._known[key] = logs_of(self.metric(metric))
        found: Floats = self._array(key, keep=True)
        return found

    def figures(self, figures: Figures) -> Mapping[str, Floats]:
        start = f"{figures.name}/"
        names = [name for name in self._head.names if name.startswith(start)]
        keep = figures.name == TRIAL.name
        return {name.removeprefix(start): self._array(name, keep) for name in names}

    def fact(self, fact: Fact) -> tuple[Places, list[Any]]:
        return self._codes(fact.name), self._tables[fact.name]

    def _codes(self, name: str) -> Places:
        found: Places = self._array(name, keep=name in (HOST.name, VARIANT.name, OUTCOME.name))
        return found.astype(np.int64, copy=False)

    def _array(self, name: str, keep: bool) -> Any:
        if name in self._known:
            return self._known[name]
        found = self._read(name) if name in self._head.names else np.full(len(self), math.nan)
        if keep:
            self._known[name] = found
        return found

    def records(self, places: Iterable[int]) -> Iterator[Record]:
        chosen = np.fromiter(places, dtype=np.int64)
        return self._reread(self.trials(chosen).tolist())

    def distribution(self, places: Places) -> Distribution:
        codes, table = self.fact(VARIANT)
        found, counts = np.unique(codes[places], return_counts=True)
        kept = [self._head.latencies[table[code]] for code in found.tolist()]
        if [one.trials for one in kept] != counts.tolist():
            # Not all trials of a variant: nobody has summed these.
            return distribution_of(self.records(places.tolist()))
        return merged_latencies([_distribution(one) for one in kept])

    def warned(self, places: Places) -> dict[Doubt, int]:
        codes, table = self.fact(DOUBTS)
        unsettled = self._array(UNSETTLED, keep=False)[places] > 0
        found: dict[Doubt, int] = {}
        for doubt in Doubt:
            with_it = np.array([doubt.value in told for told in table], dtype=bool)
            seen = with_it[codes[places]] if len(places) else np.zeros(0, dtype=bool)
            if doubt is Doubt.NOT_SETTLED:
                seen = seen | unsettled
            if doubt is Doubt.MIXED_RESETS:
                seen = seen | np.isin(self.trials(places), list(self._mixed))
            if count := int(seen.sum()):
                found[doubt] = count
        return found


def _distribution(kept: KeptHistogram) -> Distribution:
    if kept.values is None:
        return Distribution(frozenset(kept.units), None)
    sums = Histogram(np.array(kept.values, dtype=np.int64), np.array(kept.counts, dtype=np.int64))
    return Distribution(frozenset(kept.units), sums)


def _hashable(value: Any) -> Any:
    """What JSON made a list of, as the tuple that it was."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


class Results(ReadAgain[TrialResult]):
    """The results of trials of kept columns. Those that follow one another are made together, and few of them
    are held."""

    def __init__(self, columns: KeptColumns, places: Places) -> None:
        self._columns, self._places = columns, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> TrialResult: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[TrialResult]: ...

    def __getitem__(self, index: int | slice) -> TrialResult | Sequence[TrialResult]:
        if isinstance(index, slice):
            return Results(self._columns, self._places[index])
        return self._columns.made(self._places[[index]])[0]

    def __iter__(self) -> Iterator[TrialResult]:
        for start in range(0, len(self), TRIALS_TOGETHER):
            yield from self._columns.made(self._places[start : start + TRIALS_TOGETHER])
