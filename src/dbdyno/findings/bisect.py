"""A bisection: the point that it found, with its evidence, and how each point was placed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbdyno.analyse.bisect import (
    Bisection,
    BisectionAnswer,
    By,
    Course,
    Look,
    Placed,
    Side,
    StatementChange,
)
from dbdyno.analyse.bisect_statements import CPU, StatementCourse, is_changed, need_of_statements
from dbdyno.analyse.found import InstructionChange
from dbdyno.findings import engines
from dbdyno.frozen import ENGINE_FACTOR, level_text
from dbdyno.records.metrics import number_text
from dbdyno.report.document import (
    ColumnKind,
    Document,
    Lines,
    Mark,
    Notes,
    Section,
    Steps,
    Table,
    Tone,
    table,
)
from dbdyno.report.words import numbers, safe
from dbdyno.report.words.numbers import moment_text
from dbdyno.study.trials import Along, Line, Point, TouchedFile

LOOKS = {
    BisectionAnswer.FOUND: ("✓", Tone.GOOD),
    BisectionAnswer.RANGE: ("?", Tone.DOUBT),
    BisectionAnswer.NONE: ("–", Tone.QUIET),
    BisectionAnswer.UNFINISHED: ("?", Tone.DOUBT),
}
"""Glyph and tone of each answer."""
NOUNS = {Along.COMMITS: "commit", Along.SETTINGS: "change", Along.VERSIONS: "version"}
BY_WORDS = {By.END: "you", By.TIME: "time", By.INSTRUCTIONS: "instructions", By.CODE: "its code"}
PLACED_HEADS = ("point", "side", "by", "ratio to good", "instructions", "remark")
CHANGE_HEADS = ("function", "before", "after", "change per transaction")
FILE_HEADS = ("file", "added", "removed")
KINDS = dict.fromkeys(("point", "side", "by", "remark", "function", "file"), ColumnKind.TEXT)
FILES_MOST = 20
COUNTING = "counting the instructions of"


def document(found: Bisection) -> Document:
    """The answer, its evidence, and how the bisection came to it."""
    line, run = line_of(found), found.run
    glyph, tone = LOOKS[found.answer]
    facts = {
        "Study": run.study_path,
        "Run": run.run,
        "Began": moment_text(run.created_unix_s),
        "Source": line.source,
        "Engine": _engine(found),
    }
    count = numbers.plural(line.last, NOUNS[line.along])
    return Document(
        title=f"{found.title} (a bisection)",
        answer=((Mark(glyph, tone), f" {headline(found)}"),),
        sections=tuple(_sections(found)),
        eyebrow=f"a bisection of {count}",
        heading=found.title,
        facts=tuple((name, value) for name, value in facts.items() if value),
        footer=count,
    )


def _engine(found: Bisection) -> str:
    """What was measured; of a line over versions the first and the last one."""
    line = line_of(found)
    beside = found.run.engines.get(_level_of(line, line.last))
    first = found.run.installation
    beyond = f" to {beside.version}" if beside and beside.version != first.version else ""
    return f"{first.engine} {first.version}{beyond}".strip()


def _level_of(line: Line, place: int) -> str:
    """The engine of a point, as a study writes it; empty where that is the same all along."""
    return level_text(line.points[place].levels.get(ENGINE_FACTOR, ""))


def line_of(found: Bisection) -> Line:
    """The line that was bisected."""
    assert found.run.bisected is not None, "the run is a bisection"
    return found.run.bisected


def headline(found: Bisection) -> str:
    """The answer in a sentence or two."""
    line = line_of(found)
    noun = NOUNS[line.along]
    if found.statements is not None:
        return _of_statements(found, found.statements)
    if found.answer is BisectionAnswer.NONE:
        return f"None of {numbers.plural(line.last, noun)} made it slower: {_why_none(found)}."
    if found.answer is BisectionAnswer.UNFINISHED:
        left = numbers.plural(found.bad - found.good, noun)
        return f"It is not over: {left} are left, after {name_of(line, found.good)}."
    if line.along is Along.VERSIONS:
        return _between(found)
    if found.answer is BisectionAnswer.FOUND:
        return f"{_named(line.points[found.bad])} made it slower: {_confirmed(found)}."
    first, last = name_of(line, found.good + 1), name_of(line, found.bad)
    many = numbers.plural(len(found.suspects), noun)
    if len(found.suspects) == 1:
        return f"{_named(line.points[found.bad])} seems to have made it slower: {_confirmed(found)}."
    return f"One of {many} made it slower, from {first} to {last}: {_why_range(found)}."


def _between(found: Bisection) -> str:
    """Between which two versions it became slower, because the later one names no cause."""
    line = line_of(found)
    good, bad = line.points[found.good], line.points[found.bad]
    between = f"between {good.name} and {bad.name}"
    if found.answer is BisectionAnswer.FOUND:
        return f"It became slower {between} ({bad.title}): {_confirmed(found)}."
    if len(found.suspects) == 1:
        return f"It seems to have become slower {between} ({bad.title}): {_confirmed(found)}."
    return f"It became slower {between}: {_why_range(found)}."


def _why_none(found: Bisection) -> str:
    if found.same_code:
        return f"the bad end has the good end's code ({found.same_code})"
    ratio = f"bad to good is {numbers.effect_text(found.ends)} times in {found.response}"
    told = {
        Look.SAME: f"{ratio}, within the margin of {numbers.share_text(found.margin)}",
        Look.BETTER: f"{ratio}, so the bad end is the better one",
        Look.WORSE: f"{ratio}, but both ends execute the same instructions: that can be the luck of layout",
    }
    return told.get(found.ends_look, f"{ratio}, which leaves it open whether the ends differ")


def _confirmed(found: Bisection) -> str:
    ratio = f"{numbers.effect_text(found.step)} times the {found.response} of the one before it"
    counted = "instructions show it, and " if found.by is By.INSTRUCTIONS else ""
    told = {
        Look.SAME: f"{counted}time no difference beyond the margin ({ratio})",
        Look.UNKNOWN: f"{counted}time leaves it open ({ratio})",
    }
    return told.get(found.confirmed, ratio)


def _why_range(found: Bisection) -> str:
    between = [one for one in found.placed if found.good < one.place < found.bad]
    skipped = sum(one.side is Side.SKIPPED for one in between)
    undecided = sum(one.side is Side.OPEN for one in between)
    told = [f"{numbers.plural(skipped, 'point')} could not be measured"] if skipped else []
    told += [f"time could not place {numbers.plural(undecided, 'point')}"] if undecided else []
    return ", and ".join(told) or "the one that the search led to did not show it side by side"


def _named(point: Point) -> str:
    return f"{point.name} ({point.title})" if point.title else point.name


def name_of(line: Line, place: int) -> str:
    """A point's name; the ends say which they are."""
    ends = {0: " (the good end)", line.last: " (the bad end)"}
    return f"{line.points[place].name}{ends.get(place, '')}"


def _sections(found: Bisection) -> Iterator[Section]:
    line = line_of(found)
    if found.statements is not None:
        yield from _statement_sections(found, found.statements)
        return
    yield Section("The ends", (Lines(tuple(_of_ends(found))),))
    if found.answer in (BisectionAnswer.FOUND, BisectionAnswer.RANGE) and len(found.suspects) > 1:
        rows = [(point.name, point.title) for point in found.suspects]
        kinds = {"what it says": ColumnKind.TEXT}
        yield Section("Where it may be", (table(("point", "what it says"), rows, kinds),))
    point = line.points[found.bad]
    if found.answer is BisectionAnswer.FOUND and point.touched:
        yield Section("What it changes", (_files(point.touched),), aside=stat_text(point.touched))
    if found.changes:
        aside = "Instructions per transaction, counted under Valgrind, against the last good one."
        yield Section("Functions that execute more or less", (_functions(found.changes),), aside=aside)
    if len(found.placed) > 2:
        placed = [_row(line, one) for one in found.placed]
        yield Section("How each was placed", (table(PLACED_HEADS, placed, KINDS, first=ColumnKind.TEXT),))
    if found.engines is not None:
        yield from engines.sections(found.engines)
    yield Section("How to read it", (Notes(tuple(_notes(found))), Steps(tuple(_steps(found)))))


def _of_ends(found: Bisection) -> Iterator[str]:
    line = line_of(found)
    yield (
        f"{line.points[line.last].name} has {numbers.effect_text(found.ends)} times the {found.response} of"
        f" {line.points[0].name}, side by side."
    )
    if found.ends_instructions is not None:
        yield f"It executes {numbers.ratio_text(found.ends_instructions)} times the instructions."
    if found.contradicted:
        yield "Instructions led to a point that is no slower, so time placed all points."


def stat_text(touched: tuple[TouchedFile, ...]) -> str:
    """`2 files, 12 lines added, 3 removed.`"""
    added, removed = sum(one.added or 0 for one in touched), sum(one.removed or 0 for one in touched)
    lines = numbers.plural(added, "line")
    return f"{numbers.plural(len(touched), 'file')}, {lines} added, {removed:,} removed."


def _files(touched: tuple[TouchedFile, ...]) -> Table:
    rows = [(one.path, _count(one.added), _count(one.removed)) for one in touched[:FILES_MOST]]
    return table(FILE_HEADS, rows, KINDS, first=ColumnKind.TEXT)


def _count(lines: int | None) -> str:
    return "not of lines" if lines is None else f"{lines:,}"


def _functions(changes: tuple[InstructionChange, ...]) -> Table:
    rows = [
        (one.name, number_text(one.against), number_text(one.own), number_text(one.change)) for one in changes
    ]
    return table(CHANGE_HEADS, rows, KINDS, first=ColumnKind.TEXT)


def _row(line: Line, one: Placed) -> tuple[str, ...]:
    executed = "" if one.instructions is None else numbers.ratio_text(one.instructions)
    ratio = numbers.effect_text(one.ratio) if one.ratio else ""
    by = "" if one.side is Side.SKIPPED else BY_WORDS[one.by]
    return line.points[one.place].name, one.side.value, by, ratio, executed, one.cause


def _notes(found: Bisection) -> Iterator[str]:
    yield (
        "Each point stands side by side with both ends in the same blocks. Intervals hold at all looks, and"
        " for all questions of the bisection together."
    )
    line = line_of(found)
    if line.along is Along.SETTINGS:
        yield "Each point has its own change and those of all points before it."
    elif line.along is Along.VERSIONS and found.answer is not BisectionAnswer.NONE:
        yield "Where it became slower in several steps, this is the one past the middle between the ends."
    elif found.by is By.TIME and found.answer is not BisectionAnswer.NONE:
        yield "Time alone placed the points. The luck of layout can move a build's speed by some per cent."


def _steps(found: Bisection) -> Iterator[str]:
    if found.answer is BisectionAnswer.UNFINISHED:
        yield f"dyno bisect --resume {found.run.run}"
    if found.answer is BisectionAnswer.NONE and found.ends_look is Look.UNKNOWN:
        yield "Take more blocks (--blocks), or longer trials."
    line = line_of(found)
    if found.answer is BisectionAnswer.FOUND and line.along is Along.COMMITS:
        yield "dyno diff compares the two builds function by function; dyno cache builds lists them."
    if found.answer is BisectionAnswer.FOUND and line.along is Along.VERSIONS:
        levels = ", ".join(f'"{_level_of(line, place)}"' for place in (found.good, found.bad))
        yield (
            f"Tell the version from its defaults: dyno run a study of these two (engine = [{levels}]), then"
            " dyno explain --write apart.toml."
        )


STATEMENT_HEADS = ("statement", "ends", "slower since", "step", "answers otherwise since")
CHANGED_MOST = 5


def _of_statements(found: Bisection, statements: Sequence[StatementChange]) -> str:
    """Which statements changed, and where."""
    line, count = line_of(found), numbers.plural(len(statements), "statement")
    slower = [one for one in statements if _is_slower(one)]
    other = [one for one in statements if one.otherwise is not None]
    if found.answer is BisectionAnswer.UNFINISHED:
        return (
            f"It is not over: {len(slower)} of {count} became slower so far, {len(other)} answer otherwise."
        )
    if not slower and not other and (cause := next((one.cause for one in statements if one.cause), "")):
        return (
            f"Nothing is certain of {count}, because the bad end was lost: {safe.clause(safe.clean(cause))}."
        )
    if not slower and not other:
        return f"None of {count} became slower for certain, and all are answered alike."
    told = [f"{one.statement} {_since(line, one)}" for one in slower[:CHANGED_MOST]]
    told += ["..."] if slower[CHANGED_MOST:] else []
    parts = [f"{len(slower)} of {count} became slower: {'; '.join(told)}"] if slower else []
    if other:
        named = [f"{one.statement} since {_name_at(line, one.otherwise)}" for one in other[:CHANGED_MOST]]
        named += ["..."] if other[CHANGED_MOST:] else []
        parts.append(f"{len(other)} answered otherwise: {'; '.join(named)}")
    return ". ".join(parts) + "."


def _is_slower(one: StatementChange) -> bool:
    return one.answer in (BisectionAnswer.FOUND, BisectionAnswer.RANGE)


def _since(line: Line, one: StatementChange) -> str:
    return f"between {line.points[one.good].name} and {line.points[one.bad].name}"


def _name_at(line: Line, place: int | None) -> str:
    return "" if place is None else line.points[place].name


def _statement_sections(found: Bisection, statements: Sequence[StatementChange]) -> Iterator[Section]:
    line, what = line_of(found), "CPU" if found.response == CPU else "time"
    changed = [one for one in statements if is_changed(one)]
    others = [one for one in statements if not is_changed(one)]
    rows = [_statement_row(line, one) for one in (*changed, *others)]
    kinds = dict.fromkeys((*STATEMENT_HEADS[2:3], STATEMENT_HEADS[4]), ColumnKind.PHRASE)
    note = (
        f"Ends: {what} of {line.points[line.last].name} / {what} of {line.points[0].name}; step: {what} of"
        " the later one of both / the one before."
    )
    yield Section("Statements", (table(STATEMENT_HEADS, rows, kinds), Notes((note,))))
    differing = [one for one in statements if one.difference is not None]
    if differing:
        yield Section("Answers", (Lines(tuple(_answer_lines(line, differing))),))
    if found.engines is not None:
        yield from engines.sections(found.engines)
    yield Section("How to read it", (Notes((next(_notes(found)),)), Steps(tuple(_steps(found)))))


def _statement_row(line: Line, one: StatementChange) -> tuple[str, ...]:
    return (
        safe.clean(one.statement),
        numbers.effect_text(one.ends) if one.ends else numbers.DASH,
        _since(line, one) if _is_slower(one) else "",
        numbers.effect_text(one.step) if one.step else "",
        _name_at(line, one.otherwise),
    )


def _answer_lines(line: Line, differing: Sequence[StatementChange]) -> Iterator[str]:
    for one in differing:
        assert one.difference is not None  # they are those that have one
        before, after = (
            safe.clean(rows[0]) if rows else "no such row"
            for rows in (one.difference.before, one.difference.after)
        )
        yield (
            f"{safe.clean(one.statement)} differs in {one.difference.what} since"
            f" {_name_at(line, one.otherwise)}: {before} before, {after} since then."
        )


def statements_text(line: Line, courses: Sequence[StatementCourse] | None) -> str:
    """How far a bisection of statements is, and what is measured next, in a line."""
    need = need_of_statements(courses, line.last)
    if need is None:
        return "the bisection is over"
    asked = [name_of(line, place) for place in need.places if 0 < place < line.last]
    if not asked:
        return "measuring both ends"
    who = [one.seen.statement for one in courses or () if need in one.needs]
    return f"measuring beside the ends: {', '.join(asked)}; for {', '.join(who[:CHANGED_MOST])}"


def way_text(line: Line, course: Course) -> str:
    """How far a bisection is, and what it asks next, in a line."""
    need = course.need
    if need is None:
        return "the bisection is over"
    asked = [name_of(line, place) for place in need.places if 0 < place < line.last] or ["the bad end"]
    if course.way is None:
        return f"{COUNTING if need.counted else 'measuring'} both ends"
    how = COUNTING if need.counted else "measuring beside the ends:"
    noun = numbers.plural(course.way.high - course.way.low, NOUNS[line.along])
    return f"{noun} left, after {name_of(line, course.way.low)}; {how} {', '.join(asked)}"
