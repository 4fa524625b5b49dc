"""What only a search has in its file: ranges, conditions, constraints, and what may be given up."""

from __future__ import annotations

from typing import Any

from dbdyno.frozen import Level, level_shown, level_text
from dbdyno.study import grammars, values
from dbdyno.study.document import Place
from dbdyno.study.nouns import Condition, Constraint, Design, Factor, ListedVariant, Promise, Search, amount
from dbdyno.study.ranges import Scale, rising_levels, with_level
from dbdyno.study.section import SectionReader
from dbdyno.study.tables import RANGE, SEARCH, VARIANT
from dbdyno.study.values import ValueFault, nearest, shown


def read_factor(reader: SectionReader, name: str, table: dict[str, Any], path: Place) -> list[Factor]:
    """The factor that a table gives: a range, or a list with conditions. None when there is a mistake."""
    before = len(reader.mistakes)
    reader.table(path, RANGE.names)
    only_if = _conditions(reader, path)
    if "levels" in table:
        for key in sorted(table.keys() & (RANGE.names - {"levels", "only_if"})):
            reader.note((*path, key), f"`{name}` has `levels` and `{key}`", "leave one of the two out")
        listed = reader.factor(name, table["levels"], (*path, "levels"))
        found = [factor.but(only_if=only_if) for factor in listed]
    else:
        found = _range(reader, name, path, only_if)
    return found if len(reader.mistakes) == before else []


def read_search(reader: SectionReader, design: Design, factors: tuple[Factor, ...]) -> Search | None:
    """The table [search], and whether factors, conditions and constraints go together. None for another
    design, which has no such table."""
    if design is not Design.SEARCH:
        if reader.at(("search",)) is not None:
            reader.note(
                ("search",), f"the design `{design}` has no [search]", 'write design = "search", or leave it'
            )
        return None
    search = Search(**reader.section(SEARCH))
    for one in search.constraints:
        _require_amounts(reader, one, factors)
    if not reader.mistakes:
        _note_bad_conditions(reader, factors)
        _note_given_up(reader, factors, search.allow)
    return search


def read_known(reader: SectionReader, factors: tuple[Factor, ...]) -> tuple[ListedVariant, ...]:
    """Variants that a search's best candidates are held against: levels of its factors, inside their ranges
    or not."""
    given = reader.at(("variants",))
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(table, dict) for table in given):
        hint = 'each has a name and levels: name = "...", levels = { "config.NAME" = ... }'
        reader.note(("variants",), "`variants` must be tables: [[variants]]", hint)
        return ()
    baseline = {factor.name: factor.baseline for factor in factors}
    known: dict[str, ListedVariant] = {}
    for index in range(len(given)):
        one = _known(reader, index, baseline)
        if one is not None and one.name in known:
            reader.note(("variants", index, "name"), f"the variant `{one.name}` is given twice", "rename one")
        elif one is not None:
            known[one.name] = one
    return tuple(known.values())


def _known(reader: SectionReader, index: int, baseline: dict[str, Level]) -> ListedVariant | None:
    path: Place = ("variants", index)
    reader.table(path, VARIANT.names)
    name = reader.need((*path, "name"), grammars.KNOWN_NAME, "every variant needs one")
    levels: dict[str, Level] = {}
    for factor, value, where in reader.flat((*path, "levels")):
        level = reader.level(factor, value, where) if factor in baseline else None
        if factor not in baseline:
            reader.note(where, f"`{factor}` is no factor of this search", nearest(factor, baseline))
        elif level is not None and reader.layer_agrees(Factor(name=factor, levels=(level,)), where):
            levels[factor] = level
    if all(level_text(level) == level_text(baseline[factor]) for factor, level in levels.items()):
        reader.note(path, "the variant is the baseline", "give the levels in which it differs")
    return None if name is None else ListedVariant(name=name, levels={**baseline, **levels})


def _range(reader: SectionReader, name: str, path: Place, only_if: tuple[Condition, ...]) -> list[Factor]:
    """The factor of a range; its baseline is `from` where it names no other level."""
    if not reader.factor_name(name, path):
        return []
    given = reader.given(RANGE, path)
    if "low" not in given or "high" not in given:
        return []
    low, high, step = given["low"], given["high"], given.get("step")
    first = given.get("baseline", low)
    try:
        rising = with_level(rising_levels(low, high, given.get("scale", Scale.LINEAR), step), first)
    except ValueFault as fault:
        reader.note(path, f"`{name}` {fault.message}", fault.hint)
        return []
    others = tuple(one for one in rising if level_text(one) != level_text(first))
    # An engine is asked about the ends alone, because it would have to start for each level.
    ends = {level_text(one): one for one in (first, low, high)}
    if not all(reader.level(name, end, path) is not None for end in ends.values()):
        return []
    if not reader.layer_agrees(Factor(name=name, levels=tuple(ends.values())), path):
        return []
    return [Factor(name=name, levels=(first, *others), rising=rising, only_if=only_if)]


def _conditions(reader: SectionReader, path: Place) -> tuple[Condition, ...]:
    """`only_if = { "layer.knob" = [LEVEL, ...] }`; one level needs no list."""
    found = list[Condition]()
    for factor, value, where in reader.flat((*path, "only_if")):
        levels = list[Level]()
        for level in value if isinstance(value, list) else [value]:
            try:
                levels.append(values.level(level, factor))
            except ValueFault as fault:
                reader.note(where, f"`{factor}`: {fault.message}", fault.hint)
        if levels:
            found.append(Condition(factor=factor, levels=tuple(levels)))
        elif value == []:
            reader.note(where, f"`only_if` names no level of `{factor}`", "name one or more, or leave it out")
    return tuple(found)


def _note_bad_conditions(reader: SectionReader, factors: tuple[Factor, ...]) -> None:
    """Notes conditions on what is no earlier factor, and those that hold always or never. A condition looks
    back, so that conditions cannot lead in a circle."""
    earlier: dict[str, Factor] = {}
    for factor in factors:
        path = (*reader.place_of(factor), "only_if")
        for condition in factor.only_if:
            other = earlier.get(condition.factor)
            if other is None:
                reader.note(
                    path,
                    f"`{factor.name}` depends on `{condition.factor}`, which is no factor before it",
                    nearest(condition.factor, earlier, "factors before it"),
                )
                continue
            known = {level_text(level) for level in other.levels}
            named = {level_text(level) for level in condition.levels}
            if strange := sorted(named - known):
                told = f"`{other.name}` never is {', '.join(map(level_shown, strange))}"
                reader.note(path, f"`{factor.name}`: {told}", nearest(strange[0], known, "its levels"))
            elif named == known:
                reader.note(path, f"`{factor.name}`: the condition always holds", "leave it out")
        earlier[factor.name] = factor


def _note_given_up(reader: SectionReader, factors: tuple[Factor, ...], allow: tuple[Promise, ...]) -> None:
    """Notes levels that give up what the study does not allow. The baseline may: it is what there is."""
    gives_up = reader.catalogue.gives_up
    if reader.engine is None or gives_up is None:
        return
    for factor in factors:
        lost = {level_text(level): gives_up(factor.name, level, reader.engine) for level in factor.levels[1:]}
        kept = [(text, promise) for text, promise in lost.items() if promise and promise not in allow]
        if kept:
            text, promise = kept[0]
            reader.note(
                reader.place_of(factor),
                f"`{factor.name}` = {text} gives up {promise}",
                f'leave that level out; or write allow = ["{promise}"] under [search], and lose {promise}',
            )


def _require_amounts(reader: SectionReader, one: Constraint, factors: tuple[Factor, ...]) -> None:
    """Notes a constraint on what is no factor or no amount, and one that the baseline breaks."""
    path: Place = ("search", "constraints", reader.at(("search", "constraints")).index(one.text))
    by_name = {factor.name: factor for factor in factors}
    for name in one.factors:
        if name not in by_name:
            reader.note(path, f"`{name}` is no factor of this search", nearest(name, by_name))
            return
        try:
            for level in by_name[name].levels:
                amount(level)
        except ValueError as fault:
            hint = "a constraint sums amounts: numbers and sizes"
            reader.note(path, f"`{name}` can be {fault}, which is no amount", hint)
            return
    if not one.holds({factor.name: factor.baseline for factor in factors}):
        hint = "choose another baseline, or another bound"
        reader.note(path, f"the baseline breaks the constraint {shown(one.text)}", hint)
