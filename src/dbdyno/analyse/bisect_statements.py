"""A bisection of which each statement has a way of its own: at which point it became slower, and at which one
it is answered otherwise.

All statements share the blocks, because a trial times each of them. What one of them needs next is measured,
and places the others as well, as far as it goes. Answers have no noise: one trial of a point is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.analyse.bisect import (
    Bisection,
    BisectionAnswer,
    BisectionEvidence,
    BisectionNeed,
    Course,
    Ends,
    Look,
    StatementChange,
    answer_of_course,
    course_of,
    engines_of,
)
from dbdyno.analyse.found import AnswerDifference
from dbdyno.analyse.guards import differing_answers
from dbdyno.records.load_words import StatementAnswers
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import BisectionRun
from dbdyno.study import Study
from dbdyno.study.trials import Along

CPU = "server_cpu_us_per_op"
"""The response under which a statement is placed by its CPU; under any other it is by its time."""


@dataclass
class StatementEvidence(BisectionEvidence):
    """What the records say of one statement."""

    statement: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.worse = 1.0

    def value(self, record: Record) -> float | None:
        """Its mean time, or the CPU of one execution."""
        if self.study.goal.response == CPU:
            costs = record.costs.statements if record.costs else ()
            return next((one.cpu_ms or None for one in costs if one.statement == self.statement), None)
        kind = record.tally.by_transaction.get(self.statement) if record.tally else None
        return kind.latency_us.mean or None if kind is not None else None


@dataclass(frozen=True)
class StatementCourse:
    """How far the way of one statement is. Where it is answered otherwise by the place `otherwise`, the one
    before it is the last that is known to answer like the good end, unless `asked` has a need."""

    seen: StatementEvidence
    time: Course
    otherwise: int | None
    asked: BisectionNeed | None

    @property
    def needs(self) -> Iterator[BisectionNeed]:
        if self.time.need is not None:
            yield self.time.need
        if self.asked is not None:
            yield self.asked


def courses_of(study: Study, run: BisectionRun, records: Sequence[Record]) -> list[StatementCourse] | None:
    """One for each statement that an end has met, none where the bad end has no speed; None before both ends
    have a trial."""
    whole = BisectionEvidence(study, run, records)
    ends = [whole.first(place, Outcome.MEASURED) for place in (0, run.line.last)]
    if any(end is None for end in ends):
        return [] if whole.first(run.line.last, *LOST) is not None else None
    names = dict.fromkeys(name for end in ends if end and end.tally for name in end.tally.by_transaction)
    answers = {place: told for place in whole.by_place if (told := _answers(whole, place)) is not None}
    return [_course(StatementEvidence(study, run, records, len(names), name), answers) for name in names]


LOST = (Outcome.BROKEN, Outcome.FAILED, Outcome.BLOCKED, Outcome.INERT)


def need_of_statements(courses: Sequence[StatementCourse] | None, last: int) -> BisectionNeed | None:
    """What must be known next: first of the ends for all statements, then for one after the other."""
    if courses is None:
        return BisectionNeed((0, last))
    needs = [need for course in courses for need in course.needs]
    return min(needs, key=lambda need: need.places != (0, last), default=None)


def _answers(whole: BisectionEvidence, place: int) -> StatementAnswers | None:
    told = (record.answers for record in whole.by_place[place] if record.answers is not None)
    return next((one for one in told if one.statements), None)


def _course(seen: StatementEvidence, answers: Mapping[int, StatementAnswers]) -> StatementCourse:
    last = seen.run.line.last
    if all(seen.values(place) for place in (0, last)):
        time = course_of(seen)
    else:
        # An end that executes it and never ends it well has no time.
        lost = Ends(Look.UNKNOWN, None, (), None, cause="no execution ended well at an end")
        time = Course(lost, None, Look.NOT_YET, None)
    return StatementCourse(seen, time, *_otherwise(seen, answers))


def _otherwise(
    seen: StatementEvidence, answers: Mapping[int, StatementAnswers]
) -> tuple[int | None, BisectionNeed | None]:
    """The first place known to answer otherwise than the good end, and what must be known to find it."""
    low, high = 0, seen.run.line.last
    if difference_at(seen.statement, answers, high) is None:
        return None, None
    while left := [place for place in range(low + 1, high) if not _is_silent(seen, place, answers)]:
        place = min(left, key=lambda one: (abs(2 * one - low - high), one))
        if place not in answers:
            return high, BisectionNeed((0, place, seen.run.line.last))
        if difference_at(seen.statement, answers, place) is None:
            low = place
        else:
            high = place
    return high, None


def _is_silent(seen: StatementEvidence, place: int, answers: Mapping[int, StatementAnswers]) -> bool:
    """Whether a place was asked and answered nothing."""
    return place in seen.by_place and place not in answers


def difference_at(
    statement: str, answers: Mapping[int, StatementAnswers], place: int
) -> AnswerDifference | None:
    """In what a place answers otherwise than the good end, unless that is harmless."""
    if 0 not in answers or place not in answers:
        return None
    differing = differing_answers(answers[0], answers[place])
    return next((one for one in differing if one.statement == statement and not one.harmless), None)


def statements_bisected(study: Study, run: BisectionRun, records: Sequence[Record]) -> Bisection:
    """What the records of such a bisection say."""
    courses, line = courses_of(study, run, records), run.line
    whole = BisectionEvidence(study, run, records)
    answers = {place: told for place in whole.by_place if (told := _answers(whole, place)) is not None}
    changes = tuple(_change(course, answers) for course in courses or ())
    over = need_of_statements(courses, line.last) is None
    first = next((one for one in changes if is_changed(one)), None)
    answer = BisectionAnswer.NONE if first is None else BisectionAnswer.FOUND
    good, bad = (0, line.last) if first is None else span_of(first)
    return Bisection(
        run=run,
        title=study.title,
        response=study.goal.response,
        margin=study.goal.margin,
        answer=answer if over else BisectionAnswer.UNFINISHED,
        good=good,
        bad=bad,
        ends_look=Look.NOT_YET,
        engines=engines_of(whole) if line.along is Along.VERSIONS and whole.by_place else None,
        statements=changes,
        trials=sum(record.whole for record in records),
        took_s=sum(record.took_s for record in records),
    )


def is_changed(one: StatementChange) -> bool:
    """Whether it became slower, or is answered otherwise."""
    return one.answer in (BisectionAnswer.FOUND, BisectionAnswer.RANGE) or one.otherwise is not None


def span_of(one: StatementChange) -> tuple[int, int]:
    """Between which places it changed: in its time, else in its answer."""
    if one.answer in (BisectionAnswer.FOUND, BisectionAnswer.RANGE) or one.otherwise is None:
        return one.good, one.bad
    return one.otherwise - 1, one.otherwise


def _change(course: StatementCourse, answers: Mapping[int, StatementAnswers]) -> StatementChange:
    seen, time = course.seen, course.time
    last, way = seen.run.line.last, time.way
    answer = answer_of_course(time)
    low, high = (way.low, way.high) if way else (0, last)
    if answer is BisectionAnswer.RANGE and time.confirmed is not Look.WORSE:
        low, high = 0, last
    changing = answer in (BisectionAnswer.FOUND, BisectionAnswer.RANGE)
    return StatementChange(
        statement=seen.statement,
        answer=answer,
        good=low,
        bad=high,
        ends=seen.ratio(last),
        ends_look=time.ends.look,
        step=seen.ratio(high, low) if changing else None,
        otherwise=course.otherwise,
        difference=difference_at(seen.statement, answers, course.otherwise or last),
        cause=time.ends.cause,
    )
