"""What preferences may be: read from the configuration file, all mistakes at once, and from variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dbdyno.cli.preference_keys import FOREVER, KEYS, Key, Value
from dbdyno.cli.server_url import written
from dbdyno.errors import Mistake, StudyError, UserError
from dbdyno.study import values
from dbdyno.study.document import Unreadable, parse_document, read_bytes
from dbdyno.study.values import Fault

VERDICTS = ("broken", "failed", "slower", "inconclusive", "inert")
"""What `--fail-on` takes."""
NO_VERDICT = "none"
PRINTED = ("terminal", "markdown", "json")
"""The forms of every report that is printed. A page is written with --output."""


def of_file(path: Path) -> dict[str, tuple[Value, int]]:
    """The values that a file holds, and their lines. Raises StudyError with every mistake in it."""
    try:
        document = parse_document(read_bytes(path))
    except Unreadable as error:
        raise StudyError(str(path), error.mistakes) from None
    mistakes = list(document.mistakes)
    found: dict[str, tuple[Value, int]] = {}
    for name, value in document.values.items():
        line = document.line((name,))
        try:
            if name not in KEYS:
                raise Fault("is no key of this file", values.nearest(name, KEYS))
            found[name] = READ[name](value), line
        except Fault as fault:
            mistakes.append(Mistake(line, f"{values.name_shown(name)}: {fault.message}", fault.hint))
    if mistakes:
        raise StudyError(str(path), mistakes)
    return found


def of_variable(key: Key, text: str) -> Value:
    """The value that a variable's text means. Raises UserError for one that is none."""
    try:
        return READ[key.name](AS_WRITTEN.get(key.name, str)(text))
    except Fault as fault:
        raise UserError(f"{key.variable}: {fault.message}", fault.hint) from None


def _store(value: Any) -> str:
    url = written(values.text(value))
    if not url.startswith(("sqlite:///", "postgresql://")):
        hint = "write sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        raise Fault("must be the URL of a store", hint)
    return url


def _wait(value: Any) -> str:
    if value != FOREVER:
        values.duration_s(value, 0.0)
    return str(value)


def _verdicts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Fault(f"must be a list, not {values.kind(value)}", 'write ["slower", "broken"]')
    return tuple(values.one_of(one, VERDICTS) for one in value)


def _listed(text: str) -> list[str]:
    return [] if text == NO_VERDICT else [word.strip() for word in text.split(",")]


READ: Mapping[str, Callable[[Any], Value]] = {
    "store": _store,
    "format": partial(values.one_of, allowed=PRINTED),
    "fail-on": _verdicts,
    "quiet": values.boolean,
    "wait": _wait,
    "mirror": values.text,
}
"""By key: makes a value of what the file holds, or raises Fault."""

AS_WRITTEN: Mapping[str, Callable[[str], Any]] = {
    "fail-on": _listed,
    "quiet": lambda text: {"true": True, "false": False}.get(text, text),
}
"""What the file would hold for a variable's text, where that is no text."""
