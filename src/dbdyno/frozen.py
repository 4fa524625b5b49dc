"""What every noun stands on: a base that never changes once made, and the levels that factors take."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

Level = bool | int | float | str


class Frozen(BaseModel):
    """Base of every noun that never changes once made."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def level_text(level: Level) -> str:
    """A level as a study writes it, without quotes."""
    return str(level).lower() if isinstance(level, bool) else str(level)
