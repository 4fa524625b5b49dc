"""How long a search looks on: as long as the confirmation and the elimination keep the time they need."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from dbdyno.analyse.elimination import Candidate, needed, ranked
from dbdyno.records.record import Record
from dbdyno.records.run import SearchRun
from dbdyno.study import BASELINE, Study

NEW_EACH_BLOCK = 4
"""Candidates that a block of the search tries, beside the baseline and the best one so far."""
FINALISTS = 3
"""Candidates that are confirmed. Each more widens the intervals of all, and takes time from the search."""
CHANGES_LEFT = 4
"""About so many changes at most carry a gain: the elimination's first round takes the others away, and its
second one measures what is left."""


def looks_on(
    study: Study, run: SearchRun, records: Sequence[Record], candidates: Sequence[Candidate]
) -> bool:
    """Whether another block of the search fits into the run's time, with all that must follow it."""
    return whole_s(study, records, candidates) <= run.budget_s


def whole_s(study: Study, records: Sequence[Record], candidates: Sequence[Candidate]) -> float:
    """Seconds that the run takes in all where one more block of the search is its last. What seems no better
    than the baseline is not confirmed, so its changes are never taken back."""
    better = [one for one in ranked(candidates) if one.worth > 0.0]
    changes = max((one.changes for one in better[:FINALISTS]), default=0)
    left = 2 + NEW_EACH_BLOCK + trials_after(study, changes)
    return spent_s(records) + left * trial_s(records) + making_s(records)


def trials_after(study: Study, changes: int) -> int:
    """How many trials follow the search: those of the confirmation, of the elimination of so many changes,
    and of the winner's further starts, each beside the baseline."""
    confirming = 1 + FINALISTS + len(study.variants)
    first, second = 2 + changes, 3 + min(changes, CHANGES_LEFT)
    starts = 2 * max(0, needed(study, confirming - 1) - study.blocks)
    return study.blocks * (confirming + (first + second if changes > 1 else 0)) + starts


def has_time(run: SearchRun, records: Sequence[Record], trials: int) -> bool:
    """Whether so many trials fit into what is left of the run's time."""
    return spent_s(records) + trial_s(records) * trials <= run.budget_s


def least_s(study: Study, each_s: float) -> float:
    """The least time in which a search tries anything and confirms it, where a trial takes `each_s`."""
    return each_s * (1 + 1 + NEW_EACH_BLOCK + trials_after(study, 0))


def spent_s(records: Sequence[Record]) -> float:
    """Seconds that all trials took. The time between two parts of a run that was resumed is in none of
    them."""
    return sum(record.took_s for record in records)


def trial_s(records: Sequence[Record]) -> float:
    """What a trial takes by the baseline's, because a candidate can be dropped after a few slices. The first
    one makes the data, so it does not count where there are others."""
    seen = [record.took_s for record in records if record.variant == BASELINE and record.block > 0]
    return median(seen or [spent_s(records)])


def making_s(records: Sequence[Record]) -> float:
    """What making the data took: the confirmation makes data of its own."""
    first = [record.took_s for record in records if record.block == 0]
    return max(0.0, sum(first) - trial_s(records))
