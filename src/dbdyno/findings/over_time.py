"""What happened when: the errors of a run, and its load, its servers and its host second by second, with all
variants in one frame and the blocks one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from dbdyno.analyse.model import Analysis
from dbdyno.driver.tally import Second, Tally
from dbdyno.records.record import Observation, Record
from dbdyno.records.run import Run
from dbdyno.report.document import (
    Column,
    ColumnKind,
    Detail,
    Element,
    Figure,
    Notes,
    Row,
    Section,
    Table,
    table,
)
from dbdyno.report.words import naming, numbers
from dbdyno.report.words.verdicts import ranked_variants

VARIANTS_MOST = 8
"""In one frame: more lines than that nobody tells apart."""
POINTS_MOST = 300
"""Over all blocks; of more seconds the means of several are drawn."""

ERROR_HEADS = ("variant", "error", "how often", "in trials", "when", "what the first one said")
ERROR_KINDS = {"error": ColumnKind.CODE, "when": ColumnKind.TEXT, "what the first one said": ColumnKind.TEXT}
STATEMENT_HEADS = ("variant", "statement", "errors", "of answers")
ERRORS = (
    "Errors of the measured part, those that were tried again included. When: seconds of the measured part"
    " with errors of any kind."
)
STATEMENTS_MOST = 20
SECONDS_SHOWN = 4


@dataclass
class _Errors:
    """What went wrong in all trials of a variant."""

    count: Counter[str] = field(default_factory=Counter)
    trials: Counter[str] = field(default_factory=Counter)
    said: dict[str, str] = field(default_factory=dict)
    seconds: Counter[int] = field(default_factory=Counter)
    by_statement: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)

    def add(self, tally: Tally) -> None:
        """Takes up one trial."""
        for kind, count in tally.errors.items():
            self.count[kind] += count
            self.trials[kind] += 1
            self.said.setdefault(kind, " ".join(tally.error_examples.get(kind, "").split()))
        for point in tally.series:
            if point.errors and point.phase == "measured":
                self.seconds[point.second] += point.errors
        for text, statement in tally.by_statement.items():
            if statement.errors:
                self.by_statement[text] += statement.errors
                self.answers[text] += statement.latency_us.count


def error_sections(analysis: Analysis) -> Iterator[Section]:
    """A row for each error of each variant, and for each statement that failed where these were told apart;
    nothing where none failed."""
    errors: dict[str, _Errors] = {}
    for trial in analysis.trials:
        tally = trial.record.tally
        if tally is not None and tally.errors:
            errors.setdefault(trial.record.variant, _Errors()).add(tally)
    if errors:
        yield Section("Errors", (*_errors(analysis, errors),), detail=Detail.DETAILS)


def _errors(analysis: Analysis, errors: Mapping[str, _Errors]) -> Iterator[Element]:
    name = naming.told_apart(analysis)
    rows = [
        (
            name.get(variant, variant),
            kind,
            f"{count:,}",
            str(found.trials[kind]),
            _when(found.seconds),
            found.said[kind],
        )
        for variant, found in errors.items()
        for kind, count in found.count.most_common()
    ]
    yield table(ERROR_HEADS, rows, ERROR_KINDS, dense=True)
    statements = [
        (name.get(variant, variant), text, f"{count:,}", numbers.coarse_text(count / found.answers[text]))
        for variant, found in errors.items()
        for text, count in found.by_statement.most_common(STATEMENTS_MOST)
    ]
    if statements:
        yield table(STATEMENT_HEADS, statements, {"statement": ColumnKind.CODE}, dense=True)
    yield Notes((ERRORS,))


def _when(seconds: Counter[int]) -> str:
    """The seconds with errors: each where there are few, else how many there are and the worst of them."""
    if not seconds:
        return "not known"
    if len(seconds) <= SECONDS_SHOWN:
        return f"second {', '.join(map(str, sorted(seconds)))}"
    [(worst, _)] = seconds.most_common(1)
    return f"{len(seconds)} seconds, {min(seconds)} to {max(seconds)}; most in {worst}"


Values = Sequence[float | None]
Read = Callable[[Record, int], Values]
"""A value for each of so many whole seconds of a trial's measured part."""


@dataclass(frozen=True)
class Panel:
    """One quantity over the seconds: what it is with its unit, and how it is read. `log` where values differ
    by orders of magnitude."""

    title: str
    read: Read
    log: bool = False


def _of_load(read: Callable[[Second], float]) -> Read:
    def values(record: Record, count: int) -> Values:
        tally = record.tally
        known = {one.second: read(one) for one in tally.series} if tally is not None else {}
        return [known.get(second) for second in range(count)]

    return values


def _counted(read: Callable[[Second], float]) -> Read:
    """Of what is none where a second has no entry."""
    of_load = _of_load(read)
    return lambda record, count: [value or 0.0 for value in of_load(record, count)]


def _seen(make: Callable[[Observation, int], float], *names: str) -> Read:
    """What is made of series of the observer; nothing where a name is missing."""

    def values(record: Record, count: int) -> Values:
        seen = record.observation
        if seen is None or not all(name in seen.series for name in names):
            return []
        most = min(count, *(len(seen.series[name]) for name in names))
        return [make(seen, second) for second in range(most)]

    return values


def _series(name: str, times: float = 1.0) -> Read:
    return _seen(lambda seen, second: seen.series[name][second] * times, name)


def _sum(*names: str, times: float = 1.0) -> Read:
    return _seen(lambda seen, second: sum(seen.series[name][second] for name in names) * times, *names)


def _disk_latency_ms(seen: Observation, second: int) -> float:
    asked = seen.series["disk_reads"][second] + seen.series["disk_writes"][second]
    return 1e3 * seen.series["disk_wait_s"][second] / asked if asked else 0.0


def _server_cpu(record: Record, count: int) -> Values:
    return _series("server_cpu_s")(record, count) or _series("process_cpu_s")(record, count)


MIB = 1.0 / (1 << 20)
LOAD = (
    Panel("throughput, per s", _counted(lambda one: one.operations)),
    Panel("median latency, ms", _of_load(lambda one: one.p50_us / 1e3)),
    Panel("99th percentile latency, ms", _of_load(lambda one: one.p99_us / 1e3), log=True),
    Panel("errors, per s", _counted(lambda one: one.errors)),
)
SERVER = (
    Panel("server CPU (of an embedded engine with the driver’s), CPUs", _server_cpu),
    Panel("server’s memory, MiB", _series("resident_bytes", MIB)),
    Panel("server reads from storage, MiB per s", _series("read_bytes", MIB)),
    Panel("server writes to storage, MiB per s", _series("written_bytes", MIB)),
    Panel("transactions not applied by the replica furthest behind", _series("transactions_behind")),
    Panel("log not replayed by the standby furthest behind, MiB", _series("replay_lag_bytes", MIB)),
    Panel("write sets not applied by the node furthest behind", _series("receive_queue")),
)
HOST = (
    Panel("CPU of all processes, CPUs", _series("host_busy_s")),
    Panel("steal, CPUs", _series("steal_s")),
    Panel("threads that run or wait for a CPU", _series("runnable")),
    Panel("disk, requests per s", _sum("disk_reads", "disk_writes")),
    Panel("disk, latency in ms", _seen(_disk_latency_ms, "disk_reads", "disk_writes", "disk_wait_s")),
    Panel("disk, requests in the queue", _series("disk_queue_s")),
    Panel(
        "network without loopback, MiB per s", _sum("network_received_bytes", "network_sent_bytes", times=MIB)
    ),
)

FRAME = "Second by second, a line per variant, the {group}s one after the other between the upright lines."
BLOCKS = (
    "Lines of one block are of one time of the day, though not of one second where trials follow one another."
)
COST = "The engine is asked once a second, in all trials alike, by a session of Dyno’s own."
WAITS = (
    "How many sessions were at it on average, by what the engine said every two seconds of those that were"
    " not idle. It is a sample: what is rare may be missing."
)
WAITS_MOST = 8


def sections(analysis: Analysis) -> Iterator[Section]:
    """The load, what the server said of itself, and what the host did."""
    if not any(one.response is not None for one in analysis.variants):
        return
    frame = _Frame(analysis)
    titles = _titles(analysis)
    own = (*SERVER, *map(_of_engine, titles))
    asked = (*_waits(frame), Notes((COST,))) if titles else ()
    for title, key, panels, more in (
        ("Over time", "load", LOAD, ()),
        ("The server over time", "server", own, asked),
        ("The host over time", "host", HOST, ()),
    ):
        figures = (
            Figure("dbdyno.findings.over_time:drawn", (frame, panel, place == 0), f"{key}-{place}")
            for place, panel in enumerate(panels)
        )
        aside = _frame_text(analysis.run) if panels is LOAD else ""
        yield Section(title, (*figures, *more), aside=aside, detail=Detail.PAGE)


def _frame_text(run: Run) -> str:
    told = FRAME.format(group=naming.group_text(run) or "repetition")
    return told if run.of_logs else f"{told} {BLOCKS}"


@dataclass
class _Frame:
    """What all figures of a run share. It is read when the first of them is drawn."""

    analysis: Analysis

    @cached_property
    def names(self) -> dict[str, str]:
        """What the variants are called that are drawn: the baseline and those with the largest effects."""
        variants = (self.analysis.baseline, *ranked_variants(self.analysis))
        shown = [one.name for one in variants if one.response is not None]
        called = naming.called(self.analysis)
        return {name: called[name] for name in shown[:VARIANTS_MOST]}

    @cached_property
    def records(self) -> list[Record]:
        """The trials that are drawn."""
        return [
            trial.record
            for trial in self.analysis.trials
            if trial.response is not None and trial.record.variant in self.names
        ]

    @cached_property
    def blocks(self) -> dict[int, int]:
        """The place of each block on the axis."""
        return {block: place for place, block in enumerate(sorted({one.block for one in self.records}))}

    @cached_property
    def seconds(self) -> int:
        """How long a block is on the axis; 0 where no trial was counted by seconds."""
        tallies = (one.tally for one in self.records)
        return max((int(one.duration_s) for one in tallies if one is not None and one.series), default=0)

    @cached_property
    def width(self) -> int:
        """How many seconds are put together into a point."""
        return max(1, -(-self.seconds * len(self.blocks) // POINTS_MOST))


def drawn(frame: _Frame, panel: Panel, legend: bool) -> dict[str, Any] | None:
    """One panel as a specification for Vega; None where it has nothing to show."""
    rows = _rows(panel, frame) if frame.seconds else []
    if not any(value for row in rows for value in row["value"]):
        return None
    # Here, because a page alone has figures.
    from dbdyno.report.figures import over_time

    borders = [place * frame.seconds for place in range(1, len(frame.blocks))]
    return over_time.frame(panel.title, rows, [*frame.names.values()], borders, panel.log, legend)


def _rows(panel: Panel, frame: _Frame) -> list[dict[str, Any]]:
    """A row per trial: its points, at the seconds that its block has on the axis."""
    rows = list[dict[str, Any]]()
    for record in frame.records:
        values = panel.read(record, frame.seconds)
        begins = frame.blocks[record.block] * frame.seconds
        starts = range(0, len(values), frame.width)
        points = [_mean(values[start : start + frame.width]) for start in starts]
        rows.append(
            {
                "variant": frame.names[record.variant],
                "block": record.block + 1,
                "second": [begins + start for start in starts],
                "value": points,
            }
        )
    return rows


def _mean(values: Values) -> float | None:
    known = [value for value in values if value is not None]
    return float(f"{sum(known) / len(known):.4g}") if known else None


TRIALS_LOOKED_AT = 20
"""All trials are asked alike, so that the first ones tell what the engine counts."""


def _titles(analysis: Analysis) -> list[str]:
    """What the engines counted second by second."""
    seen = (trial.record.observation for trial in islice(analysis.trials, TRIALS_LOOKED_AT))
    return list(dict.fromkeys(title for one in seen if one is not None for title in one.engine_series))


def _of_engine(title: str) -> Panel:
    def values(record: Record, count: int) -> Values:
        seen = record.observation
        return [] if seen is None else list(seen.engine_series.get(title, ()))[:count]

    return Panel(f"{title}, per s", values)


def _waits(frame: _Frame) -> Iterator[Element]:
    """What sessions waited for, the most first; nothing where nobody was asked."""
    summed: dict[str, Counter[str]] = {}
    trials: Counter[str] = Counter()
    for record in frame.records:
        seen = record.observation
        if seen is not None and seen.waits:
            trials[record.variant] += 1
            summed.setdefault(record.variant, Counter()).update(seen.waits)
    rows: list[Row] = [
        (frame.names[variant], event, f"{count / trials[variant]:.2f}")
        for variant, events in summed.items()
        for event, count in events.most_common(WAITS_MOST)
    ]
    if rows:
        columns = (
            Column("variant", ColumnKind.NAME),
            Column("waits for", ColumnKind.CODE),
            Column("sessions"),
        )
        yield Table(columns, tuple(rows), dense=True)
        yield Notes((WAITS,))
