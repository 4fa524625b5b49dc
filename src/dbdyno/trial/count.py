"""The stage that counts what a server executes, in place of the one that measures its speed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.driver.job import Closed
from dbdyno.driver.tally import Acknowledged
from dbdyno.errors import DynoError, UserError
from dbdyno.host.callgrind import part_of, plus, wholes
from dbdyno.records.record import INSTRUCTIONS, Counted, CountedFunction

if TYPE_CHECKING:
    from dbdyno.driver.job import Job
    from dbdyno.driver.tally import Tally
    from dbdyno.host.callgrind import CalledFunction, Callgrind, CallgrindDump, Counts, Share
    from dbdyno.layers.setup import Running
    from dbdyno.study import Study

WARMUP_OPERATIONS = 500
OPERATIONS = 1000
REPEATS = 3
"""Each repeat counts `OPERATIONS` transactions of one client. The one with the median count is kept: work
that a server does now and then by itself falls into one of them."""
LONGEST_S = 450.0
"""What a repeat takes at most: what it has done by then is counted."""
LEAST_SHARE = 1e-4
"""A function with less than this share of the instructions is left out of the record."""


ONE_CLIENT = ("clients", "threads", "rate_per_s", "arrivals", "schedule", "think_time")
"""What a counted load does not have: one client sends one transaction after the other."""


def require_countable(study: Study) -> None:
    """Raises UserError for a study whose variants would all be the same when they are counted."""
    for factor in study.factors:
        if factor.layer == "workload" and factor.knob in ONE_CLIENT:
            raise UserError(
                f"{factor.name} does not show in counted work, which is of one client at full speed",
                "measure times: choose another response, or profile without --counted",
            )


def count(running: Running, callgrind: Callgrind) -> Running:
    """Counts transactions of one client, drawn from the job's seed. Raises DynoError where nothing ran."""
    before = running.status()
    tallies = [_run(running, WARMUP_OPERATIONS, -1)]
    found: list[Counted] = []
    for repeat in range(REPEATS):
        with callgrind.counting(running.process_ids[0]):
            tallies.append(_run(running, OPERATIONS, repeat))
        found.append(_counted(running, callgrind.dumps(), tallies[-1].operations))
    counts = [one.per_op[INSTRUCTIONS] for one in found]
    kept = found[counts.index(statistics.median_low(counts))]
    return replace(
        running,
        tally=tallies[-1],
        told=running.told_so_far.plus(Acknowledged.by(tallies[:-1])),
        counted=kept.but(repeats=tuple(counts)),
        status_before=before,
        status_after=running.status(),
    )


def _run(running: Running, operations: int, repeat: int) -> Tally:
    tally = running.load.run(counted_job(running.setup.job, operations, repeat))
    if tally.operations == 0:
        raise DynoError(f"no transaction succeeded under Valgrind: {tally.errors or 'none was answered'}")
    # A driver that has no time left says nothing here: no time is measured.
    return tally.but(saturated=None)


def counted_job(job: Job, operations: int, repeat: int) -> Job:
    """The job as it is counted: so many transactions of one client, one after the other.

    Each repeat draws anew, because what was deleted is not there to be deleted once more.
    """
    return job.but(
        clients=1,
        threads=1,
        load=Closed(),
        ramp_s=0.0,
        warmup_s=0.0,
        duration_s=LONGEST_S,
        operations=operations,
        seed=(job.seed * (REPEATS + 1) + repeat + 1) % 2**64,
        connect_timeout_s=60.0,
    )


def _counted(running: Running, dumps: Sequence[CallgrindDump], operations: int) -> Counted:
    engine = running.setup.engine
    if engine.embedded:
        owned = {
            one for dump in dumps for one in dump.own if engine.under_valgrind.owns(one.file, one.object)
        }
        own = _sum([part_of(dump, owned) for dump in dumps])
    else:
        own = _sum([dump.own for dump in dumps])
        owned = set(own)
    whole = _sum([dict(wholes(dump)) for dump in dumps])
    events = dumps[0].events
    totals: Counts = ()
    for counts in own.values():
        totals = plus(totals, counts)
    if not own:
        raise DynoError(f"callgrind saw no function of {engine.title} in the load process")
    return Counted(
        operations=operations,
        per_op={event: total / operations for event, total in zip(events, totals, strict=True)},
        functions=tuple(
            CountedFunction(
                name=function.name,
                module=function.object.rsplit("/", 1)[-1],
                own={event: one / operations for event, one in zip(events, counts, strict=False)},
                # What others do for an embedded engine counts with all that it calls already.
                whole=(whole if function in owned else own)[function][0] / operations,
            )
            for function, counts in sorted(own.items(), key=lambda item: (-item[1][0], item[0]))
            if counts[0] >= LEAST_SHARE * totals[0]
        ),
    )


def _sum(shares: Sequence[Share]) -> dict[CalledFunction, Counts]:
    total: dict[CalledFunction, Counts] = {}
    for share in shares:
        for function, counts in share.items():
            total[function] = plus(total.get(function, ()), counts)
    return total
