"""Where the time of an operation goes that passes through an application: application, database, waiting.

The whole is the time of one client per operation without pauses, as in `split.py`. Each worker of the
application adds up by its own clock how long it was busy with requests, and how long of that it waited for
the database's answers. Database is that wait: it holds whatever the database waits for itself, its disk and
its locks. Application is the rest of the workers' time, their waits for a CPU included. Waiting is what is
left of the whole: a client waits for a free worker, for the way there and back, and for the driver.

CPU times alone could not say this. A commit that waits for the disk takes none, and so a database that
becomes faster by waiting less would seem to be as slow as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.analyse import split
from dbdyno.analyse.columns import REQUESTS
from dbdyno.analyse.split import estimate
from dbdyno.analyse.times import RequestPart, RequestTimes
from dbdyno.records.record import Outcome, Record

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
        own = estimate(name, [parts[name] for parts in times.values()], confidence)
        more = [parts[name] - others[name] for parts, others in both]
        return RequestPart(us=own, more_us=estimate(name, more, confidence) if more else None)

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
