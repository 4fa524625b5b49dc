"""How far a bisection has come, from its records alone: which points of its line are good and which bad, by
what evidence, and what it must know next.

Each block holds the good end, the point that is asked about, and the bad end, so a drift of the host is in
all three. A point's own log ratio less the mean of the two ends' is above zero where it belongs to the bad
end: so the threshold lies midway between the ends as they are in the same blocks, and its own error is in the
interval. Intervals hold at all looks (`looks.py`), and the error that is allowed is shared by all questions
that a bisection of the line's length asks.

Instructions that are counted repeat to a small part of a per cent, and the layout of code does not change
them. So where the ends differ in them, and time does not contradict, one count places a point. Where they do
not, builds can still differ in time by the luck of their layout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from statistics import median

from dbdyno.analyse.code import DIFFERENCE_LEAST, changed_functions
from dbdyno.analyse.columns import Block, OfRecords
from dbdyno.analyse.engines import engines_compared
from dbdyno.analyse.estimate import Estimator, log_ratios
from dbdyno.analyse.floor import ASSURANCE
from dbdyno.analyse.found import AnswerDifference, EnginesCompared, InstructionChange
from dbdyno.analyse.intervals import within
from dbdyno.analyse.model import Method, Ratio
from dbdyno.analyse.quantiles import BLOCKS_LEAST
from dbdyno.frozen import Frozen, absent
from dbdyno.records import metrics
from dbdyno.records.record import Counted, Outcome, Record
from dbdyno.records.run import BisectionRun, Run
from dbdyno.study import Interval, Study
from dbdyno.study.trials import Along, Point, Purpose, on_line

NEAR_END = 0.25
"""A count places a point that is no farther from an end's than this share of the ends' difference."""
BLOCKS_BESIDE_COUNTS = 12
"""Where instructions show a change, time is asked for no longer than this whether it contradicts."""
LUCK_OF_LAYOUT = math.log(1.05)
"""So far the speed of builds that execute the same instructions may differ by where their code lies."""
BESIDE_SEARCH = 2
"""Questions that are asked beside those of the search: whether the ends differ, and whether the point that
was found differs from the one before."""
FUNCTIONS_MOST, LEAST_CHANGE = 10, 0.05
"""So many functions are told of at most, whose change is more than this share of the largest one."""
OPEN_MOST = 3
"""After so many points that time could not place, the rest would not be placed either."""


class Side(StrEnum):
    """To which end a point belongs. One that is skipped could not be measured; one that is open was, and
    could not be placed."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"
    OPEN = "open"


class By(StrEnum):
    """What placed a point: it is an end, its time, its instructions, or code that is the good end's."""

    END = "end"
    TIME = "time"
    INSTRUCTIONS = "instructions"
    CODE = "code"


class Placed(Frozen):
    """A point that was asked about, by its place on the line. `ratio` is its response over that of the good
    end in the same blocks, `instructions` those it executes over the good end's. `cause` says why it was
    skipped, or what makes its code the same."""

    place: int
    side: Side
    by: By
    ratio: Ratio | None = None
    instructions: float | None = None
    cause: str = ""


class Look(StrEnum):
    """What an interval of log ratios says of a difference: the second is worse, is better, differs by no
    more than the margin, nothing yet, or nothing in the most blocks."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    NOT_YET = "not yet"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class BisectionNeed:
    """What must be known next: trials of these places side by side, or what they execute."""

    places: tuple[int, ...]
    counted: bool = False
    purpose: Purpose = Purpose.SEARCH


@dataclass(frozen=True)
class BisectionWay:
    """How far a search along the line is: the last good and the first bad place, all that were placed, and
    what it needs next; None where it is over."""

    low: int
    high: int
    placed: Mapping[int, Placed]
    need: BisectionNeed | None
    by_counts: bool = False


@dataclass(frozen=True)
class Ends:
    """What is known of the two ends: what time says, the log ratio of instructions in each repeat, and what
    is needed to know more. `cause` says why the bad end could not be measured."""

    look: Look
    ratio: Ratio | None
    counted: tuple[float, ...]
    need: BisectionNeed | None
    same_code: str = ""
    cause: str = ""

    @property
    def counts_differ(self) -> bool:
        """Whether the bad end executes more in every repeat."""
        return min(self.counted, default=0.0) > math.log1p(DIFFERENCE_LEAST)


@dataclass
class BisectionEvidence:
    """The records of a bisection, by place. `worse` is 1 where a larger response is worse, else -1. All of
    `asked_of` have questions of their own, in whose family these are."""

    study: Study
    run: BisectionRun
    records: Sequence[Record]
    by_place: dict[int, list[Record]] = field(init=False)
    asked_of: int = 1

    def __post_init__(self) -> None:
        line = self.run.line
        place_of = {line.variant(place): place for place in range(len(line.points))}
        self.by_place = {}
        for record in sorted(self.records, key=lambda record: record.trial):
            if record.whole:
                self.by_place.setdefault(place_of[record.variant], []).append(record)
        self.response = metrics.find(self.study.goal.response)
        self.worse = -1.0 if self.response.higher_is_better else 1.0

    @cached_property
    def estimator(self) -> Estimator:
        """For the interval of one question, so that all hold together as the study asks."""
        goal = self.study.goal
        questions = self.asked_of * (math.ceil(math.log2(max(2, self.run.line.last))) + BESIDE_SEARCH)
        method = Method(
            response=goal.response,
            higher_is_better=self.response.higher_is_better,
            margin=goal.margin,
            confidence=goal.confidence,
            comparisons=questions,
            confidence_each=1.0 - (1.0 - goal.confidence) / questions,
            assurance=ASSURANCE,
            interval=Interval.PLANNED,
            blocks_least=BLOCKS_LEAST,
            blocks_most=self.run.blocks,
        )
        return Estimator.of(OfRecords(self.records), method)

    def values(self, place: int) -> Mapping[Block, float]:
        """The response of a place by block."""
        return self._values.get(place, {})

    @cached_property
    def _values(self) -> dict[int, dict[Block, float]]:
        found: dict[int, dict[Block, float]] = {}
        for place, record in self._timed():
            value = self.value(record) if record.outcome is Outcome.MEASURED else None
            if value is not None:
                found.setdefault(place, {})[record.host, record.block] = value
        return found

    def value(self, record: Record) -> float | None:
        """What a measured trial says."""
        return self.response.read(record)

    def blocks_for(self, need: BisectionNeed) -> Sequence[Block]:
        """The blocks that were measured for a need, in their order. Others that hold its places as well do
        not count, because they began after it was settled."""
        return self._blocks.get((need.purpose, frozenset(need.places)), ())

    @cached_property
    def _blocks(self) -> dict[tuple[Purpose | None, frozenset[int]], list[Block]]:
        held: dict[tuple[Purpose | None, Block], set[int]] = {}
        for place, record in self._timed():
            held.setdefault((record.purpose, (record.host, record.block)), set()).add(place)
        found: dict[tuple[Purpose | None, frozenset[int]], list[Block]] = {}
        for (purpose, block), places in sorted(held.items(), key=lambda item: item[0][1][1]):
            found.setdefault((purpose, frozenset(places)), []).append(block)
        return found

    def _timed(self) -> Iterator[tuple[int, Record]]:
        for place, records in self.by_place.items():
            yield from ((place, record) for record in records if not record.of_no_block)

    def first(self, place: int, *outcomes: Outcome) -> Record | None:
        """The first record of a place that ended in one of these ways."""
        return next((one for one in self.by_place.get(place, ()) if one.outcome in outcomes), None)

    def instructions(self, place: int) -> tuple[float, ...]:
        """The log of a place's instructions over those of the good end, of each repeat, because repeats of
        one number do the same transactions; empty where one of the two was not counted."""
        own, good = self.executed(place), self.executed(0)
        if own is None or good is None or len(own.repeats) != len(good.repeats):
            return ()
        return tuple(math.log(ours / theirs) for ours, theirs in zip(own.repeats, good.repeats, strict=True))

    def was_counted(self, place: int) -> bool:
        """Whether counting was tried, whatever came of it."""
        return any(record.of_no_block for record in self.by_place.get(place, ()))

    def executed(self, place: int) -> Counted | None:
        """What a place executes; None where that is not known."""
        for record in self.by_place.get(place, ()):
            if record.of_no_block and record.outcome is Outcome.MEASURED and record.instructions is not None:
                return record.instructions
        return None

    def ratio(self, place: int, against: int = 0) -> Ratio | None:
        """The response of a place over that of another in the blocks that hold both."""
        logs = log_ratios(self.values(place), self.values(against))
        return self.estimator.ratio(self.response.name, logs, self.estimator.method.confidence_each)

    def compared(self, need: BisectionNeed, place: int, against: int, beside_counts: bool) -> Look:
        """Whether a place is worse than another one, in the blocks that were measured for a need. Not as many
        are taken where counts have shown a difference."""
        most = BLOCKS_BESIDE_COUNTS if beside_counts else self.run.blocks
        return self._judged(need, place, self.values(against), most, self.study.goal.margin)

    def placed_by_time(self, need: BisectionNeed, place: int) -> Look:
        """On which side of the middle between the ends a place lies, in the blocks that hold all three."""
        good, bad = self.values(0), self.values(self.run.line.last)
        middle = {block: math.sqrt(good[block] * bad[block]) for block in good.keys() & bad.keys()}
        return self._judged(need, place, middle, self.run.blocks)

    def _judged(
        self, need: BisectionNeed, place: int, against: Mapping[Block, float], most: int, margin: float = 0.0
    ) -> Look:
        """Only whole pairs of blocks are looked at, because half of a pair favours whoever came first."""
        blocks, own = self.blocks_for(need), self.values(place)
        whole = blocks[: len(blocks) - len(blocks) % 2]
        found = log_ratios({block: own[block] for block in whole if block in own}, against)
        if found and (look := self._told(found, margin)) is not None:
            return look
        fewest = min(most, self.run.blocks)
        return Look.UNKNOWN if len(whole) >= fewest - fewest % 2 else Look.NOT_YET

    def _told(self, logs: Mapping[Block, float], margin: float) -> Look | None:
        """What these log ratios say already; None where that is nothing."""
        each = self.estimator.method.confidence_each
        effect = self.estimator.ratio(self.response.name, logs, each, judged=True)
        if effect is None or effect.low is None or effect.high is None:
            return None
        if margin and within(effect, margin):
            return Look.SAME
        if effect.low <= 1.0 <= effect.high:
            return None
        return Look.WORSE if (effect.low > 1.0) == (self.worse > 0.0) else Look.BETTER


def ends_of(seen: BisectionEvidence) -> Ends:
    """What is known of the two ends so far. Instructions are counted once the first block has shown that both
    run."""
    last = seen.run.line.last
    if (same := seen.first(last, Outcome.INERT)) is not None:
        return Ends(Look.SAME, None, (), None, same_code=same.cause)
    if (lost := seen.first(last, Outcome.BROKEN, Outcome.FAILED, Outcome.BLOCKED)) is not None:
        return Ends(Look.UNKNOWN, None, (), None, cause=lost.cause)
    counts, timed = seen.run.counting.by == "valgrind", BisectionNeed((0, last))
    if not seen.values(last):
        return Ends(Look.NOT_YET, None, (), timed)
    uncounted = [place for place in (0, last) if counts and not seen.was_counted(place)]
    found = Ends(Look.NOT_YET, seen.ratio(last), seen.instructions(last), timed)
    if uncounted:
        return replace(found, need=BisectionNeed(tuple(uncounted), counted=True))
    look = seen.compared(timed, last, 0, found.counts_differ)
    return replace(found, look=look, need=timed if look is Look.NOT_YET else None)


def differ(seen: BisectionEvidence, ends: Ends) -> bool:
    """Whether there is a change to look for: time shows it, or instructions do and time cannot contradict.
    Builds that execute the same may differ in time by the luck of their layout, so they must differ by more
    than that goes."""
    if ends.look is Look.WORSE:
        luck = seen.run.line.along is Along.COMMITS and bool(ends.counted) and not ends.counts_differ
        return not luck or _least_worse(seen, ends.ratio) > LUCK_OF_LAYOUT
    return ends.look is Look.UNKNOWN and ends.counts_differ


def _least_worse(seen: BisectionEvidence, ratio: Ratio | None) -> float:
    """By how much one is worse than the other at the least, as a log ratio."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return 0.0
    return min(seen.worse * math.log(ratio.low), seen.worse * math.log(ratio.high))


def way_of(seen: BisectionEvidence, by_counts: bool) -> BisectionWay:
    """The search between the ends, up to what it needs next."""
    low, high = 0, seen.run.line.last
    placed = {
        0: Placed(place=0, side=Side.GOOD, by=By.END),
        high: _placed(seen, high, Side.BAD, By.END),
    }
    while (place := _next(low, high, placed)) is not None:
        found = _place(seen, place, by_counts)
        if isinstance(found, BisectionNeed):
            return BisectionWay(low, high, placed, found, by_counts)
        placed[place] = found
        low, high = (place if found.side is Side.GOOD else low), (place if found.side is Side.BAD else high)
    return BisectionWay(low, high, placed, None, by_counts)


def _next(low: int, high: int, placed: Mapping[int, Placed]) -> int | None:
    """The place nearest to the middle that was not asked about; None where none is left between the two."""
    if sum(one.side is Side.OPEN for one in placed.values()) >= OPEN_MOST:
        return None
    left = [place for place in range(low + 1, high) if place not in placed]
    return min(left, key=lambda place: (abs(2 * place - low - high), place), default=None)


def _place(seen: BisectionEvidence, place: int, by_counts: bool) -> Placed | BisectionNeed:
    """On which side a place lies, or what must be known for that."""
    if (same := seen.first(place, Outcome.INERT)) is not None:
        return Placed(place=place, side=Side.GOOD, by=By.CODE, cause=same.cause)
    if (lost := seen.first(place, Outcome.BROKEN, Outcome.FAILED, Outcome.BLOCKED)) is not None:
        return Placed(place=place, side=Side.SKIPPED, by=By.TIME, cause=lost.cause)
    if by_counts and not seen.was_counted(place):
        return BisectionNeed((place,), counted=True)
    side = _by_counts(seen, place) if by_counts else None
    if side is not None:
        return _placed(seen, place, side, By.INSTRUCTIONS)
    need = BisectionNeed((0, place, seen.run.line.last))
    look = seen.placed_by_time(need, place)
    if look is Look.NOT_YET:
        return need
    sides = {Look.WORSE: Side.BAD, Look.BETTER: Side.GOOD}
    return _placed(seen, place, sides.get(look, Side.OPEN), By.TIME)


def _placed(seen: BisectionEvidence, place: int, side: Side, by: By) -> Placed:
    """A place on a side, with all that was measured of it."""
    instructions = _middle(seen.instructions(place))
    return Placed(place=place, side=side, by=by, ratio=seen.ratio(place), instructions=instructions)


def _by_counts(seen: BisectionEvidence, place: int) -> Side | None:
    """The side on which a place's instructions put it: where they meet an end's in a repeat, and are much
    farther from the other end's in all. None where they do not, or are not known. What a server does now and
    then by itself is in some repeats and not in others."""
    pairs = zip(seen.instructions(place), seen.instructions(seen.run.line.last), strict=False)
    shares = [own / bad for own, bad in pairs]
    if not shares:
        return None
    to_good, to_bad = min(map(abs, shares)), min(abs(1.0 - share) for share in shares)
    if min(to_good, to_bad) > NEAR_END or max(to_good, to_bad) < 2.0 * min(to_good, to_bad):
        return None
    return Side.GOOD if to_good < to_bad else Side.BAD


def _middle(logs: Sequence[float]) -> float | None:
    """The median ratio of the repeats."""
    return math.exp(median(logs)) if logs else None


def confirmation_of(
    seen: BisectionEvidence, ends: Ends, way: BisectionWay
) -> tuple[Look, BisectionNeed | None]:
    """Whether what was found is worse than the last good place, in blocks of their own beside the good end,
    because those that chose it favour it. The ends themselves were not chosen."""
    if (way.low, way.high) == (0, seen.run.line.last):
        return ends.look, None
    need = BisectionNeed(tuple(sorted({0, way.low, way.high})), purpose=Purpose.CONFIRMATION)
    look = seen.compared(need, way.high, way.low, way.by_counts)
    return look, need if look is Look.NOT_YET else None


@dataclass(frozen=True)
class Course:
    """All that the records say so far. Without a `way` the ends do not differ, or it is not known yet.
    `contradicted`: time refused what instructions had found, so the way is one by time."""

    ends: Ends
    way: BisectionWay | None
    confirmed: Look
    need: BisectionNeed | None
    contradicted: bool = False


def course_of(seen: BisectionEvidence) -> Course:
    """How far the bisection is, and what it needs next."""
    ends = ends_of(seen)
    if ends.need is not None or not differ(seen, ends):
        return Course(ends, None, Look.NOT_YET, ends.need)
    contradicted = False
    for by_counts in (True, False) if ends.counts_differ else (False,):
        way = way_of(seen, by_counts)
        if way.need is not None:
            return Course(ends, way, Look.NOT_YET, way.need, contradicted)
        look, need = confirmation_of(seen, ends, way)
        contradicted = contradicted or (by_counts and look is Look.BETTER)
        if need is not None or not (by_counts and look is Look.BETTER and ends.look is Look.WORSE):
            return Course(ends, way, look, need, contradicted)
    raise AssertionError("the way by time ends the loop")


class BisectionAnswer(StrEnum):
    """What a bisection ends in: one point, a range of them, no change at all, or it is not over."""

    FOUND = "found"
    RANGE = "range"
    NONE = "none"
    UNFINISHED = "unfinished"


class StatementChange(Frozen):
    """What became of one statement along a line, by its time or its CPU alone. `answer`, `good`, `bad`,
    `ends` and `step` are those of a Bisection. Where it is answered otherwise, `otherwise` is the first place
    that does so, None while that is open, and `difference` says in what, with its first rows. `cause` says
    why the bad end could not be measured to its end."""

    statement: str
    answer: BisectionAnswer
    good: int
    bad: int
    ends: Ratio | None = None
    ends_look: Look = Look.NOT_YET
    step: Ratio | None = None
    otherwise: int | None = absent(None)
    difference: AnswerDifference | None = absent(None)
    cause: str = absent("")


class Bisection(Frozen):
    """What was found of a line. The change lies between the `good` place and the `bad` one, and `suspects`
    are the points from behind the good one to the bad one. `ends` is the ratio of the bad end to the good
    one, `step` that of the bad place to the good place before it, in blocks of their own where it was chosen.
    `confirmed` is what those say, and `changes` are the functions that execute more or less in the bad place
    than in the good one. Where each statement has a way of its own, these are `statements`, and the places
    are those of the first that changed. `ends_look` says what time says of the ends, `ends_instructions` the
    ratio of what they execute, and `same_code` why their code is the same. `contradicted`: instructions led
    elsewhere, and time did not agree. `engines` are the versions that were measured, on a line of those."""

    run: Run
    title: str
    response: str
    margin: float
    answer: BisectionAnswer
    good: int
    bad: int
    suspects: tuple[Point, ...] = ()
    placed: tuple[Placed, ...] = ()
    by: By = By.TIME
    ends: Ratio | None = None
    ends_look: Look
    ends_instructions: float | None = None
    same_code: str = ""
    step: Ratio | None = None
    confirmed: Look = Look.NOT_YET
    changes: tuple[InstructionChange, ...] = ()
    contradicted: bool = False
    engines: EnginesCompared | None = absent(None)
    statements: tuple[StatementChange, ...] | None = absent(None)
    trials: int
    took_s: float


def bisected(study: Study, run: BisectionRun, records: Sequence[Record]) -> Bisection:
    """What the records of a bisection say."""
    seen = BisectionEvidence(study, run, records)
    course = course_of(seen)
    ends, way, line = course.ends, course.way, run.line
    low, high = (way.low, way.high) if way else (0, line.last)
    answer = answer_of_course(course)
    if answer is BisectionAnswer.RANGE and course.confirmed is not Look.WORSE and not (way and way.by_counts):
        # A step that time took and could not confirm may have been a wrong one.
        low, high = 0, line.last
    changing = answer in (BisectionAnswer.FOUND, BisectionAnswer.RANGE)
    return Bisection(
        run=run,
        title=study.title,
        response=study.goal.response,
        margin=study.goal.margin,
        answer=answer,
        good=low,
        bad=high,
        suspects=line.points[low + 1 : high + 1] if changing else (),
        placed=tuple(way.placed[place] for place in sorted(way.placed)) if way else (),
        by=By.INSTRUCTIONS if way and way.by_counts else By.TIME,
        ends=seen.ratio(line.last),
        ends_look=ends.look,
        ends_instructions=_middle(ends.counted),
        same_code=ends.same_code,
        step=seen.ratio(high, low) if changing else None,
        confirmed=course.confirmed,
        changes=_changes(seen, low, high) if changing else (),
        contradicted=course.contradicted,
        engines=engines_of(seen) if line.along is Along.VERSIONS else None,
        trials=sum(record.whole for record in records),
        took_s=sum(record.took_s for record in records),
    )


def answer_of_course(course: Course) -> BisectionAnswer:
    """What a course ends in."""
    if course.need is not None:
        return BisectionAnswer.UNFINISHED
    if course.way is None:
        return BisectionAnswer.NONE
    one = course.way.high - course.way.low == 1
    shown = course.confirmed is Look.WORSE or course.way.by_counts
    return BisectionAnswer.FOUND if one and shown else BisectionAnswer.RANGE


def engines_of(seen: BisectionEvidence) -> EnginesCompared | None:
    """The versions that had a trial. Those between the ends are not asked for their defaults."""
    asked = on_line(seen.study, seen.run.line, seen.by_place)
    found = engines_compared(asked, seen.records)
    return None if found is None else found.but(defaults=())


def _changes(seen: BisectionEvidence, good: int, bad: int) -> tuple[InstructionChange, ...]:
    """The functions with the largest changes; the rest is what differs from repeat to repeat."""
    own, against = seen.executed(bad), seen.executed(good)
    found = changed_functions(own, against) if own and against else ()
    least = LEAST_CHANGE * max((abs(one.change) for one in found), default=0.0)
    return tuple(one for one in found if abs(one.change) > least)[:FUNCTIONS_MOST]
