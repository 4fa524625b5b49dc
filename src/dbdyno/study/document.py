"""The text of a study, or of preferences: bytes to values, and the line on which each value stands; and the
TOML that Dyno writes itself.

tomllib gives the values and judges the syntax; tree-sitter's grammar gives the lines, and finds keys given
twice, all of them at once.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from dbdyno.errors import Mistake
from dbdyno.frozen import Level

BYTES_MAX = 1 << 20
KEY_PARTS_MAX = 16
ELEMENTS_MAX = 1_000
"""Elements of a list whose lines are known; those after them have the line of the list."""
Place = tuple[str | int, ...]
_GRAMMAR = Language(tree_sitter_toml.language())
_KEY_NODES = ("bare_key", "quoted_key", "dotted_key")


class UnreadableStudy(Exception):
    """The file holds no document at all; `mistakes` say why."""

    def __init__(self, message: str, hint: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.mistakes = [Mistake(line=line, message=message, hint=hint, column=column)]


@dataclass
class StudyDocument:
    """`values` as tomllib reads them; `lines` maps a key's path (array elements by index) to its line."""

    text: str
    digest: str
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[Place, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def line(self, path: Place) -> int:
        """The line of `path`, or of the nearest table around it; 0 for the file as a whole."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)


def parse_document(content: bytes) -> StudyDocument:
    """Parses the bytes of a file. Keys given twice are mistakes of the document; the first one counts."""
    text = _decode(content)
    document = StudyDocument(text=text, digest=hashlib.sha256(content).hexdigest())
    # Newlines inside the grammar's tree and tomllib's must be the same ones, and a BOM is in neither.
    source = text.replace("\r\n", "\n").encode()
    repeated = _index(source, document)
    try:
        document.values = _load(_without(source, repeated).decode())
    except UnreadableStudy as error:
        error.mistakes += document.mistakes
        raise
    return document


def read_bytes(path: Path) -> bytes:
    """The bytes of a file. Raises UnreadableStudy when there are none to be had, or too many."""
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except FileNotFoundError:
        raise UnreadableStudy("there is no such file", "give the path of a study, a TOML file") from None
    except IsADirectoryError:
        raise UnreadableStudy("this is a directory", "give the path of a TOML file in it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadableStudy(f"cannot be read: {reason}", "check the path and its permissions") from None
    if len(content) > BYTES_MAX:
        raise UnreadableStudy(
            "the file is larger than 1 MiB", "it should be a short text: is this the right file?"
        )
    return content


def _decode(content: bytes) -> str:
    if b"\0" in content:
        raise UnreadableStudy("this is not a text file: it holds zero bytes", "write TOML in UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise UnreadableStudy(
            f"the text is not UTF-8: byte 0x{content[error.start]:02x}",
            "save the file as UTF-8",
            line,
            column,
        ) from None


def values_of(text: str) -> dict[str, Any]:
    """The values of a study's text, whatever they mean. Raises UnreadableStudy where it is no TOML."""
    return _load(text)


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UnreadableStudy("values are nested too deeply", "write lists of plain values") from None
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
    except ValueError:
        reason = "a number has too many digits"
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", reason)
    line = int(place[1]) if place and place[1] else text.count("\n") + 1 if place else 0
    column = int(place[2]) if place and place[2] else 0
    what = reason[: place.start()] if place else reason
    raise UnreadableStudy(
        f"not valid TOML: {what[:1].lower()}{what[1:]}",
        "see https://toml.io; texts stand in quotes, keys once per table",
        line,
        column,
    )


def _without(source: bytes, nodes: list[Node]) -> bytes:
    """The source with the text of `nodes` blanked out, all else where it was."""
    blanked = bytearray(source)
    for node in nodes:
        # In an inline table the comma before a pair goes with it.
        comma = node.prev_sibling if node.prev_sibling and node.prev_sibling.type == "," else node
        start = comma.start_byte
        blanked[start : node.end_byte] = re.sub(rb"[^\n]", b" ", source[start : node.end_byte])
    return bytes(blanked)


def _index(source: bytes, document: StudyDocument) -> list[Node]:
    """Fills in the document's lines; returns the nodes of tables and pairs whose key was given before."""
    indexer = _Indexer(document)
    for node in Parser(_GRAMMAR).parse(source).root_node.named_children:
        if node.type == "pair":
            indexer.pairs((), [node])
        elif node.type in ("table", "table_array_element"):
            indexer.table(node)
    return indexer.repeated


class _Indexer:
    """Walks the grammar's tree without recursion: its depth is the writer's choice."""

    def __init__(self, document: StudyDocument) -> None:
        self.document = document
        self.repeated: list[Node] = []
        self.defined: dict[Place, int] = {}
        self.elements: dict[Place, int] = {}

    def table(self, node: Node) -> None:
        key = next((child for child in node.named_children if child.type in _KEY_NODES), None)
        if key is None:
            return
        path = self._place(_key_parts(key))
        if node.type == "table_array_element":
            index = self.elements.get(path, -1) + 1
            self.elements[path] = index
            self._mark(path, node)
            path = (*path, index)
            self._mark(path, node)
        elif not self._define(path, node):
            return
        self.pairs(path, [child for child in node.named_children if child.type == "pair"])

    def pairs(self, path: Place, nodes: list[Node]) -> None:
        """Records pairs of the table at `path`, and what their values hold."""
        waiting = [(path, node) for node in reversed(nodes)]
        while waiting:
            here, node = waiting.pop()
            if node.type == "pair" and len(node.named_children) >= 2:
                here = (*here, *_key_parts(node.named_children[0]))
                if self._define(here, node):
                    waiting.append((here, node.named_children[-1]))
            elif node.type == "inline_table":
                waiting.extend(
                    (here, child) for child in reversed(node.named_children) if child.type == "pair"
                )
            elif node.type == "array" and len(here) < KEY_PARTS_MAX:
                elements = (child for child in node.named_children if child.type != "comment")
                for index, child in enumerate(islice(elements, ELEMENTS_MAX)):
                    self._mark((*here, index), child)
                    waiting.append(((*here, index), child))

    def _place(self, parts: Place) -> Place:
        """The full path of a table's header: inside an array of tables it means the latest element."""
        path: Place = ()
        for position, part in enumerate(parts):
            path = (*path, part)
            if path in self.elements and position < len(parts) - 1:
                path = (*path, self.elements[path])
        return path

    def _define(self, path: Place, node: Node) -> bool:
        if path in self.defined:
            # Here, because every command reads preferences, and few find a mistake.
            from dbdyno.study.values import name_shown

            name = name_shown(".".join(str(part) for part in path))
            self.document.mistakes.append(
                Mistake(
                    line=node.start_point.row + 1,
                    column=node.start_point.column + 1,
                    message=f"{name} is given twice: first on line {self.defined[path]}",
                    hint="keep one of the two",
                )
            )
            self.repeated.append(node)
            return False
        self.defined[path] = node.start_point.row + 1
        self._mark(path, node)
        return True

    def _mark(self, path: Place, node: Node) -> None:
        for length in range(1, len(path) + 1):
            self.document.lines.setdefault(path[:length], node.start_point.row + 1)


def _key_parts(node: Node) -> Place:
    """The parts of a bare, quoted or dotted key, unquoted."""
    # A comment in the midst of a key is no TOML, which the real parse will say.
    leaves = [leaf for leaf in _leaves(node) if leaf.type != "comment"]
    if len(leaves) > KEY_PARTS_MAX:
        row, column = node.start_point
        raise UnreadableStudy(
            f"a key of {len(leaves)} parts", f"a key has at most {KEY_PARTS_MAX}", row + 1, column + 1
        )
    return tuple(_unquoted(leaf) for leaf in leaves)


def _leaves(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.type == "dotted_key":
            waiting.extend(reversed(node.named_children))
        else:
            yield node


def _unquoted(leaf: Node) -> str:
    text = (leaf.text or b"").decode(errors="replace")
    if leaf.type == "bare_key":
        return text
    try:
        return next(iter(tomllib.loads(f"{text} = 0")))
    except ValueError:  # the real parse will say what is wrong with it
        return text


WIDTH, VALUE_MOST = 100, 30
Row = tuple[str, str, str]
"""A key, its value as TOML, and what a newcomer may want to know."""
Value = Level | Sequence[Level] | Mapping[str, Level | Mapping[str, Level]]
"""What a key can have: a level, a list of them, or a table within a line."""
BARE = re.compile(r"[A-Za-z0-9_-]+")
"""A key that needs no quotes."""


def toml(value: Level | Sequence[Level]) -> str:
    """A value as TOML writes it: JSON spells texts, numbers, booleans and lists so as well, but no character
    by two escapes."""
    return json.dumps(value, ensure_ascii=False)


def toml_text(value: Value) -> str:
    """A value, or a table within a line."""
    if not isinstance(value, Mapping):
        return toml(value)
    entries = [
        (key if BARE.fullmatch(key) else toml(key), toml_text(within), "") for key, within in value.items()
    ]
    return inline(entries)


def line(entry: Row) -> str:
    """A row that stands by itself."""
    key, value, comment = entry
    return f"{key} = {value}  # {comment}" if comment else f"{key} = {value}"


def inline(entries: Sequence[Row]) -> str:
    """A table within a line, without its comments."""
    return f"{{ {', '.join(f'{key} = {value}' for key, value, _ in entries)} }}"


def levels_of(levels: Mapping[str, Level]) -> list[Row]:
    """Levels by the names of their factors, which hold dots."""
    return [(toml(factor), toml(level), "") for factor, level in levels.items()]


def rows(entries: Sequence[Row]) -> list[str]:
    """Keys, values and comments below each other. A comment that is too long stands above its line."""
    key_width = max((len(key) for key, _, _ in entries), default=0)
    value_width = max((len(value) for _, value, _ in entries if len(value) <= VALUE_MOST), default=0)
    lines: list[str] = []
    for key, value, comment in entries:
        alone = f"{key.ljust(key_width)} = {value}"
        beside = f"{alone.ljust(key_width + 3 + value_width)}  # {comment}"
        if not comment:
            lines.append(alone)
        elif len(beside) <= WIDTH:
            lines.append(beside)
        else:
            lines += [*comments(comment), alone]
    return lines


def table_text(name: str, entries: Sequence[Row]) -> list[str]:
    """A table with its header."""
    return [f"[{name}]", *rows(entries)]


def comments(*sentences: str) -> list[str]:
    wrapped = (textwrap.wrap(sentence, WIDTH - 2, break_long_words=False) for sentence in sentences)
    return [f"# {line}" for lines in wrapped for line in lines]


def document(parts: Sequence[Sequence[str]]) -> str:
    """A whole file: parts of lines, with an empty line between two of them."""
    return "\n\n".join("\n".join(part) for part in parts) + "\n"
