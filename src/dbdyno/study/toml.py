"""The text of TOML that Dyno writes: values, and rows of keys with comments."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence

from dbdyno.frozen import Level

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


def written(value: Value) -> str:
    """A value, or a table within a line."""
    if not isinstance(value, Mapping):
        return toml(value)
    entries = [
        (key if BARE.fullmatch(key) else toml(key), written(within), "") for key, within in value.items()
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


def table(name: str, entries: Sequence[Row]) -> list[str]:
    """A table with its header."""
    return [f"[{name}]", *rows(entries)]


def comments(*sentences: str) -> list[str]:
    wrapped = (textwrap.wrap(sentence, WIDTH - 2, break_long_words=False) for sentence in sentences)
    return [f"# {line}" for lines in wrapped for line in lines]


def document(parts: Sequence[Sequence[str]]) -> str:
    """A whole file: parts of lines, with an empty line between two of them."""
    return "\n\n".join("\n".join(part) for part in parts) + "\n"
