"""What every noun stands on: a base that never changes once made, and the levels that factors take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from dbdyno.interrupts import shielded

Level = bool | int | float | str
T = TypeVar("T")


class Frozen(BaseModel):
    """Base of every noun that never changes once made."""

    # A command uses few of the types that it imports, and the others are never built.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def but(self, **changes: Any) -> Self:
        """The same noun with other values, which are validated."""
        return type(self).model_validate({**dict(self), **changes})

    def model_dump_json(self, **options: Any) -> str:
        """As pydantic's, but an interruption waits for its end: pydantic would turn KeyboardInterrupt into
        an error of its own, behind which nobody looks for Ctrl-C."""
        with shielded():
            return super().model_dump_json(**options)


_NEXT_LEVEL, _QUOTED = re.compile(r", (?=[\w.-]+=)"), re.compile(r'"[^"]*"')


def spoken(name: str) -> str:
    """A name in a sentence. A plus stands between the levels of a variant: a=1 + b=2."""
    return _NEXT_LEVEL.sub(" + ", name)


def listed(names: Sequence[str], most: int | None = None, behind: Sequence[str] = ()) -> str:
    """Names in a sentence, each with what is said `behind` it: a, b and c. Of more than `most` and one more,
    the first `most` stand there, and how many others there are. Names stand in quotes where one of them still
    holds a comma outside of quotes of its own, so that nobody takes one for two."""
    cut = most is not None and len(names) > most + 1
    shown = [*map(spoken, names[:most] if cut else names)]
    in_quotes = len(shown) > 1 and any("," in _QUOTED.sub("", name) for name in shown)
    told = [
        f"{f'“{name}”' if in_quotes else name}{beside}"
        for name, beside in zip(shown, behind or [""] * len(names), strict=False)
    ]
    last = f"{len(names) - len(shown)} more" if cut else told.pop() if told else ""
    return " and ".join(filter(None, (", ".join(told), last)))


def absent(default: T) -> T:
    """The default of a field that is left out of what is written where it has that value, so that what is
    told of nouns without it does not change."""
    field: T = Field(default=default, exclude_if=lambda value: value == default)
    return field


class NotTaken(Frozen):
    """A line of a configuration file that is no setting of a study, and why. `file` holds it where that is
    not the file that the study names."""

    line: int
    text: str
    reason: str
    file: str = absent("")


class IncludedFile(Frozen):
    """A file that a configuration file includes, as it was when a run began."""

    path: str
    text: str
    digest: str


class LineCount(Frozen):
    """How many lines a configuration file and those that it includes have, and how many of them say nothing
    of their own (empty, comments, heads of groups, lines that lead to other files), or what a later line says
    again. The others are taken, or not taken."""

    whole: int
    silent: int
    again: int


class Configuration(Frozen):
    """An engine's own configuration file, as it was when a run began: its text with the hash of it, the
    levels by factor name that it gives every variant with the files that it includes, what of them was not
    taken, and the count of their lines, which a run of an earlier version lacks.
    """

    path: str
    text: str
    digest: str
    settings: dict[str, Level]
    not_taken: tuple[NotTaken, ...] = ()
    included: tuple[IncludedFile, ...] = absent(())
    lines: LineCount | None = absent(None)


WHOLE_FILES: Any = {"text": True, "included": {"__all__": {"text"}}}
"""What outputs leave out of a configuration."""


ENGINE_FACTOR = "engine"
"""The factor that chooses the engine itself, and so the one name of a factor without a dot. It is the only
knob of the layer of the same name."""


def layer_and_knob(factor: str) -> tuple[str, str]:
    """The two parts of a factor's name. Raises ValueError for what is none."""
    if factor == ENGINE_FACTOR:
        return ENGINE_FACTOR, ENGINE_FACTOR
    layer, knob = factor.split(".", 1)
    return layer, knob


def level_text(level: Level) -> str:
    """A level as a study writes it, without quotes."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def level_shown(level: Level) -> str:
    """A level as people read it: one that is empty has its quotes, or nobody would see it."""
    return level_text(level) or '""'
