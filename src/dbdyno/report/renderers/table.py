"""A table on a terminal: in columns where they fit, else with lines of its own for each row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dbdyno.report.words import naming

WORDS_LEAST = 18
"""The terminal's columns that words need to be read: longer ones may be broken into lines."""
NAME_SHARE = 0.22
"""The share of the terminal that names may have before they are broken."""
BETWEEN = " · "
WIDEST = 10_000
INDENT = 2

Cell = str | Text


def fitted_columns(
    console: Console,
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    words: Collection[int],
    left: Collection[int] = (),
    names: Collection[int] = (),
    close: bool = False,
) -> Table | None:
    """The rows in columns that have room on the console; None where they have none. Figures stand at the
    right of their columns, except in those at the `left`. The columns of `words` may be broken into lines,
    those of figures never. `names` lose their layers where they are too long. `close` columns have less room
    between them.
    """
    padding = (0, 1, 0, 0) if close else (0, 1)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=padding)
    for place, head in enumerate(heads):
        side: JustifyMethod = "left" if place in words or place in left else "right"
        table.add_column(Text(head), justify=side, overflow="fold")
    unbound = console.options.update(max_width=WIDEST)
    between = console.measure(table, options=unbound).maximum - sum(map(_longest_line, heads))
    words_least = {place: int(console.width * NAME_SHARE) if place in names else 0 for place in words}
    widths = _widths(heads, rows, words_least, console.width - between)
    if widths is None:
        return None
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    for row in _shortened(rows, names, widths):
        table.add_row(*(_broken(cell, width) for cell, width in zip(row, widths, strict=True)))
    return table


def _shortened(
    rows: Sequence[Sequence[Cell]], names: Collection[int], widths: Sequence[int]
) -> Sequence[Sequence[Cell]]:
    """The rows with names that have room: without their layers, or broken after their punctuation."""
    columns: list[Sequence[Cell]] = list(zip(*rows, strict=True))
    for place in names:
        if rows and not any(isinstance(cell, Text) and "\n" in str(cell) for cell in columns[place]):
            fitting = naming.fitting([str(cell) for cell in columns[place]], widths[place])
            columns[place] = [naming.wrapped(name, widths[place]) for name in fitting]
    return list(zip(*columns, strict=True))


def _widths(
    heads: Sequence[str], rows: Sequence[Sequence[Cell]], words: Mapping[int, int], room: int
) -> list[int] | None:
    """How wide each column is; None where there is no room for whole figures and words that can be read."""
    columns = [[str(row[place]) for row in rows] for place in range(len(heads))]
    natural = [max(map(_longest_line, (head, *cells))) for head, cells in zip(heads, columns, strict=True)]
    if sum(natural) <= room:
        return natural
    least = [
        min(natural[place], max(WORDS_LEAST, words[place]))
        if place in words
        else max(_longest_word(heads[place]), *map(_longest_line, cells), 0)
        for place, cells in enumerate(columns)
    ]
    return _shared_out(least, natural, room - sum(least))


def _shared_out(least: Sequence[int], natural: Sequence[int], spare: int) -> list[int] | None:
    """The least widths with what is spare, the same for each column that needs it; None where they are too
    wide already."""
    if spare < 0:
        return None
    widths = list(least)
    order = sorted(range(len(widths)), key=lambda place: natural[place] - least[place])
    for done, place in enumerate(order):
        more = min(spare // (len(order) - done), natural[place] - least[place])
        widths[place] += more
        spare -= more
    return widths


def stack(
    console: Console, heads: Sequence[str], rows: Sequence[Sequence[Cell]], words: Collection[int]
) -> None:
    """Each row below its first cell; what has no head stands behind the cell before it."""
    for row in rows:
        title = str(row[0]) if 0 in words else f"{heads[0]} {row[0]}"
        console.print(Text(naming.wrapped(title, console.width)))
        for line in _packed(_told(heads[1:], row[1:]), console.width - INDENT):
            console.print(Padding(line, (0, 0, 0, INDENT)))


def _told(heads: Sequence[str], cells: Sequence[Cell]) -> list[Text]:
    """Each cell behind its head, or behind the cell before it where it has none. Empty cells are left out."""
    told: list[Text] = []
    for head, cell in zip(heads, cells, strict=True):
        if not str(cell):
            continue
        if head or not told:
            told.append(Text.assemble(f"{head}: " if head else "", _in_a_line(cell)))
        else:
            told[-1].append(" ").append(_in_a_line(cell))
    return told


def _packed(told: Sequence[Text], room: int) -> list[Text]:
    """As many in a line as have room there, none of them broken that fits by itself."""
    lines: list[Text] = []
    for one in told:
        if lines and lines[-1].cell_len + len(BETWEEN) + one.cell_len <= room:
            lines[-1].append(BETWEEN).append(one)
        else:
            lines.append(one)
    return lines


def _broken(cell: Cell, width: int) -> Text:
    """The cell, its long names cut after their punctuation."""
    if _longest_word(str(cell)) <= width:
        return cell if isinstance(cell, Text) else Text(cell)
    lines = [naming.wrapped(line, width) for line in str(cell).split("\n")]
    return Text("\n".join(lines), style=cell.style if isinstance(cell, Text) else "")


def _in_a_line(cell: Cell) -> Text:
    return Text(" ".join(str(cell).split("\n")), style=cell.style if isinstance(cell, Text) else "")


def _longest_line(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)
