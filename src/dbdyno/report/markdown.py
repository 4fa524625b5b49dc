"""The report as GitHub-flavoured Markdown, for an issue, a commit or a chat. Text from outside is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dbdyno.analyse.code import CodeDifference
from dbdyno.analyse.collection import Museum
from dbdyno.analyse.compare import Comparison
from dbdyno.analyse.gate import Gate
from dbdyno.analyse.matrix import Matrix
from dbdyno.analyse.model import Analysis, Gap, Ratio
from dbdyno.analyse.soak import SoakResult
from dbdyno.analyse.trend import Trend
from dbdyno.records import metrics
from dbdyno.report.parts import (
    builds,
    compare,
    counted,
    frontier,
    gap,
    grid,
    request,
    restarts,
    search,
    split,
    statements,
    trend,
)
from dbdyno.report.parts import code as code_part
from dbdyno.report.parts import gate as gate_part
from dbdyno.report.parts import matrix as matrix_part
from dbdyno.report.parts import museum as museum_part
from dbdyno.report.parts import soak as soak_part
from dbdyno.report.parts.table import Shown
from dbdyno.report.words import answer, doubts, method, naming, numbers, remarks, safe, verdicts
from dbdyno.report.words import search as search_words

COSTS = (
    ("p99_ms", "p99"),
    ("server_cpu_us_per_op", "server CPU/op"),
    ("driver_cpu_us_per_op", "driver CPU/op"),
)


def render(analysis: Analysis) -> str:
    """The whole report, ending in a newline."""
    parts = [
        f"# {_text(analysis.study.title)}",
        f"**{_escaped(answer.headline(analysis))}**",
        _bullets(f"{heading}: {_escaped(names)}" for heading, names in answer.findings(analysis)),
        _facts(analysis),
        _verdicts(analysis),
        _notes(analysis),
        *_search(analysis),
        *_grid(analysis),
        *_factorial(analysis),
        *_gap(analysis),
        *_restarts(analysis),
        *_builds(analysis),
        *_counted(analysis),
        *_requests(analysis),
        *_split(analysis),
        *_statements(analysis),
        *_frontier(analysis),
        *_museum(analysis),
        *_warnings(analysis),
        "## Method\n\n" + _bullets(_escaped(line) for line in method.method_text(analysis)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def comparison(found: Comparison) -> str:
    """Two runs beside each other, ending in a newline."""
    parts = [
        f"# {_text(compare.title(found))}",
        _bullets(_escaped(compare.sentence(gap, found)) for gap in found.gaps),
        *([_escaped(step)] if (step := compare.next_step(found)) else []),
        _words(compare.HEADS, [compare.row(gap, found) for gap in found.gaps]),
        *([_words(compare.per_unit_heads(found), lines)] if (lines := compare.per_unit_rows(found)) else []),
        _escaped(compare.note(found)),
        "## What differs",
        _words(compare.difference_heads(found), compare.difference_rows(found))
        if found.differences
        else _escaped(compare.nothing_differs(found)),
    ]
    return "\n\n".join(parts) + "\n"


def gate(found: Gate) -> str:
    """A run held against another, for a merge request; ending in a newline."""
    parts = [
        f"# {_text(gate_part.title(found))}",
        f"**{_escaped(gate_part.sentence(found))}**",
        _words(gate_part.HEADS, gate_part.rows(found)),
        _bullets(_escaped(note) for note in gate_part.notes(found)),
        "What to do:",
        _bullets(_escaped(step) for step in gate_part.next_steps(found)),
    ]
    return "\n\n".join(parts) + "\n"


def over_time(found: Trend) -> str:
    """One study over its runs, ending in a newline."""
    parts = [f"# {_text(trend.title(found))}", f"**{_escaped(trend.headline(found))}**"]
    for one in found.variants:
        parts += [
            f"## {_text(one.variant)}{_escaped(trend.role_text(one))}",
            *filter(None, [_bullets(_escaped(sentence) for sentence in trend.sentences(found, one))]),
            _words(trend.RATIO_HEADS, trend.ratio_rows(found, one.variant)),
        ]
    parts += ["## Runs", _words(trend.run_heads(found), trend.run_rows(found))]
    if same := trend.shared(found):
        parts.append(f"All: {_escaped(same)}")
    return "\n\n".join([*parts, _bullets(map(_escaped, trend.notes(found)))]) + "\n"


def soak(found: SoakResult) -> str:
    """A soak, ending in a newline."""
    parts = [
        f"# {_text(soak_part.title(found))}",
        f"**{_escaped(soak_part.headline(found))}**",
        _bullets(map(_escaped, soak_part.findings(found))),
        _words(soak_part.RUNG_HEADS, soak_part.rung_rows(found)),
        _words(soak_part.DRIFT_HEADS, soak_part.drift_rows(found)),
    ]
    for rung in found.rungs:
        parts += [
            f"## {_escaped(soak_part.rung_name(rung))}",
            _words(soak_part.PHASE_HEADS, soak_part.phase_rows(rung)),
        ]
    parts.append(_bullets(map(_escaped, (*soak_part.notes(found), *soak_part.next_steps(found)))))
    return "\n\n".join(filter(None, parts)) + "\n"


def code(found: CodeDifference) -> str:
    """Two builds beside each other, ending in a newline."""
    extensions, changes = code_part.extensions(found), code_part.changes(found, code_part.CHANGES_MOST)
    rest = (code_part.more(found, code_part.CHANGES_MOST), code_part.data_text(found))
    parts = [
        f"# {_escaped(code_part.title(found))}",
        f"**{_escaped(code_part.sentence(found))}**",
        _words(code_part.COUNT_HEADS, code_part.counts(found)),
        _words(code_part.FACT_HEADS, code_part.facts(found)),
        _words(code_part.EXTENSION_HEADS, extensions) if extensions else "",
        _words(code_part.CHANGE_HEADS, changes) if changes else "",
        *map(_escaped, rest),
        _bullets(_escaped(note) for note in code_part.notes(found)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def matrix(found: Matrix) -> str:
    """Variants by loads, ending in a newline."""
    parts = [f"# {matrix_part.title(found)}", _bullets(map(_escaped, matrix_part.headline(found)))]
    for table in matrix_part.tables(found):
        rows = [[cell.replace("\n", ", ") for cell in row] for row in table.rows]
        parts += [f"## {_escaped(table.title)}", _words([*map(_escaped, table.heads)], rows)]
    return "\n\n".join([*parts, _escaped(matrix_part.note(found))]) + "\n"


def museum(found: Museum) -> str:
    """What did not help in any run, ending in a newline."""
    parts = [f"# {museum_part.TITLE}", _escaped(museum_part.about(found))]
    for piece in found.pieces:
        told = [text for _, text in museum_part.counts(piece)]
        rows = [
            [_escaped(cell) for cell in (
                museum_part.outcome(one.ending), museum_part.place(one), museum_part.cause(one),
                "; ".join(museum_part.evidence(one)), safe.clean(one.exhibit.remedy),
            )]
            for one in piece.occurrences
        ]  # fmt: skip
        parts += [
            f"## {_escaped(museum_part.name(piece))}",
            _bullets(_escaped(line) for line in (*told, museum_part.elsewhere(piece)) if line),
            _table(["outcome", "seen", "cause", "evidence", "what would help"], rows),
        ]
    return "\n\n".join(parts if found.pieces else [*parts, museum_part.EMPTY]) + "\n"


def explained(found: Gap, title: str) -> str:
    """The gap between two variants, ending in a newline."""
    return "\n\n".join([f"# {_text(title)}", *_gap_parts(found)]) + "\n"


def _facts(analysis: Analysis) -> str:
    study, run = analysis.study, analysis.run
    return _escaped(
        f"{naming.engine_text(analysis)} · {naming.workload_text(analysis)} · {study.design.value},"
        f" {naming.size_text(analysis)}, {len(analysis.trials)} of {analysis.trials_planned}"
        f" trials · run {safe.clean(run.run)} · Dyno {safe.clean(run.dyno_version)}"
    )


def _verdicts(analysis: Analysis) -> str:
    metric = metrics.find(analysis.method.response)
    heads = ["variant", f"{metric.title}, {metric.unit}".strip(", "), "ratio", "interval", "verdict"]
    rows = [
        [
            _text(variant.name),
            metric.format(variant.response.mean) if variant.response else numbers.DASH,
            numbers.ratio_text(variant.effect.ratio) if variant.effect else numbers.DASH,
            numbers.interval_text(variant.effect) if variant.effect else numbers.DASH,
            remarks.verdict_text(variant),
            *(numbers.effect_text(variant.cost(name)) for name, _ in COSTS),
        ]
        for variant in analysis.variants
    ]
    return _table([*heads, *(head for _, head in COSTS)], rows, right={1, 2, 5, 6, 7})


def _notes(analysis: Analysis) -> str:
    notes = [
        f"{method.ratio_text_of(analysis)} {method.intervals_text(analysis)}"
        " Intervals of costs hold each by itself.",
        *answer.notes(analysis),
        method.aa_text(analysis),
        method.floor_text(analysis),
        method.layout_text(analysis),
    ]
    return _bullets(_escaped(note) for note in notes if note)


def _search(analysis: Analysis) -> Iterable[str]:
    found = analysis.search
    if found is None:
        return
    yield f"## {search.TITLE}"
    if found.changes:
        yield _words(search.CHANGE_HEADS, search.change_rows(found))
        yield _escaped(search.NOTE)
    if found.confirmed:
        yield _words(search.FINALIST_HEADS, search.finalist_rows(analysis))
    yield _bullets(_escaped(sentence) for sentence in search_words.sentences(found))


def _grid(analysis: Analysis) -> Iterable[str]:
    found = grid.grid(analysis)
    if found is None:
        return
    yield f"## {_text(found.title)}"
    rows = [
        [
            *map(_text, setting),
            *(f"{cell.value} ({cell.spread})" if cell.spread else cell.value for cell in cells),
        ]
        for setting, cells in found.rows
    ]
    heads = [_text(head) for head in (*found.down, *found.heads)]
    yield _table(heads, rows, right=set(range(len(found.down), len(heads))))
    yield _escaped(found.note)


def _factorial(analysis: Analysis) -> Iterable[str]:
    tables = analysis.factorial
    if tables is None or not tables.main:
        return
    yield "## Factors"
    mains = [[_text(naming.main_text(row)), *_effect(row.effect)] for row in tables.main]
    pairs = [[_text(naming.pair_text(row)), *_effect(row.effect)] for row in tables.interactions]
    yield _table(["effect of", "ratio", "interval", "blocks"], [*mains, *pairs], right={1, 3})
    yield (
        "Main effects are averaged over the settings of all other factors. A line with × is an interaction:"
        " how far two factors together are from the product of each alone (1: they multiply)."
    )


def _effect(effect: Ratio) -> list[str]:
    return [numbers.ratio_text(effect.ratio), numbers.interval_text(effect), str(effect.pairs)]


def _gap(analysis: Analysis) -> Iterable[str]:
    if analysis.gap is not None:
        yield "## The gap explained"
        yield from _gap_parts(analysis.gap)


def _gap_parts(found: Gap) -> Iterable[str]:
    yield _escaped(gap.title(found))
    if found.total is not None:
        yield _escaped(gap.product(found))
    yield from map(_escaped, gap.left_out(found))
    if found.total is None:
        return
    yield _words(gap.heads(found), gap.rows(found))
    if found.confounded:
        yield _words(gap.CONFOUNDED_HEADS, gap.confounded(found))
    yield _escaped(gap.note(found))


def _words(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is names, all others figures."""
    cells = [[_escaped(cell) for cell in row] for row in rows]
    return _table(heads, cells, right=set(range(1, len(heads))))


def _shown(table: Shown, notes: Iterable[str]) -> Iterable[str]:
    """A section with a table and its notes."""
    yield f"## {table.title}"
    yield _words(table.heads, table.rows)
    yield _bullets(_escaped(note) for note in notes)


def _restarts(analysis: Analysis) -> Iterable[str]:
    if analysis.survival is None:
        return
    yield from _shown(restarts.table(analysis), restarts.notes(analysis))


def _builds(analysis: Analysis) -> Iterable[str]:
    if not builds.compared(analysis):
        return
    yield from _shown(builds.table(analysis), builds.notes(analysis))


def _counted(analysis: Analysis) -> Iterable[str]:
    if not counted.has_beside(analysis):
        return
    yield f"## {counted.TITLE}"
    for shown in counted.beside_tables(analysis):
        yield _words(shown.heads, shown.rows)
    yield _bullets(_escaped(note) for note in counted.beside_notes(analysis))


def _requests(analysis: Analysis) -> Iterable[str]:
    times = analysis.requests
    if not times:
        return
    yield f"## {request.TITLE}"
    yield _escaped(request.title(times))
    yield _words(request.heads(), request.rows(times))
    yield _bullets(map(_escaped, request.changes(times)))
    yield _escaped(request.note(times))


def _split(analysis: Analysis) -> Iterable[str]:
    if not analysis.splits:
        return
    yield "## Where the time goes"
    yield _escaped(split.title(analysis.splits))
    for heads, rows in (
        (split.heads(analysis.splits), split.rows(analysis.splits)),
        split.facts(analysis.splits),
    ):
        if rows:
            yield _words([_escaped(head) for head in heads], rows)
    yield _escaped(split.note(analysis.splits))


def _statements(analysis: Analysis) -> Iterable[str]:
    found = analysis.statements
    if not found:
        return
    yield f"## {statements.TITLE}"
    yield _words([*map(_escaped, statements.heads(found))], statements.rows(found))
    yield _escaped(statements.NOTE)


def _frontier(analysis: Analysis) -> Iterable[str]:
    found = analysis.frontier
    if found is None:
        return
    yield "## Recall against speed"
    yield _escaped(frontier.title(found))
    yield _words(
        frontier.heads(found), [[cell.replace("\n", " ") for cell in row] for row in frontier.rows(found)]
    )
    yield _escaped(frontier.note(found))


def _museum(analysis: Analysis) -> Iterable[str]:
    if not analysis.museum:
        return
    yield "## Museum"
    rows = [
        [
            ", ".join(_text(exhibit.variant) for exhibit in room),
            verdicts.marked(exhibit.verdict),
            _escaped(remarks.exhibit_text(exhibit, analysis)),
            _text(exhibit.remedy),
        ]
        for room in remarks.rooms(analysis)
        for exhibit in room[:1]
    ]
    yield _table(["variant", "outcome", "cause", "what would help"], rows)


def _warnings(analysis: Analysis) -> Iterable[str]:
    lines = []
    for warning, advice in doubts.WARNINGS.items():
        count = sum(warning in trial.warnings for trial in analysis.trials)
        if count:
            lines.append(_escaped(f"{numbers.plural(count, 'trial')}: {advice.text} → {advice.next_step}"))
    if lines:
        yield "## Warnings"
        yield _bullets(lines)


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: set[int] | frozenset[int] = frozenset()
) -> str:
    rule = ["--:" if index in right else "---" for index in range(len(heads))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _text(text: str) -> str:
    """Text from outside, made harmless for a terminal and for Markdown."""
    return _escaped(safe.clean(text))


def _escaped(text: str) -> str:
    """Every character that Markdown or HTML could read as more than itself, escaped."""
    text = re.sub(r"([\\`*{}\[\]<>#|~!&$@])", r"\\\1", text)
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)
