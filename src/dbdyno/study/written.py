"""Studies that Dyno writes itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbdyno.driver.job import Opening
from dbdyno.frozen import ENGINE_FACTOR, Level
from dbdyno.study.document import Row, document, inline, levels_of, rows, table, toml
from dbdyno.study.nouns import BASELINE, Design, GivenData, Goal, Study, Workload
from dbdyno.study.tables import DATA, DRIVER, ENGINE, GOAL, STUDY, UPGRADED, VARIANT, WORKLOAD
from dbdyno.study.trials import Variant

OF_LOAD = "workload."
"""How names of factors begin that stand under [workload]."""
OLD_DEFAULTS, OWN_DEFAULTS = "with old defaults", "with its own defaults"
"""Variants of the new version."""


def winner_on(
    study: Study,
    name: str,
    changed: Mapping[str, Level],
    load: Workload,
    goal: Goal,
    data: GivenData | None = None,
) -> str:
    """A study of a search's baseline and its winner, by the levels that it changes, on another load. Of that
    load are taken its name, its clients, its times, and its options but for those that the winner changes.
    The `data` are those that it brings."""
    baseline = {factor: study.baseline[factor] for factor in changed}
    options = {key: level for key, level in load.options.items() if f"workload.{key}" not in changed}
    of_file = study.configuration.settings if study.configuration is not None else {}
    own = {factor: level for factor, level in study.settings.items() if of_file.get(factor) != level}
    fixed = {factor: level for factor, level in own.items() if factor not in changed}
    head = [
        STUDY.row("title", f"{name} of {study.title} on {load.name}"),
        ("engine", _engine(study), ""),
        STUDY.row("design", Design.LIST),
        STUDY.row("blocks", study.blocks),
    ]
    asked = [
        WORKLOAD.row("name", load.name),
        *WORKLOAD.rows(load, ("clients", "warmup", "duration")),
        *((key, toml(level), "") for key, level in options.items()),
    ]
    parts = [
        rows(head),
        *_driver(study),
        *([table("data", _data(data, study.folder))] if data is not None else []),
        table("workload", asked),
        _variant(BASELINE, baseline),
        _variant(name, changed),
        *([table("settings", levels_of(fixed))] if fixed else []),
        table("goal", GOAL.rows(goal, GOAL.names - {"counted"})),
    ]
    return document(parts)


def with_old_defaults(
    study: Study, ends: tuple[Variant, Variant], old: Mapping[str, Level], new: Mapping[str, Level]
) -> str:
    """A study of the same load whose variants lead from one version to the other: the old one, the new one
    with the `old` defaults, and the new one with its own. All are set in words, so that each is proved."""
    first, last = (each.levels for each in ends)
    of_file = study.configuration.settings if study.configuration is not None else {}
    own = {factor: level for factor, level in study.settings.items() if of_file.get(factor) != level}
    own |= {factor: level for factor, level in first.items() if factor != ENGINE_FACTOR}
    fixed = {factor: level for factor, level in own.items() if not factor.startswith(OF_LOAD)}
    apart = f"{study.title}{'' if study.title.endswith('?') else ':'} the version and its defaults apart"
    head = [
        STUDY.row("title", apart),
        *([("engine", _engine(study), "")] if study.configuration is not None else []),
        STUDY.row("design", Design.LIST),
        STUDY.row("blocks", study.blocks),
        *([("data", toml(UPGRADED), "")] if study.upgraded and study.data is None else []),
    ]
    brought = [] if study.data is None else _data(study.data, study.folder)
    if brought and study.upgraded:
        brought.append(DATA.row("upgraded", True))
    chosen = {name.removeprefix(OF_LOAD): own[name] for name in own.keys() - fixed.keys()}
    parts = [
        rows(head),
        *_driver(study),
        *([table("data", brought)] if brought else []),
        table("workload", _load(study, chosen)),
        _variant(BASELINE, {ENGINE_FACTOR: first[ENGINE_FACTOR], **old}),
        _variant(OLD_DEFAULTS, {ENGINE_FACTOR: last[ENGINE_FACTOR]}),
        _variant(OWN_DEFAULTS, {ENGINE_FACTOR: last[ENGINE_FACTOR], **new}),
        *([table("settings", levels_of(fixed))] if fixed else []),
        table("goal", GOAL.rows(study.goal, GOAL.names - {"counted"})),
    ]
    return document(parts)


def _load(study: Study, chosen: Mapping[str, Level]) -> list[Row]:
    """The study's load, with the levels of it that a variant has."""
    load = study.workload
    asked = [
        WORKLOAD.row("name", load.name),
        *WORKLOAD.rows(load, [*_given(load), "duration"]),
        *WORKLOAD.rows(load.opening, _given(load.opening)),
        *((key, toml(_whole(study, level)), "") for key, level in load.options.items() if level != ""),
    ]
    return [
        *(row for row in asked if row[0] not in chosen),
        *((key, toml(level), "") for key, level in chosen.items()),
    ]


def _given(found: Workload | Opening) -> list[str]:
    """The keys of [workload] with which a noun has another value than its default."""
    fields = type(found).model_fields
    return [
        key.name
        for key in WORKLOAD.keys
        if key.field in fields and getattr(found, key.field) != fields[key.field].default
    ]


def _whole(study: Study, level: Level) -> Level:
    """A path of the study's folder as a whole one, because the study that is written lies elsewhere."""
    path = study.folder / str(level)
    return str(path.absolute()) if isinstance(level, str) and path.is_file() else level


def _data(data: GivenData, folder: Path) -> list[Row]:
    """The section [data], with whole paths, because the study that is written lies elsewhere."""
    paths = tuple(str(path.absolute()) for path in data.paths(folder))
    placed = {"dump": paths} if data.dump else {"folder": paths[0]}
    return DATA.rows(data.but(**placed), DATA.names)


def _driver(study: Study) -> list[list[str]]:
    """The section [driver], where the load comes from another host."""
    return [table("driver", DRIVER.rows(study.driver, DRIVER.names))] if study.driver is not None else []


def _variant(name: str, levels: Mapping[str, Level]) -> list[str]:
    return ["[[variants]]", *rows([VARIANT.row("name", name), ("levels", inline(levels_of(levels)), "")])]


def _engine(study: Study) -> str:
    named = ENGINE.row("name", study.engine)
    if study.configuration is None:
        return named[1]
    file = study.folder / study.configuration.path
    return inline([named, ENGINE.row("configuration", str(file.absolute()))])
