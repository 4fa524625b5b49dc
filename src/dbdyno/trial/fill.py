"""The stage that fills the caches of an index before anything is timed.

An index of vectors is searched through a cache of its graph, which fills with the first searches. So all
queries are asked, pass after pass, until a pass misses no less than the one before it. That is decided by the
server's own counter and by nothing else, so all variants are treated alike.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from dbdyno.driver.job import Closed
from dbdyno.errors import DynoError
from dbdyno.layers.setup import Running, Setup
from dbdyno.records.load_words import by_kind
from dbdyno.records.record import Filled

PASSES_MOST = 10
LONGEST_S = 300.0
"""What all passes take together at most."""
BETWEEN_READINGS_S, READINGS_MOST = 0.5, 10
"""Some servers publish late what they counted: PostgreSQL's back ends do so once a second, and when they
end."""
LESS_SHARE, LESS_PER_QUERY = 0.05, 0.5
"""A pass that misses less by no more than the larger of the two misses no less: the rest is chance."""


def has_passes(setup: Setup) -> bool:
    """Whether the load asks a set of queries, of an engine that can say what its caches miss. The server is
    not asked."""
    return bool(setup.job.options.get("dataset") and setup.engine.counters.CACHE_MISSES)


def fill(running: Running, clock: Callable[[], float] = time.monotonic) -> Filled | None:
    """Asks all queries, pass after pass, until the caches stand, or for as long as is allowed. None where
    this version of the server does not say what its caches miss. Raises DynoError where no query of a pass
    succeeded."""
    job, counter = running.setup.job, running.setup.engine.counters.CACHE_MISSES
    if counter not in running.status():
        return None
    # Here, because other loads search no vectors.
    from dbdyno.datasets.vectors import open_vector_set

    queries = open_vector_set(Path(str(job.options["dataset"]))).queries
    # It writes nothing, because every trial begins with the same rows.
    asking = {**job.options, "write_share": 0.0, "score_share": 0.0}
    one_pass = job.but(
        options=asking, load=Closed(), ramp_s=0.0, warmup_s=0.0, slices=None, settle_s=0.0, operations=queries
    )
    over, misses, errors = clock() + LONGEST_S, list[float](), Counter[str]()
    before = published(running, counter)
    while len(misses) < PASSES_MOST and not stands(misses) and (left_s := over - clock()) > 0.0:
        tally = running.load.run(one_pass.but(duration_s=left_s))
        errors.update(tally.errors)
        if tally.interrupted or clock() > over:
            # What is left of a pass was cut off: it cannot be compared with a whole one.
            break
        if tally.operations == 0:
            why = by_kind(errors) or "none was answered"
            raise DynoError(f"no query succeeded while the caches were filled: {why}")
        after = published(running, counter)
        # Queries that failed were asked as well.
        misses.append((after - before) / queries)
        before = after
    return Filled(
        counter=counter, queries=queries, per_query=tuple(misses), stands=stands(misses), errors=dict(errors)
    )


def published(running: Running, counter: str) -> float:
    """The counter once two readings in a row are the same, or the last of `READINGS_MOST`."""
    before = running.status()[counter]
    for _ in range(READINGS_MOST - 1):
        time.sleep(BETWEEN_READINGS_S)
        after = running.status()[counter]
        if after == before:
            break
        before = after
    return before


def stands(misses: Sequence[float]) -> bool:
    """Whether the last pass missed no less than the one before it."""
    if len(misses) < 2:
        return False
    before, last = misses[-2:]
    return before - last <= max(LESS_SHARE * before, LESS_PER_QUERY)
