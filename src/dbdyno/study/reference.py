"""How a study names its engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """How a study names its engine: `mariadb@11.8`, `mariadb:/usr/sbin/mariadbd`."""

    engine: str
    version: str = ""
    path: str = ""

    @property
    def written(self) -> str:
        """As a study writes it."""
        if self.path:
            return f"{self.engine}:{self.path}"
        return f"{self.engine}@{self.version}" if self.version else self.engine
