"""Where the time of a request goes: application, database and waiting, and what a variant changes of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.request import APPLICATION, DATABASE, PARTS, WAITING
from dbdyno.analyse.times import Estimate, RequestPart, RequestTimes
from dbdyno.records.metrics import number_text
from dbdyno.report.document import Detail, Element, Figure, From, Lines, Notes, Section, Table, table
from dbdyno.report.parts.split import with_half
from dbdyno.report.words import numbers

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


def sections(times: Sequence[RequestTimes]) -> Iterator[Section]:
    """The sentence, a row per variant, and what variants change; nothing without an application."""
    if times:
        yield Section(TITLE, (*_body(times),), aside=title(times))


def _body(times: Sequence[RequestTimes]) -> Iterator[Element]:
    yield Figure("request", (times,))
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
