"""The report as GitHub-flavoured Markdown, for an issue, a commit or a chat. Text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dbdyno.analyse.gate import Gate
from dbdyno.analyse.model import Analysis, Gap, Ratio
from dbdyno.analyse.plans import PlanChange
from dbdyno.records import metrics
from dbdyno.report.parts import (
    builds,
    counted,
    frontier,
    gap,
    grid,
    plans,
    replays,
    request,
    restarts,
    search,
    split,
    statements,
)
from dbdyno.report.parts import gate as gate_part
from dbdyno.report.parts.table import Shown
from dbdyno.report.words import answer, doubts, method, naming, noise, numbers, remarks, safe, verdicts
from dbdyno.report.words import plans as plans_words
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
        f"**{safe.markdown(answer.headline(analysis))}**",
        _bullets(f"{heading}: {safe.markdown(names)}" for heading, names in answer.findings(analysis)),
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
        *_replays(analysis),
        *_statements(analysis),
        *_plans(analysis),
        *_frontier(analysis),
        *_museum(analysis),
        *_warnings(analysis),
        "## Method\n\n" + _bullets(safe.markdown(line) for line in method.method_text(analysis)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def gate(found: Gate) -> str:
    """A run held against another, for a merge request; ending in a newline."""
    parts = [
        f"# {_text(gate_part.title(found))}",
        f"**{safe.markdown(gate_part.sentence(found))}**",
        safe.markdown(gate_part.changes_text(found)),
        _words(gate_part.HEADS, gate_part.rows(found)),
        _bullets(safe.markdown(note) for note in gate_part.notes(found)),
        "What to do:",
        _bullets(safe.markdown(step) for step in gate_part.next_steps(found)),
    ]
    return "\n\n".join(parts) + "\n"


def explained(found: Gap, title: str) -> str:
    """The gap between two variants, ending in a newline."""
    return "\n\n".join([f"# {_text(title)}", *_gap_parts(found)]) + "\n"


def _facts(analysis: Analysis) -> str:
    study, run = analysis.study, analysis.run
    return safe.markdown(
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
        noise.floor_text(analysis),
        method.layout_text(analysis),
    ]
    return _bullets(safe.markdown(note) for note in notes if note)


def _search(analysis: Analysis) -> Iterable[str]:
    found = analysis.search
    if found is None:
        return
    yield f"## {search.TITLE}"
    if found.changes:
        yield _words(search.CHANGE_HEADS, search.change_rows(found))
        yield safe.markdown(search.NOTE)
    if found.confirmed:
        yield _words(search.FINALIST_HEADS, search.finalist_rows(analysis))
    yield _bullets(safe.markdown(sentence) for sentence in search_words.sentences(found))


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
    yield safe.markdown(found.note)


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
    yield safe.markdown(gap.title(found))
    if found.total is not None:
        yield safe.markdown(gap.product(found))
    yield from map(safe.markdown, gap.left_out(found))
    if found.total is None:
        return
    yield _words(gap.heads(found), gap.rows(found))
    if found.confounded:
        yield _words(gap.CONFOUNDED_HEADS, gap.confounded(found))
    yield safe.markdown(gap.note(found))


def _words(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is names, all others figures."""
    cells = [[safe.markdown(cell) for cell in row] for row in rows]
    return _table(heads, cells, right=set(range(1, len(heads))))


def _escaped_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of words alone."""
    return _table(heads, [[safe.markdown(cell) for cell in row] for row in rows])


def _shown(table: Shown, notes: Iterable[str]) -> Iterable[str]:
    """A section with a table and its notes."""
    yield f"## {table.title}"
    yield _words(table.heads, table.rows)
    yield _bullets(safe.markdown(note) for note in notes)


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
    yield _bullets(safe.markdown(note) for note in counted.beside_notes(analysis))


def _requests(analysis: Analysis) -> Iterable[str]:
    times = analysis.requests
    if not times:
        return
    yield f"## {request.TITLE}"
    yield safe.markdown(request.title(times))
    yield _words(request.heads(), request.rows(times))
    yield _bullets(map(safe.markdown, request.changes(times)))
    yield safe.markdown(request.note(times))


def _split(analysis: Analysis) -> Iterable[str]:
    if not analysis.splits:
        return
    yield "## Where the time goes"
    yield safe.markdown(split.title(analysis.splits))
    for heads, rows in (
        (split.heads(analysis.splits), split.rows(analysis.splits)),
        split.facts(analysis.splits),
    ):
        if rows:
            yield _words([safe.markdown(head) for head in heads], rows)
    yield safe.markdown(split.note(analysis.splits))


def _replays(analysis: Analysis) -> Iterable[str]:
    found = analysis.replays
    if not found:
        return
    yield f"## {replays.TITLE}"
    yield safe.markdown(replays.lead(found))
    yield _words([*replays.HEADS], replays.rows(found))
    yield safe.markdown(replays.NOTE)


def _statements(analysis: Analysis) -> Iterable[str]:
    found = analysis.statements
    if not found:
        return
    yield f"## {statements.TITLE}"
    yield _words([*map(safe.markdown, statements.heads(found))], statements.rows(found))
    yield safe.markdown(statements.NOTE)


def _plans(analysis: Analysis) -> Iterable[str]:
    found = analysis.plans
    if found is None:
        return
    said = [safe.markdown(one) for one in plans_words.remarks(found)]
    if lines := plans.rows(found):
        yield f"## {plans.TITLE}"
        yield _escaped_table(plans.HEADS, lines)
        yield from (_both_plans(variant, change) for variant, change in plans.details(found))
        yield from (*said, safe.markdown(plans.NOTE))
    else:
        yield from filter(None, (safe.markdown(plans_words.unchanged(found)), *said))


def _both_plans(variant: str, change: PlanChange) -> str:
    """A fold with the baseline's plan and the variant's side by side."""
    title = safe.markdown(f"{variant}: both plans of {safe.clean(change.statement)}")
    both = _escaped_table(plans.BOTH_HEADS, plans.side_by_side(change))
    return f"<details><summary>{title}</summary>\n\n{_text(change.text)}\n\n{both}\n\n</details>"


def _frontier(analysis: Analysis) -> Iterable[str]:
    found = analysis.frontier
    if found is None:
        return
    yield "## Recall against speed"
    yield safe.markdown(frontier.title(found))
    yield _words(
        frontier.heads(found), [[cell.replace("\n", " ") for cell in row] for row in frontier.rows(found)]
    )
    yield safe.markdown(frontier.note(found))


def _museum(analysis: Analysis) -> Iterable[str]:
    if not analysis.museum:
        return
    yield "## Museum"
    rows = [
        [
            ", ".join(_text(exhibit.variant) for exhibit in room),
            verdicts.marked(exhibit.verdict),
            safe.markdown(remarks.exhibit_text(exhibit, analysis)),
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
            lines.append(
                safe.markdown(f"{numbers.plural(count, 'trial')}: {advice.text} → {advice.next_step}")
            )
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
    return safe.markdown(safe.clean(text))
