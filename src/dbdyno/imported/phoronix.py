"""What the Phoronix Test Suite keeps: `composite.xml`, which holds many tests of several systems.

A user picks a test and a system: `composite.xml#Test: GET#old`. Of each repetition it has one figure, a rate
or the seconds that it took, so nothing else is known: no latency, no count, no moment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from dbdyno.errors import UserError
from dbdyno.imported.files import Repetition, lines_held, require_file
from dbdyno.imported.tallies import CountedRepetition, Tool, summary

ALONE = "give composite.xml as the Phoronix Test Suite wrote it"
RATE = re.compile(
    r"[TQ]PS|IOPS|(?![KMGT]i?B)[^/]*(?:/| Per )\s*(?P<unit>s|Sec|Second|Min|Minute)s?\b.*", re.I
)
LONG_S = 60.0
"""How long the load is taken to have run, which nobody tells."""
SHOWN_MOST = 6


def repetitions(paths: Sequence[Path]) -> list[Repetition]:
    """Of each `FILE#TEST#SYSTEM` its figures, one by one. Raises UserError where a file holds no such test or
    system, and names those that it holds."""
    return [one for path in paths for one in _picked(str(path))]


def _picked(text: str) -> list[Repetition]:
    name, _, rest = text.partition("#")
    test, _, system = rest.rpartition("#")
    path = require_file(Path(name))
    named = [(found, (_text(found, "Description"), _text(found, "Title"))) for found in _results(path)]
    tests = [found for found, names in named if test and test in names]
    if len(tests) != 1:
        told = "picks no test" if not test else f"has {len(tests) or 'no'} tests {test!r}"
        there = [description or title for _, (description, title) in named]
        raise UserError(f"{text} {told}", f"write FILE#TEST#SYSTEM; its tests: {_some(there)}")
    entries = tests[0].findall("Data/Entry")
    systems = [entry for entry in entries if _text(entry, "Identifier") == system]
    if len(systems) != 1:
        there = [_text(entry, "Identifier") for entry in entries]
        raise UserError(f"{text} names no system of that test", f"its systems: {_some(there)}")
    _require_rate(path, test, _text(tests[0], "Scale"))
    raw = _text(systems[0], "RawString") or _text(systems[0], "Value")
    figures = [word for word in raw.split(":") if word]
    if not figures:
        raise UserError(f"{text} has no figure: the test failed there", "take another system")
    scale = _text(tests[0], "Scale")
    return [
        Repetition(f"{text}, repetition {number}", (path,), f"{test} on {system}, {number}: {figure} {scale}")
        for number, figure in enumerate(figures, 1)
    ]


def _results(path: Path) -> list[ElementTree.Element]:
    text = "\n".join(line for _, line in lines_held(path, "the Phoronix Test Suite", ALONE, ended=False))
    # Entities of a document's own may grow without end, or name other files.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise UserError(f"{path} declares a document type, which no result needs", ALONE)
    try:
        found = ElementTree.fromstring(text).findall("Result")
    except ElementTree.ParseError as error:
        raise UserError(f"{path} is not the XML of the Phoronix Test Suite: {error}", ALONE) from None
    if not found:
        raise UserError(f"{path} holds no result of the Phoronix Test Suite", ALONE)
    return found


def _text(element: ElementTree.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_MOST} more" if len(names) > SHOWN_MOST else ""
    return "; ".join(dict.fromkeys(names[:SHOWN_MOST])) + more


def _require_rate(path: Path, test: str, scale: str) -> None:
    if scale != "Seconds" and not RATE.fullmatch(scale):
        raise UserError(
            f"{path}: {test!r} is measured in {scale or 'nothing'}, which is no rate of operations",
            "take a test in operations per second or minute, or one in seconds",
        )


def read(repetition: Repetition, _: str | None) -> CountedRepetition:
    """One figure of a test."""
    (path,) = repetition.files
    figure, _, scale = repetition.part.rpartition(": ")[2].partition(" ")
    try:
        told = float(figure)
    except ValueError:
        raise UserError(f"{repetition.name} is no number: {figure[:40]!r}", ALONE) from None
    if not 0.0 < told < float("inf"):
        raise UserError(f"{repetition.name} is {told:g}", "leave that system out")
    operations, took_s, remarks = 1, told, list[str]()
    if (rate := RATE.fullmatch(scale)) is not None:
        per_s = told / (LONG_S if (rate["unit"] or "").lower().startswith("min") else 1.0)
        operations = max(1, round(per_s * LONG_S))
        took_s = operations / per_s
        remarks.append("How many operations were measured is not known: the counts are those of a minute")
    return CountedRepetition(
        tool="phoronix",
        started_unix_s=path.stat().st_mtime - took_s,
        duration_s=took_s,
        operations=operations,
        latency=summary(operations, 0.0).but(mean=None),
        remarks=(*remarks, "The Phoronix Test Suite keeps one figure of each repetition, and no latency"),
    )


TOOL = Tool(repetitions, read)
