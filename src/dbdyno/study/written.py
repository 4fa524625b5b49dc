"""Studies that Dyno writes itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbdyno.frozen import Level
from dbdyno.study.format import STUDY
from dbdyno.study.nouns import BASELINE, Design, GivenData, Goal, Study, Workload
from dbdyno.study.tables import DATA, ENGINE, GOAL, VARIANT, WORKLOAD
from dbdyno.study.toml import Row, document, inline, levels_of, rows, table, toml


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
        *([table("data", _data(data, study.folder))] if data is not None else []),
        table("workload", asked),
        _variant(BASELINE, baseline),
        _variant(name, changed),
        *([table("settings", levels_of(fixed))] if fixed else []),
        table("goal", GOAL.rows(goal, GOAL.names - {"counted"})),
    ]
    return document(parts)


def _data(data: GivenData, folder: Path) -> list[Row]:
    """The section [data], with whole paths, because the study that is written lies elsewhere."""
    paths = tuple(str(path.absolute()) for path in data.paths(folder))
    placed = {"dump": paths} if data.dump else {"folder": paths[0]}
    return DATA.rows(data.but(**placed), DATA.names)


def _variant(name: str, levels: Mapping[str, Level]) -> list[str]:
    return ["[[variants]]", *rows([VARIANT.row("name", name), ("levels", inline(levels_of(levels)), "")])]


def _engine(study: Study) -> str:
    named = ENGINE.row("name", study.engine)
    if study.configuration is None:
        return named[1]
    file = study.folder / study.configuration.path
    return inline([named, ENGINE.row("configuration", str(file.absolute()))])
