"""What reading any section of a study needs: take a value, note a mistake with its line, read a factor.

A method that finds a mistake notes it and returns what lets the rest be checked: a default, or None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from dbdyno.errors import Mistake
from dbdyno.frozen import ENGINE_FACTOR, Level
from dbdyno.study import grammars, values
from dbdyno.study.catalogue import Catalogue, FactorCheck, WorkloadOffer
from dbdyno.study.document import Place, StudyDocument
from dbdyno.study.grammars import Grammar
from dbdyno.study.keys import Key, StudySection
from dbdyno.study.nouns import Factor, ListedVariant, Reference
from dbdyno.study.tables import ENGINE, FIXED_KEYS, HOMES, KNOBS, RANGE
from dbdyno.study.values import Faults, ValueFault, is_sweep, name_shown, nearest, numbers_of_sweep, shown

SWEPT = frozenset(f"workload.{key.name}" for key in KNOBS.values() if key.sweeps)
T = TypeVar("T")
_ONE_LEVEL = "write [BASELINE, OTHER, ...]; what does not vary stands under [settings], or under [workload]"


class SectionReader:
    """One document being read against one catalogue; `mistakes` grows. Its paths count from `folder`. The
    `engine` is the baseline's, and `engines` are those of all variants."""

    def __init__(self, document: StudyDocument, catalogue: Catalogue, folder: Path) -> None:
        self.document = document
        self.catalogue = catalogue
        self.folder = folder
        self.mistakes = list(document.mistakes)
        self.engine: Reference | None = None
        self.engines: tuple[Reference, ...] = ()
        self.offer: WorkloadOffer | None = None
        self.doubted: list[tuple[Factor, Place]] = []

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
            self.note(path, f"`{path[-1]}` must be a table, not {values.kind_text(found)}", hint)
        table: dict[str, Any] = found if isinstance(found, dict) else {}
        where = f" in [{path[0]}]" if path else ""
        for key in table if known is not None else ():
            if key not in (known or ()):
                hint = _home_of(key, path) or nearest(key, known or ())
                self.note((*path, key), f"unknown key {name_shown(key)}{where}", hint)
        return table

    def section(self, section: StudySection, place: Place = ()) -> dict[str, Any]:
        """What the keys of a section are given, by the noun's fields. Other keys in it are mistakes."""
        place = place or ((section.name,) if section.name else ())
        self.table(place, section.names)
        return self.given(section, place)

    def given(self, section: StudySection, place: Place) -> dict[str, Any]:
        """The same, whatever else there is."""
        keys = [key for key in section.keys if key.field and not key.varies]
        found = {key.field: self.value(key, (*place, key.name)) for key in keys}
        return {field: value for field, value in found.items() if value is not None}

    def value(self, key: Key, place: Place) -> Any:
        """What a key is given; None where it is absent, which can be a mistake, or wrong."""
        if key.missing is None:
            return self.take(place, lambda value: key.grammar.read(value, self.catalogue))
        return self.need(place, key.grammar, key.missing(self.catalogue))

    def need(self, place: Place, grammar: Grammar[T], hint: str) -> T | None:
        """The value at `place`, whose absence is a mistake."""
        if self.at(place) is None and (len(place) == 1 or isinstance(self.at(place[:-1]), dict)):
            self.note(place, f"`{place[-1]}` is missing", hint)
        return self.take(place, lambda value: grammar.read(value, self.catalogue))

    def take(self, place: Place, read: Callable[[Any], T]) -> T | None:
        """The value at `place` as `read` understands it, of a list what is right in it. None where it is
        absent or wrong."""
        value = self.at(place)
        if value is None:
            return None
        try:
            return read(value)
        except Faults as found:
            for index, fault in found.faults:
                self.note((*place, index), f"`{place[-1]}`: {fault.message}", fault.hint)
            return cast("T", found.sound)
        except ValueFault as fault:
            self.note(place, f"`{place[-1]}`: {fault.message}", fault.hint)
            return None

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
        if name in SWEPT and is_sweep(value):
            try:
                value = numbers_of_sweep(value)
            except ValueFault as fault:
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
        return isinstance(value, list) or (f"workload.{key}" in SWEPT and is_sweep(value))

    def factor_name(self, name: str, path: Place) -> bool:
        """Whether `name` is one that can vary here."""
        layer, _, knob = name.partition(".")
        if layer == ENGINE_FACTOR and knob:
            hint = f"the engine as a whole is one: {ENGINE_FACTOR} = [BASELINE, OTHER, ...]"
            self.note(path, f"{shown(name)} is no factor", hint)
        elif name == ENGINE_FACTOR and name in self.catalogue.layers:
            return True
        elif not re.fullmatch(values.FACTOR_NAME, name):
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
        if value == "" and layer in ("schema", "meanwhile"):
            # What a variant has without the index, or with nothing done beside its load.
            return "none"
        try:
            if name == ENGINE_FACTOR:
                return cast("Reference", ENGINE.key("name").grammar.read(value, self.catalogue)).written
            return self.knob(knob, value) if layer == "workload" else values.level(value, name)
        except ValueFault as fault:
            self.note(path, f"`{name}`: {fault.message}", fault.hint)
            return None

    def knob(self, key: str, value: Any) -> Level:
        """A value of one of the workload's keys that may vary."""
        option = self.offer.option(key) if self.offer else None
        own = grammars.of_option(option) if option else grammars.ONE_LEVEL
        found: Level = (KNOBS[key].grammar if key in KNOBS else own).read(value, self.catalogue)
        return found

    def place_of(self, factor: Factor) -> Place:
        """Where a factor stands: under [factors], or as a list under [workload]."""
        declared = {name: path for name, _, path in self.flat(("factors",), RANGE.names)}
        return declared.get(factor.name, ("workload", factor.knob))

    def layer_agrees(self, factor: Factor, path: Place) -> bool:
        """Asks the factor's layer; its mistakes get the line of the factor. Of several engines one that takes
        a level is enough: on the others its variants are blocked."""
        check = self.catalogue.layers[factor.layer]
        if len(self.engines) < 2:
            found = check(factor, self.engine) if self.engine else []
        else:
            each = [factor.but(levels=(level,)) for level in factor.levels]
            found = [mistake for one in each for mistake in self._wrong_everywhere(check, one)]
        if found and self.catalogue.beside is not None and factor.layer == "config":
            self.doubted.append((factor, path))
            return True
        for mistake in dict.fromkeys(found):
            self.note(path, mistake.message, mistake.hint)
        return not found

    def judge_doubted(
        self, settings: Mapping[str, Level], factors: Sequence[Factor], variants: Sequence[ListedVariant]
    ) -> None:
        """Notes what is still wrong with settings that are no levels alone, once all that stands beside them
        is known. One variant that can have a level is enough: others are blocked."""
        check = self.catalogue.beside
        if check is None:
            return
        ends = ({one.name: one.levels[end] for one in factors} for end in (0, -1))
        beside = [one.levels for one in variants] or list(ends)
        for factor, path in self.doubted:
            wrong: dict[Mistake, None] = {}
            for level in factor.levels:
                alone = factor.but(levels=(level,))
                found = [
                    check(alone, {**settings, **levels}, engine)
                    for engine in self.engines
                    for levels in beside
                    if not variants or levels.get(factor.name, level) == level
                ]
                wrong |= dict.fromkeys(found[0] if found and all(found) else ())
            for mistake in wrong:
                self.note(path, mistake.message, mistake.hint)

    def _wrong_everywhere(self, check: FactorCheck, factor: Factor) -> list[Mistake]:
        """What is wrong with a level of a factor on every engine; nothing where one takes it."""
        found = [check(factor, engine) for engine in self.engines]
        return [mistake for mistakes in found for mistake in mistakes] if all(found) else []


def _home_of(key: str, path: Place) -> str:
    """Where a key belongs that stands in the wrong table."""
    here = path[0] if path else ""
    home = next((home.name for home in HOMES if key in home.names and home.name != here), None)
    if home is None:
        return "a factor stands under [factors]" if "." in key else ""
    return f"`{key}` stands under [{home}]" if home else f"`{key}` stands at the top, before the first table"
