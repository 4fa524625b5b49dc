"""How a study names its engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """How a study names its engine: `mariadb@11.8`, `mariadb:/usr/sbin/mariadbd`. A server that runs already
    is named by its `url`, which holds no password."""

    engine: str
    version: str = ""
    path: str = ""
    url: str = ""

    @classmethod
    def of(cls, written: str) -> Reference:
        """That of a level which the study's reader has taken, as `written` gives it."""
        name, path = written.partition(":")[::2]
        if path.startswith("//"):
            return cls(engine=name, url=written)
        if path:
            return cls(engine=name, path=path)
        name, _, version = written.partition("@")
        return cls(engine=name, version=version)

    @property
    def written(self) -> str:
        """As a study writes it."""
        if self.url:
            return self.url
        if self.path:
            return f"{self.engine}:{self.path}"
        return f"{self.engine}@{self.version}" if self.version else self.engine
