"""The small grammars of a study's values: durations, percentages, guards, engine references, levels.

Each function takes a value as TOML gives it and returns what it means, or raises ValueFault with what is
allowed. The patterns are shared with the JSON Schema.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from dbdyno.driver.job import RATE_PER_S_MAX
from dbdyno.frozen import Level, level_text
from dbdyno.study.catalogue import METRICS, WORKLOADS, Option
from dbdyno.study.nouns import ANSWERS, DURABLE, Guard, Reference

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
DURATION = rf"^({NUMBER}) ?(ms|s|m|h)$"
PERCENTAGE = rf"^({NUMBER}) ?%$"
GUARD = rf"^ *([a-z][a-z0-9_]*) *(<=|>=) *({NUMBER})(x?) *$"
PROMISED = rf"^ *([a-z][a-z0-9_]*) *<= *({NUMBER}) ?(%?) *$"
PROMISES = {
    **{name: name for name in ("mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99_9_ms", "max_ms")},
    "errors": "failed_share",
    "retries": "retries_per_op",
}
"""What a promise can bound, and by which metric it is judged."""
PROMISE_FORMS = '"p99_ms <= 20, errors <= 0.1 %": latencies in ms, errors and retries'
FACTOR_NAME = r"^[a-z][a-z0-9_]*\.[^\s.=,](?:[^\s=,]*[^\s.=,])?$"
VARIANT_NAME = r"^[^\s=,](?:[^=,\n\t]*[^\s=,])?$"
WORD = r"^[0-9A-Za-z_]+$"
VERSION = r"^[0-9A-Za-z][0-9A-Za-z.+~_-]*$"
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION_MAX_S = 86_400.0
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
TEXT_MAX = 4_096
_NAMES_SHOWN = 24
_TYPES = {
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a table",
}


class ValueFault(Exception):
    """A value that is not allowed: what is wrong and what would be right, without the place."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Faults(ValueFault):
    """What is wrong with elements of a list, by their index; of itself it says what the first one says.
    `sound` are the other elements."""

    def __init__(self, faults: Sequence[tuple[int, ValueFault]], sound: tuple[Any, ...]) -> None:
        super().__init__(faults[0][1].message, faults[0][1].hint)
        self.faults = faults
        self.sound = sound


def shown(value: Any) -> str:
    """A value as a message shows it: plain values in full, others by their kind."""
    if isinstance(value, str):
        text = value if len(value) <= 60 else f"{value[:57]}..."
        return '"' + text.encode("unicode_escape").decode() + '"' if not text.isprintable() else f'"{text}"'
    if isinstance(value, bool | float) or (isinstance(value, int) and INT_MIN <= value <= INT_MAX):
        return level_text(value)
    return "a very large number" if isinstance(value, int) else kind_text(value)


def name_shown(name: str) -> str:
    """A key as a message shows it."""
    return f"`{name}`" if name.isprintable() and 0 < len(name) <= 80 else shown(name)


def kind_text(value: Any) -> str:
    """What a TOML value is, in words."""
    return _TYPES.get(type(value), "a date or time")


def nearest(
    name: str,
    allowed: Collection[str],
    what: str = "there are",
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """A hint for a name that does not exist: the nearest one, and all where they are few. `elsewhere` maps
    names of other tools to those that are meant; what these stand for is what most people look for.
    """
    meant = frozenset(elsewhere.values())
    names = sorted(allowed, key=lambda known: (known not in meant, known))
    folded = {known.casefold(): known for known in names}
    called = elsewhere.get(name.casefold())
    if called in allowed:
        return f"here this is `{called}`"
    close = get_close_matches(name.casefold()[:100], folded, n=1, cutoff=0.6)
    guess = f"did you mean `{folded[close[0]]}`? " if close else ""
    listed = ", ".join(names[:_NAMES_SHOWN]) + (
        f" and {len(names) - _NAMES_SHOWN} more" if names[_NAMES_SHOWN:] else ""
    )
    return f"{guess}{what}: {listed}" if names else f"{guess}{what} none"


def text(value: Any) -> str:
    """A text of one line."""
    if not isinstance(value, str):
        raise ValueFault(f"must be a text, not {kind_text(value)}", 'write it in quotes: "..."')
    if not value.strip():
        raise ValueFault("is empty", "give a text of at least one character")
    if len(value) > TEXT_MAX:
        raise ValueFault(f"is {len(value):,} characters long", f"at most {TEXT_MAX:,} are allowed")
    if not value.isprintable():
        raise ValueFault(
            f"holds a character that cannot be printed: {shown(value)}",
            "write it on one line, without control characters",
        )
    return value


def word(value: Any) -> str:
    """A name in SQL that needs no quotes there."""
    name = text(value)
    if not re.fullmatch(WORD, name):
        raise ValueFault(f"cannot be {shown(name)}", "write letters, digits and _")
    return name


def text_of_lines(value: Any) -> str:
    """A text of one line or more."""
    return value if isinstance(value, str) and text(value.replace("\n", " ")) else text(value)


def command_line(value: Any) -> str:
    """A program with its arguments, as a shell would split them."""
    try:
        shlex.split(text_of_lines(value))
    except ValueError as wrong:
        raise ValueFault(f"is no command: {wrong}", "close the quotation marks in it") from None
    return str(value)


def texts(value: Any) -> tuple[str, ...]:
    """A text, or several in a list."""
    return tuple(text(each) for each in (value if isinstance(value, list) else [value]))


def one_of(value: Any, allowed: Collection[str]) -> str:
    if not isinstance(value, str):
        raise ValueFault(f"must be a text, not {kind_text(value)}", f"allowed: {', '.join(sorted(allowed))}")
    if value not in allowed:
        raise ValueFault(f"cannot be {shown(value)}", nearest(value, allowed, "allowed"))
    return value


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueFault(f"must be true or false, not {shown(value)}", "write true or false without quotes")
    return value


def integer(value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueFault(
            f"must be a whole number, not {shown(value)}", f"allowed: {low:,} to {high:,}, without quotes"
        )
    if not low <= value <= high:
        raise ValueFault(f"cannot be {shown(value)}", f"allowed: {low:,} to {high:,}")
    return value


def number(value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueFault(
            f"must be a number, not {shown(value)}", f"allowed: {low:,g} to {high:,g}, without quotes"
        )
    if not low <= value <= high:  # false for nan as well
        raise ValueFault(f"cannot be {shown(value)}", f"allowed: {low:,g} to {high:,g}")
    return float(value)


def rate(value: Any) -> float:
    """Transactions per second of an open loop, in all."""
    return _sendable(value, 0.001)


def rate_of_schedule(value: Any) -> float:
    """The same at one time of a schedule, where nothing may start for a while."""
    return _sendable(value, 0.0)


def _sendable(value: Any, low: float) -> float:
    if isinstance(value, int | float) and value > RATE_PER_S_MAX:
        raise ValueFault(
            f"cannot be {shown(value)}", f"the driver can send at most {RATE_PER_S_MAX:,.0f} per second"
        )
    return number(value, low, RATE_PER_S_MAX)


def duration_s(value: Any, least_s: float) -> float:
    """Seconds of a duration with its unit: `500ms`, `20s`, `1.5m`, `1h`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueFault(
            f"a duration needs its unit: {shown(value)} has none",
            f'did you mean "{shown(value)}s"? units: ms, s, m, h',
        )
    match = re.fullmatch(DURATION, value) if isinstance(value, str) else None
    if match is None:
        raise ValueFault(
            f"{shown(value)} is no duration", 'write a number and its unit: "500ms", "20s", "2m", "1h"'
        )
    seconds = float(match[1]) * SECONDS[match[2]]
    if not least_s <= seconds <= DURATION_MAX_S:
        raise ValueFault(f"cannot be {shown(value)}", f"allowed: {least_s:g}s to 24h")
    return seconds


def share(value: Any, low: float, high: float) -> float:
    """The share that a percentage means: `2%` is 0.02."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueFault(
            f"a percentage needs its sign: {shown(value)} has none", 'write it as a text with its sign: "2%"'
        )
    match = re.fullmatch(PERCENTAGE, value) if isinstance(value, str) else None
    if match is None:
        raise ValueFault(f"{shown(value)} is no percentage", 'write a number and the sign: "2%"')
    percent = float(match[1])
    if not low <= percent <= high:
        raise ValueFault(f"cannot be {shown(value)}", f"allowed: {low:g}% to {high:g}%")
    return percent / 100


def metric(value: Any, metrics: frozenset[str]) -> str:
    """The name of a metric."""
    name = text(value)
    if name not in metrics:
        raise ValueFault(f"unknown metric {shown(name)}", nearest(name, metrics, elsewhere=METRICS))
    return name


def workload_name(value: Any, known: Collection[str]) -> str:
    """The name of a workload."""
    name = text(value)
    if name not in known:
        raise ValueFault(f"unknown workload {shown(name)}", nearest(name, known, elsewhere=WORKLOADS))
    return name


def guard(value: Any, metrics: frozenset[str]) -> Guard:
    """`invariants`, `durable`, `answers`, or a metric with an absolute bound or one that is a multiple of the
    baseline's value."""
    bounds = '"p99_ms <= 1.2x" (against the baseline) or "p99_ms <= 50" (absolute)'
    forms = f'write "invariants", "durable", "answers", {bounds}'
    if value in ("invariants", DURABLE, ANSWERS):
        return Guard(text=value, metric=value)
    match = re.fullmatch(GUARD, value) if isinstance(value, str) else None
    if match is None:
        raise ValueFault(f"{shown(value)} is no guard", forms)
    metric, comparison, bound, relative = match[1], match[2], float(match[3]), bool(match[4])
    if metric not in metrics:
        raise ValueFault(
            f"unknown metric `{metric}` in the guard {shown(value)}",
            nearest(metric, metrics, elsewhere=METRICS),
        )
    if (relative and bound == 0) or not math.isfinite(bound):
        raise ValueFault(f"the guard {shown(value)} has a bound that nothing can be measured against", forms)
    return Guard(
        text=value.strip(), metric=metric, bound=bound, relative=relative, at_most=comparison == "<="
    )


def promise(value: Any) -> tuple[Guard, ...]:
    """Bounds on latencies, errors and retries, with commas between them."""
    found = tuple(_promised(part.strip()) for part in text(value).split(","))
    metrics = [one.metric for one in found]
    for one in found:
        if metrics.count(one.metric) > 1:
            raise ValueFault(f"{shown(value)} bounds `{one.text.split()[0]}` twice", "keep one of the two")
    return found


def _promised(part: str) -> Guard:
    """One bound of a promise. Errors and retries are shares of the transactions."""
    match = re.fullmatch(PROMISED, part)
    if match is None:
        raise ValueFault(f"{shown(part)} is no promise", f"write {PROMISE_FORMS}")
    name, bound, percent = match[1], float(match[2]), bool(match[3])
    if name not in PROMISES:
        raise ValueFault(f"no promise can be made on `{name}`", nearest(name, PROMISES))
    metric = PROMISES[name]
    if percent and metric.endswith("_ms"):
        raise ValueFault(f"{shown(part)} is a time in percent", f"write milliseconds: {name} <= 20")
    return Guard(text=part, metric=metric, bound=bound / 100.0 if percent else bound)


def level(value: Any, name: str = "") -> Level:
    """One level of the factor `name`: a boolean, a 64-bit whole number, a finite number or a text of one
    line. The server says whether it takes a setting that is empty, as it does of any other text."""
    if value == "" and name.startswith("config."):
        return ""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return integer(value, INT_MIN, INT_MAX)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueFault(f"cannot be {shown(value)}", "a level is finite")
        return value
    raise ValueFault(f"a level cannot be {kind_text(value)}", "a level is a text, a number, true or false")


def first_alike(levels: Iterable[Level | None]) -> int | None:
    """The index of the first level that cannot be told from an earlier one: written alike (`1` and `"1"`)
    or equal (`1` and `1.0`)."""
    seen: set[str | float] = set()
    for index, item in enumerate(levels):
        if item is None:
            continue
        keys: set[str | float] = {level_text(item)}
        if isinstance(item, int | float) and not isinstance(item, bool):
            keys.add(item)
        if keys & seen:
            return index
        seen |= keys
    return None


def option_value(value: Any, option: Option) -> Level:
    """A value for one of the workload's options, by the driver's description of it."""
    limits = option.limits
    if option.type == "bool":
        return boolean(value)
    if option.type == "choice":
        return one_of(value, option.choices)
    if option.type == "text":
        return text(value) if value != "" else ""
    if limits is not None and limits.word and isinstance(value, str):
        return one_of(value, (limits.word,))
    if option.type == "int":
        return integer(value, int(limits.min) if limits else INT_MIN, int(limits.max) if limits else INT_MAX)
    return number(value, limits.min if limits else -1e300, limits.max if limits else 1e300)


RUNNING = ("mariadb", "mysql", "postgresql")
"""Engines of which a server that runs already can be studied: those that take settings over a connection."""


def _running(url: str, names: Collection[str], forms: str) -> Reference:
    """A server that runs already. Raises ValueFault for a URL that leads to none."""
    scheme, _, rest = url.partition("://")
    known = [name for name in RUNNING if name in names]
    if scheme not in known:
        if not known:
            raise ValueFault("is a URL", forms)
        forms = " or ".join(f"{name}://USER@HOST/DATABASE" for name in known)
        raise ValueFault(
            f"is the URL of no server that can be studied while it runs: {scheme}", f"write {forms}"
        )
    account, _, place = rest.partition("?")[0].rpartition("@")
    if not account or not place.partition("/")[2]:
        hint = f"write {scheme}://USER@HOST:PORT/DATABASE, with ?socket=PATH for a socket"
        raise ValueFault("names no account, or no database", hint)
    return Reference(engine=scheme, path=f"//{rest}")


def reference(value: Any, names: Collection[str], what: str, forms: str) -> Reference:
    """`mariadb@11.8`, `mariadb:/usr/sbin/mariadbd`, `mariadb` or the URL of a server that runs already."""
    written = text(value)
    if "://" in written:
        return _running(written, names, forms)
    name, separator, rest = re.fullmatch(r"([^@:]*)([@:]?)(.*)", written).groups()  # type: ignore[union-attr]
    if name not in names:
        raise ValueFault(f"unknown {what} {shown(name)}", nearest(name, names))
    if separator == "@":
        if not re.fullmatch(VERSION, rest):
            raise ValueFault(
                f"{shown(rest)} is no version",
                f'{forms}; a version is letters, digits and .+~_- as in "11.8"',
            )
        return Reference(engine=name, version=rest)
    if separator == ":":
        path = os.path.expanduser(rest)  # noqa: PTH111 - pathlib would raise where there is no home
        if not path.startswith(("/", "./", "../")):
            raise ValueFault(f"{shown(rest)} is no path", f"{forms}; a path starts with /, ~/, ./ or ../")
        return Reference(engine=name, path=path)
    return Reference(engine=name)


SWEEP = r"^([0-9]{1,6})\.\.([0-9]{1,6}) ?([x+])([0-9]{1,6})$"
SWEEP_FORMS = '"1..256 x2" or "8..64 +8"'
SWEEP_MOST = 64


def is_sweep(value: Any) -> bool:
    """Whether a value is meant as a sweep: a text with two points in a row."""
    return isinstance(value, str) and ".." in value


def numbers_of_sweep(text: str) -> list[int]:
    """The numbers of a sweep, rising from the first; the end is the last of them only where a step meets it.

    Raises ValueFault for a text that is no sweep, and for one of fewer than two or of too many numbers.
    """
    found = re.match(SWEEP, text)
    if found is None:
        raise ValueFault(f"{shown(text)} is no sweep", f"write {SWEEP_FORMS}")
    first, last, step = (int(found[part]) for part in (1, 2, 4))
    times = found[3] == "x"
    if first < 1 or step < (2 if times else 1):
        raise ValueFault(f"{shown(text)} does not rise", f"write {SWEEP_FORMS}")
    levels = [first]
    while (following := levels[-1] * step if times else levels[-1] + step) <= last:
        levels.append(following)
        if len(levels) > SWEEP_MOST:
            raise ValueFault(f"{shown(text)} has more than {SWEEP_MOST} levels", "take a larger step")
    if len(levels) < 2:
        raise ValueFault(f"{shown(text)} has one level", "a factor needs two or more")
    return levels
