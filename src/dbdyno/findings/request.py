"""Where the time of a request goes: application, database and waiting, and what a variant changes of each.

Where the time of an operation goes that passes through an application: application, database, waiting.

The whole is the time of one client per operation without pauses, as in `split.py`. Each worker of the
application adds up by its own clock how long it was busy with requests, and how long of that it waited for
the database's answers. Database is that wait: it holds whatever the database waits for itself, its disk and
its locks. Application is the rest of the workers' time, their waits for a CPU included. Waiting is what is
left of the whole: a client waits for a free worker, for the way there and back, and for the driver.

CPU times alone could not say this. A commit that waits for the disk takes none, and so a database that
becomes faster by waiting less would seem to be as slow as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dbdyno.analyse import split
from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.columns import HAS_REQUESTS, REQUESTS
from dbdyno.analyse.found import Estimate, RequestPart, RequestTimes
from dbdyno.analyse.split import estimated_mean
from dbdyno.findings.split import with_half
from dbdyno.records.metrics import number_text
from dbdyno.records.record import Outcome, Record
from dbdyno.report.document import Detail, Element, Figure, From, Lines, Notes, Section, Table, table
from dbdyno.report.words import numbers

WHOLE, APPLICATION, DATABASE, WAITING = "whole", "application", "database", "waiting"
PARTS = (APPLICATION, DATABASE, WAITING)
BUSY, OF_DATABASE = "application_busy_s", "application_database_s"

Microseconds = Mapping[str, float]


def request_times(records: Sequence[Record], baseline: str, confidence: float) -> tuple[RequestTimes, ...]:
    """One per variant that has measured trials whose workers told their time, in the order of the records;
    none where no application took the load."""
    by_variant: dict[str, list[Record]] = {}
    for record in records:
        if record.outcome is Outcome.MEASURED and microseconds(record) is not None:
            by_variant.setdefault(record.variant, []).append(record)
    beside = _by_block(by_variant.get(baseline, []))
    return tuple(
        _times(name, trials, {} if name == baseline else beside, confidence)
        for name, trials in by_variant.items()
    )


def microseconds(record: Record) -> Microseconds | None:
    """One trial's whole and parts, in microseconds per operation; None where the workers told nothing."""
    observation, tally = record.observation, record.tally
    if observation is None or tally is None:
        return None
    if any(name not in observation.totals for name in (REQUESTS, BUSY, OF_DATABASE)):
        return None
    of_client = split.microseconds(record)
    if of_client is None:
        return None
    whole = of_client[split.WHOLE] - of_client[split.PAUSE]
    busy, database = (1e6 * observation.totals[name] / tally.work for name in (BUSY, OF_DATABASE))
    return {WHOLE: whole, APPLICATION: busy - database, DATABASE: database, WAITING: whole - busy}


def _times(
    variant: str, trials: Sequence[Record], beside: Mapping[int, Microseconds], confidence: float
) -> RequestTimes:
    """Of one variant, beside the baseline's blocks."""
    times = _by_block(trials)
    both = [(parts, beside[block]) for block, parts in times.items() if block in beside]

    def part(name: str) -> RequestPart:
        own = estimated_mean(name, [parts[name] for parts in times.values()], confidence)
        more = [parts[name] - others[name] for parts, others in both]
        return RequestPart(us=own, more_us=estimated_mean(name, more, confidence) if more else None)

    tallies = [one.tally for one in trials if one.tally]
    operations, errors = (
        sum(tally.work for tally in tallies),
        sum(sum(tally.errors.values()) for tally in tallies),
    )
    requests = sum(one.observation.totals[REQUESTS] for one in trials if one.observation)
    return RequestTimes(
        variant=variant,
        trials=len(trials),
        requests_per_op=requests / operations,
        errors_per_op=errors / operations,
        whole=part(WHOLE),
        parts=tuple(map(part, PARTS)),
    )


def _by_block(trials: Sequence[Record]) -> dict[int, Microseconds]:
    found = {record.block: microseconds(record) for record in trials}
    return {block: parts for block, parts in found.items() if parts is not None}


TITLE = "Where the time of a request goes"
WORDS = {APPLICATION: "application", DATABASE: "database", WAITING: "waiting"}
SUBJECTS = {DATABASE: "the database", APPLICATION: "the application", WAITING: "waiting"}
"""In the order of a sentence: first what a study varies."""
NOTE = (
    "Each worker of the application tells by its own clock how long it was busy with requests, and how long "
    "of that it waited for the database's answers: that is the database's part, with its disk, its locks and "
    "its waits for a CPU. The application's part is the rest of the workers' time, with its own waits for a "
    "CPU. Waiting is what is left of a client's time: for a free worker, on the way, and in the driver. "
    "Means over trials; changes are those of the same block. ±: half the interval, each by itself."
)
SENTENCES_MOST = 6
"""Variants whose changes a terminal tells; the page has room for more."""


def find(basis: Basis) -> tuple[RequestTimes, ...]:
    """Of each variant whose trials passed through an application."""
    return request_times(basis.whole(HAS_REQUESTS), basis.baseline, basis.confidence)


def sections(times: Sequence[RequestTimes]) -> Iterator[Section]:
    """The sentence, a row per variant, and what variants change; nothing without an application."""
    if times:
        yield Section(TITLE, (*_body(times),), aside=title(times))


def _body(times: Sequence[RequestTimes]) -> Iterator[Element]:
    stacked = [(each.variant, [(WORDS[part.us.name], part.us.mean) for part in each.parts]) for each in times]
    yield Figure("dbdyno.report.figures.charts:request", (stacked,))
    yield _table(times)
    told = tuple(changes(times))
    further = numbers.plural(len(told) - SENTENCES_MOST, "further variant")
    more = (f"The page and Markdown tell the changes of {further}.",) if told[SENTENCES_MOST:] else ()
    first = Lines((*told[:SENTENCES_MOST], *more))
    yield From(Detail.TEXT, (Lines(told, bullets=True),) if told else (), (first,))
    yield Notes((note(times),))


def title(times: Sequence[RequestTimes]) -> str:
    """Where the first variant's time goes, and what its database could gain at most."""
    one = times[0]
    shares = {part.us.name: part for part in one.parts}
    told = ", ".join(
        f"{subject} {numbers.coarse_text(one.share(shares[name]))}" for name, subject in SUBJECTS.items()
    )
    application, database = (shares[name].us.mean for name in (APPLICATION, DATABASE))
    most = numbers.cost_text((application + database) / application)
    return (
        f"{one.variant}: an operation takes {number_text(one.whole.us.mean)} us; of these "
        f"{told}. With a database that took no time, its workers would do ×{most} as much."
    )


def changes(times: Sequence[RequestTimes]) -> list[str]:
    """For each variant that was measured beside the baseline, what it changes of each part."""
    return [_change(one, times[0]) for one in times if one.whole.more_us is not None]


def _change(one: RequestTimes, baseline: RequestTimes) -> str:
    own = {part.us.name: part for part in one.parts}
    others = {part.us.name: part for part in baseline.parts}
    clauses: list[str] = []
    untold: list[str] = []
    for name, subject in SUBJECTS.items():
        more = own[name].more_us
        if more is None or not _is_told(more):
            untold.append(f"of {subject}")
        else:
            part = numbers.coarse_text(abs(more.mean) / baseline.whole.us.mean)
            clauses.append(f"{subject} takes {_less(own[name], others[name])}, {part} of an operation")
    whole = one.whole.more_us
    if whole is not None and _is_told(whole):
        all_told = f"in all an operation takes {_less(one.whole, baseline.whole)}"
    else:
        all_told = "no change of the whole is told"
        untold = untold if clauses else []
    if untold:
        clauses.append(f"no change {' and '.join(untold)} is told")
    return f"{one.variant}: {'; '.join([*clauses, all_told])}."


def _is_told(more: Estimate) -> bool:
    """Whether the interval excludes that nothing changed; a single block has none."""
    return more.low is not None and more.high is not None and not more.low <= 0.0 <= more.high


def _less(part: RequestPart, other: RequestPart) -> str:
    """By how much a part differs from the baseline's: 30 % ±2 less."""
    more, mean = part.more_us, other.us.mean
    if more is None or more.high is None:
        return numbers.DASH
    half = numbers.half_text(100.0 * (more.high - more.mean) / mean)
    return f"{numbers.coarse_text(abs(more.mean) / mean)} ±{half} {'less' if more.mean < 0.0 else 'more'}"


def _table(times: Sequence[RequestTimes]) -> Table:
    """A row per variant: the whole, then each part in microseconds and as a share of the whole."""
    rows = [
        [
            one.variant,
            with_half(one.whole.us),
            *(f"{number_text(part.us.mean)} ({numbers.coarse_text(one.share(part))})" for part in one.parts),
        ]
        for one in times
    ]
    return table(["variant", "us/op", *(WORDS[name] for name in PARTS)], rows, dense=True)


def note(times: Sequence[RequestTimes]) -> str:
    """How the columns were made, and what is in them that one would not expect."""
    lines = [NOTE, f"Requests per operation: {_range([one.requests_per_op for one in times])}."]
    if any(one.errors_per_op > 0.0 for one in times):
        lines.append("Requests that failed take the workers' time as well, and are in it.")
    lines += [
        f"{one.variant}: the workers were busy for longer than clients waited. A request counts "
        "whole when it ends, though it began before the measured part, or nobody waits for it any more."
        for one in times
        if any(part.us.mean < 0.0 for part in one.parts)
    ]
    return " ".join(lines)


def _range(values: Sequence[float]) -> str:
    """The least and the greatest; once where they are written alike."""
    ends = dict.fromkeys(f"{value:.3g}" for value in (min(values), max(values)))
    return f" {numbers.DASH} ".join(ends)
