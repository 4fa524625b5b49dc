"""What reading any section of a study needs: take a value, note a mistake with its line, read a factor.

A method that finds a mistake notes it and returns what lets the rest be checked: a default, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

from dbdyno.driver.job import Isolation
from dbdyno.errors import Mistake
from dbdyno.frozen import Level
from dbdyno.study import pacing, values
from dbdyno.study.catalogue import Catalogue, WorkloadOffer
from dbdyno.study.document import Document, Place
from dbdyno.study.nouns import Factor
from dbdyno.study.reference import Reference
from dbdyno.study.sweep import is_sweep, sweep
from dbdyno.study.values import Fault, name_shown, nearest, shown

STUDY_KEYS = frozenset(
    {
        "title",
        "engine",
        "design",
        "blocks",
        "seed",
        "aa",
        "baselines",
        "images",
        "arrangement",
        "slice",
        "application",
        "data",
        "workload",
        "settings",
        "factors",
        "variants",
        "restarts",
        "goal",
        "search",
        "soak",
    }
)
ENGINE_KEYS = frozenset(("name", "configuration"))
APPLICATION_KEYS = frozenset(("name", "workers", "settings"))
DATA_KEYS = frozenset(("dump", "folder", "database", "setup"))
GOAL_KEYS = frozenset(("response", "margin", "confidence", "interval", "guards", "counted"))
SEARCH_KEYS = frozenset(("time", "allow", "constraints"))
SPACE_KEYS = frozenset(("from", "to", "scale", "step", "baseline", "levels", "only_if"))
"""The keys of a factor that is written as a table. A table with one of them is a factor and not a layer."""
ACT_KEYS = ("power_cuts", "torn_pages", "kills", "stops", "flipped_bits")
RESTART_KEYS = frozenset((*ACT_KEYS, "load"))
VARIANT_KEYS = frozenset(("name", "levels"))
CLIENTS = "workload.clients"
CLIENTS_MAX = 100_000
THREADS_MAX = 1_024
ARRIVALS = frozenset(("poisson", "uniform"))
# The keys of [workload] that every workload has and that may be factors; its own options come on top.
KNOBS: dict[str, Callable[[Any], Level]] = {
    "clients": partial(values.integer, low=1, high=CLIENTS_MAX),
    "threads": partial(values.integer, low=0, high=THREADS_MAX),
    "rate_per_s": values.rate,
    "arrivals": partial(values.one_of, allowed=ARRIVALS),
    "schedule": partial(pacing.written, read=pacing.schedule),
    "think_time": partial(pacing.written, read=pacing.think_time),
}
GATHER = frozenset(("off", "on"))
ISOLATIONS = frozenset(get_args(Isolation))
CHOSEN_KEYS = ("isolation", "storage_engine")
"""What each session has of its own, on engines that let it choose."""
FIXED_KEYS = frozenset(
    ("name", "warmup", "duration", "ramp", "gather", "by_statement", "plans", *CHOSEN_KEYS, "connect_sql")
)
T = TypeVar("T")
_ONE_LEVEL = "write [BASELINE, OTHER, ...]; what does not vary stands under [settings], or under [workload]"


class SectionReader:
    """One document being read against one catalogue; `mistakes` grows. Its paths count from `folder`."""

    def __init__(self, document: Document, catalogue: Catalogue, folder: Path) -> None:
        self.document = document
        self.catalogue = catalogue
        self.folder = folder
        self.mistakes = list(document.mistakes)
        self.engine: Reference | None = None
        self.offer: WorkloadOffer | None = None

    def note(self, path: Place, message: str, hint: str = "") -> None:
        self.mistakes.append(Mistake(self.document.line(path), message, hint))

    def at(self, path: Place) -> Any:
        """The value at `path`, None where there is none."""
        found: Any = self.document.values
        for part in path:
            inside = (
                isinstance(found, list)
                if isinstance(part, int)
                else isinstance(found, dict) and part in found
            )
            if not inside:
                return None
            found = found[part]
        return found

    def table(self, path: Place, known: Collection[str] | None = None) -> dict[str, Any]:
        """The table at `path`, empty where there is none. With `known`, other keys in it are mistakes."""
        found = self.at(path)
        if found is not None and not isinstance(found, dict):
            hint = f"write [{path[-1]}] and its keys below it"
            self.note(path, f"`{path[-1]}` must be a table, not {values.kind(found)}", hint)
        table: dict[str, Any] = found if isinstance(found, dict) else {}
        where = f" in [{path[0]}]" if path else ""
        for key in table if known is not None else ():
            if key not in (known or ()):
                hint = _home_of(key, path) or nearest(key, known or ())
                self.note((*path, key), f"unknown key {name_shown(key)}{where}", hint)
        return table

    def take(self, path: Place, read: Callable[[Any], T], default: T) -> T:
        """The value at `path` as `read` understands it; the default where it is absent or wrong."""
        value = self.at(path)
        if value is None:
            return default
        try:
            return read(value)
        except Fault as fault:
            self.note(path, f"`{path[-1]}`: {fault.message}", fault.hint)
            return default

    def need(self, path: Place, read: Callable[[Any], T], hint: str) -> T | None:
        """The value at `path`, whose absence is a mistake."""
        if self.at(path) is None and (len(path) == 1 or isinstance(self.at(path[:-1]), dict)):
            self.note(path, f"`{path[-1]}` is missing", hint)
        return self.take(path, read, None)

    def flat(self, root: Place, whole: Collection[str] = ()) -> list[tuple[str, Any, Place]]:
        """A table's entries by full name, with paths: `config.x = 1` and `"config.x" = 1` are the same. A
        table below it with one of the keys of `whole` is an entry and not part of a name."""
        entries: dict[str, tuple[str, Any, Place]] = {}
        waiting = [((*root, key), key, value) for key, value in reversed(self.table(root).items())]
        while waiting:
            path, name, value = waiting.pop()
            if value == {}:
                self.note(path, f"the table {name_shown(name)} is empty", "fill it or take it out")
            elif isinstance(value, dict) and not value.keys() & set(whole):
                waiting += [((*path, key), f"{name}.{key}", inner) for key, inner in reversed(value.items())]
            elif name in entries:
                first = self.document.line(entries[name][2])
                self.note(
                    path, f"{name_shown(name)} is given twice: first on line {first}", "keep one of the two"
                )
            else:
                entries[name] = (name, value, path)
        return list(entries.values())

    def factor(self, name: str, value: Any, path: Place) -> list[Factor]:
        """The factor of this name, or none when there is a mistake in it."""
        if not self.factor_name(name, path):
            return []
        if name == CLIENTS and is_sweep(value):
            try:
                value = sweep(value)
            except Fault as fault:
                self.note(path, f"`{path[-1]}`: {fault.message}", fault.hint)
                return []
        if not isinstance(value, list):
            self.note(path, f"`{name}` has no list of levels", _ONE_LEVEL)
            return []
        before = len(self.mistakes)
        levels = [self.level(name, level, (*path, index)) for index, level in enumerate(value)]
        if len(value) < 2:
            count = "one level" if value else "no level"
            self.note(path, f"`{name}` has {count}: a factor needs two or more", _ONE_LEVEL)
        elif (again := values.first_alike(levels)) is not None:
            message = f"`{name}` has the level {shown(value[again])} twice"
            self.note((*path, again), message, "levels must differ")
        if len(self.mistakes) > before:
            return []
        factor = Factor(name=name, levels=tuple(level for level in levels if level is not None))
        return [factor] if self.layer_agrees(factor, path) else []

    def varies(self, key: str, value: Any) -> bool:
        """Whether a key of [workload] is a factor by its value."""
        return isinstance(value, list) or (f"workload.{key}" == CLIENTS and is_sweep(value))

    def factor_name(self, name: str, path: Place) -> bool:
        """Whether `name` is one that can vary here."""
        layer, _, knob = name.partition(".")
        if not re.fullmatch(values.FACTOR_NAME, name):
            self.note(path, f"{shown(name)} is no factor", "a factor is `layer.knob`, such as `config.NAME`")
        elif layer not in self.catalogue.layers:
            self.note(
                path, f"unknown layer `{layer}` in `{name}`", nearest(layer, self.catalogue.layers.keys())
            )
        elif layer != "workload":
            return True
        elif knob in FIXED_KEYS:
            self.note(path, f"`{name}` cannot vary within a study", "make a study of each")
        elif self.offer is not None and knob not in KNOBS and knob not in self.option_names():
            known = KNOBS.keys() | self.option_names()
            self.note(path, f"the workload `{self.offer.name}` has no option `{knob}`", nearest(knob, known))
        else:
            return True
        return False

    def option_names(self) -> frozenset[str]:
        """The workload's own options; none while its name is not known."""
        return frozenset(option.name for option in self.offer.options) if self.offer else frozenset()

    def level(self, name: str, value: Any, path: Place) -> Level | None:
        """One level of the factor `name`, or None when there is a mistake in it."""
        layer, _, knob = name.partition(".")
        try:
            return self.knob(knob, value) if layer == "workload" else values.level(value)
        except Fault as fault:
            self.note(path, f"`{name}`: {fault.message}", fault.hint)
            return None

    def knob(self, key: str, value: Any) -> Level:
        """A value of one of the workload's keys that may vary."""
        if key in KNOBS:
            return KNOBS[key](value)
        option = self.offer.option(key) if self.offer else None
        return values.option_value(value, option) if option else values.level(value)

    def place_of(self, factor: Factor) -> Place:
        """Where a factor stands: under [factors], or as a list under [workload]."""
        declared = {name: path for name, _, path in self.flat(("factors",), SPACE_KEYS)}
        return declared.get(factor.name, ("workload", factor.knob))

    def layer_agrees(self, factor: Factor, path: Place) -> bool:
        """Asks the factor's layer; its mistakes get the line of the factor."""
        found = self.catalogue.layers[factor.layer](factor, self.engine) if self.engine else []
        for mistake in found:
            self.note(path, mistake.message, mistake.hint)
        return not found


def _home_of(key: str, path: Place) -> str:
    """Where a key belongs that stands in the wrong table."""
    here = path[0] if path else ""
    homes = {
        "": STUDY_KEYS,
        "workload": FIXED_KEYS | KNOBS.keys(),
        "data": DATA_KEYS,
        "goal": GOAL_KEYS,
        "search": SEARCH_KEYS,
    }
    home = next((home for home, keys in homes.items() if key in keys and home != here), None)
    if home is None:
        return "a factor stands under [factors]" if "." in key else ""
    return f"`{key}` stands under [{home}]" if home else f"`{key}` stands at the top, before the first table"
