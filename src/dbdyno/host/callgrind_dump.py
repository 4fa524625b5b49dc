"""Reading what callgrind wrote: the counts of each function, and of its calls.

The form is that of Valgrind's Callgrind Format Specification, version 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from dbdyno.errors import DynoError

Counts = tuple[int, ...]
"""One number for each event, in the order of the dump's `events`."""


class Function(NamedTuple):
    """A function, the source file that it begins in, and the object (program or library) that holds it.

    A file that is not known is `???`. A function without a symbol has its address for a name.
    """

    name: str
    file: str
    object: str


@dataclass
class Dump:
    """One dump of one process. `own` are the counts of a function's own code, `calls` those of each pair of
    caller and callee with all that the callee calls; `totals` are those of the whole dump."""

    events: tuple[str, ...] = ()
    own: dict[Function, Counts] = field(default_factory=dict)
    calls: dict[tuple[Function, Function], Counts] = field(default_factory=dict)
    totals: Counts = ()


def plus(one: Counts, other: Counts) -> Counts:
    """Event by event; a missing count is zero."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    return tuple(a + b for a, b in zip(longer, (*shorter, *[0] * len(longer)), strict=False))


_ASSIGNMENT = re.compile(r"(?P<key>[a-z]+)=\s*(?P<value>.*)")
_HEADER = re.compile(r"(?P<key>[A-Za-z]+):\s*(?P<value>.*)")
_COMPRESSED = re.compile(r"\((?P<number>\d+)\)(?:\s+(?P<name>.*))?")
_POSITION = re.compile(r"[+-]?(0x[0-9a-fA-F]+|\d+)|\*")
_KIND = {"ob": "ob", "cob": "ob", "fn": "fn", "cfn": "fn"}
"""Names are numbered by kind; all that is not here is a file."""


def read_dump(lines: Iterable[str]) -> Dump:
    """The dump in these lines. Raises DynoError at a line that the format does not allow."""
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        try:
            reader.take(line.strip())
        except (ValueError, KeyError) as error:
            raise DynoError(f"line {number} of callgrind's dump cannot be read: {error}") from None
    return reader.dump


class _Reader:
    """Where a dump is being read: the names met so far, the function, and the call that costs are due for."""

    def __init__(self) -> None:
        self.dump = Dump()
        self._names: dict[tuple[str, str], str] = {}
        self._positions = 1
        self._at = {"ob": "", "fl": "", "fi": "", "fn": "", "cob": "", "cfi": "", "cfn": ""}
        self._function: Function | None = None
        self._callee: Function | None = None

    def take(self, line: str) -> None:
        if not line or line.startswith("#"):
            return
        if line[0] in "+-*0123456789":
            self._count(line)
        elif found := _ASSIGNMENT.match(line):
            self._assign(found["key"], found["value"])
        elif found := _HEADER.match(line):
            self._head(found["key"], found["value"])
        else:
            raise ValueError(line)

    def _head(self, key: str, value: str) -> None:
        if key == "events":
            self.dump.events = tuple(value.split())
        elif key == "positions":
            self._positions = len(value.split())
        elif key == "totals":
            self.dump.totals = tuple(map(int, value.split()))

    def _assign(self, key: str, value: str) -> None:
        at = self._at
        if key == "calls":
            # Where the callee's object or file is not named, it is the one that the caller is in just now.
            self._callee = Function(at["cfn"], at["cfi"] or at["fi"], at["cob"] or at["ob"])
            at["cob"] = at["cfi"] = ""
            return
        key = {"fe": "fi", "cfl": "cfi"}.get(key, key)
        if key not in at:
            return
        at[key] = self._named(_KIND.get(key, "fl"), value)
        if key == "fl":
            at["fi"] = at["fl"]
        elif key == "fn":
            self._function = Function(at["fn"], at["fl"], at["ob"])

    def _named(self, kind: str, value: str) -> str:
        found = _COMPRESSED.fullmatch(value)
        if found is None:
            return value
        if found["name"] is not None:
            self._names[kind, found["number"]] = found["name"]
        return self._names[kind, found["number"]]

    def _count(self, line: str) -> None:
        words = line.split()
        if not all(map(_POSITION.fullmatch, words[: self._positions])) or self._function is None:
            raise ValueError(line)
        counts = tuple(map(int, words[self._positions :]))
        if self._callee is None:
            self.dump.own[self._function] = plus(self.dump.own.get(self._function, ()), counts)
        else:
            pair = self._function, self._callee
            self.dump.calls[pair] = plus(self.dump.calls.get(pair, ()), counts)
            self._callee = None


Share = dict[Function, Counts]
"""Counts by function; no count is in two of them."""


def part_of(dump: Dump, functions: set[Function]) -> Share:
    """The counts of these functions' own code, and of what others do for them.

    What they call elsewhere (the C library's) counts under the name of what they call, with all that this
    calls in turn.
    """
    share = {function: counts for function, counts in dump.own.items() if function in functions}
    for (caller, callee), counts in dump.calls.items():
        if caller in functions and callee not in functions:
            share[callee] = plus(share.get(callee, ()), counts)
    return share


def wholes(dump: Dump) -> Iterator[tuple[Function, Counts]]:
    """Each function's counts with all that it calls. Those of a recursion count each time it is entered, so
    none is let exceed the dump's total."""
    found = dict(dump.own)
    for (caller, callee), counts in dump.calls.items():
        if caller != callee:
            found[caller] = plus(found.get(caller, ()), counts)
    for function, counts in found.items():
        yield function, tuple(min(one, most) for one, most in zip(counts, dump.totals, strict=False))
