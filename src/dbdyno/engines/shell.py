"""How an engine that lives in the load process is asked on another architecture: by its shell of that
machine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Check
from dbdyno.records.recovery import Recovery
from dbdyno.study.act import Act


@dataclass(frozen=True)
class ShellRound:
    """What was there after the shell had ended, and what was checked of it."""

    recovery: Recovery
    checks: tuple[Check, ...]


class Shell(Protocol):
    """A program of an engine that takes statements, in the place of the load process."""

    def make(self, installation: Installation, folder: Path) -> None:
        """Makes data in an empty folder. Raises ServerFailed."""
        ...

    def opened(self, installation: Installation, folder: Path) -> AbstractContextManager[int]:
        """The process of a shell that has answered, until it is left. Raises ServerFailed."""
        ...

    def instructions(self, installation: Installation, folder: Path) -> int | None:
        """How many instructions one transaction of the load takes; None where nothing here counts them."""
        ...

    def round_of(self, installation: Installation, folder: Path, act: Act, load_s: float) -> ShellRound:
        """A load that an act ends, and what is there afterwards. Raises ServerFailed."""
        ...
