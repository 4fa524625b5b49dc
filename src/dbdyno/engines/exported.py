"""Settings as a cloud exports them: `aws rds describe-db-parameters`, `gcloud sql instances describe`.

An export is read as the lines of the engine's own file, a line for each setting. It lists all settings of the
service; those without a value have the engine's default there, and say nothing here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dbdyno.engines.line import Line, NoConfiguration

A_FORMULA = "it is a formula of the service: write the number that the server runs with"
FLAGS = re.compile(r"^([ ]*)databaseFlags:[ ]*\n((?:\1[ -].*\n?)+)", re.MULTILINE)
FLAG = re.compile(r"^[ ]*-[ ]+name:[ ]*(\S+)[ ]*\n[ ]*value:[ ]*(.*?)[ ]*$", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """A setting of an export, the how-manieth it is, and its value, which is empty where none is set."""

    number: int
    name: str
    value: str

    def untaken(self, written: str) -> Line | None:
        """The line that the entry is where it is no setting for a study; None where it may be one."""
        if self.value.startswith("*") or re.search(r"[{}]", self.value):
            return Line(self.number, written, self.name, self.value, A_FORMULA)
        return None


def entries(text: str) -> list[Entry] | None:
    """The settings that an export gives a value; None for a text that is no export. Raises NoConfiguration
    for JSON of another kind."""
    found = _all(text)
    return None if found is None else [one for one in found if one.value]


def length(text: str) -> int:
    """How many lines a file has, or how many settings an export lists."""
    found = _all(text)
    return len(text.splitlines()) if found is None else len(found)


def _all(text: str) -> list[Entry] | None:
    if text.lstrip()[:1] in ("{", "["):
        try:
            pairs = list(_of_json(json.loads(text)))
        except (ValueError, TypeError, KeyError, AttributeError):
            if text.lstrip()[0] == "[" and not re.match(r'\s*\[\s*["{\]]', text):
                return None
            raise _other() from None
    elif flags := FLAGS.search(text):
        pairs = [(name, value.strip("'\"")) for name, value in FLAG.findall(flags[2])]
    else:
        return None
    return [Entry(number, name, value) for number, (name, value) in enumerate(pairs, 1)]


def _of_json(found: Any) -> Iterator[tuple[str, str]]:
    """Names and values. Raises one of several errors for JSON of another kind."""
    if isinstance(found, list):
        [found] = found
    if "Parameters" in found:
        for one in found["Parameters"]:
            yield one["ParameterName"], str(one.get("ParameterValue", ""))
    else:
        for one in found["settings"].get("databaseFlags", ()):
            yield one["name"], str(one["value"])


def _other() -> NoConfiguration:
    return NoConfiguration(
        "it is JSON, and no settings of RDS or Cloud SQL",
        "give what `aws rds describe-db-parameters` or `gcloud sql instances describe --format json` prints",
    )
