"""Firebird's plans, as its client library words them: a line for each step, indented below what it serves."""

from __future__ import annotations

import re

from dbdyno.engines.plan import Step

_PLACE = re.compile(r" \(line \d+, column \d+\)")
_SIZES = re.compile(r" \((?:record length|keys): [^()]*\)")


def read(text: str) -> tuple[Step, ...]:
    """The steps of a plan."""
    told = [(len(line) - len(line.lstrip()), _clean(line)) for line in text.splitlines() if line.strip()]
    return _below(told)


def _below(told: list[tuple[int, str]]) -> tuple[Step, ...]:
    """The steps that stand leftmost, each with those that are indented below it."""
    steps: list[Step] = []
    while told:
        (depth, title), told = told[0], told[1:]
        inner = next((place for place, (other, _) in enumerate(told) if other <= depth), len(told))
        steps.append(Step(title=title, inputs=_below(told[:inner])))
        told = told[inner:]
    return tuple(steps)


def _clean(line: str) -> str:
    line = _SIZES.sub("", _PLACE.sub("", line.strip().removeprefix("-> ")))
    words = re.split(r'("[^"]*")', line)
    return "".join(word if word.startswith('"') else word.lower() for word in words).replace('"', "")
