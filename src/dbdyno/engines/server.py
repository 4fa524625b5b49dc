"""A server that is a process of its own: started, waited for, reached from other hosts, and its log read."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qs, quote, urlsplit

from dbdyno.driver.passwords import query
from dbdyno.errors import DriverFailed, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host import process
from dbdyno.host.launch import Launch
from dbdyno.host.paths import SOCKET_PATH_BYTES
from dbdyno.obtain.installation import Installation, environment_of

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
    socket: Path | None,
    version_sql: str,
    problems: Callable[[str], list[str]],
    hint: Callable[[str], str],
    stop_signal: signal.Signals = signal.SIGTERM,
    leftovers: tuple[Path, ...] = (),
) -> ServerProcess:
    """Starts the process in `folder` and waits until it answers `version_sql` on its socket, or at the port
    of its URL. It may write below `data` and `runtime`.

    Raises ServerFailed, with the end of the log and the engine's `hint` on it, when the process ends before.
    """
    log_path = runtime / "server.log"
    with log_path.open("wb") as output:
        started = time.monotonic()
        try:
            child = process.start(
                [*how.wrapper, *command],
                environment=environment_of(installation.environment, how.environment),
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


def _answer(url: str, socket: Path | None, sql: str) -> str | None:
    """What the server answers; None while it does not. The driver asks, by the session that will load it."""
    if socket is not None and not socket.is_socket():
        return None
    try:
        rows = query(url, sql)
    except DriverFailed:
        return None
    # An application answers a request, of which nothing is taken.
    return str(rows[0][0]) if rows and rows[0] else ""


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
        env=environment_of(installation.environment),
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


def url_of_database(url: str, database: str) -> str:
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


LOG_BYTES = 64 * 1024
WARNING = re.compile(r"\[Warning\]|\bWARNING:")
"""How the servers mark what they can live with."""

Hints = Sequence[tuple[str, str]]
"""A pattern of the log, and what to do where it is found; the first that is found counts."""


def tail(path: Path, size_bytes: int = LOG_BYTES) -> str:
    """The end of a log, from the start of a line."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - size_bytes))
            text = log.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return text.split("\n", 1)[-1] if size > size_bytes else text


def doubtful_lines(log: str, alarming: re.Pattern[str], benign: re.Pattern[str]) -> list[str]:
    """The lines that alarm and are not known to be harmless."""
    return [line.strip() for line in log.splitlines() if alarming.search(line) and not benign.search(line)]


def reason_in(lines: Sequence[str]) -> str:
    """The one of the doubtful lines that says why a server ended: the first error, because the last one is
    mostly "aborting"; else the first warning. Empty where there is no line."""
    return next((line for line in lines if not WARNING.search(line)), next(iter(lines), ""))


def untold(lines: Sequence[str], told: Sequence[str]) -> list[str]:
    """The lines of a log that are not among those that were told. A log grows at its end, and its beginning
    is passed over once it is long."""
    left = Counter(lines) - Counter(told)
    found: list[str] = []
    for line in reversed(lines):
        if left[line] > 0:
            left[line] -= 1
            found.append(line)
    return found[::-1]


def hint_in(log: str, hints: Hints) -> str:
    """What to do about the failure that a log tells of."""
    return next((hint for pattern, hint in hints if re.search(pattern, log)), "look at the end of its log")


def unknown_setting(title: str, name: str, known: Iterable[str]) -> str:
    """The hint on a setting that the server refused because it has none of that name."""
    near = get_close_matches(name, list(known), n=1)
    return f"this {title} has no setting `{name}`" + (f"; did you mean `{near[0]}`?" if near else "")


LOAD_ACCOUNT = "dyno_load"
PASSWORD_BYTES = 24
DAYS = 7
"""How long a certificate is valid: longer than any trial takes."""


@dataclass(frozen=True)
class Certificate:
    """Files in PEM: the certificate that a server shows, and its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Listening:
    """Where a server listens beside its socket, and the password of the account that may come in there. With
    a certificate it lets nobody in without encryption."""

    address: str
    port: int
    password: str
    certificate: Certificate | None

    def url(self, local: str) -> str:
        """The URL by which the load reaches the database that `local` reaches over the socket."""
        parts = urlsplit(local)
        host = f"[{self.address}]" if ":" in self.address else self.address
        place = f"{LOAD_ACCOUNT}:{quote(self.password, safe='')}@{host}:{self.port}"
        return parts._replace(netloc=place, query="").geturl()


class Network(Protocol):
    """How a server of an engine listens on a network."""

    def settings(self, listening: Listening, runtime: Path) -> Mapping[str, Level]:
        """What the server is started with beside the study's settings. It may write files into `runtime`."""
        ...

    def account(self, listening: Listening, version: str, database: str) -> Sequence[str]:
        """The statements that make the account of the load, which may read and write that database alone.
        None of them holds its password in clear text. Raises UserError for a version that has no such
        rights."""
        ...


def listening_at(address: str, encrypted: bool, runtime: Path) -> Listening:
    """A free port of an address of this host, with a password and, where it is to be encrypted, a certificate
    in `runtime`. Raises UserError for an address that is none of this host's."""
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    certificate = certificate_for(address, runtime) if encrypted else None
    return Listening(address, free_port(address), password, certificate)


def free_port(address: str) -> int:
    """A port of this address on which nobody listens now. Raises UserError where the address is none of this
    host's."""
    kind = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(kind, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise UserError(
                f"this host cannot listen on {address}: {error.strerror}",
                "name an address of this host that the load host reaches: ip address shows them",
            ) from None
        port: int = probe.getsockname()[1]
        return port


def certificate_for(address: str, runtime: Path) -> Certificate:
    """A certificate for the address that is its own authority (RFC 5280). Its key is on a curve, because a
    search for primes takes a time that chance decides."""
    # Here, because most starts of Dyno need none.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name.from_rfc4514_string("CN=dyno")
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        # The clock of another host may be behind.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = Certificate(runtime / "network.crt", runtime / "network.key")
    pem = serialization.Encoding.PEM
    files.key.touch(mode=0o600)
    files.key.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    files.certificate.write_bytes(made.public_bytes(pem))
    return files
