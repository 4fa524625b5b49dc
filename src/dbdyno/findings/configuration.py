"""A study's configuration file: what of it holds for every variant, and each line that does not, with why."""

from __future__ import annotations

from dbdyno.frozen import Configuration
from dbdyno.report.words import numbers, safe

HEADS = ("line", "it says", "not taken, because")


def title(found: Configuration) -> str:
    """How much of the file, and of those that it includes, holds for every variant."""
    files = f" and {numbers.plural(len(found.included), 'included file')}" if found.included else ""
    taken = numbers.plural(len(found.settings), "setting")
    left_out = f", {numbers.plural(len(found.not_taken), 'line')} not taken" if found.not_taken else ""
    return f"From {safe.clean(found.path)}{files}: {taken}{left_out}{_count(found)}"


def _count(found: Configuration) -> str:
    """How the lines add up."""
    if found.lines is None:
        return ""
    again = f", {found.lines.again:,} said again later" if found.lines.again else ""
    silent = f"{found.lines.silent:,} empty, comments, heads and includes"
    return f" (of {numbers.plural(found.lines.whole, 'line')}: {silent}{again})"


def rows(found: Configuration) -> list[tuple[str, str, str]]:
    """A row per line that was not taken, in the order in which a server reads them."""
    return [
        (safe.clean(f"{one.file or found.path}:{one.line}"), safe.clean(one.text), safe.clean(one.reason))
        for one in found.not_taken
    ]


def lines(found: Configuration) -> list[str]:
    """The same without a table."""
    return [title(found), *(f"  {place}: {text}: {reason}" for place, text, reason in rows(found))]
