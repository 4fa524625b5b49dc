"""A server that Dyno did not start, and which of this host's processes it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from dbdyno.errors import UserError
from dbdyno.host import kernel_files, process
from dbdyno.host.process import family

if TYPE_CHECKING:
    from dbdyno.engines.production import Production


@dataclass(frozen=True)
class FoundServer:
    """A server that runs already. Dyno neither stops it nor reads its log."""

    url: str
    version: str
    process_id: int | None
    ready_s: float = 0.0
    driver_environment: Mapping[str, str] = field(default_factory=dict)
    driver_folders: tuple[Path, ...] = ()

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Empty where the process cannot be found from here."""
        return family(self.process_id) if self.process_id is not None else ()

    def alive(self) -> bool:
        return self.process_id is None or bool(self.process_ids)

    def log(self) -> str:
        return ""

    def log_problems(self) -> list[str]:
        return []

    def stop(self, timeout_s: float = 30.0) -> None: ...

    def kill(self) -> None: ...


def process_at(url: str, production: Production) -> int | None:
    """The process that listens where a URL leads; None for another host, and for a file.
    Raises UserError where it leads to several."""
    target = urlsplit(url)
    if "," in target.netloc:
        raise UserError("the URL of a server names several hosts", "name the one that is meant")
    if sockets := parse_qs(target.query).get("socket"):
        return process.at_socket(Path(sockets[0]))
    if not target.hostname or not process.is_here(target.hostname):
        return None
    return process.at_port(target.port or production.port)


def server_at(url: str, production: Production, programs: Collection[str]) -> int | None:
    """The same where that process runs one of the engine's programs: what forwards to a server, a tunnel or a
    pool, tells nothing of it."""
    process_id = process_at(url, production)
    if process_id is None:
        return None
    try:
        arguments = kernel_files.text(f"/proc/{process_id}/cmdline").split("\0")
    except kernel_files.Unreadable:
        return None
    names = {Path(argument).name for argument in arguments}
    return process_id if names & set(programs) else None
