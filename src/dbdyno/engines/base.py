"""What the flow needs of an engine: an installation, a data directory, a running server, readings of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dbdyno.record import Level, Reading


@dataclass(frozen=True)
class Reference:
    """How a study names its engine: `mariadb@11.8`, `mariadb:/usr/sbin/mariadbd`, or the URL of a running server."""

    engine: str
    version: str = ""
    path: str = ""
    url: str = ""


@dataclass(frozen=True)
class Installation:
    """An engine that can be started. `command` runs the server binary, private loader included where there is one.

    `origin` says where it came from in words a person can check; `digest` identifies the bytes.
    """

    engine: str
    version: str
    origin: str
    prefix: Path
    command: tuple[str, ...]
    digest: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Launch:
    """How to start the server's process. Layers add to it before the start; the engine only carries it out.

    `wrapper` stands before the command (`setpriv`, `numactl`, a namespace of its own); `cgroups` are directories the
    process is put into before it runs; `affinity` the CPUs it may use (empty: all).
    """

    environment: dict[str, str] = field(default_factory=dict)
    wrapper: tuple[str, ...] = ()
    affinity: tuple[int, ...] = ()
    cgroups: tuple[Path, ...] = ()


class Server(Protocol):
    """A running system under test."""

    url: str
    version: str
    process_ids: tuple[int, ...]
    ready_s: float
    """Seconds from the start of the process until it answered."""
    driver_environment: Mapping[str, str]
    """What the load process must have in its environment; an embedded engine lives in that process."""

    def alive(self) -> bool: ...

    def log(self) -> str:
        """The server's own log since its start, at most the last 64 KiB."""
        ...

    def log_problems(self) -> list[str]:
        """Lines of the log that make a trial doubtful: errors, corruption, crashes, refused settings."""
        ...

    def stop(self, timeout_s: float = 30.0) -> None:
        """Stops cleanly; raises ServerFailed when it had to be killed. Calling it twice is harmless."""
        ...

    def kill(self) -> None: ...


class Engine(Protocol):
    """One engine. An instance holds no state; every method says what it touches."""

    name: str
    title: str
    embedded: bool
    """True when the engine runs inside the load process and has no process of its own."""
    creation_settings: frozenset[str]
    """Settings fixed when the data directory is made (page size): each combination needs its own pristine data."""

    def locate(self, reference: Reference) -> Installation:
        """Finds the installation that the reference names. Raises EngineMissing with the command that obtains it."""
        ...

    def settings(self, installation: Installation) -> frozenset[str]:
        """The names of every setting that this installation knows, as a study writes them after `config.`."""
        ...

    def initialise(self, installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
        """Makes an empty data directory at `data`, which does not exist yet."""
        ...

    def start(
        self,
        installation: Installation,
        data: Path,
        runtime: Path,
        settings: Mapping[str, Level],
        launch: Launch,
    ) -> Server:
        """Starts the server on `data` and waits until it answers. `runtime` holds its socket and log; its path is short.

        Raises ServerFailed with the end of the log when it does not come up.
        """
        ...

    def read_settings(self, ask: Ask, names: frozenset[str]) -> dict[str, Reading]:
        """What the live server says of each setting, in the unit a study writes. Unknown names are left out."""
        ...

    def same(self, name: str, requested: Level, effective: str) -> bool:
        """Whether a value read back means what was requested (`1G` and 1073741824, `ON` and true)."""
        ...

    def exercised(self, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> Reading | None:
        """What the status counters show of a setting being used during the load; None when no counter tells."""
        ...

    def status(self, ask: Ask) -> dict[str, float]:
        """The engine's own counters, by the engine's own names."""
        ...


class Ask(Protocol):
    """Runs one SQL statement on the system under test and returns its rows."""

    def __call__(self, sql: str) -> list[list[str | float | None]]: ...
