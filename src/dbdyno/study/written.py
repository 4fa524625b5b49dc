"""Studies that Dyno writes itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbdyno.frozen import Level
from dbdyno.study.nouns import BASELINE, GivenData, Goal, Study, Workload
from dbdyno.study.reference import Reference
from dbdyno.study.toml import toml


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
    lines = [
        f"title    = {toml(f'{name} of {study.title} on {load.name}')}",
        f"engine   = {_engine(study)}",
        'design   = "list"',
        f"blocks   = {study.blocks}",
        "",
        *(_data(data, study.folder) if data is not None else ()),
        "[workload]",
        f"name     = {toml(load.name)}",
        f"clients  = {load.clients}",
        f'warmup   = "{load.warmup_s:g}s"',
        f'duration = "{load.duration_s:g}s"',
        *(f"{key} = {toml(level)}" for key, level in options.items()),
        "",
        *_variant(BASELINE, baseline),
        "",
        *_variant(name, changed),
    ]
    of_file = study.configuration.settings if study.configuration is not None else {}
    own = {factor: level for factor, level in study.settings.items() if of_file.get(factor) != level}
    if fixed := {factor: level for factor, level in own.items() if factor not in changed}:
        lines += ["", "[settings]", *(f"{toml(factor)} = {toml(level)}" for factor, level in fixed.items())]
    return "\n".join([*lines, "", *_goal(goal)]) + "\n"


def _goal(goal: Goal) -> list[str]:
    lines = [
        "[goal]",
        f"response   = {toml(goal.response)}",
        f'margin     = "{100 * goal.margin:g}%"',
        f'confidence = "{100 * goal.confidence:g}%"',
        f"guards     = {toml([guard.text for guard in goal.guards])}",
    ]
    return lines if goal.interval is None else [*lines, f"interval   = {toml(goal.interval)}"]


def _data(data: GivenData, folder: Path) -> list[str]:
    """The section [data], with whole paths, because the study that is written lies elsewhere."""
    paths = [str(path.absolute()) for path in data.paths(folder)]
    return [
        "[data]",
        f"dump = {toml(paths)}" if data.dump else f"folder = {toml(paths[0])}",
        *([f"database = {toml(data.database)}"] if data.database else []),
        *(["setup = true"] if data.setup else []),
        "",
    ]


def _variant(name: str, levels: Mapping[str, Level]) -> list[str]:
    own = ", ".join(f"{toml(factor)} = {toml(level)}" for factor, level in levels.items())
    return ["[[variants]]", f"name   = {toml(name)}", f"levels = {{ {own} }}"]


def _engine(study: Study) -> str:
    if study.configuration is None:
        return toml(_reference(study.engine))
    file = study.folder / study.configuration.path
    return f"{{ name = {toml(_reference(study.engine))}, configuration = {toml(str(file.absolute()))} }}"


def _reference(engine: Reference) -> str:
    if engine.path:
        return f"{engine.engine}:{engine.path}"
    return f"{engine.engine}@{engine.version}" if engine.version else engine.engine
