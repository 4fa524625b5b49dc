"""What the rest of Dyno needs of an application: where it is installed, its tables, its life, its proof; and
of a program that passes SQL on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dbdyno.errors import Mistake

if TYPE_CHECKING:
    from dbdyno.engines.server import ServerProcess
    from dbdyno.obtain.installation import Installation
    from dbdyno.records.record import Evidence
    from dbdyno.study.nouns import Application, FrontProgram


@dataclass(frozen=True)
class ApplicationPlace:
    """Where an application lives: `data` is its folder beside the server's data, `runtime` (a short path)
    holds its socket, its configuration and its log, and `database_url` leads to the server beneath."""

    data: Path
    runtime: Path
    database_url: str


@dataclass(frozen=True)
class Spent:
    """What the workers of an application have spent since they began: how many requests they have had, for
    how many seconds they were busy with them, and for how many of these they waited for the database."""

    requests: float
    busy_s: float
    database_s: float


@dataclass(frozen=True)
class Front:
    """What runs in front of a server. `prove` reads from an application's workers what they run with, `spent`
    what they have spent so far, summed over all of them; None where they do not tell. What `passes_sql` on
    takes the statements that its server takes."""

    process: ServerProcess
    prove: Callable[[], tuple[Evidence, ...]]
    spent: Callable[[], Spent | None]

    @property
    def passes_sql(self) -> bool:
        return False


class ApplicationLife(Protocol):
    """From an empty database to a running application."""

    def populate(self, installation: Installation, wish: Application, place: ApplicationPlace) -> None:
        """Makes its tables and first rows, and the folder `place.data`, which does not exist yet. Raises
        ServerFailed with what it said."""
        ...

    def start(self, installation: Installation, wish: Application, place: ApplicationPlace) -> Front:
        """Starts it and waits until all its workers serve requests. Raises ServerFailed with the end of its
        log."""
        ...


@dataclass(frozen=True)
class Product:
    """One application. It reaches its database by one of `protocols`, and a study sets nothing of `own`, the
    settings that Dyno writes itself. A worker takes about `worker_bytes` of memory."""

    name: str
    title: str
    protocols: frozenset[str]
    own: frozenset[str]
    worker_bytes: int
    locate: Callable[[Application], Installation]
    life: ApplicationLife

    def mistakes(self, wish: Application, protocols: tuple[str, ...]) -> list[Mistake]:
        """What is wrong with the wish in front of a server that speaks these protocols."""
        found = []
        if not self.protocols & set(protocols):
            spoken = " or ".join(sorted(self.protocols))
            hint = f"take an engine that speaks the protocol of {spoken}"
            found.append(Mistake(0, f"{self.title} cannot stand in front of this engine", hint))
        return found + [
            Mistake(0, f"Dyno itself sets `{name}` of {self.title}", "leave it out")
            for name in sorted(self.own & wish.settings.keys())
        ]


@dataclass(frozen=True)
class InstalledApplication:
    """An application as a study asks for it, and where it is installed."""

    product: Product
    installation: Installation
    wish: Application

    @property
    def shape(self) -> dict[str, object]:
        """What of it shapes the data that it makes."""
        return {
            "name": self.product.name,
            "digest": self.installation.digest,
            "settings": dict(self.wish.settings),
        }

    def populate(self, place: ApplicationPlace) -> None:
        self.product.life.populate(self.installation, self.wish, place)

    def start(self, place: ApplicationPlace) -> Front:
        return self.product.life.start(self.installation, self.wish, place)


@dataclass(frozen=True)
class KnownFront:
    """A program that Dyno knows how to start. It passes on what servers of one of `protocols` are sent, and
    reads back every setting or those that are `shown` alone, by the names that it shows them by. It tells its
    version for the `version_option`."""

    title: str
    package: str
    protocols: frozenset[str]
    program: FrontProgram
    text: str
    shown: Mapping[str, str] | None = None
    version_option: str = "--version"
