"""A document as one HTML file that holds everything. It asks the network for nothing.

The page carries Vega itself (`vl_convert.javascript_bundle`), packed together with its figures, and a policy
that forbids every request; where scripts are off, the tables say it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

from jinja2 import Template
from markupsafe import Markup, escape

from dbdyno.analyse.model import Verdict
from dbdyno.report import document
from dbdyno.report.document import (
    Column,
    ColumnKind,
    Detail,
    Document,
    Element,
    Facts,
    Figure,
    Fitting,
    Fold,
    Item,
    Items,
    Lines,
    Link,
    Notes,
    Piece,
    Row,
    RowLook,
    Steps,
    Table,
    TableCell,
    Tone,
    Words,
)
from dbdyno.report.renderers.page import compiled, embedded, page_text, wrapping
from dbdyno.report.words import safe, verdicts

CLASSES = {
    Tone.STRONG: "strong",
    Tone.QUIET: "quiet",
    Tone.GOOD: "yes",
    Tone.BAD: "no",
    Tone.DOUBT: "doubt",
}
CELL_CLASSES = {
    ColumnKind.NAME: "name",
    ColumnKind.TEXT: "says",
    ColumnKind.PHRASE: "whole",
    ColumnKind.CODE: "code",
    ColumnKind.FIGURE: "n",
}


JUDGED = "verdict"
"""The column that says how a row was judged. On a narrow screen it comes right after the row's name."""
CONTENTS_LEAST = 4
"""A page of fewer sections is seen at once, and needs no list of them."""


@dataclass
class _Page:
    """What a page has so far: its figures by their key, and the title of the section that is being made."""

    figures: dict[str, Markup] = field(default_factory=dict)
    title: str = ""


def render(report: Document, template: Template | None = None, **values: object) -> str:
    """The whole page; with the values that another `template` than that of a file asks for."""
    made = _Page()
    sections = []
    for section, body in document.sections_of(report, Detail.PAGE):
        made.title = section.title or made.title
        shown = _body(body, made)
        # What stands beside a figure says nothing where nothing was drawn.
        if shown or not body:
            sections.append((section, shown))
    titled = sum(bool(section.title) for section, _ in sections)
    return page_text(
        template,
        report=report,
        sections=sections,
        contents=titled >= CONTENTS_LEAST,
        figures=made.figures,
        words=words_markup,
        **values,
    )


def _body(body: Iterable[Element], made: _Page) -> Markup:
    return Markup("\n").join(shown for one in body if (shown := _element(one, made)))


def _element(element: Element, made: _Page) -> Markup:
    match element:
        case Lines(lines, bullets):
            return _list(lines) if bullets else _each("<p>{}</p>", map(words_markup, lines))
        case Notes(lines):
            return _each('<p class="quiet">{}</p>', map(_text, lines))
        case Steps(steps):
            return _each('<p class="next">{}</p>', map(_text, steps))
        case document.Text(text):
            return _tag("<pre>{}</pre>", safe.clean_lines(text))
        case Table():
            return _table(element, made)
        case Fitting(layouts):
            return _table(layouts[0], made)
        case Facts(facts):
            return _facts(facts)
        case Items(items):
            return Markup("\n").join(_item(item, made) for item in items)
        case Figure():
            return _figure(element, made)
        case Fold(title, body):
            return _tag("<details><summary>{}</summary>\n{}</details>", safe.clean(title), _body(body, made))
        case _:
            return Markup("")


def _list(lines: Sequence[Words]) -> Markup:
    items = _each("<li>{}</li>", map(words_markup, lines))
    return _tag('<ul class="method">{}</ul>', items)


def _table(found: Table, made: _Page) -> Markup:
    heads = Markup("").join(_head(column) for column in found.columns)
    rows = Markup("\n").join(_row(row, found, found.looks.get(at), made) for at, row in enumerate(found.rows))
    return _tag(
        '<div class="scroll"><table class="{}stacks">\n<caption>{}</caption>\n<thead><tr>{}</tr></thead>\n'
        "<tbody>{}</tbody>\n</table>{}</div>",
        "dense " if found.dense else "",
        safe.clean(made.title),
        heads,
        rows,
        _tag('<p class="quiet">{}</p>', safe.clean(found.note)) if found.note else "",
    )


def _head(column: Column) -> Markup:
    if not column.head:
        return Markup("<td></td>")
    figure = Markup(' class="n"') if column.kind is ColumnKind.FIGURE else Markup("")
    return _tag('<th scope="col"{}>{}</th>', figure, safe.clean(column.head))


def _row(row: Row, found: Table, look: RowLook | None, made: _Page) -> Markup:
    cells = Markup("").join(
        _cell(document.cell(one), column, place, made)
        for place, (one, column) in enumerate(zip(row, found.columns, strict=True))
    )
    return _tag('<tr class="{}">{}</tr>', look, cells) if look else _tag("<tr>{}</tr>", cells)


def _cell(cell: TableCell, column: Column, place: int, made: _Page) -> Markup:
    below = _each("<small>{}</small>", map(words_markup, cell.below))
    fold = _element(cell.fold, made) if cell.fold else Markup("")
    shown = words_markup(cell.words, column.kind is ColumnKind.NAME) + below + fold
    if place == 0 and column.kind is ColumnKind.NAME:
        return _tag('<th scope="row" class="name">{}</th>', shown)
    states = (("empty", not shown), ("judged", column.head == JUDGED))
    classes = " ".join((CELL_CLASSES[column.kind], *(name for name, holds in states if holds))).strip()
    return _tag('<td class="{}" data-head="{}">{}</td>', classes, safe.clean(column.head), shown)


def _facts(facts: Sequence[tuple[str, str]]) -> Markup:
    rows = Markup("").join(
        _tag('<tr><th scope="row">{}</th><td class="code">{}</td></tr>', safe.clean(name), safe.clean(value))
        for name, value in facts
    )
    return _tag('<table class="facts-table"><tbody>{}</tbody></table>', rows)


def _item(item: Item, made: _Page) -> Markup:
    said = [
        _tag('<p class="about">{}</p>', words_markup(item.about, name=True)),
        _each("<p>{}</p>", map(words_markup, item.lines)),
        _each('<p class="quiet">{}</p>', map(_text, item.small)),
        _each('<p class="next">{}</p>', [_text(item.step)] if item.step else []),
        _element(item.fold, made) if item.fold else "",
    ]
    shown = Markup("\n").join(one for one in said if one)
    return _tag('<div class="exhibit">{}\n<div>{}</div></div>', words_markup(item.mark), shown)


def drawn(figure: Figure) -> dict[str, Any] | Markup | None:
    """A figure of a document: a specification for Vega, or markup."""
    made: dict[str, Any] | Markup | None = resolve_name(figure.drawing)(*figure.found)
    return made


def _figure(figure: Figure, made: _Page) -> Markup:
    shown = drawn(figure)
    if shown is None:
        return Markup("")
    words = _each('<figcaption class="quiet">{}</figcaption>', [_text(figure.words)] if figure.words else [])
    if not isinstance(shown, Markup):
        key = figure.key or figure.drawing.rpartition(":")[2]
        made.figures[key] = embedded(compiled(shown))
        shown = _tag('<div class="figure" id="{0}" data-figure="{0}"></div>', key)
    return _tag("<figure>{}{}</figure>", shown, words)


def words_markup(words: Words, name: bool = False) -> Markup:
    """Words with the classes of their tones; a name may be broken after its punctuation."""
    return Markup("").join(_piece(one, name) for one in document.marks(words))


def _piece(piece: Piece, name: bool) -> Markup:
    if isinstance(piece, str):
        return wrapping(piece) if name else _text(piece)
    if isinstance(piece, Link):
        return _tag('<a href="{}">{}</a>', piece.href, safe.clean(piece.text))
    if piece.tone is None or isinstance(piece.tone, Verdict):
        slug = verdicts.slug(piece.tone) if piece.tone else "none"
        return _tag('<span class="verdict {}">{}</span>', slug, safe.clean(piece.text))
    return _tag('<span class="{}">{}</span>', CLASSES[piece.tone], safe.clean(piece.text))


def _each(pattern: str, pieces: Iterable[Markup]) -> Markup:
    return Markup("\n").join(_tag(pattern, piece) for piece in pieces)


def _tag(pattern: str, *pieces: str | Markup) -> Markup:
    return Markup(pattern).format(*pieces)


def _text(text: str) -> Markup:
    return escape(safe.clean(text))
