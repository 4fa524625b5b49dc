"""The variants that a `list` design names one by one, and the factors that they make up."""

from __future__ import annotations

from typing import Any, NamedTuple

from dbdyno.frozen import Level, level_text
from dbdyno.study import grammars
from dbdyno.study.document import Place
from dbdyno.study.nouns import BASELINE, TRIALS_MAX, Factor, ListedVariant
from dbdyno.study.section import SectionReader
from dbdyno.study.tables import VARIANT
from dbdyno.study.values import Fault, shown


def read_variants(reader: SectionReader) -> tuple[tuple[Factor, ...], tuple[ListedVariant, ...]]:
    """Reads [[variants]]. The first is the baseline and gives every factor; the others change some."""
    given = reader.at(("variants",))
    if not isinstance(given, list) or not all(isinstance(table, dict) for table in given) or len(given) < 2:
        reader.note(
            ("variants",),
            "the design `list` needs two or more [[variants]]",
            'each has a name and levels: [[variants]], name = "...", levels = { "config.NAME" = ... }',
        )
        return (), ()
    if len(given) > TRIALS_MAX:
        reader.note(
            ("variants",),
            f"{len(given):,} variants are too many",
            f"at most {TRIALS_MAX:,} trials are allowed",
        )
        return (), ()
    before = len(reader.mistakes)
    own = [_variant(reader, index) for index in range(len(given))]
    complete = tuple(ListedVariant(name=one.name, levels=own[0].levels | one.levels) for one in own)
    if len(reader.mistakes) == before:
        _note_left_open(reader, own)
        _note_repeated(reader, complete)
    sound = len(reader.mistakes) == before
    factors = [factor for name in own[0].levels for factor in _factor(reader, name, own[0], complete, sound)]
    return tuple(factors), complete


class _Own(NamedTuple):
    """What one of [[variants]] gives itself, and where each level stands."""

    name: str
    levels: dict[str, Level]
    places: dict[str, Place]


def _variant(reader: SectionReader, index: int) -> _Own:
    path: Place = ("variants", index)
    reader.table(path, VARIANT.names)
    place = (*path, "name")
    if index == 0:
        name = reader.take(place, _baseline_name) or BASELINE
    else:
        hint = "every variant but the first needs one"
        name = reader.need(place, grammars.VARIANT_NAME, hint) or str(index)
    own = _Own(name, {}, {})
    for factor, value, where in reader.flat((*path, "levels")):
        if reader.factor_name(factor, where) and (level := reader.level(factor, value, where)) is not None:
            own.levels[factor], own.places[factor] = level, where
    return own


def _baseline_name(value: Any) -> str:
    if value != BASELINE:
        raise Fault(
            f"the first variant is the baseline, not {shown(value)}", f'write name = "{BASELINE}", or none'
        )
    return BASELINE


def _factor(
    reader: SectionReader, name: str, baseline: _Own, variants: tuple[ListedVariant, ...], sound: bool
) -> list[Factor]:
    """The factor that the variants' levels of `name` make up, in the order in which they appear."""
    path = baseline.places[name]
    levels: dict[str, Level] = {}
    for variant in variants:
        levels.setdefault(level_text(variant.levels[name]), variant.levels[name])
    if len(levels) < 2:
        if sound:
            reader.note(path, f"`{name}` is the same in every variant", "write it under [settings]")
        return []
    factor = Factor(name=name, levels=tuple(levels.values()))
    return [factor] if reader.layer_agrees(factor, path) else []


def _note_left_open(reader: SectionReader, own: list[_Own]) -> None:
    """Notes levels of factors for which the baseline gives none."""
    for variant in own:
        for factor in sorted(variant.levels.keys() - own[0].levels.keys()):
            reader.note(
                variant.places[factor],
                f"`{variant.name}` sets `{factor}`, which the baseline does not",
                f"the first variant gives every factor: add `{factor}` to its levels",
            )


def _note_repeated(reader: SectionReader, variants: tuple[ListedVariant, ...]) -> None:
    """Notes variants with the name or the levels of an earlier one."""
    names: dict[str, int] = {}
    named: dict[tuple[tuple[str, str], ...], str] = {}
    for index, variant in enumerate(variants):
        path: Place = ("variants", index)
        levels = tuple(sorted((name, level_text(level)) for name, level in variant.levels.items()))
        if variant.name in names:
            line = reader.document.line(("variants", names[variant.name]))
            reader.note(
                (*path, "name"),
                f"the variant `{variant.name}` is given twice: first on line {line}",
                "rename one",
            )
        elif levels in named:
            other = named[levels]
            reader.note(
                path, f"`{variant.name}` has the same levels as `{other}`", "aa = true repeats the baseline"
            )
        names.setdefault(variant.name, index)
        named.setdefault(levels, variant.name)
