"""Reading a server's log: its end, the lines that make a trial doubtful, and what to do about them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

LOG_BYTES = 64 * 1024
WARNING = re.compile(r"\[Warning\]|\bWARNING:")
"""How the servers mark what they can live with."""

Hints = Sequence[tuple[str, str]]
"""A pattern of the log, and what to do where it is found; the first that is found counts."""


def tail(path: Path, size_bytes: int = LOG_BYTES) -> str:
    """The end of a log, from the start of a line."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - size_bytes))
            text = log.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return text.split("\n", 1)[-1] if size > size_bytes else text


def doubtful_lines(log: str, alarming: re.Pattern[str], benign: re.Pattern[str]) -> list[str]:
    """The lines that alarm and are not known to be harmless."""
    return [line.strip() for line in log.splitlines() if alarming.search(line) and not benign.search(line)]


def reason_in(lines: Sequence[str]) -> str:
    """The one of the doubtful lines that says why a server ended: the first error, because the last one is
    mostly "aborting"; else the first warning. Empty where there is no line."""
    return next((line for line in lines if not WARNING.search(line)), next(iter(lines), ""))


def untold(lines: Sequence[str], told: Sequence[str]) -> list[str]:
    """The lines of a log that are not among those that were told. A log grows at its end, and its beginning
    is passed over once it is long."""
    left = Counter(lines) - Counter(told)
    found: list[str] = []
    for line in reversed(lines):
        if left[line] > 0:
            left[line] -= 1
            found.append(line)
    return found[::-1]


def hint_in(log: str, hints: Hints) -> str:
    """What to do about the failure that a log tells of."""
    return next((hint for pattern, hint in hints if re.search(pattern, log)), "look at the end of its log")


def unknown_setting(title: str, name: str, known: Iterable[str]) -> str:
    """The hint on a setting that the server refused because it has none of that name."""
    near = get_close_matches(name, list(known), n=1)
    return f"this {title} has no setting `{name}`" + (f"; did you mean `{near[0]}`?" if near else "")
