"""A server that is a process of its own: started, waited for, stopped, and never left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from dbdyno.driver.query import query
from dbdyno.engines.log import LOG_BYTES, reason_in, tail
from dbdyno.errors import DriverFailed, ServerFailed, UserError
from dbdyno.host import process
from dbdyno.host.launch import Launch
from dbdyno.host.paths import SOCKET_PATH_BYTES
from dbdyno.obtain.installation import Installation

ACCOUNT = "dyno"
DATABASE = "dyno"
"""The account needs no password: the socket stands in a folder that only this user can enter, and there is no
network."""
NAME = "database-name"
"""The file of a data directory with the name of its database, where that is another."""
READY_TIMEOUT_S = 120.0
POLL_S = 0.005


@dataclass
class ServerProcess:
    """The running server. `problems` picks the doubtful lines out of its log; `stop_signal` asks for a
    clean end.
    """

    title: str
    url: str
    version: str
    child: subprocess.Popen[bytes]
    log_path: Path
    problems: Callable[[str], list[str]]
    ready_s: float = 0.0
    stop_signal: signal.Signals = signal.SIGTERM
    leftovers: tuple[Path, ...] = ()
    ended: bool = False
    """Whether `stop` or `kill` has been called: a server that ended without either has died."""
    driver_environment: Mapping[str, str] = field(default_factory=dict)
    driver_folders: tuple[Path, ...] = ()

    @property
    def process_ids(self) -> tuple[int, ...]:
        return process.family(self.child.pid)

    def alive(self) -> bool:
        return self.child.poll() is None

    def log(self) -> str:
        return tail(self.log_path)

    def log_problems(self) -> list[str]:
        return self.problems(self.log())

    def stop(self, timeout_s: float = 30.0) -> None:
        """Asks for a clean end and waits. Raises ServerFailed when it had died before or had to be killed."""
        if self.ended:
            return
        self.ended = True
        died_before = not self.alive()
        if not died_before:
            self.child.send_signal(self.stop_signal)
        try:
            self.child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(
                f"{self.title} did not stop within {timeout_s:g} s and was killed",
                "its data directory may need recovery; allow it more time, or look at its log",
                self.log(),
            ) from None
        finally:
            self._clear()
        returncode = self.child.wait()
        if died_before or returncode not in (0, -self.stop_signal):
            raise ServerFailed(
                f"{self.title} {process.how_it_ended(returncode)}", "look at its log", self.log()
            )

    def kill(self) -> None:
        """Ends the server with all its processes at once, as a power cut would."""
        self.ended = True
        process.kill_family(self.child)
        self._clear()

    def _clear(self) -> None:
        for path in self.leftovers:
            path.unlink(missing_ok=True)


def start_server(
    *,
    title: str,
    url: str,
    installation: Installation,
    command: list[str],
    data: Path,
    folder: Path,
    runtime: Path,
    how: Launch,
    socket: Path,
    version_sql: str,
    problems: Callable[[str], list[str]],
    hint: Callable[[str], str],
    stop_signal: signal.Signals = signal.SIGTERM,
    leftovers: tuple[Path, ...] = (),
) -> ServerProcess:
    """Starts the process in `folder` and waits until it answers `version_sql` on its socket. It may write
    below `data` and `runtime`.

    Raises ServerFailed, with the end of the log and the engine's `hint` on it, when the process ends before.
    """
    log_path = runtime / "server.log"
    with log_path.open("wb") as output:
        started = time.monotonic()
        try:
            child = process.start(
                [*how.wrapper, *command],
                environment={**os.environ, **installation.environment, **how.environment},
                output=output,
                affinity=how.affinity,
                cgroups=how.cgroups,
                before_exec=(process.may_leave_a_core, *how.steps(data, runtime, *installation.writes)),
                folder=folder,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ServerFailed(
                f"{title} cannot be started: {error}", f"the command was {command[0]}"
            ) from None
    server = ServerProcess(
        title=title,
        url=url,
        version=installation.version,
        child=child,
        log_path=log_path,
        problems=problems,
        stop_signal=stop_signal,
        leftovers=leftovers,
    )
    try:
        timeout_s = READY_TIMEOUT_S * how.patience
        server.version = _wait_until_ready(server, timeout_s, lambda: _answer(url, socket, version_sql), hint)
        server.ready_s = time.monotonic() - started
    except BaseException:
        server.kill()
        raise
    return server


def _wait_until_ready(
    server: ServerProcess, timeout_s: float, answers: Callable[[], str | None], hint: Callable[[str], str]
) -> str:
    deadline = time.monotonic() + timeout_s
    while True:
        version = answers()
        if version is not None:
            return version
        if not server.alive():
            log = server.log()
            message = f"{server.title} {process.how_it_ended(server.child.returncode)} while it was starting"
            raise ServerFailed(f"{message}{_last_words(log, server.problems)}", hint(log), log)
        if time.monotonic() > deadline:
            raise ServerFailed(
                f"{server.title} did not answer within {timeout_s:g} s",
                hint(server.log()),
                server.log(),
            )
        time.sleep(POLL_S)


def _answer(url: str, socket: Path, sql: str) -> str | None:
    """What the server answers; None while it does not. The driver asks, by the session that will load it."""
    if not socket.is_socket():
        return None
    try:
        return str(query(url, sql)[0][0])
    except DriverFailed:
        return None


def _last_words(log: str, problems: Callable[[str], list[str]]) -> str:
    reason = reason_in(problems(log))
    return f": {reason}" if reason else ""


def make_data(
    title: str,
    installation: Installation,
    command: list[str],
    data: Path,
    problems: Callable[[str], list[str]],
    hint: Callable[[str], str],
    words: bytes = b"",
) -> None:
    """Runs the command that makes a data directory, with `words` on its standard input. Raises ServerFailed,
    and leaves no directory, where it fails."""
    done = subprocess.run(
        command,
        input=words,
        capture_output=True,
        env={**os.environ, **installation.environment},
        preexec_fn=process.confine(before_exec=Launch().steps(data, *installation.writes)),
    )
    if done.returncode == 0:
        return
    shutil.rmtree(data, ignore_errors=True)
    log = (done.stderr or done.stdout).decode("utf-8", "replace")[-LOG_BYTES:]
    reason = reason_in(problems(log)) or process.how_it_ended(done.returncode)
    raise ServerFailed(f"{title} could not make its data directory: {reason}", hint(log), log)


def require_data(data: Path) -> None:
    """Raises UserError where there is no data directory of Dyno's."""
    if not (data / "database").is_dir():
        raise UserError(f"{data} is not a data directory of Dyno's", "make one with `initialise` first")


def url_of(protocol: str, socket: Path, data: Path | None = None) -> str:
    """Where the driver reaches Dyno's own account, and the database of a data directory, or its own."""
    name = data / NAME if data else None
    database = name.read_text().strip() if name and name.is_file() else DATABASE
    return (
        f"{protocol}://{ACCOUNT}@localhost/{quote(database, safe='')}?socket={quote(str(socket), safe='/')}"
    )


def within(url: str, database: str) -> str:
    """The same server's URL with another database."""
    return urlsplit(url)._replace(path=f"/{quote(database, safe='')}").geturl()


def socket_of(url: str) -> Path:
    """The socket that a URL of `url_of` names."""
    return Path(parse_qs(urlsplit(url).query)["socket"][0])


def require_short(socket: Path) -> None:
    """A socket's path has a limit of the kernel's; the server's own message for it is obscure."""
    length = len(os.fsencode(socket))
    if length > SOCKET_PATH_BYTES:
        raise UserError(
            f"the socket's path is {length} bytes long, {SOCKET_PATH_BYTES} are allowed: {socket}",
            "set XDG_RUNTIME_DIR to a shorter folder",
        )
