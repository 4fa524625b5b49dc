"""Firebird from nothing to a database that the load process can open.

What a server would have as processes and sockets, an embedded engine has as a folder: its configuration,
plug-ins, lock files and log. Every trial gets one of its own, laid out as an installation of Firebird is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from dbdyno.engines.embedded import EmbeddedServer, refuse_unknown, require_database
from dbdyno.engines.firebird import database_file
from dbdyno.engines.firebird.beside import libraries_of, missing
from dbdyno.engines.firebird.log import hint, problems
from dbdyno.engines.firebird.obtaining import CLIENT
from dbdyno.engines.firebird.settings import ATTRIBUTES, CREATION, as_attributes, as_parameter, names
from dbdyno.engines.log import tail
from dbdyno.errors import EngineMissing, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.process import confine, how_it_ended
from dbdyno.host.room import require_disk
from dbdyno.obtain.installation import Installation

DATABASE = "dyno.fdb"
ATTACH_TIMEOUT_S = 120.0
VERBS = {"create": "make", "open": "open", "backup": "back up", "restore": "restore"}
REFUSES_LINKS = "4."
"""The version that refuses a plug-in whose real path is another one, be it by a link of a folder above."""


def initialise(installation: Installation, data: Path, settings: Mapping[str, Level]) -> None:
    require_disk(data.parent, 50_000_000, "a Firebird database")
    data.mkdir(mode=0o700)
    root = data.resolve() / "root"
    try:
        environment = lay_out(installation, root, {})
        creation = {name: level for name, level in settings.items() if name in CREATION}
        _carry_out(root, environment, data / DATABASE, creation, create=True)
    except BaseException:
        shutil.rmtree(data, ignore_errors=True)
        raise
    shutil.rmtree(root)


def start(
    installation: Installation,
    data: Path,
    runtime: Path,
    settings: Mapping[str, Level],
    launch: Launch,
) -> EmbeddedServer:
    database = data / DATABASE
    require_database(database)
    refuse_unknown(
        settings,
        names(installation),
        f"Firebird {installation.version} has no setting",
        "see firebird.conf for what there is",
    )
    root = runtime.resolve() / "firebird"
    shutil.rmtree(root, ignore_errors=True)
    parameters = {name: level for name, level in settings.items() if name not in ATTRIBUTES}
    environment = lay_out(installation, root, parameters)
    attributes = {
        name: level for name, level in settings.items() if name in ATTRIBUTES and name not in CREATION
    }
    ready_s = _carry_out(root, environment, database, attributes, create=False)
    library = quote(str(root / "lib" / CLIENT), safe="/")
    return EmbeddedServer(
        url=f"firebird://{quote(str(database), safe='/')}?library={library}",
        version=installation.version,
        ready_s=ready_s,
        driver_environment={**launch.environment, **environment},
        driver_folders=(data, runtime, *installation.writes),
        log_path=root / "firebird.log",
        problems=problems,
    )


def lay_out(installation: Installation, root: Path, parameters: Mapping[str, Level]) -> dict[str, str]:
    """Makes a private installation at `root` out of links, and returns the environment that leads there.

    The folders are real, because the libraries look for each other in `$ORIGIN/../lib`, which a linked
    folder would lead out of `root`.
    """
    prefix = installation.prefix
    if gone := missing(installation.version):
        raise EngineMissing(f"{gone[0].name} is gone", "`dyno engines fetch firebird` obtains it")
    for folder in ("lib", "plugins", "intl", "lock", "temporary"):
        (root / folder).mkdir(parents=True)
    for library in (*prefix.glob("lib*.so*"), *prefix.glob("lib/lib*.so*")):
        (root / "lib" / library.name).symlink_to(library)
    copies = {name: file for each in libraries_of(installation.version) for name, file in each.linked.items()}
    for name, library in copies.items():
        (root / "lib" / name).unlink(missing_ok=True)
        (root / "lib" / name).symlink_to(library)
    for folder in ("plugins", "intl"):
        for entry in (prefix / folder).iterdir():
            if entry.is_file() and installation.version.startswith(REFUSES_LINKS):
                shutil.copyfile(entry, root / folder / entry.name)
            else:
                (root / folder / entry.name).symlink_to(entry)
    for name in ("tzdata", "firebird.msg", "plugins.conf"):
        if (prefix / name).exists():
            (root / name).symlink_to(prefix / name)
    lines = [f"{name} = {as_parameter(level)}" for name, level in parameters.items()]
    (root / "firebird.conf").write_text("\n".join(lines) + "\n")
    return {
        "FIREBIRD": str(root),
        "FIREBIRD_LOCK": str(root / "lock"),
        "FIREBIRD_TMP": str(root / "temporary"),
        # What copies need of each other they look for in no folder of their own.
        **({"LD_LIBRARY_PATH": _before(root / "lib")} if copies else {}),
    }


def _before(folder: Path) -> str:
    """The folders of libraries of this process, that one before them."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("LD_LIBRARY_PATH", ""))))


def _carry_out(
    root: Path,
    environment: Mapping[str, str],
    database: Path,
    attributes: Mapping[str, Level],
    *,
    create: bool,
) -> float:
    """Creates or attaches the database with these attributes; the seconds that took. Raises ServerFailed."""
    asked = {"action": "create" if create else "open", "attributes": as_attributes(attributes)}
    return have_done(asked, root, environment, database, ATTACH_TIMEOUT_S)


def have_done(
    asked: Mapping[str, object], root: Path, environment: Mapping[str, str], database: Path, timeout_s: float
) -> float:
    """Has the library of the installation at `root` do an `action` to a database; the seconds that took.
    Raises ServerFailed with Firebird's own words."""
    verb = VERBS[str(asked["action"])]
    request = {"library": str(root / "lib" / CLIENT), "database": str(database), **asked}
    try:
        done = subprocess.run(
            [sys.executable, "-I", database_file.__file__, json.dumps(request)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
            preexec_fn=confine(before_exec=Launch().steps(root, database.parent)),
        )
    except subprocess.TimeoutExpired:
        raise ServerFailed(f"Firebird did not {verb} {database} within {timeout_s:g} s") from None
    log = tail(root / "firebird.log")
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise ServerFailed(
            f"Firebird {how_it_ended(done.returncode)}: it was to {verb} {database.name}",
            hint(done.stderr),
            f"{log}{done.stderr}",
        ) from None
    if answer["error"]:
        log = f"{log}\n{answer['error']}".strip()
        raise ServerFailed(f"Firebird could not {verb} {database.name}: {answer['error']}", hint(log), log)
    return float(answer["seconds"])
