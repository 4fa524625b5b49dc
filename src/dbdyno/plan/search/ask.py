"""What a search measures next.

First the baseline alone, so that a search that cannot go on ends at once. Then blocks with the baseline, the
best candidate so far and new ones, while there is time. Then the best candidates in blocks of their own,
which alone give a verdict. Then the winner without each of its changes. Where the study asks how often a
start is bad, the winner is started some times more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from dbdyno.analyse.elimination import (
    Candidate,
    candidates_of,
    excess_of,
    of_purpose,
    ranked_candidates,
    starts_needed,
)
from dbdyno.errors import BaselineFailed, UserError
from dbdyno.frozen import Level
from dbdyno.plan.blocks import Order, require_baseline
from dbdyno.plan.search.sampler import Levels, propose
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import EvaluationRun, Run, SearchRun
from dbdyno.study import BASELINE, CANDIDATE, Arrangement, Study
from dbdyno.study.trials import Purpose, Trial, Variant, phases_of

NEW_EACH_BLOCK = 4
"""Candidates that a block of the search tries, beside the baseline and the best one so far."""
FINALISTS = 3
"""Candidates that are confirmed. Each more widens the intervals of all, and takes time from the search."""
CHANGES_LEFT = 4
"""About so many changes at most carry a gain: the elimination's first round takes the others away, and its
second one measures what is left."""


def looks_on(
    study: Study, run: SearchRun, records: Sequence[Record], candidates: Sequence[Candidate]
) -> bool:
    """Whether another block of the search fits into the run's time, with all that must follow it."""
    return whole_s(study, records, candidates) <= run.budget_s


def whole_s(study: Study, records: Sequence[Record], candidates: Sequence[Candidate]) -> float:
    """Seconds that the run takes in all where one more block of the search is its last. What seems no better
    than the baseline is not confirmed, so its changes are never taken back."""
    better = [one for one in ranked_candidates(candidates) if one.worth > 0.0]
    changes = max((one.changes for one in better[:FINALISTS]), default=0)
    left = 2 + NEW_EACH_BLOCK + trials_after(study, changes)
    return spent_s(records) + left * trial_s(records) + making_s(records)


def trials_after(study: Study, changes: int) -> int:
    """How many trials follow the search: those of the confirmation, of the elimination of so many changes,
    and of the winner's further starts, each beside the baseline."""
    confirming = 1 + FINALISTS + len(study.variants)
    first, second = 2 + changes, 3 + min(changes, CHANGES_LEFT)
    starts = 2 * max(0, starts_needed(study, confirming - 1) - study.blocks)
    return study.blocks * (confirming + (first + second if changes > 1 else 0)) + starts


def has_time(run: SearchRun, records: Sequence[Record], trials: int) -> bool:
    """Whether so many trials fit into what is left of the run's time."""
    return spent_s(records) + trial_s(records) * trials <= run.budget_s


def least_s(study: Study, each_s: float) -> float:
    """The least time in which a search tries anything and confirms it, where a trial takes `each_s`."""
    return each_s * (1 + 1 + NEW_EACH_BLOCK + trials_after(study, 0))


def spent_s(records: Sequence[Record]) -> float:
    """Seconds that all trials took. The time between two parts of a run that was resumed is in none of
    them."""
    return sum(record.took_s for record in records)


def trial_s(records: Sequence[Record]) -> float:
    """What a trial takes by the baseline's, because a candidate can be dropped after a few slices. The first
    one makes the data, so it does not count where there are others."""
    seen = [record.took_s for record in records if record.variant == BASELINE and record.block > 0]
    return median(seen or [spent_s(records)])


def making_s(records: Sequence[Record]) -> float:
    """What making the data took: the confirmation makes data of its own."""
    first = [record.took_s for record in records if record.block == 0]
    return max(0.0, sum(first) - trial_s(records))


def next_candidate(
    study: Study,
    seed: int,
    tried: Sequence[Candidate],
    asked: Sequence[Levels],
    allowed: Callable[[Levels], bool],
) -> tuple[Levels, bool] | None:
    """What the search tries next where candidates are asked for one by one, after those that it `asked` for
    and with what was told of those that were `tried`; and whether they are levels that it asked for before.
    So many in a row are found as those of one block, after the best one so far. None where nothing is left.
    """
    # Here, because a plan that is only shown has no use for numpy.
    from dbdyno.plan.search.model import Model

    model = Model(study, tried)
    number, position = divmod(len(asked), 1 + NEW_EACH_BLOCK)
    if position == 0 and (best := model.leading(tried)) is not None:
        return dict(best.levels), True
    begun = number * (1 + NEW_EACH_BLOCK)
    fresh = [levels for levels in asked[begun:] if levels not in asked[:begun]]
    known = [one.levels for one in tried]
    model.believe([levels for levels in fresh if levels not in known])
    found = propose(study, tried, model, fresh, f"{seed} {number} {position}", allowed)
    return None if found is None else (found, False)


Memory = Callable[[Mapping[str, Level]], int]
"""About how many bytes a server takes with these levels."""

HELD_TIMES = 1.5
"""A server that was up before has room enough in this many times what it held: its load is the same again."""

FAILING_MOST = 12
"""Where so many candidates failed and none has a speed, the rest would fail too."""


class Block(NamedTuple):
    """One block of a search."""

    number: int
    purpose: Purpose
    variants: tuple[Variant, ...]


def ask(memory: Memory, study: Study, run: SearchRun, records: Sequence[Record]) -> Sequence[Trial]:
    """What is left of the block that has begun, or else the block after it; nothing when the search is over.

    Raises BaselineFailed where the baseline has no speed, or breaks a guard of its own, and UserError where
    its trial shows that the time is too short for any candidate.
    """
    # A run that was resumed has them in another order, and from the order of variants a block's is drawn.
    whole = sorted((record for record in records if record.whole), key=lambda record: record.trial)
    done = {record.trial for record in whole}
    begun = max((record.block for record in whole), default=0)
    for earlier in ([record for record in whole if record.block < begun], whole):
        block = next_block(memory, study, run, earlier)
        if block is None:
            return ()
        trials = trials_of(study, run, block, len(earlier))
        if left := [trial for trial in trials if trial.index not in done]:
            return at_once(memory, study, run, left, held_bytes(whole))
    return ()


def next_block(memory: Memory, study: Study, run: SearchRun, earlier: Sequence[Record]) -> Block | None:
    """The block that follows these, which are over; None where none does."""
    number = 1 + max((record.block for record in earlier), default=-1)
    confirming = of_purpose(earlier, Purpose.CONFIRMATION)
    if not confirming:
        if found := _to_search(memory, study, run, earlier, number):
            return Block(number, Purpose.SEARCH, found)
        return _to_confirm(study, earlier, even(number))
    if len({record.block for record in confirming}) < study.blocks:
        known = {record.variant: record.levels for record in confirming}
        variants = tuple(Variant(name=name, levels=levels) for name, levels in known.items())
        return Block(number, Purpose.CONFIRMATION, variants)
    return _to_eliminate(study, run, earlier, confirming, number)


def trials_of(study: Study, run: Run, block: Block, first: int) -> list[Trial]:
    """A block's trials in their order, with indices from `first` on."""
    phases = phases_of(study)
    return [
        Trial(
            index=first + position,
            block=block.number,
            position=position,
            variant=variant,
            phases=phases,
            purpose=block.purpose,
        )
        for position, variant in enumerate(Order.of(run).of_block(block.variants, block.number))
    ]


def _to_search(
    memory: Memory, study: Study, run: SearchRun, earlier: Sequence[Record], number: int
) -> tuple[Variant, ...]:
    """The baseline, the best candidate and new ones; none where the time is over or nothing new is left."""
    baseline = Variant(name=BASELINE, levels=study.baseline)
    if not earlier:
        return (baseline,)
    require_sound_baseline(study, earlier)
    tried = candidates_of(study, earlier)
    if not tried:
        _require_time(study, run, earlier)
    if not looks_on(study, run, earlier, tried) or _all_fail(tried):
        return ()
    # Here, because a plan that is only shown has no use for numpy.
    from dbdyno.plan.search.model import Model

    model = Model(study, tried)
    best = model.leading(tried)
    beside = [baseline, *([] if best is None else [Variant(name=best.name, levels=best.levels)])]
    fresh: list[Variant] = []
    for position in range(NEW_EACH_BLOCK):
        there = [variant.levels for variant in (*beside, *fresh)]

        def allowed(levels: Levels, there: list[Levels] = there) -> bool:
            kept = study.search is None or study.search.keeps(levels)
            return kept and fits(memory, study, run.room_bytes, [*there, levels])

        seed = f"{run.seed} {number} {position}"
        levels = propose(study, tried, model, [variant.levels for variant in fresh], seed, allowed)
        if levels is None:
            break
        model.believe([levels])
        name = f"{CANDIDATE}-{len(tried) + len(fresh) + 1}"
        fresh.append(Variant(name=name, levels=levels))
    return (*beside, *fresh) if fresh else ()


def _to_confirm(study: Study, earlier: Sequence[Record], number: int) -> Block | None:
    """The baseline, the best candidates, and the variants that the study names; None where there are none."""
    best = finalists(study, candidates_of(study, earlier))
    known = [Variant(name=one.name, levels=one.levels) for one in study.variants]
    named = [*(Variant(name=one.name, levels=one.levels) for one in best), *known]
    if not named:
        return None
    return Block(number, Purpose.CONFIRMATION, (Variant(name=BASELINE, levels=study.baseline), *named))


def finalists(study: Study, tried: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that are expected to be best. One of them is the best by its own blocks, because the
    model could be wrong."""
    from dbdyno.plan.search.model import Model

    better = [one for one in tried if one.worth > 0.0]
    best = ranked_candidates(better)[:1]
    expected = [one for one in Model(study, tried).ranked(better) if one not in best]
    return [*best, *expected][:FINALISTS]


def _to_eliminate(
    study: Study, run: SearchRun, earlier: Sequence[Record], confirming: Sequence[Record], number: int
) -> Block | None:
    """A block of the elimination's round; None where nothing was confirmed, or the elimination is over. The
    first round is always measured, and the second one as well, because only that one tells what the first one
    left. A further one is measured where there is time."""
    # Here, because a plan that is only shown has no use for numpy.
    from dbdyno.analyse.elimination import eliminated
    from dbdyno.findings.searched import analysed_blocks, winner_of

    confirmed = analysed_blocks(study, run, confirming)
    winner = winner_of(confirmed)
    if winner is None:
        return None
    elimination = eliminated(study, winner, confirmed.method, earlier)
    begins = len({one.block for one in of_purpose(earlier, Purpose.ELIMINATION)}) % study.blocks == 0
    due = elimination.due
    pressed = begins and len(elimination.rounds) > 1
    if not due or (pressed and not has_time(run, earlier, study.blocks * len(due))):
        return _to_start(study, run, earlier, number)
    return Block(even(number) if begins else number, Purpose.ELIMINATION, due)


def _to_start(study: Study, run: SearchRun, earlier: Sequence[Record], number: int) -> Block | None:
    """The baseline and the winner once more, until the winner has as many starts as the study's share of bad
    ones takes; None where it has, where the study asks for none, and where the time is over. Their number is
    known beforehand, so that no start that was seen decides whether there is another one."""
    if study.search is None or study.search.bad_starts is None:
        return None
    from dbdyno.findings.searched import analyse_search

    found, begun = analyse_search(study, run, earlier), of_purpose(earlier, Purpose.STARTS)
    starts = None if found.search is None else found.search.starts
    if starts is None or starts.count >= starts.needed or not has_time(run, earlier, 2):
        return None
    # The answer of a search that has a winner names it.
    winner = next(one for one in found.variants if one.name == found.answer.best)
    variants = (
        Variant(name=BASELINE, levels=study.baseline),
        Variant(name=winner.name, levels=winner.levels),
    )
    return Block(number if begun else even(number), Purpose.STARTS, variants)


def fits(memory: Memory, study: Study, room_bytes: int | None, levels: Sequence[Mapping[str, Level]]) -> bool:
    """Whether the servers of these levels have room in memory: together where they run side by side."""
    if room_bytes is None:
        return True
    return _have_room(study, room_bytes, [memory({**study.settings, **own}) for own in levels])


def _have_room(study: Study, room_bytes: int, needed: Sequence[float]) -> bool:
    beside = study.arrangement is Arrangement.SIDE_BY_SIDE
    return (sum(needed) if beside else max(needed)) <= room_bytes


def even(number: int) -> int:
    """Blocks that are compared come in pairs, of which the second runs the first's order backwards."""
    return number + number % 2


def at_once(
    memory: Memory,
    study: Study,
    run: SearchRun | EvaluationRun,
    trials: Sequence[Trial],
    held: Mapping[str, float],
) -> Sequence[Trial]:
    """As many of a block's trials as have room beside each other; at least one. The rest follow, and what
    follows meets other disturbances. So a cache that data did not fill counts as what it held."""
    if run.room_bytes is None:
        return trials
    needed = [
        min(
            memory({**study.settings, **one.variant.levels}),
            HELD_TIMES * held.get(one.variant.name, math.inf),
        )
        for one in trials
    ]
    count = len(trials)
    while count > 1 and not _have_room(study, run.room_bytes, needed[:count]):
        count -= 1
    return trials[:count]


def held_bytes(records: Sequence[Record]) -> dict[str, float]:
    """The most memory that the server of each variant held resident in any trial so far."""
    held: dict[str, float] = {}
    for record in records:
        for phase in record.phases:
            seen = phase.observation.totals.get("resident_bytes_max") if phase.observation else None
            if seen is not None:
                held[record.variant] = max(seen, held.get(record.variant, 0.0))
    return held


def _all_fail(tried: Sequence[Candidate]) -> bool:
    return len(tried) >= FAILING_MOST and not ranked_candidates(tried)


def _require_time(study: Study, run: SearchRun, records: Sequence[Record]) -> None:
    """Raises UserError where the baseline took so long that nothing could be tried and confirmed in time."""
    needed_s = whole_s(study, records, ())
    if not looks_on(study, run, records, ()):
        raise UserError(
            f"a trial takes {trial_s(records):.1f} s here, so the first candidates and their confirmation"
            f" need about {needed_s:.0f} s, and {run.budget_s:.0f} s are given",
            f"begin anew with --budget {math.ceil(1.5 * needed_s / 60)}m or more",
        )


def require_sound_baseline(study: Study, records: Sequence[Record]) -> None:
    """Raises BaselineFailed where the first trial, which is the baseline's, gives nothing to compare with."""
    require_baseline(study, records)
    first = min(records, key=lambda record: record.trial)
    if first.outcome is not Outcome.MEASURED:
        raise BaselineFailed(f"the baseline could not be measured: {first.cause}", first.remedy)
    for guard in study.goal.guards:
        if not guard.relative and excess_of(guard, first, first) > 0.0:
            raise BaselineFailed(
                f"the baseline itself breaks the guard {guard.text}, so nothing could be held against it",
                "relax the guard, or give the baseline levels that keep it",
            )
