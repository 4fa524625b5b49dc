"""What a report holds, whatever its form: an answer, then sections of words, tables and figures.

Text in a document is raw. Each form makes it harmless and escapes it in its own way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from dbdyno.analyse.model import Verdict


class Detail(IntEnum):
    """From which detail on something is shown."""

    BRIEF = 0
    """Always: on a terminal after every run."""
    DETAILS = 1
    """On a terminal where details are asked for."""
    TEXT = 2
    """In Markdown and on a page, but on no terminal."""
    PAGE = 3


class Tone(StrEnum):
    """How words sound that are no verdict."""

    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    BAD = "bad"
    DOUBT = "doubt"


@dataclass(frozen=True)
class Mark:
    """Words with a tone, or in the look of a verdict."""

    text: str
    tone: Tone | Verdict | None


@dataclass(frozen=True)
class Link:
    """Words that lead to another page where a browser shows them."""

    text: str
    href: str


Piece = str | Mark | Link
Words = Piece | tuple[Piece, ...]
"""Words in one line."""


@dataclass(frozen=True)
class Lines:
    """Sentences, each a paragraph of its own; `bullets` make a list of them where a form has lists."""

    lines: tuple[Words, ...]
    bullets: bool = False


@dataclass(frozen=True)
class Notes:
    """How the figures above were made. They stand back behind the figures."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Steps:
    """What to do next."""

    steps: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """Lines as they are, indents included: a file, a log, a plan."""

    text: str


class ColumnKind(StrEnum):
    """What a column holds. Figures and phrases are never broken into lines."""

    NAME = "name"
    TEXT = "text"
    PHRASE = "phrase"
    CODE = "code"
    FIGURE = "figure"


@dataclass(frozen=True)
class Column:
    """A column's head and what it holds."""

    head: str
    kind: ColumnKind = ColumnKind.FIGURE


@dataclass(frozen=True)
class TableCell:
    """Words, and what stands smaller below them: an interval, a source."""

    words: Words
    below: tuple[Words, ...] = ()
    fold: Fold | None = None


Row = Sequence[Words | TableCell]


@dataclass(frozen=True)
class Table:
    """Rows under their heads. `looks` are the rows that stand out, by their number. The `note` is one on
    these columns alone."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    dense: bool = False
    note: str = ""
    looks: Mapping[int, RowLook] = field(default_factory=dict)


class RowLook(StrEnum):
    """How a row stands out on a page."""

    BASELINE = "baseline"
    VOID = "void"
    DIFFERS = "differs"


@dataclass(frozen=True)
class Fitting:
    """One table in several layouts, the fullest first. A terminal takes the first that has room; all other
    forms take the first. Where none has room, a terminal breaks the last into lines, or leaves out the whole
    section of what is `optional`."""

    layouts: tuple[Table, ...]
    optional: bool = False


@dataclass(frozen=True)
class Facts:
    """Names with their values."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Item:
    """One of several findings: its mark, what it is about, what is said of it, and what would help."""

    mark: Mark
    about: Words
    lines: tuple[Words, ...]
    step: str = ""
    small: tuple[str, ...] = ()
    fold: Fold | None = None


@dataclass(frozen=True)
class Items:
    """Findings below each other; `heads` are those of the table that Markdown makes of them: of what they are
    about, the mark, the lines, and the step. A column without a word is left out."""

    items: tuple[Item, ...]
    heads: tuple[str, str, str, str]


@dataclass(frozen=True)
class Figure:
    """What the function at `drawing`, a `module:attribute`, draws of what was found, and the words below it.
    The function is imported when a page has the figure, and gives a specification for Vega, markup of its
    own, or None where there is nothing to draw. A page alone has figures, so every number in one stands in
    words or tables as well. The `key` names it on its page; the function's name where it is left out."""

    drawing: str
    found: tuple[object, ...]
    key: str = ""
    words: str = ""


@dataclass(frozen=True)
class Fold:
    """What is opened by a click where a form has clicks."""

    title: str
    body: tuple[Element, ...]


@dataclass(frozen=True)
class From:
    """What is shown from a detail on, and what stands in its place below it."""

    detail: Detail
    body: tuple[Element, ...]
    below: tuple[Element, ...] = ()


Element = Lines | Notes | Steps | Text | Table | Fitting | Facts | Items | Figure | Fold | From


@dataclass(frozen=True)
class Section:
    """A part of a report. `aside` stands beside it on a page, and before it in all other forms. A section
    without a title goes on with the one before."""

    title: str
    body: tuple[Element, ...]
    aside: str = ""
    detail: Detail = Detail.BRIEF


@dataclass(frozen=True)
class Screen:
    """What a terminal shows of a report where nobody asks for details, in one screen: a table in several
    layouts of the same rows, the first row and those below it by how much they matter; lines, the gravest
    first, each cut where it is longer than the terminal is wide; and commands, which are never cut. Its
    `answer` stands in place of the document's where it has one. Each further
    line is a `row`."""

    layouts: tuple[Table, ...]
    lines: tuple[Words, ...]
    steps: tuple[str, ...]
    facts: str = ""
    answer: tuple[Words, ...] = ()
    row: str = "variant"


@dataclass(frozen=True)
class Document:
    """A report. `eyebrow` says on a page what kind it is, and `heading` what its title says where the title
    alone would say more than a page needs. A terminal shows the title unless the answer says it all."""

    title: str
    answer: tuple[Words, ...]
    sections: tuple[Section, ...]
    eyebrow: str = ""
    heading: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    findings: tuple[tuple[str, str], ...] = ()
    footer: str = ""
    numbered: bool = False
    titled: bool = True
    screen: Screen | None = None


def table(
    heads: Sequence[str],
    rows: Sequence[Row],
    kinds: Mapping[str, ColumnKind] | None = None,
    first: ColumnKind = ColumnKind.NAME,
    dense: bool = False,
) -> Table:
    """A table whose first column holds names and all others figures, save the kinds that are given by their
    heads."""
    known = {heads[0]: first, **(kinds or {})}
    columns = tuple(Column(head, known.get(head, ColumnKind.FIGURE)) for head in heads)
    return Table(columns, tuple(rows), dense)


def shown(body: Sequence[Element], detail: Detail) -> list[Element]:
    """What of a body is shown at a detail."""
    found: list[Element] = []
    for element in body:
        if isinstance(element, From):
            found += shown(element.body if detail >= element.detail else element.below, detail)
        else:
            found.append(element)
    return found


def marks(words: Words) -> tuple[Piece, ...]:
    """Words as their single pieces."""
    return words if isinstance(words, tuple) else (words,)


def plain(words: Words) -> str:
    """Words without their tones."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in marks(words))


def cell(content: Words | TableCell) -> TableCell:
    """What a table holds at a place, as a cell."""
    return content if isinstance(content, TableCell) else TableCell(content)


def sections_of(document: Document, detail: Detail) -> list[tuple[Section, list[Element]]]:
    """The sections that are shown at a detail, each with what of it is shown."""
    found = [(one, shown(one.body, detail)) for one in document.sections if detail >= one.detail]
    return [(one, body) for one, body in found if body or one.aside]
