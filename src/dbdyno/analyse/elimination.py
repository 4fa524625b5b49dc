"""Backward elimination: which of a winner's changes carry its gain.

In each round the blocks hold the baseline, the winner, and the winner without each of its changes in turn. A
change that contributes nothing within the margin goes. The next round measures what is left, and the winner
as it was beside it. Where that seems worse by more than the margin, the strongest of the changes that went
comes back, because several that carry little alone can carry much together. So however many rounds there
are, they take no more than the margin away by their estimates. The last round whose changes are enough is the
one that is told, because what it measures was chosen before it began.

What the records of a search tell of its candidates.

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
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from dbdyno.analyse.columns import Block, OfRecords
from dbdyno.analyse.estimate import Estimator, log_ratios
from dbdyno.analyse.intervals import usable
from dbdyno.analyse.model import Change, Method, Ratio, Round, VariantResult
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.frozen import Frozen, Level
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.study import BASELINE, Guard, Study
from dbdyno.study.designs import changed_levels
from dbdyno.study.nouns import OWN_CANDIDATE
from dbdyno.study.trials import Purpose, Variant

if TYPE_CHECKING:
    from dbdyno.analyse.candidates import Starts

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


def side_of_candidate(name: str) -> Literal["theirs", "own"]:
    """Which searcher of an evaluation found a candidate."""
    return "own" if name.startswith(f"{OWN_CANDIDATE}-") else "theirs"


def spread_of(candidates: Sequence[Candidate]) -> float:
    """The standard deviation of log ratios from block to block, over the candidates that were in several; 0
    while there is none."""
    repeated = [one.log_ratios for one in candidates if len(one.log_ratios) > 1 and not one.cause]
    squares = sum((ratio - fmean(ratios)) ** 2 for ratios in repeated for ratio in ratios)
    freedom = sum(len(ratios) - 1 for ratios in repeated)
    return math.sqrt(squares / freedom) if freedom else 0.0


def ranked_candidates(candidates: Sequence[Candidate]) -> list[Candidate]:
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


def starts_needed(study: Study, finalists: int) -> int:
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
    from dbdyno.analyse.candidates import Starts

    return Starts(
        count=count,
        bad=bad,
        share_most=share_most(bad, count, each),
        asked=study.search.bad_starts if study.search is not None else None,
        needed=starts_needed(study, finalists),
        confidence=study.goal.confidence,
    )


ROUNDS_MAX = 4
"""Each round takes changes away, and few of a winner's changes ever matter."""


class Elimination(Frozen):
    """The rounds that are over, and the variants of the one that is due; none where the elimination is
    over."""

    rounds: tuple[Round, ...] = ()
    due: tuple[Variant, ...] = ()

    @property
    def told(self) -> Round | None:
        """The round that is told: the last one whose changes are enough."""
        return _enough(self.rounds) if self.rounds else None


def eliminated(study: Study, winner: VariantResult, method: Method, records: Sequence[Record]) -> Elimination:
    """How far the elimination of a confirmed winner has come by its records."""
    own = of_purpose(records, Purpose.ELIMINATION)
    numbers = sorted({record.block for record in own})
    rounds: list[Round] = []
    came_back: list[str] = []
    kept = [name for name in study.baseline if name in winner.changed]
    whole: Variant | None = None
    while len(kept) > 1 or whole is not None:
        reference = _reference(study, winner, kept, rounds)
        variants = _variants(study, reference, kept, whole)
        begun = numbers[len(rounds) * study.blocks :][: study.blocks]
        of_round = [record for record in own if record.block in begun]
        if len(of_round) < study.blocks * len(variants):
            return Elimination(rounds=tuple(rounds), due=variants)
        rounds.append(_judged(study, reference, whole, kept, came_back, method, of_round))
        enough = _enough(rounds)
        if rounds[-1].too_few:
            came_back.append(_strongest(enough, kept, method))
        gone = set(enough.removed).difference(came_back)
        kept = [one.factor for one in enough.changes if one.factor not in gone]
        if len(kept) == len(enough.changes) or len(rounds) == ROUNDS_MAX:
            break
        whole = Variant(name=rounds[0].reference, levels=rounds[0].levels)
    return Elimination(rounds=tuple(rounds))


def _enough(rounds: Sequence[Round]) -> Round:
    """The last round whose changes are enough; those of the first are all."""
    return next(one for one in reversed(rounds) if not one.too_few)


def _strongest(before: Round, kept: Sequence[str], method: Method) -> str:
    """The change that seemed to contribute most in the round before, of those that are no longer kept."""
    gains = {
        one.factor: _gain(one.share, method)
        for one in before.changes
        if one.share is not None and one.factor not in kept
    }
    return max(gains, key=lambda name: gains[name])


def _reference(study: Study, winner: VariantResult, kept: Sequence[str], rounds: Sequence[Round]) -> Variant:
    """The winner with some of its changes, under a name that no round before gave to others."""
    levels = {**study.baseline, **{name: winner.changed[name] for name in kept}}
    if len(kept) == len(winner.changed):
        return Variant(name=winner.name, levels=levels)
    plural = "" if len(kept) == 1 else "s"
    name = f"{winner.name} with {len(kept)} change{plural}"
    if any(one.reference == name for one in rounds):
        name = f"{winner.name} with {len(kept)} other change{plural}"
    return Variant(name=name, levels=levels)


def _variants(
    study: Study, reference: Variant, kept: Sequence[str], whole: Variant | None
) -> tuple[Variant, ...]:
    """The variants of a round. A single change that is taken back leaves the baseline, which is there."""
    before = (whole,) if whole is not None else ()
    taken_back = [_without(study, reference, name) for name in kept] if len(kept) > 1 else []
    return (Variant(name=BASELINE, levels=study.baseline), reference, *before, *taken_back)


def _without(study: Study, reference: Variant, factor: str) -> Variant:
    levels = {**reference.levels, factor: study.baseline[factor]}
    return Variant(name=f"{reference.name} without {factor}", levels=levels)


def _judged(
    study: Study,
    reference: Variant,
    whole: Variant | None,
    kept: Sequence[str],
    came_back: Sequence[str],
    method: Method,
    records: Sequence[Record],
) -> Round:
    """What a round says. All its intervals hold together with the study's confidence."""
    each = confidence_each(study.goal.confidence, len(kept) + 1 + (whole is not None))
    estimator = Estimator.of(OfRecords(records), method)

    def over(name: str) -> Ratio | None:
        """The ratio of the response between the reference and another variant of the same blocks."""
        found = log_ratios(*(_values(records, side, method.response) for side in (reference.name, name)))
        return estimator.ratio(method.response, found, each)

    single = len(kept) == 1
    shares = {name: over(BASELINE if single else _without(study, reference, name).name) for name in kept}
    against_whole = None if whole is None else over(whole.name)
    return Round(
        reference=reference.name,
        levels=reference.levels,
        blocks=tuple(sorted({record.block for record in records})),
        total=over(BASELINE),
        changes=tuple(
            Change(
                factor=name,
                level=reference.levels[name],
                against=study.baseline[name],
                share=share,
                cause="" if share else _cause(records, _without(study, reference, name).name),
            )
            for name, share in shares.items()
        ),
        removed=_removed(shares, came_back, method),
        against_whole=against_whole,
        too_few=against_whole is not None and _is_worse(against_whole, method),
    )


def _removed(shares: Mapping[str, Ratio | None], came_back: Sequence[str], method: Method) -> tuple[str, ...]:
    """The changes that contribute nothing within the margin, and are not shown to contribute. One that seems
    to contribute more stays for the next round, because several such together can carry much. One without a
    share stays: the server did not run without it. One that came back stays, because it was missed. Where
    that would take all, the one that seems to contribute most stays."""
    margin = math.log1p(method.margin)
    idle = [
        name
        for name, share in shares.items()
        if share is not None
        and name not in came_back
        and not _contributes(share, method)
        and _gain(share, method) <= margin
    ]
    if len(idle) == len(shares):
        gains = {name: _gain(share, method) for name, share in shares.items() if share is not None}
        idle.remove(max(gains, key=lambda name: gains[name]))
    return tuple(idle)


def _contributes(share: Ratio, method: Method) -> bool:
    """Whether the whole interval says that the winner is better with the change than without it."""
    if share.low is None or share.high is None:
        return False
    return share.low > 1.0 if method.higher_is_better else share.high < 1.0


def _is_worse(ratio: Ratio, method: Method) -> bool:
    """Whether fewer changes seem to be worse by more than the margin. They need not be shown to be: a few
    blocks show a loss only where it is several times the margin."""
    return _gain(ratio, method) < -math.log1p(method.margin)


def _gain(ratio: Ratio, method: Method) -> float:
    return math.log(ratio.ratio) * (1.0 if method.higher_is_better else -1.0)


def _values(records: Sequence[Record], variant: str, response: str) -> dict[Block, float]:
    metric = metrics.find(response)
    read = {
        (record.host, record.block): metric.read(record)
        for record in records
        if record.variant == variant and record.outcome is Outcome.MEASURED
    }
    return {block: value for block, value in read.items() if value is not None and usable(value)}


def _cause(records: Sequence[Record], variant: str) -> str:
    """Why a variant has no speed."""
    return next((one.cause for one in records if one.variant == variant and one.cause), "")
