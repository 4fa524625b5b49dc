"""What Firebird writes into its log, and what that means."""

from __future__ import annotations

import re

from dbdyno.engines.log import hint_in

ALARMING = re.compile(
    r"error|corrupt|bugcheck|wrong|invalid|unable|cannot|shutdown|crash|missing", re.IGNORECASE
)

HINTS = (
    (r"No space left|disk full", "the disk is full: make room below the data directory"),
    (r"cannot open shared object", "`dyno engines fetch firebird` obtains what is missing"),
    (r"(?i)page size|size of .*page", "page_size is 4096, 8192, 16384 or 32768"),
    (r"Permission denied", "the database must belong to the user that runs Dyno"),
    (r"is not a valid database|unsupported on-disk structure", "this file was made by another Firebird"),
)


def problems(log: str) -> list[str]:
    """firebird.log has a head line (host, time) and then indented text per entry."""
    entries = re.split(r"\n(?=\S)", log)
    texts = [" ".join(line.strip() for line in entry.splitlines()[1:] if line.strip()) for entry in entries]
    return [text for text in texts if ALARMING.search(text)]


def hint(text: str) -> str:
    """What to do about a failure that Firebird put into these words."""
    return hint_in(text, HINTS)
