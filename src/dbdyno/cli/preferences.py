"""What a user sets once: an option's value where none is given, from the environment or a file.

An option wins over its variable, the variable over the file, the file over the default. This is the one
place where that is decided. Nothing here may change what is measured, because a study must mean the same on
every desk.

What reads studies is imported where it is used, because it takes long and most users set nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from dbdyno.cli.server_url import written
from dbdyno.errors import Mistake, StudyError, UserError
from dbdyno.host import paths

FILE = "config.toml"
Value = str | bool | tuple[str, ...] | None
FOREVER = "forever"
"""What `wait` may be beside a time."""
VERDICTS = ("broken", "failed", "slower", "inconclusive", "inert")
"""What `--fail-on` takes."""
NO_VERDICT = "none"
PRINTED = ("terminal", "markdown", "json")
"""The forms of every report that is printed. A page is written with --output."""


@dataclass(frozen=True)
class Preference:
    """One thing to set; `name` is what the file calls it. `read` makes a value of what the file holds, or
    raises ValueFault, and `of_text` what the file would hold for a variable's text. `otherwise` says what is
    used where it has no value."""

    name: str
    about: str
    read: Callable[[Any], Value]
    default: Value = None
    otherwise: str = ""
    of_text: Callable[[str], Any] = str

    @property
    def option(self) -> str:
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        return f"DYNO_{self.name.upper().replace('-', '_')}"


def _text(value: Any) -> str:
    from dbdyno.study import values

    return values.text(value)


def _store(value: Any) -> str:
    from dbdyno.study.values import ValueFault

    url = written(_text(value))
    if not url.startswith(("sqlite:///", "postgresql://")):
        hint = "write sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        raise ValueFault("must be the URL of a store", hint)
    return url


def _form(value: Any) -> str:
    from dbdyno.study import values

    return values.one_of(value, PRINTED)


def _verdicts(value: Any) -> tuple[str, ...]:
    from dbdyno.study import values

    if not isinstance(value, list):
        raise values.ValueFault(
            f"must be a list, not {values.kind_text(value)}", 'write ["slower", "broken"]'
        )
    return tuple(values.one_of(one, VERDICTS) for one in value)


def _listed(text: str) -> list[str]:
    return [] if text == NO_VERDICT else [word.strip() for word in text.split(",")]


def _quiet(value: Any) -> bool:
    from dbdyno.study import values

    return values.boolean(value)


def _wait(value: Any) -> str:
    from dbdyno.study import values

    if value != FOREVER:
        values.duration_s(value, 0.0)
    return str(value)


KEYS: Mapping[str, Preference] = {
    key.name: key
    for key in (
        Preference("store", "where runs are kept", _store),
        Preference("format", "how reports are printed", _form, "terminal"),
        Preference(
            "fail-on",
            "verdicts that end a report with an exit code of their own",
            _verdicts,
            (),
            of_text=_listed,
        ),
        Preference(
            "quiet",
            "whether a run shows no progress",
            _quiet,
            False,
            of_text=lambda text: {"true": True, "false": False}.get(text, text),
        ),
        Preference("wait", "how long to wait while another Dyno measures on this machine", _wait, "0s"),
        Preference("mirror", "where engines are fetched from", _text, otherwise="the machine's mirror"),
    )
}


class Origin(StrEnum):
    """Where a value comes from."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"


@dataclass(frozen=True)
class Setting:
    """A key's value here, and where it comes from: `place` is a variable, or a file with its line."""

    key: Preference
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
    found = {
        name: Setting(KEYS[name], value, Origin.FILE, f"{path}:{line}")
        for name, (value, line) in (of_file(path) if there else {}).items()
    }
    for key, text in texts.items():
        found[key.name] = Setting(key, _of_variable(key, text), Origin.ENVIRONMENT, key.variable)
    return found


def of_file(path: Path) -> dict[str, tuple[Value, int]]:
    """The values that a file holds, and their lines. Raises StudyError with every mistake in it."""
    from dbdyno.study import values
    from dbdyno.study.document import UnreadableStudy, parse_document, read_bytes

    try:
        document = parse_document(read_bytes(path))
    except UnreadableStudy as error:
        raise StudyError(str(path), error.mistakes) from None
    mistakes = list(document.mistakes)
    found: dict[str, tuple[Value, int]] = {}
    for name, value in document.values.items():
        line = document.line((name,))
        try:
            if name not in KEYS:
                raise values.ValueFault("is no key of this file", values.nearest(name, KEYS))
            found[name] = KEYS[name].read(value), line
        except values.ValueFault as fault:
            mistakes.append(Mistake(line, f"{values.name_shown(name)}: {fault.message}", fault.hint))
    if mistakes:
        raise StudyError(str(path), mistakes)
    return found


def _of_variable(key: Preference, text: str) -> Value:
    """The value that a variable's text means. Raises UserError for one that is none."""
    from dbdyno.study.values import ValueFault

    try:
        return key.read(key.of_text(text))
    except ValueFault as fault:
        raise UserError(f"{key.variable}: {fault.message}", fault.hint) from None
