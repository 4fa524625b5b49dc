"""A server that stands for the user's: it runs before Dyno comes, and has accounts of its own."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from dbdyno.driver.passwords import Rows, query
from dbdyno.engines import registry
from dbdyno.engines.engine import Server
from dbdyno.engines.postgresql.server import tool
from dbdyno.engines.server import free_port
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.study.nouns import Reference

TUNER = "tuner"
"""The account that studies have; it has what a test grants."""


@dataclass
class UsersServer:
    """A server that a thread of its own started, because a server ends with the thread that started it."""

    installation: Installation
    folder: Path
    settings: dict[str, Level] = field(default_factory=dict)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    server: Server | None = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Starts it on its data, which are made first where there are none."""
        life = registry.engine(self.installation.engine).life
        if not self.data.exists():
            life.initialise(self.installation, self.data, {})

        def started() -> Server:
            return life.start(self.installation, self.data, self.folder / "r", self.settings, Launch())

        self.server = self.pool.submit(started).result()

    def stop(self) -> None:
        if self.server is not None:
            self.server.stop()

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def url(self) -> str:
        """As the limited account reaches it."""
        assert self.server is not None
        parts = urlsplit(self.server.url)
        return parts._replace(scheme=self.installation.engine, netloc=f"{TUNER}@localhost").geturl()

    def tell(self, *statements: str) -> Rows:
        """The rows of the last statement, as its administrator."""
        assert self.server is not None
        rows: Rows = []
        for sql in statements:
            rows = query(self.server.url, sql)
        return rows

    @contextmanager
    def restarted_by(self, flag: Path) -> Iterator[str]:
        """A shell command that restarts it while this lasts."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.02):
                if flag.exists():
                    self.restart()
                    flag.unlink()

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            yield f"touch {flag}; while [ -e {flag} ]; do sleep 0.02; done"
        finally:
            over.set()
            watching.join()

    @contextmanager
    def busy_with(self, sql: str) -> Iterator[None]:
        """Another client, which is none of Dyno's, has the server work on this over and over."""
        over, begun = threading.Event(), threading.Event()
        sockets = self.folder / "r"
        with psycopg.connect(host=str(sockets), dbname="dyno", user="dyno", autocommit=True) as client:

            def work() -> None:
                while not over.is_set():
                    begun.set()
                    client.execute(sql)

            working = threading.Thread(target=work)
            working.start()
            begun.wait()
            try:
                yield
            finally:
                over.set()
                working.join()


class Address:
    """A port of this host that leads to the socket of a server, and can be led to another's."""

    def __init__(self, to: Path) -> None:
        self._to = to
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def lead(self, to: Path) -> None:
        """Has who connects from now on reach another server, and cuts all that are connected."""
        self._to = to
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._to))
                self._open += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_RDWR)


@contextmanager
def users_server(engine: str, folder: Path, **settings: Level) -> Iterator[UsersServer]:
    """A server in a folder whose path is short. Raises EngineMissing where there is none here."""
    (folder / "r").mkdir()
    installation = registry.locate(Reference.of(engine))
    found = UsersServer(installation, folder, settings)
    found.start()
    try:
        yield found
    finally:
        if found.server is not None:
            found.server.kill()
        found.pool.shutdown()


@contextmanager
def replica(primary: UsersServer, folder: Path) -> Iterator[UsersServer]:
    """A standby of a PostgreSQL, copied from it while it runs."""
    found = UsersServer(primary.installation, folder)
    (folder / "r").mkdir()
    found.data.mkdir(mode=0o700)
    copy = [*tool(primary.installation, "pg_basebackup"), "-h", str(primary.folder / "r"), "-U", "dyno"]
    subprocess.run([*copy, "-D", str(found.data / "database"), "-R", "-c", "fast"], check=True)
    found.start()
    try:
        yield found
    finally:
        if found.server is not None:
            found.server.kill()
        found.pool.shutdown()


@contextmanager
def source_and_replica(engine: str, folders: tuple[Path, Path]) -> Iterator[tuple[UsersServer, UsersServer]]:
    """A MariaDB or a MySQL, and one that replays its log over TCP and takes no writes of others."""
    is_mysql, ports = engine.startswith("mysql"), [free_port("127.0.0.1") for _ in folders]
    settings: dict[str, Level] = {"skip_networking": "OFF", "bind_address": "127.0.0.1", "log_bin": "bin"}
    with ExitStack() as stack:
        source, behind = (
            stack.enter_context(users_server(engine, folder, **settings, server_id=number, port=port))
            for number, (folder, port) in enumerate(zip(folders, ports, strict=True), start=1)
        )
        source.tell(
            "CREATE USER follower@'%' IDENTIFIED BY 'x'", "GRANT REPLICATION SLAVE ON *.* TO follower@'%'"
        )
        file, position, *_ = source.tell("SHOW BINARY LOG STATUS" if is_mysql else "SHOW MASTER STATUS")[0]
        word, change = ("SOURCE", "REPLICATION SOURCE") if is_mysql else ("MASTER", "MASTER")
        place = {"HOST": "'127.0.0.1'", "PORT": ports[0], "USER": "'follower'", "PASSWORD": "'x'"}
        place |= {"LOG_FILE": f"'{file}'", "LOG_POS": int(float(str(position)))}
        told = [f"{word}_{name} = {value}" for name, value in place.items()]
        told += ["GET_SOURCE_PUBLIC_KEY = 1"] if is_mysql else []
        replica_word = "REPLICA" if is_mysql else "SLAVE"
        behind.tell(
            f"CHANGE {change} TO {', '.join(told)}", f"START {replica_word}", "SET GLOBAL read_only = ON"
        )
        source.tell("CREATE DATABASE followed")
        deadline = time.monotonic() + 60
        while not behind.tell("SHOW DATABASES LIKE 'followed'"):
            assert time.monotonic() < deadline, behind.tell(f"SHOW {replica_word} STATUS")
            time.sleep(0.05)
        yield source, behind


def promote(behind: UsersServer) -> None:
    """What an administrator does with a replica whose source is gone."""
    word = "REPLICA" if behind.installation.engine == "mysql" else "SLAVE"
    behind.tell(f"STOP {word}", f"RESET {word} ALL", "SET GLOBAL read_only = OFF")
