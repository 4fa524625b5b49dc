"""From records to an Analysis: pure functions, with no server, clock, file or chance in them.

`analyse` is the entry; `steady` finds where a trial settled, `intervals` holds the statistics of ratios,
`effects` judges each variant, `twin` the instrument itself, `factorial` the factors and their interactions,
`museum` collects the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno import metrics
from dbdyno.analyse.effects import Block, Trials, pairs, variant_result
from dbdyno.analyse.factorial import Cells, factorial
from dbdyno.analyse.intervals import POWER, confidence_each, usable
from dbdyno.analyse.model import Analysis, Factorial, Method, Role, TrialResult, VariantResult
from dbdyno.analyse.museum import answer, museum
from dbdyno.analyse.steady import steady_state
from dbdyno.analyse.twin import aa_check
from dbdyno.plan import Plan, make_plan
from dbdyno.record import Outcome, Record, Run, Warning
from dbdyno.study import Design, Study

__all__ = ["Analysis", "analyse"]

COSTS = (
    "p99_ms",
    "server_cpu_us_per_op",
    "driver_cpu_us_per_op",
    "p50_ms",
    "context_switches_per_op",
    "run_queue_wait_us_per_op",
    "written_bytes_per_op",
    "read_bytes_per_op",
    "resident_bytes",
)
"""What is shown beside the response: what a variant cost, whatever it gained."""


def analyse(study: Study, run: Run, records: Sequence[Record]) -> Analysis:
    """The analysis of a run from its study and its records, in any order, finished or not.

    A trial that was recorded more than once (a resumed run) counts once, with its last record.
    """
    plan = make_plan(study)
    trials = _by_variant(plan, [_trial(record, study.goal.response) for record in _latest(records)])
    baseline = trials[0]
    compared = sum(
        1 for each in trials[1:] if each.role is Role.CANDIDATE and each.with_outcome(Outcome.MEASURED)
    )
    each_confidence = confidence_each(study.goal.confidence, compared)
    results = tuple(
        variant_result(
            each,
            baseline,
            study.goal,
            study.goal.confidence if each.role is Role.TWIN else each_confidence,
            COSTS,
        )
        for each in trials
    )
    twins = [each for each in trials if each.role is Role.TWIN]
    return Analysis(
        study=study,
        run=run,
        method=_method(study, compared, each_confidence),
        answer=answer(results),
        variants=results,
        trials=tuple(
            sorted((t for each in trials for t in each.by_block.values()), key=lambda t: t.record.trial)
        ),
        aa=aa_check(
            study.goal.response,
            [log_ratio for twin in twins for log_ratio in pairs(twin, baseline, study.goal.response)],
            study.goal.confidence,
        )
        if twins
        else None,
        museum=museum(results, trials),
        factorial=_factorial(study, trials, results),
        trials_planned=len(plan.trials),
    )


def _latest(records: Sequence[Record]) -> list[Record]:
    latest: dict[int, Record] = {}
    for record in sorted(records, key=lambda record: record.finished_unix_s):
        latest[record.trial] = record
    return sorted(latest.values(), key=lambda record: record.trial)


def _trial(record: Record, response: str) -> TrialResult:
    series = (record.tally or {}).get("series") or []
    steady = (
        steady_state(
            [int(point["second"]) for point in series], [float(point["operations"]) for point in series]
        )
        if record.outcome is Outcome.MEASURED
        else None
    )
    value = metrics.find(response).read(record) if record.outcome is Outcome.MEASURED else None
    warnings = dict(record.warnings)
    if steady is not None and not steady.settled:
        warnings[Warning.NOT_SETTLED] = (
            f"steady from second {steady.settled_at} on, {steady.share:.0%} of the measured part"
        )
    return TrialResult(
        record=record, response=value if usable(value) else None, steady=steady, warnings=warnings
    )


def _by_variant(plan: Plan, trials: Sequence[TrialResult]) -> list[Trials]:
    """One entry per planned variant, the baseline first; records of variants that the plan does not know are
    left out.
    """
    by_name: dict[str, dict[Block, TrialResult]] = {variant.name: {} for variant in plan.variants}
    for trial in trials:
        if trial.record.variant in by_name:
            by_name[trial.record.variant][trial.record.host, trial.record.block] = trial
    return [
        Trials(
            variant=variant,
            role=Role.BASELINE if index == 0 else Role.TWIN if variant.twin else Role.CANDIDATE,
            by_block=by_name[variant.name],
        )
        for index, variant in enumerate(plan.variants)
    ]


def _method(study: Study, comparisons: int, each: float) -> Method:
    return Method(
        response=study.goal.response,
        higher_is_better=metrics.find(study.goal.response).higher_is_better,
        margin=study.goal.margin,
        confidence=study.goal.confidence,
        comparisons=comparisons,
        confidence_each=each,
        power=POWER,
    )


def _factorial(study: Study, trials: Sequence[Trials], results: Sequence[VariantResult]) -> Factorial | None:
    """Main effects and interactions, over variants that are not broken; only for a factorial design of two
    factors or more.
    """
    if study.design is not Design.FACTORIAL or len(study.factors) < 2:
        return None
    cells: Cells = {
        tuple(each.variant.levels[factor.name] for factor in study.factors): {
            block: value for block, value in each.values(study.goal.response).items() if usable(value)
        }
        for each, result in zip(trials, results, strict=True)
        if each.role is not Role.TWIN and not each.with_outcome(Outcome.BROKEN)
    }
    return factorial(study.goal.response, study.factors, cells, study.goal.confidence)
