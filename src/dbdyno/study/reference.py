"""How a study names its engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """How a study names its engine: `mariadb@11.8`, `mariadb:/usr/sbin/mariadbd`. The path of a server that
    runs already begins with two slashes: with the engine's name before it, it is its URL."""

    engine: str
    version: str = ""
    path: str = ""

    @classmethod
    def of(cls, written: str) -> Reference:
        """That of a level which the study's reader has taken, as `written` gives it."""
        name, path = written.partition(":")[::2]
        if path:
            return cls(engine=name, path=path)
        name, _, version = written.partition("@")
        return cls(engine=name, version=version)

    @property
    def written(self) -> str:
        """As a study writes it."""
        if self.path:
            return f"{self.engine}:{self.path}"
        return f"{self.engine}@{self.version}" if self.version else self.engine

    @property
    def url(self) -> str:
        """That of a server that runs already, which holds no password; empty for an engine to be started."""
        return f"{self.engine}:{self.path}" if self.path.startswith("//") else ""
