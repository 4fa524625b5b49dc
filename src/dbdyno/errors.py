"""Every error a user can meet: what happened and where (`message`), what to do about it (`hint`).

Exit codes follow from the kind: 2 when the user can mend it by changing the input, 1 when something failed.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

REMEDIES = {
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room within the quota of this user",
    errno.EACCES: "give this user the right to do so, or run Dyno as a user who has it",
    errno.EPERM: "give this user the right to do so, or run Dyno as a user who has it",
    errno.EROFS: "choose a place that is not mounted read-only",
}


def remedy(error: BaseException, missing: str = "", torn: str = "") -> str:
    """What mends the cause that an error names, because a hint is for its cause: `missing` is for a file or a
    program that is not there, `torn` for a content that cannot be read. Empty for any other cause."""
    if not isinstance(error, OSError) or error.errno is None:
        return torn
    return missing if error.errno == errno.ENOENT else REMEDIES.get(error.errno, "")


class DynoError(Exception):
    """Something failed that the input did not cause."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(DynoError):
    """The input is wrong: a file, an option, a name."""

    exit_code = 2


@dataclass(frozen=True)
class Mistake:
    """One fault in a study. `line` and `column` count from 1; line 0 means the file as a whole, column 0
    the line."""

    line: int
    message: str
    hint: str = ""
    column: int = 0


class StudyError(UserError):
    """All the mistakes of one study, found together, before the first trial."""

    def __init__(self, path: str, mistakes: list[Mistake]) -> None:
        count = len(mistakes)
        super().__init__(f"{path}: {count} mistake{'s' if count != 1 else ''}; nothing was measured")
        self.path = path
        self.mistakes = tuple(sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column)))


class Unreachable(DynoError):
    """A mirror or a registry does not answer, or this machine has no network."""


class EngineMissing(UserError):
    """The engine that a study names is not on this machine."""


class EngineUnobtainable(EngineMissing):
    """Nor can Dyno obtain it: there is nothing at its path, or no such version can be had."""


class ServerFailed(DynoError):
    """The server did not start, died, or would not stop. `log` holds the end of its own log."""

    def __init__(self, message: str, hint: str = "", log: str = "") -> None:
        super().__init__(message, hint)
        self.log = log


class BaselineFailed(DynoError):
    """A run ended in its first block or before it, without a baseline to compare anything with."""

    exit_code = 3


class BuildFailed(DynoError):
    """An engine could not be built from its source. `log` holds the end of what was said."""

    def __init__(self, message: str, hint: str = "", log: str = "") -> None:
        super().__init__(message, hint)
        self.log = log


class DiskFull(BuildFailed):
    """A build's command found no room on the disk."""


class Incorrect(DynoError):
    """A build failed the correctness gate, so its speed does not count."""


class DriverFailed(DynoError):
    """The load driver could not do its work. `kind` is the driver's own: user, connect, server, protocol,
    internal."""

    def __init__(self, message: str, hint: str = "", kind: str = "internal") -> None:
        super().__init__(message, hint)
        self.kind = kind
        self.exit_code = 2 if kind == "user" else 1

    @property
    def of_the_engine(self) -> bool:
        """Whether the engine refused, was not reached or spoke nonsense, and the driver did its part."""
        return self.kind in ("server", "protocol", "connect")


class LoadDied(DriverFailed):
    """The load process ended in the midst of a request: with an embedded engine, the engine crashed."""


class Blocked(DynoError):
    """A level could not be put into effect here: `message` says who refused, `hint` what would allow it."""

    def __init__(self, factor: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.factor = factor


class Stopped(DynoError):
    """The run is not to go on: a guard of the server that it studies has stopped it, or that server cannot be
    used any more."""


class Inert(DynoError):
    """A build has the baseline's code: `message` says what was compared. To measure it would be to measure
    the baseline once more."""


class AnotherServer(DynoError):
    """At an address answers another server than the one whose settings are moved, so nothing is touched."""


class RunLocked(DynoError):
    """Another Dyno holds what this one needs."""
