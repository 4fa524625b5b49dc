"""Engines side by side: what ran, whether their rows were the same, and which defaults differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dbdyno.frozen import ENGINE_FACTOR, Frozen, absent, level_text
from dbdyno.records.record import Record
from dbdyno.study import Study

NOT_COMPARED = ("version", "server_version")
"""How names begin of what tells the version, and is no setting."""


class EngineRan(Frozen):
    """What ran at a level of the factor `engine`: the `product` and its `version`, and in words where it
    comes from (`origin`) and which file the process held (`proof`). Empty where no trial of it came so
    far. Where it took over the data of the baseline's, `upgraded_by` says how, in words, and `upgrade_s` has
    the seconds that this took, for each image of the data."""

    level: str
    product: str
    version: str = ""
    origin: str = ""
    proof: str = ""
    upgraded_by: str = absent("")
    upgrade_s: tuple[float, ...] = absent(())


class DefaultChanged(Frozen):
    """A setting whose default is not the baseline's. None where an engine has no such setting."""

    name: str
    before: str | None
    after: str | None


class DefaultsBeside(Frozen):
    """What differs between the defaults of the baseline's engine and of another version of the same product,
    of `compared` settings that either knows."""

    level: str
    compared: int
    changed: tuple[DefaultChanged, ...]


class RowsDiffer(Frozen):
    """Tables of another engine that are not as the baseline's in an image of the data: both checksums."""

    level: str
    image: int
    before: str
    after: str


class EnginesCompared(Frozen):
    """What a run whose engines are a factor shows of them, the baseline's first. `same_rows` are the levels
    whose rows were shown to be the baseline's, and `other_rows` those whose were not. `products` are how many
    different ones there are."""

    ran: tuple[EngineRan, ...]
    same_rows: tuple[str, ...] = ()
    other_rows: tuple[RowsDiffer, ...] = ()
    defaults: tuple[DefaultsBeside, ...] = ()

    @property
    def products(self) -> int:
        return len({one.product for one in self.ran})


def engines_compared(study: Study, records: Sequence[Record]) -> EnginesCompared | None:
    """What the records of a run say of its engines; None where they are no factor."""
    if len(study.engines) < 2:
        return None
    by_level: dict[str, list[Record]] = {one.written: [] for one in study.engines}
    for record in records:
        level = record.levels.get(ENGINE_FACTOR)
        by_level.get(level_text(level) if level is not None else "", []).append(record)
    products = {one.written: one.engine for one in study.engines}
    baseline, *others = by_level
    differing = [
        found for level in others for found in _other_rows(level, by_level[baseline], by_level[level])
    ]
    shown = {
        level for level in others if _images(by_level[baseline]).keys() & _images(by_level[level]).keys()
    }
    same_product = [level for level in others if products[level] == products[baseline]]
    defaults = (_defaults(level, by_level[baseline], by_level[level]) for level in same_product)
    return EnginesCompared(
        ran=tuple(_ran(level, products[level], found) for level, found in by_level.items()),
        same_rows=tuple(one for one in others if one in shown - {each.level for each in differing}),
        other_rows=tuple(differing),
        defaults=tuple(filter(None, defaults)),
    )


def _ran(level: str, product: str, records: Sequence[Record]) -> EngineRan:
    upgrades = {
        int(record.reset["image"]): (str(record.reset["upgraded_by"]), float(record.reset["upgrade_s"]))
        for record in records
        if "upgraded_by" in record.reset and "image" in record.reset
    }
    for record in records:
        for evidence in record.evidence:
            if evidence.factor == ENGINE_FACTOR and evidence.effective is not None and evidence.in_effect:
                return EngineRan(
                    level=level,
                    product=product,
                    version=record.engine_version,
                    origin=evidence.accepted.source if evidence.accepted is not None else "",
                    proof=evidence.effective.source,
                    upgraded_by=next((by for by, _ in upgrades.values()), ""),
                    upgrade_s=tuple(seconds for _, (_, seconds) in sorted(upgrades.items())),
                )
    return EngineRan(level=level, product=product)


def _images(records: Iterable[Record]) -> dict[int, str]:
    """The checksums of the tables, by the image of the data."""
    return {
        int(record.reset["image"]): str(record.reset["rows"])
        for record in records
        if "rows" in record.reset and "image" in record.reset
    }


def _other_rows(level: str, baseline: Iterable[Record], records: Iterable[Record]) -> list[RowsDiffer]:
    before, after = _images(baseline), _images(records)
    return [
        RowsDiffer(level=level, image=image, before=before[image], after=after[image])
        for image in sorted(before.keys() & after.keys())
        if before[image] != after[image]
    ]


def _defaults(level: str, baseline: Iterable[Record], records: Iterable[Record]) -> DefaultsBeside | None:
    before, after = _first(baseline), _first(records)
    if before is None or after is None:
        return None
    names = sorted(name for name in {*before, *after} if _is_setting(name, before, after))
    changed = [
        DefaultChanged(name=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]
    return DefaultsBeside(level=level, compared=len(names), changed=tuple(changed))


def _first(records: Iterable[Record]) -> Mapping[str, str] | None:
    return next((record.defaults for record in records if record.defaults is not None), None)


def _is_setting(name: str, *defaults: Mapping[str, str]) -> bool:
    """Without what tells the version, and without the places of an installation."""
    of_place = any(values.get(name, "").startswith("/") for values in defaults)
    return not (of_place or name.lower().startswith(NOT_COMPARED))
