"""A server that Dyno did not start, as the layers look at it for their proofs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dbdyno.driver.job import Job
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.engine import Ask, Engine
from dbdyno.engines.facts import Production
from dbdyno.engines.runtime import FoundServer, process_at
from dbdyno.errors import DriverFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host import cgroups, process
from dbdyno.host.journal import open_journal
from dbdyno.host.launch import Launch
from dbdyno.host.process import family
from dbdyno.layers.setup import Running, Setup
from dbdyno.obtain.installation import Installation


@dataclass
class FoundSetup(Setup):
    """What is known of how that server was set up: the recipe's settings, and where its data lie."""

    folder: Path | None = None

    @property
    def data(self) -> Path:
        return self.folder if self.folder is not None else super().data


@dataclass(frozen=True)
class Found(Running):
    """That server. An engine in the process of its application is not in the load process."""

    @property
    def process_ids(self) -> tuple[int, ...]:
        return self.server.process_ids

    @property
    def is_here(self) -> bool:
        """Whether it runs on this host."""
        return process.is_here(urlsplit(self.server.url).hostname or "")

    @property
    def knows_data(self) -> bool:
        """Whether the folder of its data is on this host."""
        return isinstance(self.setup, FoundSetup) and self.setup.folder is not None


@contextmanager
def found_server(
    url: str, process_id: int | None, engine: Engine, production: Production, settings: Mapping[str, Level]
) -> Iterator[Found]:
    """The server at a URL. Raises DriverFailed where it does not answer, and UserError for a URL of another
    engine, for a file that is not there, and for a process that is not there."""
    _require_fitting(url, engine, production)
    if process_id is not None and not family(process_id):
        raise UserError(f"there is no process {process_id}", "give the number of the server's process")
    with open_journal() as journal, LoadProcess({}, Launch()) as load:

        def ask(sql: str) -> list[list[str | float | None]]:
            return load.query(url, sql)

        version = _told(ask, production.version_sql)
        server = FoundServer(url, version, process_id or process_at(url, production))
        setup = FoundSetup(
            engine=engine,
            installation=_installation(engine, version),
            scratch=Path("/nonexistent"),
            journal=journal,
            job=Job(url=url, workload=""),
            settings=dict(settings),
            launch=Launch(cgroups=_groups(server.process_id)),
            folder=_folder(ask, production, url),
        )
        yield Found(setup, server, load)


def _require_fitting(url: str, engine: Engine, production: Production) -> None:
    target = urlsplit(url)
    path = unquote(target.path)
    if target.scheme and target.scheme not in production.protocols:
        raise UserError(
            f"the recipe is for {engine.title}, and the URL leads to {target.scheme}",
            f"give a URL that begins with {production.protocols[0]}:",
        )
    # SQLite would make an empty file without a word.
    if target.scheme and is_file(url) and not Path(path).is_file():
        raise UserError(f"there is no database {path}", "correct the path")


def is_file(url: str) -> bool:
    """Whether a URL leads to a database file, which the asking process itself opens."""
    return not urlsplit(url).hostname


def _told(ask: Ask, sql: str) -> str:
    return str(ask(sql)[0][0])


def _folder(ask: Ask, production: Production, url: str) -> Path | None:
    """Where the data lie, if that is on this host, and if the server tells it to this account."""
    if not process.is_here(urlsplit(url).hostname or ""):
        return None
    with suppress(DriverFailed):
        path = Path(_told(ask, production.data_sql))
        return path if path.exists() else None
    return None


def _installation(engine: Engine, version: str) -> Installation:
    return Installation(
        engine=engine.name,
        version=version,
        origin="a server that runs already",
        prefix=Path("/"),
        command=(),
        digest="",
    )


def _groups(process_id: int | None) -> tuple[Path, ...]:
    """The server's own control group, which a unit of systemd has made."""
    return cgroups.groups_of(process_id, "cpu")[:1] if process_id is not None else ()
