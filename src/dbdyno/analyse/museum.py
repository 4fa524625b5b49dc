"""The museum and the answer: which variants ended how, strongest effect first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.analyse.blocks import Trials, ratio_between
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
    by_name = {each.variant.name: [trial.record for trial in each.all] for each in trials}
    exhibits = [exhibit(result, by_name[result.name]) for result in results if result.verdict in EXHIBITED]
    return tuple(sorted(exhibits, key=lambda exhibit: EXHIBITED.index(exhibit.verdict)))


def exhibit(result: VariantResult, records: Sequence[Record]) -> Exhibit:
    """What shows that a variant ended so, from the records of its trials."""
    assert result.verdict is not None
    outcome = Outcome.MEASURED if result.verdict in MEASURED else Outcome(result.verdict.value)
    ended = [record for record in records if record.outcome is outcome]
    return Exhibit(
        variant=result.name,
        verdict=result.verdict,
        cause=result.cause,
        remedy=result.remedy,
        evidence=tuple(
            evidence
            for record in ended[:1]
            for evidence in record.evidence
            if not evidence.in_effect or (outcome is Outcome.MEASURED and evidence.factor in result.changed)
        ),
        checks=tuple(check for record in ended for check in record.checks if not check.holds),
        trials=tuple(record.trial for record in ended),
        gives_up=result.gives_up if outcome is Outcome.MEASURED else (),
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
