"""An evaluation: a searcher of others names levels, a line of JSON each, and Dyno measures and answers them.

What is said has a line of JSON each as well. Each says by `line` what it is, and the first one states the
`version` of them all. `docs/guides/searchers.py` shows them.

It begins with blocks of two servers of the baseline, whose log ratios tell the noise floor. Each block after
them holds the baseline and the levels that were named. When the input ends, Dyno's own search has as much
time as was taken, where that was asked for. Then the best of each side are measured again, in blocks with
other keys, other images of the data and new servers, which alone give a verdict.

What is answered follows from the records. Levels that are named for the n-th time are answered by the n-th
block that holds them, so a run that goes on measures nothing again of a searcher that asks the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbdyno.analyse.elimination import Candidate, candidates_of, side_of_candidate
from dbdyno.analyse.intervals import usable
from dbdyno.analyse.model import Analysis, VariantResult
from dbdyno.analyse.quantiles import BLOCKS_LEAST, confidence_each, floor_reach
from dbdyno.errors import UserError
from dbdyno.findings.searched import analysed_blocks
from dbdyno.frozen import Frozen, level_text
from dbdyno.kinds import comparison
from dbdyno.kinds.evaluation_lines import (
    AnsweredRatio,
    AnswerLine,
    CandidateLine,
    EndLine,
    FactorOffer,
    MeasuredFloor,
    OpeningLine,
    RefusedLine,
    blocks_asked,
    levels_named,
    object_of_line,
)
from dbdyno.kinds.kind import Beginning
from dbdyno.kinds.search import Candidates, Searching, space_text
from dbdyno.plan.search.ask import (
    Block,
    Memory,
    next_candidate,
    require_sound_baseline,
    spent_s,
    trials_of,
)
from dbdyno.plan.search.evaluation import EvaluationSoFar, is_own, key_of
from dbdyno.plan.search.sampler import Levels
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import EvaluationRun, Run, of_kind
from dbdyno.report.words.numbers import about_text, is_or_are, plural
from dbdyno.study import BASELINE, CANDIDATE, TWIN, Study
from dbdyno.study.designs import changed_levels
from dbdyno.study.nouns import Search
from dbdyno.study.trials import Purpose, Trial
from dbdyno.trial.bench import nobody

if TYPE_CHECKING:
    from dbdyno.host.cache import Tell
    from dbdyno.plan import Ask
    from dbdyno.prepare_run.begun import Begun
    from dbdyno.records.store import Store
    from dbdyno.run import Unwatched
    from dbdyno.trial.bench import Bench

Say = Callable[[Frozen], None]


@dataclass
class AskedLevels:
    """Levels that were asked for, as often as they were before, and how many blocks more."""

    number: int
    id: Any
    levels: Levels
    blocks: int
    before: int
    why_ended: str = ""

    @property
    def last(self) -> int:
        return self.before + self.blocks


class Evaluating(Searching):
    """An evaluation goes on by what its verb is asked."""

    def ask(self, run: Any, memory: Memory | None = None, decided: Any = None) -> Ask:
        raise UserError(f"run {run.run} is {run.words}", f"dyno evaluate --resume {run.run}")

    def at_bench(self, bench: Bench) -> Bench:
        # An answer is of all slices, however far behind the levels are.
        return replace(super().at_bench(bench), drop=nobody)

    def progress(self, study: Study, run: Any, say: Callable[[str], None]) -> Unwatched:
        return _Trials(study, run, say)


EVALUATION = Evaluating()


class _Trials(Candidates):
    """A line when a trial has ended. What candidates are worth is in the answers."""

    def seen(self, records: Sequence[Record]) -> None: ...


def begin_evaluation(store: Store, options: comparison.RunOptions, own: bool, tell: Tell) -> Begun:
    """An evaluation that begins, before any of its trials. Raises UserError for a study that searches
    nothing, and for a time that is too short."""
    begun = comparison.begin(store, options, tell).begun
    if not begun.run.searches:
        raise UserError(
            f"{options.path} has the design `{begun.study.design}`, which has no space of levels",
            'write design = "search"; see: dyno tune',
        )
    return replace(begun, run=of_kind(EvaluationRun, begun.run, own=own))


def beginning_of_evaluation(begun: Begun, requests: Iterable[str], say: Say) -> Beginning:
    """What its verb carries out: lines that are read as they come, and what is said to them."""
    run = begun.run
    assert isinstance(run, EvaluationRun)  # of `begin_evaluation`, or chosen by its verb

    def lines(kept: int, now_unix_s: float) -> Sequence[str]:
        done = f"; {plural(kept, 'trial')} of it {is_or_are(kept)} kept" if kept else ""
        asked = f"an evaluation of {space_text(begun.study)}, for {about_text(run.budget_s)}{done}"
        return [f"{begun.study.title}\nrun {run.run}: {asked}"]

    def ask(memory: Memory) -> Ask:
        return Dialogue(requests, say, memory).ask

    return Beginning(begun, run.budget_s, run.budget_s, lines, ask=ask)


class Dialogue:
    """The conversation with a searcher: its `ask` reads lines until one has to be measured, and answers it
    when the records hold that."""

    def __init__(self, requests: Iterable[str], say: Say, memory: Memory) -> None:
        self._lines = enumerate(requests, 1)
        self._say = say
        self._memory = memory
        self._times: Counter[tuple[str, ...]] = Counter()
        self._pending: AskedLevels | None = None
        self._opened: int | None = None
        self._over = False

    def ask(self, study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
        """The next trials of the run, by its records and the next lines."""
        assert isinstance(run, EvaluationRun)  # no other kind of run has a dialogue
        whole = sorted((record for record in records if record.whole), key=lambda record: record.trial)
        now = EvaluationSoFar(study, run, whole)
        if whole:
            require_sound_baseline(study, whole)
        if (floor := now.next_floor()) is not None:
            return self._trials(now, floor)
        if self._opened is None:
            self._opened = max((record.trial for record in whole), default=0)
            self._say(opening_of(now))
        if not self._over and (block := self._listened(now, self._opened)) is not None:
            return self._trials(now, block)
        self._over = True
        if (block := now.next_own(self._memory)) is not None:
            return self._trials(now, block)
        return now.next_confirming(self._memory)

    def _listened(self, now: EvaluationSoFar, opened: int) -> Block | None:
        """Answers until something has to be measured; None when the input has ended."""
        while (asked := self._pending or self._next_request(now)) is not None:
            if (block := self._next_block(now, asked)) is not None:
                self._pending = asked
                return block
            self._say(answer_to(now, asked, opened))
            self._pending = None
        return None

    def _trials(self, now: EvaluationSoFar, block: Block) -> Sequence[Trial]:
        return trials_of(now.study, now.run, block, now.next_index)

    def _next_request(self, now: EvaluationSoFar) -> AskedLevels | None:
        """The next line that asks for something. The others are refused."""
        for number, text in self._lines:
            if not text.strip():
                continue
            told: Any = None
            try:
                told = object_of_line(text)
                levels = levels_named(now.study, told)
                blocks = blocks_asked(told)
            except UserError as error:
                own = told.get("id") if isinstance(told, dict) else None
                self._say(RefusedLine(number=number, id=own, why=error.message, hint=error.hint))
                continue
            known = key_of(now.study, levels)
            request = AskedLevels(number, told.get("id"), levels, blocks, self._times[known])
            self._times[known] += blocks
            return request
        return None

    def _next_block(self, now: EvaluationSoFar, request: AskedLevels) -> Block | None:
        """The block that a request lacks; None where there is none, or where it cannot be measured."""
        there = len(now.blocks_of(now.name_of(request.levels)))
        if there >= request.last:
            return None
        request.why_ended = now.why_not(request.levels, self._memory)
        return None if request.why_ended else now.block_of(request.levels)


def floor_of(now: EvaluationSoFar) -> MeasuredFloor | None:
    """The noise floor; None where no block has both servers."""
    found = now.logs(now.held(Purpose.FLOOR), TWIN)
    if not found:
        return None
    log_sd = math.sqrt(sum(one * one for one in found) / len(found))
    reach = floor_reach(log_sd, len(found), _confidence(now.study), 1)
    return MeasuredFloor(blocks=len(found), log_sd=log_sd, ratio=math.exp(reach))


def _confidence(study: Study) -> float:
    goal = study.goal
    return confidence_each(goal.confidence, goal.comparisons(1))


def opening_of(now: EvaluationSoFar) -> OpeningLine:
    """The first line."""
    study, run, metric = now.study, now.run, metrics.find(now.study.goal.response)
    searched = now.held(Purpose.SEARCH)
    return OpeningLine(
        run=run.run,
        study=study.title,
        response=study.goal.response,
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        confidence=study.goal.confidence,
        margin=study.goal.margin,
        guards=tuple(guard.text for guard in study.goal.guards),
        seed=run.seed,
        budget_s=run.budget_s,
        reserved_s=round(now.reserved_s, 3),
        spent_s=round(spent_s(now.records), 3),
        left_s=round(now.left_s, 3),
        floor=floor_of(now),
        factors=tuple(
            FactorOffer(
                name=factor.name,
                baseline=factor.baseline,
                levels=factor.rising or factor.levels,
                ordered=bool(factor.rising),
                only_if=tuple(
                    f"{one.factor} is {' or '.join(map(level_text, one.levels))}" for one in factor.only_if
                ),
            )
            for factor in study.factors
        ),
        constraints=tuple(one.text for one in (study.search or Search()).constraints),
        own=run.own,
        confirming_blocks=study.blocks,
        answered=sum(not is_own(block) and len(block) > 1 for block in searched.values()),
    )


def answer_to(now: EvaluationSoFar, request: AskedLevels, opened: int) -> AnswerLine:
    """What the records say of a request, after the trial with which this run went on."""
    name = now.name_of(request.levels)
    numbers = now.blocks_of(name)[: request.last]
    asked = numbers[request.before :]
    held = now.held(Purpose.SEARCH)
    told = {
        "number": request.number,
        "id": request.id,
        "variant": name if numbers else "",
        "levels": request.levels,
        "spent_s": round(spent_s(now.records), 3),
        "left_s": round(now.left_s, 3),
    }
    if not asked:
        return AnswerLine(outcome="not measured", why=request.why_ended, **told)
    own = [held[number][one] for number in numbers for one in (BASELINE, name)]
    latest = [record for number in asked for record in held[number].values()]
    found = analysed_blocks(now.study, now.run, own)
    variant = next(one for one in found.variants if one.name == name)
    candidate = next(one for one in candidates_of(now.study, own) if one.name == name)
    ratio = _ratio_of(now, variant, {number: held[number] for number in numbers})
    ended = next((held[number][name] for number in numbers if _failed(held[number][name])), None)
    return AnswerLine(
        outcome=ended.outcome.value if ended else Outcome.MEASURED.value,
        why=candidate.cause or request.why_ended or ("" if ratio else _why_no_ratio(own)),
        hint=ended.remedy if ended else "",
        response=variant.response.mean if variant.response else None,
        baseline=found.baseline.response.mean if found.baseline.response else None,
        ratio=ratio,
        worth=None if candidate.cause or not candidate.log_ratios else candidate.worth,
        guards=variant.guards,
        cost_s=round(spent_s(latest), 3),
        kept=max(record.trial for record in latest) <= opened,
        **told,
    )


def _ratio_of(
    now: EvaluationSoFar, variant: VariantResult, held: Mapping[int, Mapping[str, Record]]
) -> AnsweredRatio | None:
    """The ratio with its interval: by its own blocks where these are enough for a verdict."""
    effect = variant.effect
    if effect is None:
        return None
    told = AnsweredRatio(value=effect.ratio, confidence=effect.confidence, blocks=effect.pairs)
    if effect.pairs >= BLOCKS_LEAST and effect.low is not None:
        return told.but(low=effect.low, high=effect.high, rests_on="blocks")
    found, floor = now.logs(held, variant.name), floor_of(now)
    if floor is None or not found:
        return told
    reach = floor_reach(floor.log_sd, floor.blocks, effect.confidence, len(found))
    ends = effect.ratio * math.exp(-reach), effect.ratio * math.exp(reach)
    return told.but(low=ends[0], high=ends[1], rests_on="floor")


def _failed(record: Record) -> bool:
    return record.outcome is not Outcome.MEASURED


def _why_no_ratio(records: Sequence[Record]) -> str:
    """Why the blocks of sound levels have no ratio."""
    failed = next((one for one in records if one.variant == BASELINE and _failed(one)), None)
    return f"the baseline beside it could not be measured: {failed.cause}" if failed else "it has no response"


def end_line(analysis: Analysis) -> EndLine:
    """The last line of an evaluation that is over."""
    search, run = analysis.search, analysis.run.run
    assert search is not None  # every evaluation is told as a search
    judged = search.judged
    best = [one for one in judged if one.side != "own"]
    holding = f"{sum(one.holds for one in best)} of {len(best)} of the best hold when measured again"
    why = holding if best else "none was better than the baseline"
    return EndLine(
        run=run,
        why=f"the input ended: {why}",
        answered=sum(one.blocks for one in search.tried if side_of_candidate(one.name) == "theirs"),
        judged=judged,
        winner=search.winner,
        report=f"dyno report {run}",
    )


def hand_out(study: Study, seed: int, told: Iterable[str], lines: Iterable[str], say: Say) -> None:
    """Hands out what Dyno's own search would try, a candidate after each result that is told: first those
    that were `told` before, then those of `lines`. A result is a line with `levels` and a `ratio` to the
    baseline, or with `why` there is none. The answers of an evaluation are such lines."""
    heard = HeardResults(study, say)
    for number, text in enumerate(told, 1):
        heard.add(number, text)
    count, following = len(heard.asked), enumerate(lines, 1)
    while (found := heard.next_candidate(seed)) is not None:
        count += 1
        say(CandidateLine(number=count, levels=found[0], again=found[1]))
        heard.asked.append(found[0])
        if not any(heard.add(number, text) for number, text in following):
            return
    say(EndLine(why="nothing of the space is left to try", answered=len(heard.tried)))


class HeardResults:
    """The results that Dyno's own search was told, and what it asked for."""

    def __init__(self, study: Study, say: Say) -> None:
        self._study = study
        self._say = say
        self.tried: dict[tuple[str, ...], Candidate] = {}
        self.asked: list[Levels] = []

    def next_candidate(self, seed: int) -> tuple[Levels, bool] | None:
        allowed = (self._study.search or Search()).keeps
        return next_candidate(self._study, seed, list(self.tried.values()), self.asked, allowed)

    def add(self, number: int, text: str) -> bool:
        """Whether a line is a result, which is taken up; what else an evaluation says is passed over."""
        try:
            line = object_of_line(text) if text.strip() else {"line": "empty"}
            if line.get("line", "answer") != "answer":
                return False
            levels = _result(self._study, line, self.tried)
        except UserError as error:
            self._say(RefusedLine(number=number, why=error.message, hint=error.hint))
            return False
        if levels not in self.asked[-1:]:
            self.asked.append(levels)
        return True


def _result(study: Study, told: Mapping[str, Any], tried: dict[tuple[str, ...], Candidate]) -> Levels:
    """Takes up a result. Raises UserError where it is none."""
    levels, ratio, why = levels_named(study, told), told.get("ratio"), told.get("why")
    log = _log_worth(study, ratio.get("value") if isinstance(ratio, dict) else ratio)
    if log is None and not why:
        raise UserError(
            "this line has neither a `ratio` above 0 nor a `why`",
            "write the response over the baseline's as `ratio`, or `why` there is none",
        )
    known, changes = key_of(study, levels), len(changed_levels(levels, study.baseline))
    fresh = Candidate(name=f"{CANDIDATE}-{len(tried) + 1}", levels=levels, changes=changes)
    # An answer's ratio is of all its blocks so far, and a plain one of one more.
    before = fresh if isinstance(ratio, dict) else tried.get(known, fresh)
    latest = 1 + max((block for one in tried.values() for block in one.blocks), default=-1)
    logs = (*before.log_ratios, 0.0 if log is None else log)
    sound = before.but(log_ratios=logs, blocks=(*before.blocks, latest))
    failed = log is None or (why and isinstance(ratio, dict))
    tried[known] = before.but(cause=str(why), worst=-5.0) if failed else sound
    return levels


def _log_worth(study: Study, ratio: object) -> float | None:
    """The log of a ratio, turned so that more is better; None of what is no ratio."""
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not usable(float(ratio)):
        return None
    sign = 1.0 if metrics.find(study.goal.response).higher_is_better else -1.0
    return sign * math.log(float(ratio))
