"""Keystone: where it is installed, from an empty database to workers that serve requests, and the proof of
what they run with.

What Keystone and the server of its workers read are files, written anew for each start.
"""

from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import re
import shutil
import struct
import subprocess
import time
from collections.abc import Mapping
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from dbdyno.applications.product import ApplicationPlace, Front, Spent
from dbdyno.engines.server import ServerProcess, require_short, start_server
from dbdyno.errors import EngineMissing, ServerFailed, remedy
from dbdyno.frozen import Level, level_text
from dbdyno.host import paths, process
from dbdyno.host.launch import Launch
from dbdyno.host.writers import require_own
from dbdyno.obtain.installation import Installation, covers
from dbdyno.records.record import Evidence, Reading
from dbdyno.study.nouns import Application

NEEDED = ("keystone", "gunicorn", "pymysql")
"""Keystone itself, the server that runs its WSGI application, and how it reaches a database."""

LATEST = "30.0.0"
"""What is proposed where a study names no version."""


def locate(wish: Application) -> Installation:
    """The environment that a study names, else the one of that version in Dyno's cache."""
    shelf = paths.cache_place() / "applications"
    prefixes = [Path(wish.path).expanduser()] if wish.path else _newest_first(shelf)
    for prefix in prefixes:
        packages = packages_of(prefix)
        version = packages.get("keystone", "")
        if version and covers(wish.version, version):
            return _installation(prefix, packages, version)
    version = wish.version or LATEST
    prefix = prefixes[0] if wish.path else shelf / f"keystone-{version}"
    raise EngineMissing(f"Keystone {version} is not on this machine", _command(prefix, version))


def _newest_first(shelf: Path) -> list[Path]:
    """The environments on the shelf by the numbers in their names, as 10 comes after 9."""

    def numbers(prefix: Path) -> list[int]:
        return [int(digits) for digits in re.findall(r"\d+", prefix.name)]

    return sorted(shelf.glob("keystone*"), key=numbers, reverse=True)


def _installation(prefix: Path, packages: dict[str, str], version: str) -> Installation:
    if any(name not in packages for name in NEEDED):
        raise EngineMissing(f"Keystone in {prefix} lacks its server", _command(prefix, version))
    for program in ("gunicorn", "keystone-manage"):
        require_own(prefix / "bin" / program)
    return Installation(
        engine="keystone",
        version=version,
        origin=str(prefix),
        prefix=prefix,
        command=(str(prefix / "bin" / "gunicorn"),),
        digest=digest_of(packages),
    )


def packages_of(prefix: Path) -> dict[str, str]:
    """Each package of an environment with its version; none where there is no environment."""
    folders = [str(folder) for folder in prefix.glob("lib/python3*/site-packages")]
    found = distributions(path=folders) if folders else ()
    # pip leaves folders without a name behind when it is interrupted.
    return {one.name.lower(): one.version for one in found if one.name}


def digest_of(packages: dict[str, str]) -> str:
    """Identifies the packages: an application's version is that of all that it runs on."""
    listed = "\n".join(f"{name}=={packages[name]}" for name in sorted(packages))
    return hashlib.sha256(listed.encode()).hexdigest()[:12]


def _command(prefix: Path, version: str) -> str:
    wanted = " ".join((f"keystone=={version}", "gunicorn", "PyMySQL"))
    return f"`python3 -m venv {prefix} && {prefix}/bin/pip install {wanted}` installs it"


SERVED = Path(__file__).with_name("served.py")
CONNECTION = "database.connection"
TOKEN_KEYS, CREDENTIAL_KEYS = "fernet-keys", "credential-keys"
KEY_FOLDERS = (TOKEN_KEYS, CREDENTIAL_KEYS)
OWN = frozenset(
    (
        "DEFAULT.use_stderr",
        CONNECTION,
        "fernet_tokens.key_repository",
        "fernet_receipts.key_repository",
        "credential.key_repository",
    )
)
GRACE_S = 5
"""How long a request under way may take when Keystone is stopped."""


def socket_of(place: ApplicationPlace) -> Path:
    return place.runtime / "http.sock"


def file_of(place: ApplicationPlace) -> Path:
    return place.runtime / "keystone.conf"


def connection(database_url: str) -> str:
    """The URL of Dyno's driver in the words of SQLAlchemy."""
    target = urlsplit(database_url)
    [socket] = parse_qs(target.query)["socket"]
    where = f"unix_socket={quote(socket, safe='/')}&charset=utf8mb4"
    return f"mysql+pymysql://{target.username}@localhost{target.path}?{where}"


def write(place: ApplicationPlace, settings: Mapping[str, Level], workers: int) -> None:
    """Writes Keystone's own file, that of gunicorn, and what gunicorn loads."""
    own: dict[str, Level] = {
        "DEFAULT.use_stderr": True,
        CONNECTION: connection(place.database_url),
        "fernet_tokens.key_repository": str(place.data / TOKEN_KEYS),
        "fernet_receipts.key_repository": str(place.data / TOKEN_KEYS),
        "credential.key_repository": str(place.data / CREDENTIAL_KEYS),
    }
    place.runtime.mkdir(mode=0o700, exist_ok=True)
    file_of(place).write_text(sections({**own, **settings}))
    (place.runtime / "gunicorn.conf.py").write_text(gunicorn(socket_of(place), workers))
    shutil.copyfile(SERVED, place.runtime / SERVED.name)


def sections(options: Mapping[str, Level]) -> str:
    """Options by their full names as a file of oslo.config; one without a section belongs to DEFAULT."""
    lines: dict[str, list[str]] = {}
    for name, level in options.items():
        section, _, key = name.rpartition(".")
        lines.setdefault(section or "DEFAULT", []).append(f"{key} = {level_text(level)}")
    return "\n".join(line for section, those in lines.items() for line in (f"[{section}]", *those, ""))


def gunicorn(socket: Path, workers: int) -> str:
    """A worker serves one request at a time and keeps no connection. A kept one would stay with the worker
    that accepted it, so chance would decide how many clients share a worker."""
    options = {
        "wsgi_app": f"{SERVED.stem}:application",
        "bind": f"unix:{socket}",
        "workers": workers,
        "worker_class": "sync",
        # A slow answer is for the driver's own patience.
        "timeout": 0,
        "graceful_timeout": GRACE_S,
        # It would lie in the home of the user.
        "control_socket_disable": True,
    }
    return "".join(f"{name} = {value!r}\n" for name, value in options.items())


BOOTSTRAP = {
    "username": "admin",
    "password": "secret",
    "project-name": "admin",
    "role-name": "admin",
    "service-name": "keystone",
    "region-id": "RegionOne",
    "public-url": "http://localhost/v3",
}
"""The first user, whom the scripts of a load sign in as. No network leads here."""
VERSION_REQUEST = "GET /v3\n< body /version/id"
PROBLEM = re.compile(r"\b(ERROR|CRITICAL)\b|^Traceback ")
MANAGE_S, WORKERS_S, LOOK_S = 600.0, 120.0, 0.02
TOTALS = struct.Struct("3d")
"""What the file of a worker holds, in the order of `WorkerSpent`."""


def populate(installation: Installation, wish: Application, place: ApplicationPlace) -> None:
    """Makes the keys in `place.data`, the tables, and the administrator."""
    place.data.mkdir(mode=0o700)
    for name in KEY_FOLDERS:
        (place.data / name).mkdir(mode=0o700)
    write(place, wish.settings, wish.workers)
    user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    owner = ("--keystone-user", user, "--keystone-group", group)
    bootstrap = [word for name, value in BOOTSTRAP.items() for word in (f"--bootstrap-{name}", value)]
    for arguments in (
        ("fernet_setup", *owner),
        ("credential_setup", *owner),
        ("db_sync",),
        ("bootstrap", *bootstrap),
    ):
        _manage(installation, place, arguments)


def _manage(installation: Installation, place: ApplicationPlace, arguments: tuple[str, ...]) -> None:
    command = [str(installation.prefix / "bin" / "keystone-manage"), "--config-file", str(file_of(place))]
    try:
        done = subprocess.run(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=MANAGE_S,
            preexec_fn=process.die_with_parent(),
        )
    except subprocess.TimeoutExpired:
        told = f"Keystone's {arguments[0]} did not end within {MANAGE_S:g} s"
        raise ServerFailed(told, "the server beneath may hang: look at its log") from None
    except OSError as error:
        told = f"Keystone's {arguments[0]} cannot be started: {error}"
        hint = remedy(error, f"install Keystone in {installation.prefix} again")
        raise ServerFailed(told, hint) from None
    if done.returncode != 0:
        log = done.stderr or done.stdout
        last = (log.strip().splitlines() or ["it said nothing"])[-1]
        raise ServerFailed(f"Keystone's {arguments[0]} failed: {last}", "read the log", log)


def start(installation: Installation, wish: Application, place: ApplicationPlace) -> Front:
    """Starts gunicorn on a socket of its own and waits until each worker has told what it runs with."""
    socket = socket_of(place)
    require_short(socket)
    write(place, wish.settings, wish.workers)
    environment = {
        "OS_KEYSTONE_CONFIG_DIR": str(place.runtime),
        "DYNO_ASKED": " ".join((CONNECTION, *wish.settings)),
    }
    running = start_server(
        title=f"Keystone {installation.version}",
        url=f"http://localhost?socket={quote(str(socket), safe='/')}",
        installation=installation,
        # Without arguments: Keystone would take them for its own. gunicorn finds its file in its folder.
        command=list(installation.command),
        data=place.data,
        folder=place.runtime,
        runtime=place.runtime,
        how=Launch(environment=environment),
        socket=socket,
        version_sql=VERSION_REQUEST,
        problems=problems,
        hint=lambda _: "read its log, and compare [application] settings with its documentation",
        leftovers=(socket,),
    )
    try:
        _await_workers(running, place, wish.workers)
    except BaseException:
        running.kill()
        raise
    return Front(running, partial(prove, running, installation, wish, place), partial(spent, place))


def problems(log: str) -> list[str]:
    """The lines of a log that tell of errors."""
    return [line for line in log.splitlines() if PROBLEM.search(line)]


def _await_workers(running: ServerProcess, place: ApplicationPlace, workers: int) -> None:
    """The first answer comes from one worker; the others may still be loading."""
    deadline = time.monotonic() + WORKERS_S
    while len(told(running, place)) < workers:
        if not running.alive() or time.monotonic() > deadline:
            message = f"not all of the {workers} workers of {running.title} came up"
            raise ServerFailed(message, "read its log", running.log())
        time.sleep(LOOK_S)


def told(running: ServerProcess, place: ApplicationPlace) -> dict[int, dict[str, Any]]:
    """What each worker that lives has told, by its process."""
    files = {worker: place.runtime / f"told-{worker}.json" for worker in running.process_ids[1:]}
    return {worker: json.loads(file.read_text()) for worker, file in files.items() if file.is_file()}


def spent(place: ApplicationPlace) -> Spent | None:
    """What all workers have spent so far, those that have ended included."""
    files = place.runtime.glob("spent-*[0-9]")
    totals = [TOTALS.unpack(file.read_bytes()) for file in files]
    return Spent(*map(sum, zip(*totals, strict=True))) if totals else None


def prove(
    running: ServerProcess, installation: Installation, wish: Application, place: ApplicationPlace
) -> tuple[Evidence, ...]:
    """The version of all packages, the workers, the database, and each setting of the study."""
    workers = told(running, place)
    wanted = {CONNECTION: connection(place.database_url)}
    wanted |= {name: level_text(level) for name, level in wish.settings.items()}
    settings = [one["settings"] for one in workers.values()]
    return (
        _evidence("version", installation.version, {one["packages"]["keystone"] for one in workers.values()}),
        _evidence("packages", installation.digest, {digest_of(one["packages"]) for one in workers.values()}),
        _evidence("workers", str(wish.workers), {str(len(workers))}),
        *(_evidence(name, value, {_text(one, name) for one in settings}) for name, value in wanted.items()),
    )


def _text(settings: Mapping[str, Any], name: str) -> str:
    """A setting as its worker holds it; empty where Keystone has none of that name."""
    value = settings[name]
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "" if value is None else level_text(value)


def _evidence(name: str, requested: str, values: set[str]) -> Evidence:
    """What all workers must say alike."""
    shown = " / ".join(sorted(values))
    same = values == {requested}
    return Evidence(
        factor=f"application.{name}",
        requested=requested,
        effective=Reading(value=shown, source="each worker of Keystone, after it had loaded"),
        in_effect=same,
        reason="" if same else f"Keystone's workers have {shown or 'no such setting'}",
        remedy="" if same else "compare its name and value with Keystone's documentation",
    )
