"""What findings stand on, from records: pure functions, with no server, clock, file or chance in them.

`findings.analyse` puts an Analysis together, whose nouns stand in `model` and `found`. Each module says in
its first sentence what it tells. What verbs offer by name stands here, because their help needs no analysis.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

__all__ = ["Analysis", "Axis", "Ending"]


class Ending(StrEnum):
    """How a level can end in the museum, the gravest first."""

    BROKEN = "broken"
    FAILED = "failed"
    BLOCKED = "blocked"
    INERT = "inert"
    SLOWER = "slower"
    NOT_EXERCISED = "not-exercised"
    NO_EFFECT = "no-effect"


class Axis(StrEnum):
    """By what the runs of a trend stand in a row: when they began, when the commit of their source was made,
    or the version of their engine. Runs of one commit or version stand in the order in which they began."""

    TIME = "time"
    COMMIT = "commit"
    VERSION = "version"


if TYPE_CHECKING:
    from dbdyno.analyse.model import Analysis
else:

    def __getattr__(name: str) -> object:
        """Imports the nouns when they are asked for: who only plans a study must not wait for them."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from dbdyno.analyse import model

        return model.Analysis
