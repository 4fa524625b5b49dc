"""How each kind of value is written in a study: read, told to editors, and written back.

A grammar knows nothing of where its value stands. The keys that have it are in `tables.py`. Parts of the JSON
Schema that several keys share stand here as well: what the reader accepts, the schema accepts. The reader
knows more: what goes with what, and the layers' rules.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Generic, TypeVar

from dbdyno.driver.job import RATE_PER_S_MAX
from dbdyno.frozen import Level
from dbdyno.study import pacing, values
from dbdyno.study.catalogue import Catalogue, Option
from dbdyno.study.designs import CONTROL
from dbdyno.study.front import REQUEST, REQUIREMENT
from dbdyno.study.nouns import (
    ANSWERS,
    BASELINE,
    CANDIDATE,
    DURABLE,
    TWIN,
    Constraint,
    Guard,
    Reference,
    Term,
    amount,
)
from dbdyno.study.values import SWEEP, Faults, ValueFault, kind_text, shown

Schema = dict[str, Any]
TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": values.TEXT_MAX}
TEXTS: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
LEVEL: Schema = {"type": ["string", "number", "boolean"]}
LEVELS: Schema = {"type": "array", "items": LEVEL, "minItems": 2, "uniqueItems": True}
ONE_OR_MORE: Schema = {"anyOf": [LEVEL, {"type": "array", "items": LEVEL, "minItems": 1}]}


def pattern(text: str) -> Schema:
    return {"type": "string", "pattern": text}


def or_list(schema: Schema) -> Schema:
    """A value, or a list of such values: a factor."""
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 2, "uniqueItems": True}]}


def or_sweep(schema: Schema) -> Schema:
    """The same, or a text that stands for a list."""
    return {"anyOf": [*schema["anyOf"], pattern(SWEEP)]}


def by_factor(value: Schema, catalogue: Catalogue) -> Schema:
    """A table by factor: full names in quotes, or tables by layer, however deep the dots of a bare key go."""
    layers = "|".join(sorted(catalogue.layers))
    inside: Schema = {"anyOf": [value, {"type": "object"}]}
    return {
        "type": "object",
        "properties": {name: {"description": words} for name, words in catalogue.knobs.items()},
        "patternProperties": {rf"^({layers})(\.|$)": inside},
        "additionalProperties": False,
    }


def by_name(offers: Mapping[str, tuple[str, Schema]], shared: Schema) -> Schema:
    """A table whose `name` decides which keys it has beside those that all share: `offers` are a sentence and
    the keys of each."""
    return {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"enum": list(offers)}, **shared},
        "allOf": [
            {
                "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
                "then": {
                    "properties": {**shared, **own, "name": {"const": name, "description": sentence}},
                    "additionalProperties": False,
                },
            }
            for name, (sentence, own) in offers.items()
        ],
    }


T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)
Names = Callable[[Catalogue], list[str]]
"""What can be named here, in the order in which it is told."""
DUMPS_MAX = 100
RUNGS_MAX = 20
NAME_LENGTH_MAX = 80
HOST_NAME = r"(?:[\w.-]+@)?\w[\w.:-]*"
"""What stands behind `ssh`: a host of its configuration, or a name, with an account or without."""
TERM = rf"(?:({values.NUMBER}) ?\* ?)?([a-z][a-z0-9_]*\.[^\s=,*+<>]+)|({values.NUMBER} ?[A-Za-z]*)"


def engines(catalogue: Catalogue) -> list[str]:
    return sorted(catalogue.engines)


def workloads(catalogue: Catalogue) -> list[str]:
    return [offer.name for offer in catalogue.workloads]


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Grammar(Generic[T]):
    """`read` makes of a value of TOML what it means, or raises ValueFault. `schema` is what editors check.
    `written` is the value of TOML again. `allowed` says for a page which values there are, where that is
    not clear from the words beside it."""

    read: Callable[[Any, Catalogue], T]
    schema: Callable[[Catalogue], Schema]
    written: Callable[[T], Level | Sequence[Level]] = _as_it_is
    allowed: str = ""


def _plain(
    read: Callable[[Any], T],
    schema: Schema,
    written: Callable[[T], Level | Sequence[Level]] = _as_it_is,
    allowed: str = "",
) -> Grammar[T]:
    """A grammar for which it does not matter what can be named here."""
    return Grammar(lambda value, _: read(value), lambda _: schema, written, allowed)


def integer(low: int, high: int, allowed: str | None = None) -> Grammar[int]:
    return _plain(
        lambda value: values.integer(value, low, high),
        {"type": "integer", "minimum": low, "maximum": high},
        allowed=f"{low:,} to {high:,}" if allowed is None else allowed,
    )


def duration(least_s: float) -> Grammar[float]:
    """Seconds, of a text with its unit."""
    read, schema = lambda value: values.duration_s(value, least_s), pattern(values.DURATION)
    return _plain(read, schema, duration_text)


def duration_text(seconds: float) -> str:
    """A duration as a study writes it, in the largest unit in which it is a whole number."""
    units = (unit for unit in ("h", "m", "s") if seconds and seconds % values.SECONDS[unit] == 0)
    unit = next(units, "s")
    return f"{seconds / values.SECONDS[unit]:.9f}".rstrip("0").rstrip(".") + unit


def percentage(low: float, high: float) -> Grammar[float]:
    """A share: `2%` is 0.02."""
    read, schema = lambda value: values.share(value, low, high), pattern(values.PERCENTAGE)
    return _plain(read, schema, lambda share: f"{100 * share:g}%", f'`"{low:g}%"` to `"{high:g}%"`')


def one_of(enum: type[E], allowed: Collection[E] | None = None) -> Grammar[E]:
    """A member of an enumeration, or of some of its members."""
    names = [one.value for one in enum if allowed is None or one in allowed]
    return _plain(
        lambda value: enum(values.one_of(value, frozenset(names))), {"enum": names}, str, _quoted(names)
    )


def word_of(names: Collection[str]) -> Grammar[str]:
    """One of some words."""
    listed = sorted(names)
    return _plain(lambda value: values.one_of(value, names), {"enum": listed}, allowed=_quoted(listed))


def name_of(names: Names) -> Grammar[str]:
    """One of the names that there are here."""
    return Grammar(
        lambda value, catalogue: values.one_of(value, names(catalogue)),
        lambda catalogue: {"enum": names(catalogue)},
    )


def _quoted(names: Sequence[str]) -> str:
    told = [f'`"{name}"`' for name in names]
    return f"{', '.join(told[:-1])} or {told[-1]}" if len(told) > 1 else "".join(told)


TRUTH = _plain(values.boolean, {"type": "boolean"})
ONE_TEXT = _plain(values.text, TEXT)
SEVERAL_TEXTS = _plain(values.texts, TEXTS, list)
"""A text, or several in a list."""
LINES = _plain(values.text_of_lines, TEXT)
"""A text of one line or more."""
COMMAND = _plain(values.command_line, TEXT)
WORD = _plain(values.word, pattern(values.WORD))
ONE_LEVEL = _plain(values.level, LEVEL)
RATE = _plain(
    values.rate,
    {"type": "number", "exclusiveMinimum": 0, "maximum": RATE_PER_S_MAX},
    allowed=f"At most {RATE_PER_S_MAX:,.0f}",
)
RATIO_MOST = 1e6
RATIO = _plain(
    lambda value: values.number(value, 1 / RATIO_MOST, RATIO_MOST),
    {"type": "number", "minimum": 1 / RATIO_MOST, "maximum": RATIO_MOST},
)
"""One figure over another."""
SCHEDULE = _plain(lambda value: pacing.written(value, pacing.schedule_form), pattern(pacing.SCHEDULE))
THINK_TIME = _plain(lambda value: pacing.written(value, pacing.think_time), pattern(pacing.THINK_TIME))


def list_of(
    each: Grammar[T],
    *,
    unique: bool = True,
    hint: str = "write it in brackets: [...]",
    whole: Callable[[tuple[T, ...]], None] = lambda found: None,
    limits: Schema | None = None,
) -> Grammar[tuple[T, ...]]:
    """A list, of which each element can be wrong by itself. `whole` raises ValueFault for a list that is
    wrong although its elements are right, and `limits` tell editors of that."""

    def read(value: Any, catalogue: Catalogue) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise ValueFault(f"must be a list, not {kind_text(value)}", hint)
        found: list[T] = []
        faults: list[tuple[int, ValueFault]] = []
        for index, element in enumerate(value):
            try:
                one = each.read(element, catalogue)
                if unique and one in found:
                    raise ValueFault(f"{shown(element)} is given twice", "keep one of the two")
                found.append(one)
            except ValueFault as fault:
                faults.append((index, fault))
        if faults:
            raise Faults(faults, tuple(found))
        whole(tuple(found))
        return tuple(found)

    return Grammar(
        read,
        lambda catalogue: {
            "type": "array",
            "items": each.schema(catalogue),
            **({"uniqueItems": True} if unique else {}),
            **(limits or {}),
        },
        lambda found: [each.written(one) for one in found],  # type: ignore[misc]
        each.allowed,
    )


def _require_ladder(rungs: tuple[int, ...]) -> None:
    if not rungs or list(rungs) != sorted(rungs) or len(rungs) > RUNGS_MAX:
        told = ", ".join(map(str, rungs)) or "empty"
        raise ValueFault(
            f"is no ladder: {told}", f"write 1 to {RUNGS_MAX} numbers, each more than the one before"
        )


def ladder(clients: Grammar[int]) -> Grammar[tuple[int, ...]]:
    """Numbers of clients, each more than the one before."""
    found = list_of(clients, whole=_require_ladder, limits={"minItems": 1, "maxItems": RUNGS_MAX})
    return replace(found, allowed=f"1 to {RUNGS_MAX} rungs")


def _paths(value: Any) -> tuple[str, ...]:
    paths = values.texts(value)
    if not 1 <= len(paths) <= DUMPS_MAX:
        raise ValueFault(f"names {len(paths):,} files", f"allowed: 1 to {DUMPS_MAX}")
    if len({*paths}) < len(paths):
        raise ValueFault("names a file twice", "each file is loaded once, in the order written")
    return paths


def _paths_written(paths: tuple[str, ...]) -> str | list[str]:
    return paths[0] if len(paths) == 1 else list(paths)


_SEVERAL: Schema = {"type": "array", "items": TEXT, "minItems": 1, "maxItems": DUMPS_MAX, "uniqueItems": True}
PATHS = _plain(_paths, {"anyOf": [TEXT, _SEVERAL]}, _paths_written)


def _database(value: Any) -> str:
    name = values.text(value)
    if any(mark in name for mark in "`\"'/\\?#%"):
        raise ValueFault(f"cannot be {shown(name)}", "write the name as the server has it, without quotes")
    return name


DATABASE = _plain(_database, TEXT)


def _host(value: Any) -> str:
    name = values.text(value)
    # An option of ssh would begin with a dash.
    if not re.fullmatch(HOST_NAME, name):
        raise ValueFault(f"cannot be {shown(name)}", 'write the name of one host, as `ssh` knows it: "load1"')
    return name


def _hosts(value: Any) -> tuple[str, ...]:
    names = [_host(name) for name in (values.texts(value) if isinstance(value, list) else [value])]
    if len(set(names)) < len(names):
        raise ValueFault("names a host twice", "name each host once")
    return tuple(names)


def _hosts_written(names: tuple[str, ...]) -> Level | Sequence[Level]:
    return names[0] if len(names) == 1 else list(names)


def _address(value: Any) -> str:
    text = values.text(value)
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        found = None
    if found is None or found.is_loopback or found.is_unspecified or found.is_multicast:
        hint = 'write an address that the load host reaches: "10.0.0.1"'
        raise ValueFault(f"{shown(text)} is no address of one host on a network", hint)
    return str(found)


HOST = _plain(_host, pattern(f"^{HOST_NAME}$"))
_HOSTS: Schema = {"type": "array", "items": pattern(f"^{HOST_NAME}$"), "minItems": 1, "uniqueItems": True}
HOSTS = _plain(
    _hosts,
    {"anyOf": [pattern(f"^{HOST_NAME}$"), _HOSTS]},
    _hosts_written,
)
ADDRESS = _plain(_address, TEXT)


def _package(value: Any) -> str:
    asked = values.text(value)
    if not REQUIREMENT.fullmatch(asked):
        raise ValueFault(f"cannot be {shown(asked)}", 'write "NAME" or "NAME==VERSION"')
    return asked


def _request(value: Any) -> str:
    asked = values.text(value)
    if not REQUEST.fullmatch(asked):
        raise ValueFault(f"cannot be {shown(asked)}", 'write a method and a path: "GET /health"')
    return asked


PACKAGE = _plain(_package, pattern(f"^{REQUIREMENT.pattern}$"))
REQUEST_LINE = _plain(_request, pattern(f"^{REQUEST.pattern}$"))


WORKLOAD_NAME = Grammar(
    lambda value, catalogue: values.workload_name(value, workloads(catalogue)), name_of(workloads).schema
)


def _metric(value: Any, catalogue: Catalogue) -> str:
    return values.metric(value, catalogue.metrics)


METRIC = Grammar(_metric, lambda catalogue: {"enum": sorted(catalogue.metrics)})
_GUARD: Grammar[Guard] = Grammar(
    lambda value, catalogue: values.guard(value, catalogue.metrics),
    lambda _: pattern(rf"^invariants$|^{DURABLE}$|^{ANSWERS}$|{values.GUARD}"),
    lambda guard: guard.text,
)
# Two guards can mean the same and be written with other blanks, which editors do not see.
GUARDS = replace(
    list_of(_GUARD, hint='write guards = ["invariants", "p99_ms <= 1.2x"]'),
    schema=list_of(_GUARD, unique=False).schema,
)


PROMISE: Grammar[tuple[Guard, ...]] = Grammar(
    lambda value, _: values.promise(value),
    lambda _: pattern(rf"{values.PROMISED[:-1]}(,{values.PROMISED[1:-1]})*$"),
    lambda found: ", ".join(one.text for one in found),
)


def reference(names: Names, what: str, forms: str, examples: bool = False) -> Grammar[Reference]:
    """A name, with a version or a path. Editors may offer the names as `examples`."""

    def schema(catalogue: Catalogue) -> Schema:
        known = names(catalogue)
        return {
            **pattern(rf"^({'|'.join(known)})(@[0-9A-Za-z].*|:[/~.].*)?$"),
            **({"examples": known} if examples else {}),
        }

    return Grammar(
        lambda value, catalogue: values.reference(value, names(catalogue), what, forms),
        schema,
        lambda found: found.written,
    )


def _variant_name(value: Any) -> str:
    name = values.text(value)
    if name in (TWIN, CONTROL) or re.fullmatch(rf"{BASELINE}(-\d+)?", name):
        raise ValueFault(f"`{name}` is a name of Dyno's own", "only the first variant is the baseline")
    if not re.fullmatch(values.VARIANT_NAME, name) or len(name) > NAME_LENGTH_MAX:
        raise ValueFault(
            f"{shown(name)} cannot name a variant",
            f"up to {NAME_LENGTH_MAX} characters, none of them `=` or `,`",
        )
    return name


def _known_name(value: Any) -> str:
    name = _variant_name(value)
    if name == BASELINE or re.match(rf"{CANDIDATE}\b", name):
        raise ValueFault(f"`{name}` is a name of Dyno's own", "choose another")
    return name


VARIANT_NAME = _plain(_variant_name, {**pattern(values.VARIANT_NAME), "maxLength": NAME_LENGTH_MAX})
KNOWN_NAME = replace(VARIANT_NAME, read=lambda value, _: _known_name(value))
"""That of a variant in a search, whose candidates have names of Dyno's own."""


def constraint(value: Any) -> Constraint:
    """`config.A + 2 * config.B <= 6G`: sums of amounts on both sides. Raises ValueFault for another form."""
    text = values.text(value)
    form = ValueFault(f"{shown(text)} is no constraint", 'write "config.A + 2 * config.B <= 6G"')
    sides = text.split("<=")
    if len(sides) != 2:
        raise form
    terms = []
    for side in sides:
        found = [re.fullmatch(TERM, part.strip()) for part in side.split("+")]
        if not all(found):
            raise form
        terms.append(tuple(_term(one) for one in found if one))
    left, right = terms
    if not any(term.factor for term in (*left, *right)):
        raise form
    return Constraint(text=text, left=left, right=right)


def _term(found: re.Match[str]) -> Term:
    times, factor, bound = found.groups()
    return Term(times=amount(bound)) if bound else Term(times=float(times or 1), factor=factor)


CONSTRAINT = _plain(constraint, pattern("<="), lambda one: one.text)


def of_option(option: Option) -> Grammar[Level]:
    """A value of a workload's option, by the driver's description of it."""
    types: dict[str, str | list[str]] = {
        "int": "integer",
        "float": "number",
        "bool": "boolean",
        "text": "string",
        "choice": "string",
        "number_or": ["number", "string"],
    }
    schema: Schema = {"type": types[option.type]}
    if option.limits:
        schema |= {"minimum": option.limits.min, "maximum": option.limits.max}
    if option.limits and option.limits.word:
        schema["pattern"] = f"^{option.limits.word}$"
    if option.choices:
        schema["enum"] = list(option.choices)
    return _plain(lambda value: values.option_value(value, option), schema)
