"""Where the time of an operation goes: as a table, and in the words for its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.found import Estimate, TimeSplit
from dbdyno.analyse.split import time_splits
from dbdyno.records.metrics import number_text
from dbdyno.report.document import Detail, Element, Figure, From, Notes, Section, Table, table
from dbdyno.report.words import numbers

PARTS = {
    "application_user": "in front, user",
    "application_system": "in front, kernel",
    "application_wait": "in front, waits for a CPU",
    "server_user": "server, user",
    "server_system": "server, kernel",
    "server_wait": "server waits for a CPU",
    "driver": "driver",
    "driver_wait": "driver waits for a CPU",
    "pause": "the client pauses (think and keying times)",
    "remainder": "the rest",
}
SHORT = {
    "application_user": "front",
    "application_system": "front kernel",
    "application_wait": "front wait",
    "server_user": "user",
    "server_system": "kernel",
    "server_wait": "CPU wait",
    "driver": "driver",
    "driver_wait": "its wait",
    "pause": "pause",
    "remainder": "rest",
}
HARDWARE = {
    "instructions_per_cycle": "instructions per cycle",
    "stalled_frontend_share": "cycles stalled at the front end",
    "stalled_backend_share": "cycles stalled at the back end",
    "cycles_per_op": "cycles",
    "instructions_per_op": "instructions",
    "cache_misses_per_op": "cache misses",
    "dtlb_load_misses_per_op": "data TLB misses",
    "gigahertz": "GHz while on a CPU",
}
GRAIN = 0.02
"""Parts beyond the whole by less than this are the grain of the kernel's CPU clock (ticks of 10 ms)."""


def find(basis: Basis) -> tuple[TimeSplit, ...]:
    """Of each variant that was observed."""
    return time_splits(basis.columns, basis.shown, basis.confidence)


def sections(splits: Sequence[TimeSplit]) -> Iterator[Section]:
    """The sentence, a row per variant, and the facts beside it."""
    if splits:
        yield Section("Where the time goes", (*_body(splits),), aside=title(splits), detail=Detail.DETAILS)


def _body(splits: Sequence[TimeSplit]) -> Iterator[Element]:
    stacked = [(each.variant, [(PARTS[part.name], part.mean) for part in each.parts]) for each in splits]
    yield Figure("dbdyno.report.figures.charts:split", (stacked,))
    long, short = (_table(splits, words) for words in (PARTS, SHORT))
    yield From(Detail.TEXT, (long,), (short,))
    counted_heads, lines = facts(splits)
    if lines:
        counted = table(counted_heads, lines, dense=True)
        yield counted if len(splits) <= FACTS_MOST else From(Detail.TEXT, (counted,))
    yield Notes((note(splits),))


def title(splits: Sequence[TimeSplit]) -> str:
    """The slowest variant's largest part, in a sentence; the two largest where they are not told apart."""
    slow = max(splits, key=lambda split: split.whole.mean)
    largest, *others = sorted(slow.parts, key=lambda part: part.mean, reverse=True)
    whole = f"{slow.variant} takes {number_text(slow.whole.mean)} us per operation"
    if not others or _told_apart(largest, others[0]):
        share = numbers.coarse_text(slow.share(largest))
        return f"{whole}. The largest part is {PARTS[largest.name]}: {share}."
    one, other = (
        f"{PARTS[part.name]} ({numbers.coarse_text(slow.share(part))})" for part in (largest, others[0])
    )
    return f"{whole}. The data cannot say which part is larger: {one} or {other}."


def _told_apart(larger: Estimate, smaller: Estimate) -> bool:
    """Whether the intervals do not overlap; a single trial has none."""
    return larger.low is not None and smaller.high is not None and larger.low > smaller.high


def note(splits: Sequence[TimeSplit]) -> str:
    """How the columns were made, and what is assumed."""
    missing = dict.fromkeys(PARTS[name] for split in splits for name in split.missing)
    lines = [
        "Means over trials; ±: half the interval, each by itself. The whole is clients x duration / "
        "operations (open loop: the mean latency).",
        "An operation is assumed to be served by one thread at a time. The CPU time of background threads "
        "counts as well.",
        "The rest is what no clock saw: disk, locks, network, or the driver's thread being at other clients.",
    ]
    if missing:
        lines.append(f"Not measured here, and so part of the rest: {', '.join(missing)}.")
    return " ".join([*lines, *_uncounted(splits), *beyond(splits)])


def _uncounted(splits: Sequence[TimeSplit]) -> list[str]:
    """A sentence for each reason why counters of the CPU have no figure."""
    by_reason: dict[str, dict[str, None]] = {}
    for split in splits:
        for name, reason in split.uncounted.items():
            by_reason.setdefault(reason, {})[name.replace("_", " ")] = None
    return [f"Not counted: {', '.join(names)} ({reason})." for reason, names in by_reason.items()]


def beyond(splits: Sequence[TimeSplit]) -> list[str]:
    """A line for each variant whose parts come to more than the whole."""
    lines = []
    for split in splits:
        if split.beyond_us > 0.0:
            share = split.beyond_us / split.whole.mean
            name = split.variant
            lines.append(
                f"{name}: the parts come to {numbers.coarse_text(share)} more than the whole, "
                f"{_why_beyond(share)}"
            )
    return lines


def _why_beyond(share: float) -> str:
    if share < GRAIN:
        return "the grain of the CPU clock."
    return (
        "so parts of it ran at the same time (background threads, or driver and server at once). There is no "
        "rest to show."
    )


def _table(splits: Sequence[TimeSplit], words: Mapping[str, str]) -> Table:
    """A row per variant: the whole in microseconds, then each part's share with its interval."""
    rows = [
        [
            split.variant,
            with_half(split.whole),
            *(_share(split, name) for name in _parts(splits)),
        ]
        for split in splits
    ]
    return table(["variant", "us/op", *(words[name] for name in _parts(splits))], rows, dense=True)


def facts(splits: Sequence[TimeSplit]) -> tuple[list[str], list[list[str]]]:
    """What the CPU's counters and the engine itself say, per operation: heads, and a row per fact."""
    names = dict.fromkeys(fact.name for split in splits for fact in (*split.hardware, *split.engine))
    lines = [
        [HARDWARE.get(name, name), *(_fact(split, name) for split in splits)] for name in names
    ]  # fmt: skip
    return ["per operation", *(split.variant for split in splits)], lines


FACTS_MOST = 4
"""Setups whose facts stand beside each other on a terminal; the page has room for more."""


def _parts(splits: Sequence[TimeSplit]) -> list[str]:
    present = {part.name for split in splits for part in split.parts}
    return [name for name in PARTS if name in present]


def _share(split: TimeSplit, name: str) -> str:
    part = next((part for part in split.parts if part.name == name), None)
    if part is None:
        return numbers.DASH
    text = numbers.coarse_text(split.share(part))
    if part.high is None:
        return text
    return f"{text} ±{numbers.half_text(100.0 * (part.high - part.mean) / split.whole.mean)}"


def _fact(split: TimeSplit, name: str) -> str:
    fact = next((fact for fact in (*split.hardware, *split.engine) if fact.name == name), None)
    if fact is None:
        return numbers.DASH
    return numbers.coarse_text(fact.mean) if name.endswith("_share") else with_half(fact)


def with_half(fact: Estimate) -> str:
    """A mean with half of its interval: 431.2 ±5.1."""
    text = number_text(fact.mean)
    return text if fact.high is None else f"{text} ±{numbers.half_text(fact.high - fact.mean)}"
