"""What a study of platforms says of its variants: whether they work. Nothing of it is a speed.

An emulator translates each instruction of another machine into several of this one, so no ratio between two
of them, and none to a native run, says anything of the machines. A variant that failed, or lost what a client
was told of, has the verdict of that. All others stay without one.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.analyse.model import Reason, Role, VariantResult, Verdict
from dbdyno.analyse.restarts import Survival, Survivor
from dbdyno.records.record import Outcome

JUDGED = {
    Outcome.BROKEN: Verdict.BROKEN,
    Outcome.FAILED: Verdict.FAILED,
    Outcome.BLOCKED: Verdict.BLOCKED,
}


def judged_by_function(results: Sequence[VariantResult], found: Survival | None) -> tuple[VariantResult, ...]:
    """The variants of a study of platforms, each with the verdict of what it did."""
    by_name = {one.variant: one for one in found.variants} if found else {}
    return tuple(_judged(one, by_name.get(one.name)) for one in results)


def _judged(result: VariantResult, found: Survivor | None) -> VariantResult:
    if found is None or found.outcome is None:
        return result
    verdict = JUDGED.get(found.outcome)
    if verdict is not None:
        return result.but(verdict=verdict, reason=None, cause=found.cause or "; ".join(found.faults))
    if result.role is Role.BASELINE:
        return result
    return result.but(verdict=Verdict.INCONCLUSIVE, reason=Reason.EMULATED)
