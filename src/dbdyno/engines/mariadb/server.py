"""MariaDB from an installation that is found or obtained to a running server, with its log; and where Galera
comes from."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.engines.mariadb.settings import CREATION, arguments, defaults, folders, share_folder
from dbdyno.engines.server import (
    ACCOUNT,
    DATABASE,
    LOAD_ACCOUNT,
    Listening,
    ServerProcess,
    certificate_for,
    doubtful_lines,
    hint_in,
    make_data,
    require_data,
    require_short,
    start_server,
    unknown_setting,
    url_of,
)
from dbdyno.engines.upgrade import series_of
from dbdyno.errors import Blocked, UserError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.obtain import debian
from dbdyno.obtain.cross import Platforms
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import PackagedServer

ACCOUNT_SQL = f"""
FLUSH PRIVILEGES;
CREATE USER {ACCOUNT}@localhost IDENTIFIED VIA mysql_native_password USING '';
GRANT ALL PRIVILEGES ON *.* TO {ACCOUNT}@localhost WITH GRANT OPTION;
CREATE DATABASE {DATABASE};
"""

WITHOUT_CERTIFICATE = "--loose-ssl=OFF"
"""Of a server that no client comes to."""
MAKES_CERTIFICATES = (11, 4)
"""From here on a server to which nobody gave a certificate makes one at each start. It tries numbers until
two are prime: one start took 0.4 s and the next one 1.3 s, most of it CPU. Its clients insist on one."""

UNDER_EMULATION = ("--loose-innodb-buffer-pool-size-max=8M",)
"""An emulator keeps an account of each page that a server reserves, and a buffer pool reserves terabytes to
grow into: that takes all memory of this machine. With the least maximum the pool is as large as it begins."""


def initialise(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    require_disk(data.parent, 400_000_000, "a MariaDB data directory")
    data.mkdir(mode=0o700)
    (data / "database").mkdir()
    (data / "temporary").mkdir()
    creation = {name: level for name, level in settings.items() if name in CREATION}
    command = [*command_of(installation, data), "--bootstrap", WITHOUT_CERTIFICATE, "--log-warnings=1"]
    command += arguments(creation)
    make_data(
        "MariaDB",
        installation,
        command,
        data,
        problems,
        lambda log: hint(log, installation),
        _system_tables(installation),
    )


def start(
    installation: Installation,
    data: Path,
    runtime: Path,
    settings: Mapping[str, Level],
    launch: Launch,
) -> ServerProcess:
    require_data(data)
    socket_path = runtime / "mariadb.sock"
    require_short(socket_path)
    socket_path.unlink(missing_ok=True)
    command = [
        *command_of(installation, data),
        f"--socket={socket_path}",
        f"--pid-file={runtime / 'mariadb.pid'}",
        "--skip-networking",
        "--skip-name-resolve",
        *(given_certificate(runtime, settings) if makes_certificates(installation) else ()),
        *arguments(settings),
    ]
    return start_server(
        title=f"MariaDB {installation.version}",
        url=url_of("mysql", socket_path, data),
        installation=installation,
        command=command,
        data=data,
        folder=data / "database",
        runtime=runtime,
        how=launch,
        socket=socket_path,
        version_sql="SELECT VERSION()",
        problems=problems,
        hint=lambda log: hint(log, installation),
        leftovers=(socket_path, runtime / "mariadb.pid"),
    )


def makes_certificates(installation: Installation) -> bool:
    return series_of(installation.version, 2) >= MAKES_CERTIFICATES


def given_certificate(runtime: Path, settings: Mapping[str, Level]) -> tuple[str, ...]:
    """A certificate of Dyno's, where the study and the network give none."""
    if "ssl_cert" in settings:
        return ()
    made = certificate_for("127.0.0.1", runtime)
    return f"--loose-ssl-cert={made.certificate}", f"--loose-ssl-key={made.key}"


def command_of(installation: Installation, data: Path) -> list[str]:
    """The part of the command that does not depend on the trial. `--no-defaults` must come first."""
    root = ["--user=root"] if os.getuid() == 0 else []
    return [
        *installation.command,
        "--no-defaults",
        *folders(installation),
        f"--datadir={data / 'database'}",
        f"--tmpdir={data / 'temporary'}",
        *(UNDER_EMULATION if installation.emulated else ()),
        *root,
    ]


def _system_tables(installation: Installation) -> bytes:
    share = share_folder(installation)
    parts = [b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n"]
    for stem in ("system_tables", "performance_tables", "system_tables_data"):
        names = [f"mariadb_{stem}.sql", f"mysql_{stem}.sql"]
        found = next((share / name for name in names if share and (share / name).is_file()), None)
        if found is None:
            raise UserError(
                f"{installation.command[-1]} has no {names[0]} beside it, which makes the system tables",
                "install the server's whole package, or `dyno engines fetch mariadb@11.8`",
            )
        parts.append(found.read_bytes())
    return b"\n".join([*parts, ACCOUNT_SQL.encode()])


BENIGN = re.compile(
    r"Could not increase number of max_open_files|is deprecated|'--skip-name-resolve|skip-name-resolve mode|"
    r"Could not open mysql\.plugin|io_uring_queue_init|falling back to libaio|liburing disabled|"
    r"You need to use --log-bin|root user|\[Note\] InnoDB: Set innodb_force_recovery"
)
ALARMING = re.compile(
    r"\[ERROR\]|\[Warning\]|got signal|got exception|Assertion failure|corrupt|\[FATAL\]|Aborting|"
    r"error while loading shared libraries",
    re.IGNORECASE,
)

HINTS = (
    (
        r"Errcode: 28|No space left|OS error: 28|error number 28|disk is full",
        "the disk is full: make room below the data directory",
    ),
    (
        r"Unable to lock|Can't lock aria control file|already exists and is locked",
        "another server is using this data directory: stop it first",
    ),
    (r"Cannot allocate memory|Out of memory", "there is not enough memory: choose a smaller buffer pool"),
    (
        r"error while loading shared libraries|cannot open shared object",
        "the server's libraries are incomplete: fetch the engine again",
    ),
    (r"Permission denied|Errcode: 13", "the data directory must belong to the user that runs Dyno"),
    (
        r"Wrong (value|argument)|Error while setting value|Unknown suffix|requires an argument",
        "the server refuses this value: look up what the setting allows",
    ),
)


def problems(log: str) -> list[str]:
    """The lines that make a trial doubtful."""
    return doubtful_lines(log, ALARMING, BENIGN)


def hint(log: str, installation: Installation) -> str:
    """What to do about a server that failed with this log."""
    unknown = re.search(r"unknown (?:variable|option) '(?:--)?([\w-]+)", log)
    if unknown:
        return unknown_setting("MariaDB", unknown[1].replace("-", "_"), defaults(installation))
    return hint_in(log, HINTS)


def settings(listening: Listening, runtime: Path) -> Mapping[str, Level]:
    given: dict[str, Level] = {
        "skip_networking": False,
        "bind_address": listening.address,
        "port": listening.port,
    }
    if listening.certificate:
        given |= {
            "ssl_cert": str(listening.certificate.certificate),
            "ssl_key": str(listening.certificate.key),
        }
    return given


def account(listening: Listening, version: str, database: str) -> Sequence[str]:
    encrypted = " REQUIRE SSL" if listening.certificate else ""
    how = f"IDENTIFIED VIA mysql_native_password USING '{verifier(listening.password)}'"
    quoted = database.replace("`", "``")
    return (
        f"CREATE USER {LOAD_ACCOUNT}@'%' {how}{encrypted}",
        f"GRANT ALL PRIVILEGES ON `{quoted}`.* TO {LOAD_ACCOUNT}@'%'",
    )


def verifier(password: str) -> str:
    """What MariaDB keeps of a password for mysql_native_password: SHA-1 of its SHA-1."""
    return f"*{hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest().upper()}"


SUITES = {"11.8": "trixie", "10.11": "bookworm"}
GALERA = debian.DebianRecipe(
    engine="galera-of-mariadb",
    packages=("galera-4", "mariadb-server", "rsync"),
    server="mariadb-server",
    binary="usr/lib/galera/libgalera_smm.so",
    suites=SUITES,
    # Tools of a host that the scripts of a state transfer do without, or that any host has.
    without=(
        "gawk",
        "iproute2",
        "libconfig-inifiles-perl",
        "libdbi-perl",
        "lsof",
        "procps",
        "psmisc",
        "socat",
    ),
)
"""The provider of clusters, and the scripts and programs by which a node gets all of its data."""

SERVER = PackagedServer(
    recipe=debian.DebianRecipe(
        engine="mariadb",
        packages=("mariadb-server-core",),
        server="mariadb-server-core",
        binary="usr/sbin/mariadbd",
        suites=SUITES,
    ),
    title="MariaDB",
    version=r"Ver (\d+\.\d+\.\d+)-MariaDB",
    names=("mariadbd", "mysqld"),
    places=("/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/usr/local/mysql/bin"),
    image="mariadb",
    client=debian.DebianRecipe(
        engine="client-of-mariadb",
        packages=("mariadb-client-core",),
        server="mariadb-client-core",
        binary="usr/bin/mariadb",
        suites=SUITES,
    ),
    beside=(GALERA,),
)

PLATFORMS = Platforms(
    engine="mariadb",
    title=SERVER.title,
    version=SERVER.version,
    recipes=(replace(SERVER.recipe, suites={"10.11": "bookworm", "11.8": "trixie"}),),
    unpacked=lambda recipe, copy: copy.installation(str(copy.prefix / recipe.binary)),
)
"""The older version is the usual one here, because mirrors have it for all architectures."""


SCRIPTS = ("wsrep_sst_rsync", "wsrep_sst_common")
PROGRAMS = ("rsync", "my_print_defaults")
"""What the scripts run beside the tools of any host."""
ON_HOST = Path("/usr/lib/galera/libgalera_smm.so")
AS_ROOT = ("--dparam=uid=0", "--dparam=gid=0")
"""A daemon of rsync that root starts writes as nobody, who may not write the data."""
FACTOR = "cluster.nodes"


@dataclass(frozen=True)
class Provider:
    """The library that replicates. A `copy` of packages has the scripts; the host's own lie on its path."""

    library: Path
    copy: debian.Fetched | None = None


def provider(installation: Installation) -> Provider:
    """That of an installation's version. Raises Blocked where there is none."""
    for copy in debian.fetched(GALERA.engine):
        if copy.version == installation.version:
            return Provider(copy.prefix / GALERA.binary, copy)
    if ON_HOST.is_file() and all(shutil.which(name) for name in (*SCRIPTS, *PROGRAMS)):
        return Provider(ON_HOST)
    raise Blocked(
        FACTOR,
        f"Galera of MariaDB {installation.version} is not here",
        f"`dyno engines fetch mariadb@{'.'.join(installation.version.split('.')[:2])}` obtains it",
    )


def environment(found: Provider, folder: Path) -> Mapping[str, str]:
    """What leads a server to the scripts, which are put into a folder where they run on the C library that
    came with them."""
    places = [os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]
    if found.copy is not None:
        if not folder.is_dir():
            _put(found.copy, folder)
        places.insert(0, str(folder))
    return {"PATH": os.pathsep.join(places)}


def _put(copy: debian.Fetched, folder: Path) -> None:
    programs = copy.prefix / "usr/bin"
    loader, *options = debian.loader(copy.prefix)
    (folder / "loaders").mkdir(parents=True)
    for name in SCRIPTS:
        shutil.copy(programs / name, folder / name)
    for name in PROGRAMS:
        # The scripts know a program by the name of its process, which is that of its loader.
        own = folder / "loaders" / name
        shutil.copy(loader, own)
        command = shlex.join([str(own), *options, str(programs / name)])
        more = f'case "$*" in *--daemon*) exec {command} "$@" {shlex.join(AS_ROOT)};; esac\n'
        script = folder / name
        script.write_text(f'#!/bin/sh\n{more if os.getuid() == 0 else ""}exec {command} "$@"\n')
        script.chmod(0o700)
