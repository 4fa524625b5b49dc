"""What auto_explain writes: a statement and its plan, in any of its four formats."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass

STRING = r'"(?:[^"\\]|\\.)*"'
OBJECT = re.compile(
    rf'\s*\{{?\s*"?Query Text"?: ({STRING})(?:,?\s*"?Query Parameters"?: ({STRING}))?', re.DOTALL
)
"""JSON and YAML write both as strings of JSON."""
XML = re.compile(
    r".*?<Query-Text>(.*?)</Query-Text>(?:\s*<Query-Parameters>(.*?)</Query-Parameters>)?", re.DOTALL
)
TEXT = re.compile(
    r"\s*Query Text: (.*?)(?:\n\s*Query Parameters: (.*?))?(?:\n[^\n]*\((?:cost|actual|rows)[ =][^\n]*.*)?\Z",
    re.DOTALL,
)


@dataclass(frozen=True)
class Planned:
    """A statement of which auto_explain wrote the plan, and its parameters as they were written."""

    text: str
    parameters: str


def planned(plan: str) -> Planned | None:
    """The statement of what stands behind `plan:`; None where it tells none."""
    if found := OBJECT.match(plan):
        return Planned(_string(found[1]), _string(found[2] or '""'))
    if found := XML.match(plan):
        return Planned(html.unescape(found[1]), html.unescape(found[2] or ""))
    if found := TEXT.match(plan):
        return Planned(found[1], found[2] or "")
    return None


def _string(literal: str) -> str:
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return ""
