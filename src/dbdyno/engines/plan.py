"""How an engine would execute a statement: a tree of steps, without what changes while the plan stays.

Each engine has a reader in its folder (`plans.py`), which leaves out costs, estimates and values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One step: `title` says what is done to what, `details` how; `inputs` are done before it."""

    title: str
    details: tuple[str, ...] = ()
    inputs: tuple[Step, ...] = ()


ReadPlan = Callable[[str], tuple[Step, ...]]
"""The steps of a plan as the engine tells it, the last one first; none where a statement needs no plan.
Raises ValueError where it cannot be read."""


def lines(steps: tuple[Step, ...], depth: int = 0) -> Iterator[str]:
    """A line for each step, the inputs of one indented below it."""
    for step in steps:
        yield "  " * depth + ": ".join(filter(None, (step.title, "; ".join(step.details))))
        yield from lines(step.inputs, depth + 1)


def titles(steps: tuple[Step, ...]) -> Iterator[str]:
    """What is done, in the order in which it is done."""
    for step in steps:
        yield from titles(step.inputs)
        yield step.title


_TEXT = re.compile(r"(?<![\w'])[xXeEbBnN]?'(?:[^']|'')*'")
_TYPE = r'(?:"[^"]+"|[a-z_]\w*(?: varying| precision)?(?:\(\d+(?:,\d+)?\))?(?: with(?:out)? time zone)?)'
_CAST_VALUE = re.compile(rf"\?::{_TYPE}(?:\[\])?")
_NUMBER = re.compile(r"(?<![\w.$`\"?])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w`\"])", re.IGNORECASE)
_PARAMETER = re.compile(r"(?<!\w)\$\d+\b")
_BRACKETED = re.compile(r"\((-?\?)\)")
_LIST = re.compile(r"\?(?:\s*,\s*\?)+")


def without_values(condition: str) -> str:
    """A condition in which `?` stands for each value: a number, a text, a parameter, a list of them."""
    text = _TEXT.sub("?", condition)
    # The size of a type is no value.
    text = _CAST_VALUE.sub("?", _PARAMETER.sub("?", text))
    text = _CAST_VALUE.sub("?", _NUMBER.sub("?", text))
    text = _BRACKETED.sub("?", text)
    return _LIST.sub("?", text)
