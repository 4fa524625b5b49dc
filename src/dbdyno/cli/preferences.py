"""What a user sets once: an option's value where none is given, from the environment or a file.

An option wins over its variable, the variable over the file, the file over the default. This is the one
place where that is decided. Nothing here may change what is measured, because a study must mean the same on
every desk.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from dbdyno.cli.preference_keys import KEYS, Key, Value
from dbdyno.host import paths

FILE = "config.toml"


class Origin(StrEnum):
    """Where a value comes from."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"


@dataclass(frozen=True)
class Setting:
    """A key's value here, and where it comes from: `place` is a variable, or a file with its line."""

    key: Key
    value: Value
    origin: Origin
    place: str = ""


class PreferredOption(click.Option):
    """An option whose default is what the user prefers. Help and manual pages name no preference."""

    def __init__(self, *declarations: Any, key: str, **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self._key = key

    def get_default(self, ctx: click.Context, call: bool = True) -> Any:
        value = None if ctx.resilient_parsing else preferred(self._key)
        return super().get_default(ctx, call) if value is None else value


def config_file() -> Path:
    """The configuration file; it need not be there."""
    return paths.config_place() / FILE


def preferred(name: str) -> Value:
    """The value of a key. Raises UserError where a variable or the file holds mistakes."""
    return next(setting.value for setting in settings() if setting.key.name == name)


def settings() -> list[Setting]:
    """Every key with its value. Raises UserError where a variable or the file holds mistakes."""
    given = _given()
    return [given.get(key.name) or Setting(key, key.default, Origin.DEFAULT) for key in KEYS.values()]


def _given() -> dict[str, Setting]:
    """What variables and the file give, by key: read once in a command, for all of its options."""
    context = click.get_current_context(silent=True)
    kept: dict[str, dict[str, Setting]] = context.meta if context is not None else {}
    if __name__ not in kept:
        kept[__name__] = _read()
    return kept[__name__]


def _read() -> dict[str, Setting]:
    path = config_file()
    texts = {key: text for key in KEYS.values() if (text := os.environ.get(key.variable))}
    there = os.access(path, os.F_OK)
    if not texts and not there:
        return {}
    # Here, because most users set nothing, and reading takes what reads studies.
    from dbdyno.cli.preference_values import of_file, of_variable

    found = {
        name: Setting(KEYS[name], value, Origin.FILE, f"{path}:{line}")
        for name, (value, line) in (of_file(path) if there else {}).items()
    }
    for key, text in texts.items():
        found[key.name] = Setting(key, of_variable(key, text), Origin.ENVIRONMENT, key.variable)
    return found
