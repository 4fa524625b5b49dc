"""How often a start of a search's winner may be bad, from the starts that were seen.

A plan, a cache or a layout can come out worse by the luck of a start, so a winner that is faster on average
may be no faster in one start of ten. A start is bad where the server failed or broke something, or where it
was no faster than the baseline beside it. Starts of the confirmation and of what followed count. The winner
was chosen of several by some of them, so the limit holds for all of those together (Šidák).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dbdyno.analyse.quantiles import confidence_each
from dbdyno.frozen import Level
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.study import BASELINE, Study
from dbdyno.study.trials import Purpose

if TYPE_CHECKING:
    from dbdyno.analyse.model import Starts

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
    from dbdyno.analyse.model import Starts

    return Starts(
        count=count,
        bad=bad,
        share_most=share_most(bad, count, each),
        asked=study.search.bad_starts if study.search is not None else None,
        needed=needed(study, finalists),
        confidence=study.goal.confidence,
    )
