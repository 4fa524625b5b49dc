"""The report as GitHub-flavoured Markdown, for an issue, a commit or a chat. Text from outside is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dbdyno.analyse.gate import Gate
from dbdyno.report.parts import gate as gate_part
from dbdyno.report.words import safe


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


def _words(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is names, all others figures."""
    cells = [[safe.markdown(cell) for cell in row] for row in rows]
    return _table(heads, cells, right=set(range(1, len(heads))))


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
