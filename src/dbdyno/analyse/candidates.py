"""What the records of a search tell of its candidates.

A candidate is worth its log ratio to the baseline in the same block, turned so that more is better. A ratio
of one block is a guess: it serves to look on, and no verdict rests on it.

How often a start of a search's winner may be bad, from the starts that were seen.

A plan, a cache or a layout can come out worse by the luck of a start, so a winner that is faster on average
may be no faster in one start of ten. A start is bad where the server failed or broke something, or where it
was no faster than the baseline beside it. Starts of the confirmation and of what followed count. The winner
was chosen of several by some of them, so the limit holds for all of those together (Šidák).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from pydantic import Field

from dbdyno.analyse.quantiles import confidence_each
from dbdyno.frozen import Frozen, Level
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.study import BASELINE, Guard, Study
from dbdyno.study.builds import changed_levels
from dbdyno.study.trials import Purpose

if TYPE_CHECKING:
    from dbdyno.analyse.found import Starts

BROKEN, FAILED = -5.0, -10.0
"""The worth of a candidate that broke a guard, and of one without a speed: less than any ratio."""


CHANGE_WORTH = 0.005
"""Of two candidates that are as good as the other, the one with fewer changes leads: a change that is worth
less than half a per cent is not worth keeping for good."""
COSTS = ("p99_ms", "resident_bytes")
"""What can get worse as the response gets better: less of each is better."""


class Candidate(Frozen):
    """One of a search's variants. `log_ratios` are of the `blocks` in which it could be compared, and so are
    those of each metric of `costs`. A `cause` says why it has no speed that counts; it is not tried again."""

    name: str
    levels: dict[str, Level]
    changes: int = 0
    log_ratios: tuple[float, ...] = ()
    blocks: tuple[int, ...] = ()
    costs: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    worst: float = 0.0
    cause: str = ""

    @property
    def worth(self) -> float:
        """The mean log ratio; for one that failed a number below all of those."""
        if self.cause:
            return self.worst
        return fmean(self.log_ratios) if self.log_ratios else FAILED

    def standing(self, spread: float) -> float:
        """Its worth less one standard error, so that a single lucky block does not lead for long, and less
        what each of its `changes` has to be worth."""
        if self.cause or not self.log_ratios:
            return self.worth
        return self.worth - spread / math.sqrt(len(self.log_ratios)) - CHANGE_WORTH * self.changes


def of_purpose(records: Sequence[Record], purpose: Purpose) -> list[Record]:
    """The whole records of blocks for this purpose."""
    return [record for record in records if record.purpose is purpose and record.whole]


def took_s(records: Sequence[Record]) -> dict[Purpose, float]:
    """Seconds that the trials for each purpose took."""
    each = {purpose: of_purpose(records, purpose) for purpose in Purpose}
    return {purpose: sum(record.took_s for record in own) for purpose, own in each.items() if own}


def candidates_of(study: Study, records: Sequence[Record]) -> tuple[Candidate, ...]:
    """Every candidate that the search has tried, in the order of their first trials."""
    tried = sorted(of_purpose(records, Purpose.SEARCH), key=lambda record: record.trial)
    baselines = {record.block: record for record in tried if record.variant == BASELINE}
    found: dict[str, Candidate] = {}
    for record in tried:
        if record.variant == BASELINE:
            continue
        changes = len(changed_levels(record.levels, study.baseline))
        fresh = Candidate(name=record.variant, levels=record.levels, changes=changes)
        earlier = found.get(record.variant, fresh)
        found[record.variant] = _with(earlier, record, baselines.get(record.block), study)
    return tuple(found.values())


def spread_of(candidates: Sequence[Candidate]) -> float:
    """The standard deviation of log ratios from block to block, over the candidates that were in several; 0
    while there is none."""
    repeated = [one.log_ratios for one in candidates if len(one.log_ratios) > 1 and not one.cause]
    squares = sum((ratio - fmean(ratios)) ** 2 for ratios in repeated for ratio in ratios)
    freedom = sum(len(ratios) - 1 for ratios in repeated)
    return math.sqrt(squares / freedom) if freedom else 0.0


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those with a speed that counts, the best first."""
    spread = spread_of(candidates)
    sound = [one for one in candidates if one.log_ratios and not one.cause]
    return sorted(sound, key=lambda one: one.standing(spread), reverse=True)


def _with(candidate: Candidate, record: Record, baseline: Record | None, study: Study) -> Candidate:
    """The candidate with what one more trial of it tells."""
    if record.outcome is not Outcome.MEASURED:
        return _ended(candidate, record.cause or record.outcome.value, FAILED)
    if baseline is None or baseline.outcome is not Outcome.MEASURED:
        return candidate
    response = metrics.find(study.goal.response)
    ours, theirs = response.read(record), response.read(baseline)
    if ours is None or not ours > 0.0:
        return _ended(candidate, f"it has no {response.title}", BROKEN)
    if theirs is None or not theirs > 0.0:
        return candidate
    for guard in study.goal.guards:
        if (excess := excess_of(guard, record, baseline)) > 0.0:
            return _ended(candidate, f"it broke the guard {guard.text}", BROKEN - excess)
    ratio = math.log(ours / theirs) * (1.0 if response.higher_is_better else -1.0)
    costs = {name: (*candidate.costs.get(name, ()), *_log_ratio(name, record, baseline)) for name in COSTS}
    update = {
        "log_ratios": (*candidate.log_ratios, ratio),
        "blocks": (*candidate.blocks, record.block),
        "costs": costs,
    }
    return candidate.but(**update)


def _log_ratio(name: str, record: Record, baseline: Record) -> list[float]:
    """The log ratio of a metric in one block; none where one of the two has no value above zero."""
    metric = metrics.find(name)
    ours, theirs = metric.read(record), metric.read(baseline)
    return [] if not ours or not theirs or min(ours, theirs) <= 0.0 else [math.log(ours / theirs)]


def _ended(candidate: Candidate, cause: str, worst: float) -> Candidate:
    return candidate.but(cause=cause, worst=max(worst, FAILED))


def excess_of(guard: Guard, record: Record, baseline: Record) -> float:
    """How far a trial is beyond a guard's bound, as a log ratio; 0 where it keeps it, or where one of the two
    has no such reading: the confirmation judges guards by intervals."""
    if guard.bound is None:
        return 0.0
    metric = metrics.find(guard.metric)
    value, reference = metric.read(record), metric.read(baseline) if guard.relative else 1.0
    if value is None or reference is None or not min(value, reference, guard.bound) > 0.0:
        return 0.0
    beyond = math.log(value / (guard.bound * reference))
    return max(0.0, beyond if guard.at_most else -beyond)


BAD = (Outcome.FAILED, Outcome.BROKEN)


def needed(study: Study, finalists: int) -> int:
    """How many starts without a bad one show the share that the study asks for; 0 where it asks for none."""
    asked = study.search.bad_starts if study.search is not None else None
    if asked is None:
        return 0
    each = confidence_each(study.goal.confidence, finalists)
    return math.ceil(math.log(1.0 - each) / math.log(1.0 - asked))


def share_most(bad: int, count: int, confidence: float) -> float:
    """The upper limit of the true share of bad ones (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934,
    404-413)."""
    if bad >= count:
        return 1.0
    # Here, because it takes longer to import than most commands run.
    from scipy import stats

    return float(stats.beta.ppf(confidence, bad + 1, count - bad))


def starts_of(study: Study, records: Sequence[Record], levels: Mapping[str, Level], finalists: int) -> Starts:
    """What is known of the starts of a winner with these levels, chosen of so many."""
    read = metrics.find(study.goal.response)
    sign = 1.0 if read.higher_is_better else -1.0
    proving = [one for one in records if one.whole and one.purpose not in (None, Purpose.SEARCH)]
    beside = {one.block: read.read(one) for one in proving if one.variant == BASELINE}
    count = bad = 0
    for one in proving:
        if one.levels != levels or one.outcome not in (*BAD, Outcome.MEASURED):
            continue
        value, baseline = read.read(one), beside.get(one.block)
        if one.outcome is Outcome.MEASURED and (value is None or baseline is None):
            continue
        count += 1
        slower = value is not None and baseline is not None and sign * (value - baseline) <= 0.0
        bad += one.outcome in BAD or slower
    each = confidence_each(study.goal.confidence, finalists)
    # Here, because a plan asks for the number of starts alone.
    from dbdyno.analyse.found import Starts

    return Starts(
        count=count,
        bad=bad,
        share_most=share_most(bad, count, each),
        asked=study.search.bad_starts if study.search is not None else None,
        needed=needed(study, finalists),
        confidence=study.goal.confidence,
    )
