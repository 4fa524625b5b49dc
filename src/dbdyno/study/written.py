"""Studies that Dyno writes itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dbdyno.frozen import Level
from dbdyno.study.nouns import BASELINE, Study
from dbdyno.study.reference import Reference


def winner_on(study: Study, name: str, changed: Mapping[str, Level], workload: str) -> str:
    """A study of a search's baseline and its winner, by the levels that it changes, on another workload. The
    options of that workload have their defaults."""
    load = study.workload
    baseline = {factor: study.baseline[factor] for factor in changed}
    lines = [
        f"title    = {_toml(f'{name} of {study.title} on {workload}')}",
        f"engine   = {_engine(study)}",
        'design   = "list"',
        f"blocks   = {study.blocks}",
        "",
        "[workload]",
        f"name     = {_toml(workload)}",
        f"clients  = {load.clients}",
        f'warmup   = "{load.warmup_s:g}s"',
        f'duration = "{load.duration_s:g}s"',
        "",
        *_variant(BASELINE, baseline),
        "",
        *_variant(name, changed),
    ]
    of_file = study.configuration.settings if study.configuration is not None else {}
    own = {factor: level for factor, level in study.settings.items() if of_file.get(factor) != level}
    if fixed := {factor: level for factor, level in own.items() if factor not in changed}:
        lines += ["", "[settings]", *(f"{_toml(factor)} = {_toml(level)}" for factor, level in fixed.items())]
    lines += ["", "[goal]", f'margin = "{100 * study.goal.margin:g}%"']
    return "\n".join(lines) + "\n"


def _variant(name: str, levels: Mapping[str, Level]) -> list[str]:
    own = ", ".join(f"{_toml(factor)} = {_toml(level)}" for factor, level in levels.items())
    return ["[[variants]]", f"name   = {_toml(name)}", f"levels = {{ {own} }}"]


def _engine(study: Study) -> str:
    if study.configuration is None:
        return _toml(_reference(study.engine))
    file = Path(study.path).parent / study.configuration.path
    return f"{{ name = {_toml(_reference(study.engine))}, configuration = {_toml(str(file.absolute()))} }}"


def _reference(engine: Reference) -> str:
    if engine.path:
        return f"{engine.engine}:{engine.path}"
    return f"{engine.engine}@{engine.version}" if engine.version else engine.engine


def _toml(value: Level) -> str:
    """A text, a number or a boolean as TOML writes it; JSON spells all of them so."""
    return json.dumps(value, ensure_ascii=False)
