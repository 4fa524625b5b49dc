"""Builds: all that goes into one, and the key that follows from it."""

from __future__ import annotations

import hashlib
import json

from pydantic import Field

from dbdyno.frozen import Frozen
from dbdyno.obtain.source.wish import Flags

ENVIRONMENT = {"LC_ALL": "C", "SOURCE_DATE_EPOCH": "1000000000", "TZ": "UTC"}
"""So that a build does not depend on who makes it, nor when."""


class Build(Frozen):
    """All that goes into a build, by digest where it is a file: two with the same key are the same build."""

    engine: str
    recipe: str
    source: str
    patches: tuple[str, ...]
    toolchain: str
    flags: Flags
    environment: dict[str, str] = Field(default_factory=lambda: dict(ENVIRONMENT))

    @property
    def key(self) -> str:
        told = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """On the shelf of builds."""
        return f"{self.engine}-{self.key}"


class Made(Frozen):
    """What is kept of a build: the account of how it came about. `took_s` are the seconds of its commands,
    and `network` says whether they could have asked for it."""

    key: str
    engine: str
    words: str
    source: str
    patches: tuple[str, ...] = ()
    toolchain: str
    flags: Flags
    recipe: str
    took_s: float
    network: bool = False
