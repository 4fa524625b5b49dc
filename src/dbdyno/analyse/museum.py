"""The museum and the answer: which variants ended how, strongest effect first.

The museum across runs: what did not help, wherever it was tried, with its cause and its evidence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from dbdyno.analyse import Ending
from dbdyno.analyse.columns import Fact
from dbdyno.analyse.estimate import Trials, ratio_between
from dbdyno.analyse.floor import apart_by_layout
from dbdyno.analyse.intervals import judge
from dbdyno.analyse.model import (
    Answer,
    Exhibit,
    GuardResult,
    Kept,
    Method,
    Ratio,
    Reason,
    Role,
    VariantResult,
    Verdict,
)
from dbdyno.frozen import Frozen, Level, level_text
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.study.designs import changed_levels

if TYPE_CHECKING:
    from dbdyno.analyse.model import Analysis

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


COUNTERS_MOST = 3
"""So many counters are named beside a speed: the reader wants those that moved most."""


OF_VERDICT = {
    Verdict.BROKEN: Ending.BROKEN,
    Verdict.FAILED: Ending.FAILED,
    Verdict.BLOCKED: Ending.BLOCKED,
    Verdict.INERT: Ending.INERT,
    Verdict.SLOWER: Ending.SLOWER,
    Verdict.NO_EFFECT: Ending.NO_EFFECT,
}


class Occurrence(Frozen):
    """One run in which a piece ended as it did.

    `began_unix_s` is when the run began. `against` holds the baseline's levels of what the piece changes.
    `ended` of the `trials` ended so; `effect` is the response's ratio variant / baseline, and `counters` are
    the ratios of other metrics that moved most beside it. `log` is the end of the server's log in the first
    trial that ended so, where it has no speed.
    """

    run: str
    began_unix_s: float
    study: str
    study_path: str
    host: str
    workload: str
    ending: Ending
    exhibit: Exhibit
    against: dict[str, Level]
    ended: int
    trials: int
    effect: Ratio | None = None
    counters: tuple[Ratio, ...] = ()
    guards: tuple[GuardResult, ...] = ()
    idle: str = ""
    log: str = ""


class TriedLevels(Frozen):
    """Levels that a run tried together: they are one piece with those of other runs that have the same `key`.
    Without an `occurrence` they ended well, or without an answer."""

    key: tuple[str, ...]
    levels: dict[str, Level]
    verdict: Verdict
    occurrence: Occurrence | None


class RunOfMuseum(Frozen):
    """What the museum needs of a run, so that no more of many runs is held at a time."""

    run: str
    began_unix_s: float
    engine: str
    tried: tuple[TriedLevels, ...]


class Piece(Frozen):
    """What stands in the museum: levels of an engine that were tried together, in every run that tried them.

    Without `levels` it is the baseline of a study. `runs` tried it; `elsewhere` counts the verdicts of those
    in which it did not end in the museum. The latest occurrence comes first.
    """

    engine: str
    levels: dict[str, Level]
    runs: int
    occurrences: tuple[Occurrence, ...]
    elsewhere: dict[Verdict, int] = Field(default_factory=dict)

    def ended(self, ending: Ending) -> tuple[Occurrence, ...]:
        return tuple(one for one in self.occurrences if one.ending is ending)


class Museum(Frozen):
    """The pieces of `runs` runs, the latest first. `unread` names runs that this Dyno cannot read."""

    pieces: tuple[Piece, ...]
    runs: int
    unread: tuple[str, ...] = ()


def run_of_museum(analysis: Analysis) -> RunOfMuseum:
    """What a run tells of the levels that it tried."""
    return RunOfMuseum(
        run=analysis.run.run,
        began_unix_s=analysis.run.created_unix_s,
        engine=analysis.study.engine.engine,
        tried=tuple(
            TriedLevels(
                key=_key(analysis, result),
                levels=result.changed,
                verdict=result.verdict,
                occurrence=_occurrence(analysis, result, ending) if (ending := _ending(result)) else None,
            )
            for result in analysis.variants
            # The twin of an A/A study is the baseline once more.
            if result.role is not Role.TWIN
            and result.reason is not Reason.NOT_RUN
            and result.verdict is not None
            and not _of_no_level(analysis, result)
        ),
    )


def collection(runs: Sequence[RunOfMuseum], unread: Sequence[str] = ()) -> Museum:
    """The museum of all runs, in any order."""
    tried: dict[tuple[str, ...], list[tuple[RunOfMuseum, TriedLevels]]] = {}
    for run in sorted(runs, key=lambda one: one.began_unix_s, reverse=True):
        for one in run.tried:
            tried.setdefault(one.key, []).append((run, one))
    pieces = [piece for seen in tried.values() if (piece := _piece(seen)) is not None]
    pieces.sort(key=lambda piece: piece.occurrences[0].began_unix_s, reverse=True)
    return Museum(pieces=tuple(pieces), runs=len(runs), unread=tuple(unread))


def chosen_pieces(museum: Museum, layer: str | None = None, ending: Ending | None = None) -> Museum:
    """The pieces alone that change a level of `layer`, and of these the occurrences that ended so."""
    return museum.but(pieces=tuple(_chosen(museum.pieces, layer, ending)))


def _chosen(pieces: Iterable[Piece], layer: str | None, ending: Ending | None) -> Iterator[Piece]:
    for piece in pieces:
        of_layer = layer is None or any(name.split(".", 1)[0] == layer for name in piece.levels)
        occurrences = piece.occurrences if ending is None else piece.ended(ending)
        if of_layer and occurrences:
            yield piece.but(occurrences=occurrences)


def _key(analysis: Analysis, result: VariantResult) -> tuple[str, ...]:
    """What two runs must share for their levels to be one piece: the engine, and the levels that differ from
    the baseline's. A baseline is a piece of its study alone."""
    engine = analysis.study.engine.engine
    if not result.changed:
        return engine, "", analysis.study.path
    return engine, *sorted(f"{name}={level_text(level)}" for name, level in result.changed.items())


def _of_no_level(analysis: Analysis, result: VariantResult) -> bool:
    """Whether a failure tells nothing of levels: it was a mistake of the user's, or the baseline failed."""
    if result.verdict is not Verdict.FAILED:
        return False
    failed = [trial.record for trial in analysis.trials if trial.record.variant == result.name]
    mistaken = all(record.mistaken for record in failed if record.outcome is Outcome.FAILED)
    return mistaken or analysis.baseline.verdict is Verdict.FAILED


def _piece(seen: Sequence[tuple[RunOfMuseum, TriedLevels]]) -> Piece | None:
    occurrences = tuple(one.occurrence for _, one in seen if one.occurrence is not None)
    if not occurrences:
        return None
    latest, first = seen[0]
    return Piece(
        engine=latest.engine,
        levels=first.levels,
        runs=len({run.run for run, _ in seen}),
        occurrences=occurrences,
        elsewhere=dict(Counter(one.verdict for _, one in seen if one.occurrence is None)),
    )


def _ending(result: VariantResult) -> Ending | None:
    if result.verdict is None:
        return None
    ending = OF_VERDICT.get(result.verdict)
    return Ending.NOT_EXERCISED if ending is Ending.NO_EFFECT and result.idle else ending


def _occurrence(analysis: Analysis, result: VariantResult, ending: Ending) -> Occurrence:
    records = [trial.record for trial in analysis.trials if trial.record.variant == result.name]
    shown = exhibit(result, records)
    return Occurrence(
        run=analysis.run.run,
        began_unix_s=analysis.run.created_unix_s,
        study=analysis.study.title,
        study_path=analysis.run.study_path,
        host=next((record.host for record in records), ""),
        workload=analysis.study.workload.name,
        ending=ending,
        exhibit=shown,
        against={name: level for name, level in analysis.baseline.levels.items() if name in result.changed},
        ended=len(shown.trials),
        trials=len(records),
        effect=result.effect,
        counters=_counters(result) if ending is Ending.SLOWER else (),
        guards=tuple(guard for guard in result.guards if guard.state is Kept.BROKEN),
        idle=result.idle,
        log="" if shown.verdict in MEASURED else _log(records, shown),
    )


def _log(records: Sequence[Record], shown: Exhibit) -> str:
    return next((record.server_log for record in records if record.trial in shown.trials[:1]), "")


def _counters(result: VariantResult) -> tuple[Ratio, ...]:
    """The metrics that moved most beside the response. Latencies are left out, because they say the same as
    a speed does."""
    moved = [
        cost
        for cost in result.costs
        if cost.low is not None
        and cost.high is not None
        and not cost.low <= 1.0 <= cost.high
        and metrics.find(cost.metric).unit != "ms"
    ]
    return tuple(sorted(moved, key=lambda cost: abs(math.log(cost.ratio)), reverse=True)[:COUNTERS_MOST])
