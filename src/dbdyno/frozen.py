"""What every noun stands on: a base that never changes once made, and the levels that factors take."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

Level = bool | int | float | str


class Frozen(BaseModel):
    """Base of every noun that never changes once made."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NotTaken(Frozen):
    """A line of a configuration file that is no setting of a study, and why."""

    line: int
    text: str
    reason: str


class Configuration(Frozen):
    """An engine's own configuration file, as it was when a run began: its text with the hash of it, the
    levels by factor name that it gives every variant, and what of it was not taken.
    """

    path: str
    text: str
    digest: str
    settings: dict[str, Level]
    not_taken: tuple[NotTaken, ...] = ()


def level_text(level: Level) -> str:
    """A level as a study writes it, without quotes."""
    return str(level).lower() if isinstance(level, bool) else str(level)
