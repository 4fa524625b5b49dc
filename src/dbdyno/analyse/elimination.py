"""Backward elimination: which of a winner's changes carry its gain.

In each round the blocks hold the baseline, the winner, and the winner without each of its changes in turn. A
change that contributes nothing within the margin goes. The next round measures what is left, and the winner
as it was beside it. Where that seems worse by more than the margin, the strongest of the changes that went
comes back, because several that carry little alone can carry much together. So however many rounds there
are, they take no more than the margin away by their estimates. The last round whose changes are enough is the
one that is told, because what it measures was chosen before it began.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dbdyno.analyse.blocks import log_ratios
from dbdyno.analyse.candidates import of_purpose
from dbdyno.analyse.columns import Block, OfRecords
from dbdyno.analyse.estimate import Estimator
from dbdyno.analyse.intervals import usable
from dbdyno.analyse.model import Change, Method, Ratio, Round, VariantResult
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.frozen import Frozen
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.study import BASELINE, Study
from dbdyno.study.trials import Purpose, Variant

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
