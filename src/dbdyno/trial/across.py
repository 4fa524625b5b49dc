"""A load from other hosts: the server listens on a network as long as the trial lives, for that load
alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dbdyno.driver.load import Load
from dbdyno.driver.remote.load import Reached, RemoteDriver, RemoteLoad
from dbdyno.engines.engine import Server
from dbdyno.engines.server import Listening, Network, listening_at
from dbdyno.frozen import Level
from dbdyno.layers.setup import Setup
from dbdyno.study.nouns import RemoteDriver as Wish
from dbdyno.trial.bench import Bench


@dataclass(frozen=True)
class OnNetwork:
    """How a server listens, and for whom."""

    wish: Wish
    network: Network
    listening: Listening
    settings: Mapping[str, Level]

    def load(self, server: Server, beside: Load, undo: ExitStack) -> RemoteLoad:
        """Lets the load in, and starts its driver on each load host, which `undo` ends. Raises DriverFailed
        where one cannot be reached, has no driver, or does not reach the server."""
        database = unquote(urlsplit(server.url).path.removeprefix("/"))
        for statement in self.network.account(self.listening, server.version, database):
            beside.query(server.url, statement)
        at, drivers = self.listening, list[RemoteDriver]()
        shown = at.certificate.certificate.read_text() if at.certificate else ""
        reached = Reached(at.address, at.port, at.url(server.url), shown)
        for host in self.wish.hosts:
            drivers.append(RemoteDriver(host))
            undo.callback(drivers[-1].kill)
            drivers[-1].connects_s(reached, 1)
        return RemoteLoad(beside, drivers, reached)


def network_of(setup: Setup, bench: Bench, runtime: Path) -> OnNetwork | None:
    """How the server of a trial listens; None where its load comes from this host. What is counted or trained
    is not timed, so it is loaded from here."""
    wish = bench.study.driver
    if wish is None or bench.callgrind or bench.instrumented or setup.engine.network is None:
        return None
    listening = listening_at(wish.address, wish.tls, runtime)
    settings = setup.engine.network.settings(listening, runtime)
    return OnNetwork(wish, setup.engine.network, listening, settings)
