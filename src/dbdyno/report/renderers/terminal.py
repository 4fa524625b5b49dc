"""A document on a terminal. Text from outside is never read as markup: everything goes through `Text`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich import table as rich_table
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from dbdyno.analyse.model import Verdict
from dbdyno.report import document
from dbdyno.report.document import (
    ColumnKind,
    Detail,
    Document,
    Element,
    Facts,
    Fitting,
    Fold,
    Item,
    Items,
    Lines,
    Mark,
    Notes,
    Screen,
    Section,
    Steps,
    Table,
    TableCell,
    Tone,
    Words,
)
from dbdyno.report.renderers.table import fitted_columns, stack
from dbdyno.report.words import naming, numbers, safe, verdicts

STYLES = {
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.GOOD: "green",
    Tone.BAD: "red",
    Tone.DOUBT: "yellow",
}
BROKEN_INTO_LINES = (ColumnKind.NAME, ColumnKind.TEXT, ColumnKind.CODE)
OPENED_BY_A_LINE = (Table, Fitting, Items)
INDENT, INDENT_MORE = 2, 4


def render(report: Document, console: Console, details: bool = False) -> None:
    """Prints a document; its width is the console's, and colours come only where the console has them. A
    document that has a screen is one where nobody asks for details."""
    if report.screen is not None and not details:
        _print_screen(report, report.screen, console)
        return
    if report.titled:
        console.print(Text(safe.clean(report.title), style="bold"))
        if report.facts:
            console.print(Text(" · ".join(safe.clean(value) for _, value in report.facts), style="dim"))
        if report.answer:
            console.print()
    for words in report.answer:
        console.print(Text.assemble(text(words), style="bold"))
    for heading, names in report.findings:
        console.print(
            _indented(Text.assemble((f"{safe.clean(heading)}: ", "dim"), safe.clean(names)), INDENT)
        )
    below = report.titled or bool(report.answer)
    for section, body in document.sections_of(report, Detail.DETAILS if details else Detail.BRIEF):
        if not all(_has_room(one, console) for one in body):
            continue
        if below and (section.title or isinstance(body[0], OPENED_BY_A_LINE)):
            console.print()
        _print_section(section, body, console)
        below = True


LINES_MOST, ROWS_LEAST, ANSWER_LINES, LINE_MOST = 23, 5, 5, 3
"""A screen leaves the last of 24 lines to whoever says where the page is. It always has room for the baseline
and four variants."""


def _print_screen(report: Document, screen: Screen, console: Console) -> None:
    """The answer, the table, the lines and the commands. Where they would be too long there are fewer rows,
    then short names, then fewer lines."""
    lines = screen.lines
    count = max((len(layout.rows) for layout in screen.layouts), default=0)
    least = min(count, ROWS_LEAST)
    made = _screen(report, screen, console, least, lines, short=False, line_most=LINE_MOST)
    line_most = LINE_MOST if len(made) <= LINES_MOST else 1
    for short in (False, True):
        for rows in range(count, least - 1, -1):
            made = _screen(report, screen, console, rows, lines, short, line_most)
            if len(made) <= LINES_MOST:
                break
        if len(made) <= LINES_MOST:
            break
    for kept in range(len(lines) - 1, 0, -1):
        if len(made) <= LINES_MOST:
            break
        fewer = (*lines[:kept], f"and {numbers.plural(len(lines) - kept, 'more line')}: see the details")
        made = _screen(report, screen, console, least, fewer, short=True)
    for line in made:
        console.print(line, no_wrap=True, overflow="ellipsis", crop=False)


def _screen(
    report: Document,
    screen: Screen,
    console: Console,
    rows: int,
    lines: Sequence[Words],
    short: bool,
    line_most: int = 1,
) -> list[Text]:
    """The lines of a screen. `short` names are cut in their middle, and have a line each; each of `lines` is
    cut where it would be more than `line_most` lines."""
    width = console.width
    made = [_cut(Text(safe.clean(report.title), style="bold"), width)] if report.titled else []
    made += [_cut(Text(safe.clean(screen.facts), style="dim"), width)] if screen.facts else []
    for words in screen.answer or report.answer:
        made += _wrapped(Text.assemble(text(words), style="bold"), console, ANSWER_LINES)
    if screen.layouts and screen.layouts[0].rows:
        made += [Text(), *_rows_of(screen, console, rows, short)]
    for words in lines:
        made += _wrapped(text(words), console, line_most)
    for step in screen.steps:
        made += Text(safe.clean(step)).wrap(console, width)
    return made


def _wrapped(words: Text, console: Console, most: int) -> list[Text]:
    """Words in lines, the last one cut where there would be more than `most`."""
    if most == 1:
        return [_cut(words, console.width)]
    told = words.wrap(console, console.width)
    kept = [*told[:most]]
    if len(told) > most:
        kept[-1].rstrip()
        kept[-1] = _cut(Text.assemble(kept[-1], " …"), console.width)
    return kept


def _rows_of(screen: Screen, console: Console, most: int, short: bool) -> list[Text]:
    """The first layout that has room, in lines, with how many rows are left out."""
    for layout in screen.layouts:
        fewer = replace(layout, rows=layout.rows[:most], note="")
        laid_out = _laid_out(_with_short_names(fewer, console) if short else fewer, console)
        if laid_out is not None:
            break
    else:
        return []
    with console.capture() as captured:
        console.print(laid_out)
    made = [Text.from_ansi(line.rstrip()) for line in captured.get().rstrip("\n").split("\n")]
    left = len(screen.layouts[0].rows) - most
    return (
        [*made, Text(f"and {numbers.plural(left, f'more {screen.row}')}", style="dim")] if left > 0 else made
    )


def _with_short_names(found: Table, console: Console) -> Table:
    """The table with names that the figures leave room for, cut in their middle. Names that would then be one
    have as many lines as tell them apart."""
    rows = [[document.cell(one) for one in row] for row in found.rows]
    others = [max(len(str(_in_lines(row[place]))) for row in rows) for place in range(1, len(found.columns))]
    heads = [len(column.head) for column in found.columns[1:]]
    room = console.width - sum(map(max, others, heads)) - len(found.columns)
    width = max(room, NAME_LEAST)
    names = naming.fitting([document.plain(row[0].words) for row in rows], width)
    length = width
    while len({_cut_middle(name, length) for name in names}) < len({*names}):
        length += width
    cut = (_cut_middle(name, length) for name in names)
    return replace(found, rows=tuple((name, *row[1:]) for name, row in zip(cut, found.rows, strict=True)))


NAME_LEAST = 18


def _cut_middle(name: str, width: int) -> str:
    if len(name) <= width:
        return name
    first = (width - 1) // 3
    return f"{name[:first]}…{name[first + 1 - width :]}"


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line


def _has_room(element: Element, console: Console) -> bool:
    """Whether an element may be shown: one that is optional needs a layout with room."""
    if not isinstance(element, Fitting) or not element.optional:
        return True
    return any(_laid_out(layout, console) is not None for layout in element.layouts)


def _print_section(section: Section, body: Sequence[Element], console: Console) -> None:
    if section.title:
        console.print(Text(safe.clean(section.title), style="bold"))
    if section.aside:
        console.print(Text(safe.clean(section.aside)))
    for element in body:
        _print(element, console)


def _print(element: Element, console: Console) -> None:
    match element:
        case Lines(lines):
            for words in lines:
                console.print(text(words))
        case Notes(lines):
            for note in lines:
                console.print(Text(safe.clean(note), style="dim"))
        case Steps(steps):
            for step in steps:
                console.print(_indented(Text(safe.clean(step)), INDENT))
        case document.Text(lines):
            console.print(Text(safe.clean_lines(lines)))
        case Table():
            _print_table(element, console)
        case Fitting():
            _print_fitting(element, console)
        case Facts(facts):
            console.print(_facts(facts))
        case Items(items):
            for item in items:
                _print_item(item, console)
        case Fold(title, body):
            console.print()
            _print_section(Section(title, ()), body, console)


def _print_table(found: Table, console: Console) -> None:
    laid_out = _laid_out(found, console)
    if laid_out is not None:
        _print_laid_out(found, laid_out, console)
        return
    heads = [safe.clean(column.head) for column in found.columns]
    rows = [[_in_a_line(document.cell(one)) for one in row] for row in found.rows]
    stack(console, heads, rows, _broken(found))


def _print_laid_out(found: Table, laid_out: rich_table.Table, console: Console) -> None:
    console.print(laid_out)
    if found.note:
        console.print(Text(safe.clean(found.note), style="dim"))


def _print_fitting(found: Fitting, console: Console) -> None:
    for layout in found.layouts:
        laid_out = _laid_out(layout, console)
        if laid_out is not None:
            _print_laid_out(layout, laid_out, console)
            return
    _print_table(found.layouts[-1], console)


def _laid_out(found: Table, console: Console) -> rich_table.Table | None:
    heads = [safe.clean(column.head) for column in found.columns]
    phrases = [place for place, column in enumerate(found.columns) if column.kind is ColumnKind.PHRASE]
    names = [place for place, column in enumerate(found.columns) if column.kind is ColumnKind.NAME]
    rows = [[_in_lines(document.cell(one)) for one in row] for row in found.rows]
    return fitted_columns(console, heads, rows, _broken(found), phrases, names, close=found.dense)


def _broken(found: Table) -> list[int]:
    """The columns whose cells may be broken into lines."""
    return [place for place, column in enumerate(found.columns) if column.kind in BROKEN_INTO_LINES]


def _in_lines(cell: TableCell) -> Text:
    below = [piece for words in cell.below for piece in ("\n", text(words, "dim"))]
    return Text.assemble(text(cell.words), *below)


def _in_a_line(cell: TableCell) -> Text:
    if not cell.below:
        return text(cell.words)
    below = "; ".join(safe.clean(document.plain(words)) for words in cell.below)
    return Text.assemble(text(cell.words), f" ({below})")


def _facts(facts: Sequence[tuple[str, str]]) -> rich_table.Table:
    """Names and values below each other, without those that are empty."""
    made = rich_table.Table(box=None, pad_edge=False, show_header=False)
    made.add_column(no_wrap=True, style="dim")
    made.add_column(overflow="fold")
    for name, value in facts:
        if value.strip(", "):
            made.add_row(safe.clean(name), Text(safe.clean(value)))
    return made


def _print_item(item: Item, console: Console) -> None:
    console.print(Text.assemble(text(item.mark), "  ", text(item.about)))
    for line in item.lines:
        console.print(_indented(text(line), INDENT_MORE))
    if item.step:
        console.print(_indented(Text(f"→ {safe.clean(item.step)}", style="dim"), INDENT_MORE))


def text(words: Words, style: str = "") -> Text:
    """Words with the styles of their tones."""
    pieces = [
        (safe.clean(one.text), _style(one.tone)) if isinstance(one, Mark) else safe.clean(document.plain(one))
        for one in document.marks(words)
    ]
    return Text.assemble(*pieces, style=style)


def _style(tone: Tone | Verdict | None) -> str:
    if isinstance(tone, Verdict):
        return verdicts.LOOKS[tone].style
    return STYLES[tone] if tone is not None else "dim"


def _indented(words: Text, columns: int) -> Padding:
    return Padding(words, (0, 0, 0, columns), expand=False)
