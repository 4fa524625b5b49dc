"""The whole of a search: what it tried, what was confirmed, and which changes carry the gain.

An analysis of a search is that of its confirming blocks, which have keys, images of the data and servers
that the search never saw. So what made a candidate lead by luck is gone, and their intervals hold as those of
any study. A winner that the elimination made smaller is added to their variants, from the blocks that
measured it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from dbdyno.analyse.candidates import Judged
from dbdyno.analyse.elimination import (
    COSTS,
    Candidate,
    Elimination,
    candidates_of,
    eliminated,
    of_purpose,
    side_of_candidate,
    starts_of,
    took_s,
)
from dbdyno.analyse.model import (
    GIVEN_UP,
    Analysis,
    Change,
    Round,
    SearchResult,
    Tried,
    VariantResult,
    Verdict,
)
from dbdyno.analyse.quantiles import is_beaten
from dbdyno.findings.run import analyse_blocks
from dbdyno.frozen import Level
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import Run
from dbdyno.study import BASELINE, Arrangement, Design, ListedVariant, Study
from dbdyno.study.designs import changed_levels
from dbdyno.study.nouns import Promise
from dbdyno.study.trials import Purpose


def listed(study: Study, records: Iterable[Record]) -> Study:
    """A list of the variants that some blocks of a search hold, the baseline first."""
    levels: dict[str, dict[str, Level]] = {BASELINE: study.baseline}
    for record in sorted(records, key=lambda one: _natural(one.variant)):
        levels.setdefault(record.variant, record.levels)
    variants = tuple(ListedVariant(name=name, levels=own) for name, own in levels.items())
    return study.but(design=Design.LIST, variants=variants)


def analysed_blocks(study: Study, run: Run, records: Sequence[Record]) -> Analysis:
    """The analysis of some blocks of a search, by themselves."""
    own = listed(study, records)
    numbers = {record.block for record in records}
    return analyse_blocks(own.but(blocks=max(1, len(numbers))), run, records)


def winner_of(confirmed: Analysis) -> VariantResult | None:
    """The best of those that are faster. Of those that are as good within the margin, the one with the fewest
    changes, because each change has to be kept for good. None where nothing is faster."""
    faster = [one for one in confirmed.candidates if one.verdict is Verdict.FASTER]
    if not faster:
        return None
    sign = 1.0 if confirmed.method.higher_is_better else -1.0
    gains = {one.name: sign * _log_effect(one) for one in faster}
    enough = max(gains.values()) - math.log1p(confirmed.method.margin)
    near = [one for one in faster if gains[one.name] >= enough]
    return min(near, key=lambda one: (len(one.changed), -gains[one.name]))


def _log_effect(variant: VariantResult) -> float:
    assert variant.effect is not None  # nothing is faster without one
    return math.log(variant.effect.ratio)


def _natural(name: str) -> list[tuple[int, str]]:
    """Orders `candidate-9` before `candidate-10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


GivesUp = Callable[[Mapping[str, Level]], tuple[Promise, ...]]
"""What a setup gives up that the baseline keeps, by the levels that it changes."""


def analyse_search(study: Study, run: Run, records: Sequence[Record]) -> Analysis:
    """The analysis of a search, finished or not. Before anything is confirmed it is that of the baseline
    alone, because the search's own blocks prove nothing of its candidates."""
    tried = candidates_of(study, records)
    result = SearchResult(tried=_tried_in(study, tried), took_s=took_s(records))
    confirming = of_purpose(records, Purpose.CONFIRMATION)
    if not confirming:
        # A row for each candidate would look like a verdict, and the path shows them all.
        beside = [*of_purpose(records, Purpose.FLOOR), *of_purpose(records, Purpose.SEARCH)]
        baseline = [one for one in beside if one.variant == BASELINE]
        found = analysed_blocks(study, run, baseline)
        return found.but(study=study, search=result)
    confirmed = analysed_blocks(study, run, confirming)
    over = len(confirming) >= study.blocks * len(confirmed.variants)
    finalists = tuple(one.name for one in confirmed.candidates)
    apart = _apart_blocks(study, confirming)
    result = result.but(finalists=finalists, confirmed=over, apart_blocks=apart)
    if run.named_by_others:
        result = result.but(judged=_judged(study, tried, confirmed))
    winner = winner_of(confirmed) if over else None
    if winner is None:
        return confirmed.but(study=study, search=result)
    elimination = eliminated(study, winner, confirmed.method, records)
    told = _told(study, run, elimination, records)
    reduced = told is not None and told.round.reference != winner.name
    final = told.result if told is not None and reduced else winner
    result = result.but(
        winner=final.name,
        effect=final.effect,
        optimism=_optimism(study, winner, tried),
        changes=_changes(study, final) if told is None else told.round.changes,
        removed=() if told is None else _removed_before(elimination, told.round),
        rounds=elimination.rounds,
        starts=starts_of(study, records, final.levels, len(finalists)),
    )
    return _with_winner(study, confirmed, result, told)


def _judged(study: Study, tried: Sequence[Candidate], confirmed: Analysis) -> tuple[Judged, ...]:
    """The finalists of an evaluation. One that both searchers found is measured again once."""
    sign = 1.0 if metrics.find(study.goal.response).higher_is_better else -1.0
    found = []
    for variant in confirmed.candidates:
        alike = [one for one in tried if one.levels == variant.levels]
        # Variants that the study names were found by nobody.
        if variant.name not in {one.name for one in alike}:
            continue
        sides = {side_of_candidate(one.name) for one in alike if one.log_ratios and not one.cause}
        own = next(one for one in alike if one.name == variant.name)
        effect = variant.effect
        found.append(
            Judged(
                name=variant.name,
                side="both" if len(sides) > 1 else side_of_candidate(variant.name),
                told=math.exp(sign * own.worth),
                again=None if effect is None else effect.ratio,
                low=None if effect is None else effect.low,
                high=None if effect is None else effect.high,
                holds=variant.verdict is Verdict.FASTER,
            )
        )
    return tuple(found)


def _apart_blocks(study: Study, confirming: Sequence[Record]) -> int:
    """In how many blocks not all servers were up together: their ratios hold what the host did meanwhile. A
    server that failed is gone before the others, and has no ratio."""
    if study.arrangement is not Arrangement.SIDE_BY_SIDE:
        return 0
    blocks: dict[int, list[Record]] = {}
    for record in confirming:
        if record.outcome is Outcome.MEASURED:
            blocks.setdefault(record.block, []).append(record)
    return sum(
        max(one.started_unix_s for one in block) > min(one.finished_unix_s for one in block)
        for block in blocks.values()
    )


def with_given_up(found: Analysis, gives_up: GivesUp) -> Analysis:
    """The analysis of a search with what candidates and variants give up, which only layers know. That of
    another design stays as it is, and so does one in which nothing is given up."""
    if found.search is None:
        return found
    changed = {one.name: one.changed for one in found.search.tried}
    changed |= {one.name: one.changed for one in found.variants}
    lost = {name: gives_up(levels) for name, levels in changed.items()}
    given_up = {name: promises for name, promises in lost.items() if promises}
    if not given_up:
        return found
    sign = 1.0 if metrics.find(found.method.response).higher_is_better else -1.0
    worth = {one.name: sign * math.log(one.ratio) for one in found.search.tried if one.ratio is not None}
    tried = tuple(
        one.but(frontier=(*one.frontier, GIVEN_UP)) if _pays(one.name, worth, lost) else one
        for one in found.search.tried
    )
    variants = tuple(one.but(gives_up=lost[one.name]) for one in found.variants)
    search = found.search.but(tried=tried, given_up=given_up)
    return found.but(search=search, variants=variants)


def _pays(name: str, worth: Mapping[str, float], lost: Mapping[str, tuple[Promise, ...]]) -> bool:
    """Whether a candidate is better than the baseline, and than all others that give up no more than it
    does."""
    rivals = [own for other, own in worth.items() if other != name and set(lost[other]) <= set(lost[name])]
    return name in worth and worth[name] > max([0.0, *rivals])


class _Told(NamedTuple):
    """The round of an elimination that is told, and the analysis of its blocks."""

    round: Round
    analysis: Analysis

    @property
    def result(self) -> VariantResult:
        """What those blocks say of the round's reference."""
        return next(one for one in self.analysis.variants if one.name == self.round.reference)


def _told(study: Study, run: Run, elimination: Elimination, records: Sequence[Record]) -> _Told | None:
    """The round that is told. What is left of the winner must be faster there as any variant must, with its
    guards; else the first round is told, which took nothing away yet."""
    if elimination.told is None:
        return None
    first = elimination.rounds[0]
    found = _in_blocks(study, run, elimination.told, records)
    if found.round == first or found.result.verdict is Verdict.FASTER:
        return found
    return _in_blocks(study, run, first, records)


def _in_blocks(study: Study, run: Run, one: Round, records: Sequence[Record]) -> _Told:
    own = [record for record in records if record.block in one.blocks]
    return _Told(one, analysed_blocks(study, run, own))


def _removed_before(elimination: Elimination, told: Round) -> tuple[Change, ...]:
    """What the rounds before the one that is told took away for good, with the share that it had."""
    kept = {change.factor for change in told.changes}
    before = elimination.rounds[: elimination.rounds.index(told)]
    enough = [one for one in before if not one.too_few]
    removed = (change for one in enough for change in one.changes if change.factor in one.removed)
    return tuple(change for change in removed if change.factor not in kept)


def _changes(study: Study, winner: VariantResult) -> tuple[Change, ...]:
    """The changes of a winner that no round took apart. The share of a single one is the whole effect; that
    of one among several is not known."""
    share = winner.effect if len(winner.changed) == 1 else None
    return tuple(
        Change(factor=name, level=level, against=study.baseline[name], share=share)
        for name, level in winner.changed.items()
    )


def _optimism(study: Study, winner: VariantResult, tried: Sequence[Candidate]) -> float | None:
    """How many times too good the search's own ratio was; None for a variant that the study named."""
    worth = next((one.worth for one in tried if one.name == winner.name and not one.cause), None)
    if worth is None or winner.effect is None:
        return None
    sign = 1.0 if metrics.find(study.goal.response).higher_is_better else -1.0
    return math.exp(worth - sign * math.log(winner.effect.ratio))


def _with_winner(study: Study, confirmed: Analysis, result: SearchResult, told: _Told | None) -> Analysis:
    """The confirmation's analysis with the winner in the answer, and the blocks that measured it last."""
    others = [name for name in confirmed.answer.faster if name != result.winner]
    answer = confirmed.answer.but(best=result.winner, level=(), rivals=(), faster=(result.winner, *others))
    update: dict[str, object] = {"study": study, "search": result, "answer": answer}
    if told is not None and told.result.name not in {one.name for one in confirmed.variants}:
        own = [trial for trial in told.analysis.trials if trial.record.variant == told.result.name]
        update["variants"] = (*confirmed.variants, told.result)
        update["trials"] = trials = (*confirmed.trials, *own)
        update["trials_planned"] = len(trials)
    return confirmed.but(**update)


def _tried_in(study: Study, tried: Sequence[Candidate]) -> tuple[Tried, ...]:
    """The candidates in their order, each with the best ratio by then. For a response of which less is better
    the best ratio is the smallest."""
    sign = 1.0 if metrics.find(study.goal.response).higher_is_better else -1.0
    path: list[Tried] = []
    best = 0.0
    for one in tried:
        counts = bool(one.log_ratios) and not one.cause
        best = max(best, one.worth) if counts else best
        path.append(
            Tried(
                name=one.name,
                changed=changed_levels(one.levels, study.baseline),
                blocks=len(one.log_ratios),
                ratio=math.exp(sign * one.worth) if counts else None,
                best=math.exp(sign * best),
                cause=one.cause,
                costs={name: math.exp(fmean(logs)) for name, logs in one.costs.items() if logs and counts},
                frontier=tuple(name for name in COSTS if counts and _leads(one, name, tried)),
            )
        )
    return tuple(path)


def _leads(one: Candidate, cost: str, tried: Sequence[Candidate]) -> bool:
    """Whether no other candidate is as good in the response and better in a cost, or the other way round."""
    if not one.costs.get(cost):
        return False
    own = one.worth, -fmean(one.costs[cost])
    others = [(other.worth, -fmean(other.costs[cost])) for other in tried if other.costs.get(cost)]
    return not is_beaten(own, others)
