"""A document as GitHub-flavoured Markdown, for an issue, a commit or a chat. Text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

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
    Piece,
    Section,
    Steps,
    Table,
    TableCell,
    Tone,
    Words,
)
from dbdyno.report.words import safe


def render(report: Document) -> str:
    """The whole document, ending in a newline."""
    parts = [f"# {_text(report.title)}", *_answer(report.answer)]
    if report.findings:
        parts.append(_bullets([f"{_text(heading)}: {_text(names)}" for heading, names in report.findings]))
    if report.facts:
        parts.append(" · ".join(_text(value) for _, value in report.facts))
    for section, body in document.sections_of(report, Detail.TEXT):
        parts += section_parts(section, body)
    if report.footer:
        parts.append(_text(report.footer))
    return "\n\n".join(parts) + "\n"


def _answer(answer: Sequence[Words]) -> Iterator[str]:
    if len(answer) == 1:
        yield f"**{_text(document.plain(answer[0]))}**"
    elif answer:
        yield _bullets([_words(words) for words in answer])


def section_parts(section: Section, body: Sequence[Element]) -> Iterator[str]:
    """The blocks of a section, what of it is shown being chosen already."""
    if section.title:
        yield f"## {_text(section.title)}"
    if section.aside:
        yield _text(section.aside)
    for element in body:
        yield from _blocks(element)


def _blocks(element: Element) -> Iterator[str]:
    match element:
        case Lines(lines, bullets):
            said = [_words(words) for words in lines]
            yield from [_bullets(said)] if bullets and said else said
        case Notes(lines) if lines:
            yield _text(lines[0]) if len(lines) == 1 else _bullets([_text(line) for line in lines])
        case Steps(steps):
            yield _bullets([_text(step) for step in steps])
        case document.Text(text):
            yield f"<pre>{escape(safe.clean_lines(text))}</pre>"
        case Table():
            yield from _table(element)
        case Fitting(layouts):
            yield from _table(layouts[0])
        case Facts(facts):
            yield _bullets([f"{_text(name)}: {_text(value)}" for name, value in facts if value])
        case Items(items, heads):
            rows = [_item(item) for item in items]
            told = [place for place in range(len(heads)) if any(row[place] for row in rows)]
            cells = [[row[place] for place in told] for row in ([_text(head) for head in heads], *rows)]
            yield _rows(cells[0], cells[1:], right=())
        case Fold(title, body):
            inner = [block for one in body for block in _blocks(one)]
            yield "\n\n".join([f"<details><summary>{_text(title)}</summary>", *inner, "</details>"])


def _table(found: Table) -> Iterator[str]:
    right = [place for place, column in enumerate(found.columns) if column.kind is ColumnKind.FIGURE]
    rows = [[_cell(document.cell(one)) for one in row] for row in found.rows]
    yield _rows([_text(column.head) for column in found.columns], rows, right)
    if found.note:
        yield _text(found.note)


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    rule = ["--:" if place in right else "---" for place in range(len(heads))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def _cell(cell: TableCell) -> str:
    below = "; ".join(_words(words) for words in cell.below)
    return f"{_words(cell.words)} ({below})" if below else _words(cell.words)


def _item(item: Item) -> list[str]:
    said = "; ".join(map(_words, item.lines))
    return [_words(item.about), _words(item.mark), said, _text(item.step)]


def _words(words: Words) -> str:
    return "".join(map(_piece, document.marks(words)))


def _piece(piece: Piece) -> str:
    text = _text(document.plain(piece))
    return f"**{text}**" if isinstance(piece, Mark) and piece.tone is Tone.STRONG else text


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _text(text: str) -> str:
    """Text from outside, made harmless for a terminal and for Markdown."""
    return safe.markdown(safe.clean(text))
