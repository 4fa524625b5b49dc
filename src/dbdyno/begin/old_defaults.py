"""What lies between two versions: the new one with the defaults of the old one, as a study to be measured.

Of the defaults that changed those are taken that both versions let a study set, at both values, and that a
server of either then says it has. The others are named, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.analyse.engines import engines_compared
from dbdyno.analyse.found import DefaultChanged
from dbdyno.begin.catalogue import located
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine
from dbdyno.errors import DynoError, UserError
from dbdyno.frozen import ENGINE_FACTOR, Level, level_text
from dbdyno.host.cache import Tell
from dbdyno.layers.config import untaken
from dbdyno.layers.registry import LAYERS
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Record
from dbdyno.study import Study
from dbdyno.study.trials import Variant
from dbdyno.trial.defaults import not_in_effect

NEW_ALONE = "the old version has no such setting"
OLD_ALONE = "the new version has no such setting"


@dataclass(frozen=True)
class OldDefaults:
    """Settings (by factor) with the defaults of the old version and of the new one, and why others are left
    out, by their names."""

    old: dict[str, Level]
    new: dict[str, Level]
    left_out: dict[str, str]


@dataclass(frozen=True)
class _Side:
    """A version, and the levels that it is to take."""

    engine: Engine
    installation: Installation
    levels: tuple[dict[str, Level], ...]


def old_defaults(
    study: Study, records: Sequence[Record], slow: Variant, fast: Variant, tell: Tell
) -> OldDefaults:
    """Those of two variants that differ in their versions alone. Starts servers of both. Raises UserError
    where they differ otherwise, where the records tell no defaults, or where none can be set."""
    level = _require_versions(study, slow, fast)
    compared = engines_compared(_between(study, slow, fast), records)
    beside = next((one for one in compared.defaults if one.level == level), None) if compared else None
    if beside is None:
        raise UserError(
            "the run does not hold the defaults of both versions", "measure a first block of both of them"
        )
    given = {*study.settings, *study.baseline}
    changed = [one for one in beside.changed if f"config.{one.name}" not in given]
    found = OldDefaults({}, {}, {})
    engine, old, new = _engine(study, slow), _here(study, slow), _here(study, fast)
    for one in changed:
        _add(found, one, engine)
    for installation in (new, old):
        _leave_out(found, _untaken(found, engine, installation))
    tell("servers of both versions start with the defaults of each, to see whether they have them")
    for side in (_Side(engine, new, (found.old, found.new)), _Side(engine, old, (found.old,))):
        for levels in side.levels:
            settings = {name.removeprefix("config."): one for name, one in levels.items()}
            _leave_out(found, not_in_effect(side.engine, side.installation, settings))
    if not found.old:
        raise UserError(
            f"none of {len(changed)} changed defaults can be set on both versions",
            "their gap is that of the version alone",
        )
    return found


def _require_versions(study: Study, slow: Variant, fast: Variant) -> str:
    """The level of the new version. Raises UserError where something else differs."""
    differing = [name for name, level in slow.levels.items() if fast.levels[name] != level]
    engines = [study.engine_of(one.levels) for one in (slow, fast)]
    if differing != [ENGINE_FACTOR] or engines[0].engine != engines[1].engine:
        raise UserError(
            f"{slow.name} and {fast.name} do not differ in the version alone",
            "name two variants with --from and --to that differ in `engine`, and are of one product",
        )
    return engines[1].written


def _between(study: Study, slow: Variant, fast: Variant) -> Study:
    """The study as if it had these two engines, the old one first."""
    levels = (slow.levels[ENGINE_FACTOR], fast.levels[ENGINE_FACTOR])
    factors = [one.but(levels=levels) if one.name == ENGINE_FACTOR else one for one in study.factors]
    return study.but(engine=study.engine_of(slow.levels), factors=tuple(factors))


def _engine(study: Study, variant: Variant) -> Engine:
    return registry.engine(study.engine_of(variant.levels).engine)


def _here(study: Study, variant: Variant) -> Installation:
    found = located(study.engine_of(variant.levels))
    if isinstance(found, DynoError):
        raise found
    return found


def _add(found: OldDefaults, one: DefaultChanged, engine: Engine) -> None:
    if one.before is None or one.after is None:
        found.left_out[one.name] = NEW_ALONE if one.before is None else OLD_ALONE
        return
    before, after = _shared(one.before, one.after)
    if not before:
        found.left_out[one.name] = "what differs are members that one version lacks"
        return
    as_level = engine.compared.level if engine.compared is not None else str
    found.old[f"config.{one.name}"], found.new[f"config.{one.name}"] = as_level(before), as_level(after)


def _shared(before: str, after: str) -> tuple[str, str]:
    """Of two lists of `name=value` the members alone that both have and that differ; other values whole."""
    own, other = _members(before), _members(after)
    if own is None or other is None:
        return before, after
    names = [name for name in own if name in other and own[name] != other[name]]
    return _joined(own, names), _joined(other, names)


def _joined(members: Mapping[str, str], names: Sequence[str]) -> str:
    return ",".join(f"{name}={members[name]}" for name in names)


def _members(value: str) -> Mapping[str, str] | None:
    pairs = [part.partition("=") for part in value.split(",")]
    return {name: held for name, _, held in pairs} if all(sign for _, sign, _ in pairs) else None


def _untaken(found: OldDefaults, engine: Engine, installation: Installation) -> dict[str, str]:
    refused = {}
    for name in found.old:
        for level in (found.old[name], found.new[name]):
            for why in untaken({name: level}, LAYERS, engine, installation):
                refused[name.removeprefix("config.")] = why.message.removeprefix(f"{name}: ")
    return refused


def _leave_out(found: OldDefaults, refused: Mapping[str, str]) -> None:
    for name, reason in refused.items():
        found.left_out[name] = reason
        found.old.pop(f"config.{name}", None)
        found.new.pop(f"config.{name}", None)


def left_out_lines(found: OldDefaults) -> Iterator[str]:
    """A sentence for each reason, with the settings that it keeps out."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in sorted(found.left_out.items()):
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"left out, because {reason}: {', '.join(names)}"


def levels_line(found: OldDefaults) -> Iterator[str]:
    """A line for each setting that the study varies."""
    for name, level in found.old.items():
        yield f"{name.removeprefix('config.')}: {level_text(level)} -> {level_text(found.new[name])}"
