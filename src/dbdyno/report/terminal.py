"""The final tables on a terminal: the answer, the verdicts, the museum, the warnings.

Text from outside is never read as markup: everything goes through `Text`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich import box
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbdyno.analyse.model import Analysis, Ratio, VariantResult, Verdict
from dbdyno.records import metrics
from dbdyno.report.parts import (
    builds,
    counted,
    frontier,
    gap,
    grid,
    overhead,
    plans,
    replays,
    request,
    restarts,
    search,
    split,
    statements,
)
from dbdyno.report.parts.table import show
from dbdyno.report.words import answer, doubts, method, naming, noise, numbers, remarks, safe, verdicts

STACKED_BELOW = 60
"""On a terminal with fewer columns each variant has lines of its own."""
GAP = 1
NAME_SHARE, NAME_ROOM, NAME_LEAST = 0.22, 18, 12
COST_HEADS = {
    "p99_ms": ("p99", "p99"),
    "server_cpu_us_per_op": ("server CPU/op", "CPU"),
    "driver_cpu_us_per_op": ("driver CPU/op", "driver"),
}


def render(analysis: Analysis, console: Console, details: bool = False) -> None:
    """Prints the report; its width is the console's, and colours come only where the console has them.

    `details` adds where the time of an operation and of a trial goes, which is more than one wants after
    every run.
    """
    console.print(_title(analysis))
    console.print()
    console.print(Text(answer.headline(analysis), style="bold"))
    for heading, names in answer.findings(analysis):
        console.print(_indented(Text.assemble((f"{heading}: ", "dim"), names), 2))
    console.print()
    console.print(
        _stacked(analysis, console.width)
        if console.width < STACKED_BELOW
        else _verdicts(analysis, console.width)
    )
    console.print(_footnote(analysis, console.width))
    search.render(analysis, console)
    grid.render(analysis, console)
    _factorial(analysis, console)
    if analysis.gap is not None:
        console.print()
        gap.render(analysis.gap, console)
    if analysis.frontier is not None:
        console.print()
        frontier.render(analysis.frontier, console)
    restarts.render(analysis, console)
    builds.render(analysis, console)
    counted.render_beside(analysis, console, functions=details)
    if analysis.requests:
        console.print()
        request.render(analysis.requests, console)
    if analysis.replays:
        replays.render(analysis.replays, console)
    if details and analysis.splits:
        console.print()
        split.render(analysis.splits, console)
    if details and analysis.statements:
        console.print()
        statements.render(analysis.statements, console)
    if analysis.plans is not None:
        console.print()
        plans.render(analysis.plans, console)
    if details:
        overhead.render(analysis, console)
    _museum(analysis, console)
    _warnings(analysis, console)


def _title(analysis: Analysis) -> Text:
    study = analysis.study
    done, planned = len(analysis.trials), analysis.trials_planned
    trials = numbers.plural(done, "trial") if done == planned else f"{done} of {planned} trials"
    setting = f"{naming.engine_text(analysis)} · {naming.workload_text(analysis)}"
    facts = f"{setting} · {naming.size_text(analysis)}, {trials}"
    return Text.assemble((safe.clean(study.title), "bold"), "\n", (facts, "dim"))


@dataclass(frozen=True)
class _Form:
    """How much of the table fits: which costs, with or without their intervals, and if the response does."""

    costs: tuple[str, ...]
    intervals: bool
    response: bool = True


def _stacked(analysis: Analysis, width: int) -> Text:
    """The verdicts one under the other, each with its ratio and interval."""
    lines = Text()
    for variant in analysis.variants:
        effect, verdict = variant.effect, remarks.verdict_text(variant)
        lines.append(f"{naming.wrapped(safe.clean(variant.name), width)}\n")
        if effect is not None:
            lines.append(f"  {numbers.effect_text(effect)}")
        elif variant.response is not None:
            lines.append(f"  {_response_text(analysis, variant.response.mean)}")
        lines.append(f"  {verdict}\n", style=_style(variant.verdict))
    return lines


def _response_text(analysis: Analysis, mean: float) -> str:
    metric = metrics.find(analysis.method.response)
    return f"{metric.format(mean)} {metric.unit}".strip()


def _verdicts(analysis: Analysis, width: int) -> Table:
    form, cells = _fitting(analysis, width)
    table = _table()
    table.add_column("variant", no_wrap=True)
    sides: dict[str, JustifyMethod] = {"interval": "center", "verdict": "left"}
    for head in _heads(analysis, form):
        table.add_column(head, justify=sides.get(head, "right"), no_wrap=True)
    room = max(width - _width(_heads(analysis, form), cells), NAME_LEAST)
    names = naming.fitting([safe.clean(variant.name) for variant in analysis.variants], room)
    for name, row in zip(names, cells, strict=True):
        table.add_row(Text(naming.wrapped(name, room)), *row)
    return table


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, GAP, 0, 0), pad_edge=False, show_edge=False)


def _fitting(analysis: Analysis, width: int) -> tuple[_Form, list[list[Text]]]:
    """The fullest form of the table that leaves room for the names; the narrowest where none does."""
    costs = tuple(name for name in COST_HEADS if any(variant.cost(name) for variant in analysis.variants))
    longest = max(len(safe.clean(variant.name)) for variant in analysis.variants)
    forms = [
        _Form(costs, True),
        _Form(costs[:2], True),
        _Form(costs, False),
        _Form(costs[:2], False),
        _Form((), False),
        _Form((), False, response=False),
    ]
    for form in forms:
        cells = [_cells(variant, form) for variant in analysis.variants]
        if (
            _width(_heads(analysis, form), cells) + min(longest, max(NAME_ROOM, int(width * NAME_SHARE)))
            <= width
        ):
            break
    return form, cells


def _heads(analysis: Analysis, form: _Form) -> list[str]:
    costs = (COST_HEADS[cost][0 if form.intervals else 1] for cost in form.costs)
    metric = metrics.find(analysis.method.response)
    response = [metric.unit or metric.title] if form.response else []
    return [*response, "ratio", "interval", "verdict", *costs]


def _width(heads: list[str], cells: list[list[Text]]) -> int:
    """Columns of the terminal taken by all but the names, gaps included."""
    columns = zip(heads, *cells, strict=True)
    return sum(max(len(head), *map(_longest, column)) + 2 * GAP for head, *column in columns)


def _longest(cell: Text) -> int:
    return max(line.cell_len for line in cell.split("\n", allow_blank=True))


def _cells(variant: VariantResult, form: _Form) -> list[Text]:
    response, effect = variant.response, variant.effect
    style = "dim" if variant.verdict is Verdict.BROKEN else ""
    mean = numbers.value_text(response.metric, response.mean) if response else numbers.DASH
    return [
        *([Text(mean)] if form.response else []),
        Text(numbers.ratio_text(effect.ratio) if effect else numbers.DASH, style=style),
        Text(numbers.interval_text(effect) if effect else numbers.DASH, style=style),
        # A loss has a line of its own, because the figures need the columns.
        Text(
            remarks.verdict_text(variant).replace(", gives up ", ",\n  gives up "),
            style=_style(variant.verdict),
        ),
        *(_cost(variant.cost(cost), form.intervals) for cost in form.costs),
    ]


def _style(verdict: Verdict | None) -> str:
    return verdicts.LOOKS[verdict].style if verdict else "dim"


def _cost(ratio: Ratio | None, interval: bool) -> Text:
    """A cost's ratio; `~` marks one that cannot be told from 1, for readers without colour too."""
    if ratio is None:
        return Text(numbers.DASH)
    mark = "" if numbers.differs(ratio) else "~"
    text = mark + numbers.cost_text(ratio.ratio)
    if interval and ratio.low is not None and ratio.high is not None:
        text += f" ({numbers.cost_text(ratio.low)}{numbers.DASH}{numbers.cost_text(ratio.high)})"
    return Text(text, style="dim" if mark else "")


def _footnote(analysis: Analysis, width: int) -> Text:
    lines = [f"{method.ratio_text_of(analysis)} {method.intervals_text(analysis)}"]
    if width >= STACKED_BELOW and _fitting(analysis, width)[0].costs:
        lines[0] += " p99 and CPU: ratios of cost, each interval by itself; ~: it may be 1."
    if analysis.aa is not None:
        lines.append(method.aa_text(analysis))
    said = (noise.floor_text, method.layout_text, method.calibration_text)
    lines += filter(None, [words(analysis) for words in said])
    lines += answer.notes(analysis)
    return Text("\n".join(lines), style="dim")


def _factorial(analysis: Analysis, console: Console) -> None:
    tables = analysis.factorial
    if tables is None or not (tables.main or tables.interactions):
        return
    console.print()
    console.print(Text("Factors", style="bold"))
    rows = [
        *(
            _effect(naming.main_text(one), one.effect, one.settings, one.settings_planned)
            for one in tables.main
        ),
        *(
            _effect(naming.pair_text(one), one.effect, one.settings, one.settings_planned)
            for one in tables.interactions
        ),
    ]
    show(console, ("effect of", "ratio", "interval", "over"), rows, close=True)
    console.print(
        Text(
            "Main effects: averaged over the settings of all other factors. ×: how far two factors together"
            " are from the product of each alone (1: they multiply).",
            style="dim",
        )
    )


def _effect(text: str, effect: Ratio, used: int, planned: int) -> list[Text]:
    return [
        Text(text),
        Text(numbers.ratio_text(effect.ratio), style="bold" if numbers.differs(effect) else ""),
        Text(numbers.interval_text(effect)),
        Text(f"{used} of {planned}"),
    ]


def _museum(analysis: Analysis, console: Console) -> None:
    if not analysis.museum:
        return
    console.print()
    console.print(Text("The museum: what did not help, and why", style="bold"))
    for room in remarks.rooms(analysis):
        exhibit = room[0]
        verdict = verdicts.marked(exhibit.verdict)
        names = ", ".join(safe.clean(each.variant) for each in room)
        console.print(Text.assemble((verdict, verdicts.LOOKS[exhibit.verdict].style), "  ", names))
        console.print(_indented(Text(remarks.exhibit_text(exhibit, analysis)), 4))
        if exhibit.remedy:
            console.print(_indented(Text(f"→ {safe.clean(exhibit.remedy)}", style="dim"), 4))


def _warnings(analysis: Analysis, console: Console) -> None:
    counted = {
        warning: [variant.name for variant in analysis.variants if warning in variant.warnings]
        for warning in doubts.WARNINGS
    }
    shown = {warning: names for warning, names in counted.items() if names}
    if not shown:
        return
    console.print()
    console.print(Text("Warnings", style="bold"))
    for warning, names in shown.items():
        advice = doubts.WARNINGS[warning]
        total = sum(warning in trial.warnings for trial in analysis.trials)
        where = ", ".join(safe.clean(name) for name in names[:3]) + (
            f" and {len(names) - 3} more" if len(names) > 3 else ""
        )
        console.print(
            Text.assemble(("! ", "yellow"), f"{advice.text} ({numbers.plural(total, 'trial')}: {where})")
        )
        console.print(_indented(Text(f"→ {advice.next_step}", style="dim"), 2))


def _indented(text: Text, columns: int) -> Padding:
    return Padding(text, (0, 0, 0, columns), expand=False)
