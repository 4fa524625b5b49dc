"""The museum and the answer: which variants ended how, strongest effect first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dbdyno.analyse.blocks import Trials, ratio_between
from dbdyno.analyse.columns import Fact
from dbdyno.analyse.intervals import judge
from dbdyno.analyse.layout import apart_by_layout
from dbdyno.analyse.model import Answer, Exhibit, Method, Role, VariantResult, Verdict
from dbdyno.records.record import Outcome, Record
from dbdyno.study.builds import changed_levels

EXHIBITED = (Verdict.BROKEN, Verdict.FAILED, Verdict.BLOCKED, Verdict.INERT, Verdict.NO_EFFECT)
MEASURED = (Verdict.NO_EFFECT, Verdict.SLOWER)
"""What stands in a museum and has a speed all the same."""
JUDGED = (Verdict.FASTER, Verdict.SLOWER, Verdict.NO_EFFECT, Verdict.INCONCLUSIVE)
"""Verdicts of variants whose speed counts."""


def museum(results: Sequence[VariantResult], trials: Sequence[Trials]) -> tuple[Exhibit, ...]:
    """One exhibit per variant that did not help for a reason other than being slower, in the order of
    gravity.
    """
    by_name = {each.variant.name: each for each in trials}
    exhibits = [_exhibit(result, by_name[result.name]) for result in results if result.verdict in EXHIBITED]
    return tuple(sorted(exhibits, key=lambda exhibit: EXHIBITED.index(exhibit.verdict)))


VIOLATED = Fact("violated", lambda record: not all(check.holds for check in record.checks))


def _exhibit(result: VariantResult, trials: Trials) -> Exhibit:
    outcome = _outcome(result)
    indices: list[int] = []
    told: list[Record] = []
    for one in trials.each:
        columns, ended = one.rows.columns, one.rows.ended(outcome)
        indices += columns.trials(ended).tolist()
        told += columns.whole(VIOLATED, ended)
    return _shown(result, indices, trials.first(outcome), told)


def exhibit(result: VariantResult, records: Sequence[Record]) -> Exhibit:
    """What shows that a variant ended so, from the records of its trials."""
    ended = [record for record in records if record.outcome is _outcome(result)]
    return _shown(result, [record.trial for record in ended], next(iter(ended), None), ended)


def _outcome(result: VariantResult) -> Outcome:
    """How a trial ended that shows the variant's verdict."""
    assert result.verdict is not None
    return Outcome.MEASURED if result.verdict in MEASURED else Outcome(result.verdict.value)


def _shown(
    result: VariantResult, trials: Sequence[int], first: Record | None, violated: Iterable[Record]
) -> Exhibit:
    """From the trials that ended so, the first of them, and those whose checks were violated."""
    assert result.verdict is not None
    measured = _outcome(result) is Outcome.MEASURED
    return Exhibit(
        variant=result.name,
        verdict=result.verdict,
        cause=result.cause,
        remedy=result.remedy,
        evidence=tuple(
            evidence
            for evidence in (first.evidence if first else ())
            if not evidence.in_effect or (measured and evidence.factor in result.changed)
        ),
        checks=tuple(check for record in violated for check in record.checks if not check.holds),
        trials=tuple(trials),
        gives_up=result.gives_up if measured else (),
    )


def answer(results: Sequence[VariantResult], trials: Sequence[Trials], method: Method) -> Answer:
    """Names by verdict. Effects are ordered by their distance from 1 on the log scale.

    The strongest helped most only where it is faster than each other candidate that has a speed, in the
    blocks that they share: of equal ones some would always lead by chance, and a noisy one may be the
    fastest before its blocks show that it helps. Each such interval has the confidence of those against the
    baseline. To err takes that one of them is wrong against the truly best, so they need no correction for
    all pairs.
    """

    def named(verdict: Verdict) -> tuple[str, ...]:
        chosen = [result for result in results if result.role is Role.CANDIDATE and result.verdict is verdict]
        return tuple(result.name for result in sorted(chosen, key=_strength, reverse=True))

    faster = named(Verdict.FASTER)
    by_name = {each.variant.name: each for each in trials}
    speedy = [result.name for result in results if _has_speed(result)] if faster else []
    untold = [
        name
        for name in speedy
        if name != faster[0] and not _faster(by_name[faster[0]], by_name[name], method)
    ]
    level = tuple(name for name in faster if name in untold)
    baseline = next(result for result in results if result.role is Role.BASELINE)
    return Answer(
        best=faster[0] if faster and not untold else None,
        level=(faster[0], *level) if level else (),
        rivals=tuple(name for name in untold if name not in level),
        faster=faster,
        slower=named(Verdict.SLOWER),
        no_effect=named(Verdict.NO_EFFECT),
        inconclusive=named(Verdict.INCONCLUSIVE),
        broken=named(Verdict.BROKEN),
        blocked=named(Verdict.BLOCKED),
        failed=named(Verdict.FAILED),
        inert=named(Verdict.INERT),
        baseline_broken="" if baseline.verdict is None else baseline.cause or baseline.verdict.value,
    )


def _has_speed(result: VariantResult) -> bool:
    """Whether a candidate takes part in the question which helped most."""
    return result.role is Role.CANDIDATE and result.effect is not None and result.verdict in JUDGED


def _faster(one: Trials, other: Trials, method: Method) -> bool:
    """Whether one variant is told from another, whatever the margin, and builds from luck of layout."""
    ratio = ratio_between(method.response, one, other, method.confidence_each, method)
    told = method.but(margin=0.0)
    if ratio is None or judge(ratio, told)[0] is not Verdict.FASTER:
        return False
    return not apart_by_layout(changed_levels(one.variant.levels, other.variant.levels), ratio, method)


def _strength(result: VariantResult) -> float:
    return abs(math.log(result.effect.ratio)) if result.effect else 0.0
