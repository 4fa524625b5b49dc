"""Firebird from nothing to a database that the load process can open.

What a server would have as processes and sockets, an embedded engine has as a folder: its configuration,
plug-ins, lock files and log. Every trial gets one of its own, laid out as an installation of Firebird is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from dbdyno.engines.embedded import EmbeddedServer, refuse_unknown, require_database
from dbdyno.engines.firebird import database_file
from dbdyno.engines.firebird.settings import ATTRIBUTES, CREATION, as_attributes, as_parameter, names
from dbdyno.engines.server import hint_in, tail
from dbdyno.errors import EngineMissing, ServerFailed, Unreachable, UserError
from dbdyno.frozen import Level
from dbdyno.host import fingerprint
from dbdyno.host.launch import Launch
from dbdyno.host.process import confine, how_it_ended
from dbdyno.host.room import require_disk
from dbdyno.obtain import debian, path, wheel
from dbdyno.obtain.installation import (
    LOCALE,
    Installation,
    Offer,
    covers,
    environment_of,
    first_covering,
    may_hold,
)
from dbdyno.study.nouns import Reference

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
        # As the load process has it, which is the server then.
        **LOCALE,
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
            env=environment_of(environment),
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


ALARMING = re.compile(
    r"error|corrupt|bugcheck|wrong|invalid|unable|cannot|shutdown|crash|missing", re.IGNORECASE
)

HINTS = (
    (r"No space left|disk full", "the disk is full: make room below the data directory"),
    (r"cannot open shared object", "`dyno engines fetch firebird` obtains what is missing"),
    (r"(?i)page size|size of .*page", "page_size is 4096, 8192, 16384 or 32768"),
    (r"Permission denied", "the database must belong to the user that runs Dyno"),
    (r"is not a valid database|unsupported on-disk structure", "this file was made by another Firebird"),
)


def problems(log: str) -> list[str]:
    """firebird.log has a head line (host, time) and then indented text per entry."""
    entries = re.split(r"\n(?=\S)", log)
    texts = [" ".join(line.strip() for line in entry.splitlines()[1:] if line.strip()) for entry in entries]
    return [text for text in texts if ALARMING.search(text)]


def hint(text: str) -> str:
    """What to do about a failure that Firebird put into these words."""
    return hint_in(text, HINTS)


CLIENT = "libfbclient.so.2"
WHEEL = wheel.WheelPackage("firebird", "firebird-embedded", CLIENT)
VERSIONS = ("5", "4")
"""Of which the wheel has releases that the driver speaks to, the latest first. The first is installed with
Dyno."""


def locate(reference: Reference) -> Installation:
    found = (
        _installation(path.file(str(reference.place), CLIENT), "")
        if reference.path
        else first_covering(_here(reference.version), reference, VERSIONS)
    )
    if lacking := missing(found.version):
        names, packages = _told(lacking)
        raise EngineMissing(
            f"Firebird {found.version} needs {names}, which this machine lacks",
            f"`dyno engines fetch firebird` obtains it without root; or `apt-get install {packages}`",
        )
    return found


def offers() -> list[Offer]:
    here = list(_here(""))
    try:
        found = [locate(Reference("firebird", one.version)).offer for one in here]
    except EngineMissing as missing_one:
        found = [Offer("firebird", VERSIONS[0], missing_one.message, present=False, command="firebird@5")]
    others = [one for one in VERSIONS if not any(covers(one, each.version) for each in here)]
    source = f"wheel {WHEEL.name}"
    return [
        *found,
        *(Offer("firebird", one, source, present=False, command=f"firebird@{one}") for one in others),
    ]


def fetch(version: str, mirror: str, tell: Callable[[str], None]) -> Installation:
    wanted = version or VERSIONS[0]
    if not any(covers(version, one.version) for one in _here("")):
        if not any(may_hold(wanted, one) for one in VERSIONS):
            raise UserError(
                f"firebird@{version} cannot be fetched",
                f"there are: {', '.join(VERSIONS)}; the driver speaks to Firebird 4.0.1 and later",
            )
        wheel.fetch(WHEEL, wanted, tell)
    lacking = missing(next(one.version for one in _here("") if covers(version, one.version)))
    try:
        for each in lacking:
            debian.fetch(each.recipe, mirror=mirror, tell=tell)
    except Unreachable as unreachable:
        names, packages = _told(lacking)
        raise Unreachable(
            f"Firebird needs {names}, which this machine lacks. {unreachable.message}",
            f"check the network and proxy, or name a mirror with --mirror. Or `apt-get download {packages}` "
            "on a machine that has a network and this one's architecture, and `dpkg --install` them here",
        ) from None
    return locate(Reference("firebird", version))


def _told(lacking: Sequence[Beside]) -> tuple[str, str]:
    """The names of libraries, and Debian's packages of them."""
    names = " and ".join(each.name for each in lacking)
    return names, " ".join(package for each in lacking for package in each.recipe.packages)


def _here(version: str) -> Iterator[Installation]:
    """What is installed beside Dyno, then what was fetched. Raises EngineMissing where neither is there."""
    found = [_installation(copy.file, copy.release, copy.origin) for copy in wheel.copies(WHEEL)]
    try:
        packaged, client = wheel.file(WHEEL.name, CLIENT)
    except EngineMissing:
        if not any(covers(version, one.version) for one in found):
            raise
    else:
        yield _installation(client, packaged)
    yield from found


def _installation(client: Path, release: str, origin: str = "") -> Installation:
    """That of a client library. A `release` of the wheel has one number more than Firebird's version."""
    engine = engine_of(client.parent)
    return Installation(
        engine="firebird",
        version=".".join(release.split(".")[:3]) if release else _version_below(client),
        origin=origin or f"{client.parent}",
        prefix=client.parent,
        command=(),
        digest=path.digest_of_binary(engine if engine.is_file() else client),
    )


def engine_of(prefix: Path) -> Path:
    """The file of the engine itself, which need not be there. Its number is that of the structure on disk."""
    found = sorted((prefix / "plugins").glob("libEngine*.so"))
    return found[-1] if found else prefix / "plugins/libEngine13.so"


def _version_below(client: Path) -> str:
    # The library does not tell its version without being loaded; the engine's plug-in carries it as text.
    engine = engine_of(client.parent.parent)
    text = engine.read_bytes() if engine.is_file() else client.read_bytes()
    found = re.search(rb"[LW]I-[VT](\d+\.\d+\.\d+)\.", text)
    return found[1].decode() if found else "5"


FOLDER = f"usr/lib/{os.uname().machine}-linux-gnu"
OF_THE_HOST = ("libc6", "libgcc-s1", "libstdc++6")


@dataclass(frozen=True)
class Beside:
    """Libraries that come together in one package of Debian. `on_host` is a pattern of the file that tells
    whether a host has them, in whatever version; `files` are those of the package. Where an engine asks for
    the first one by an older name, it is linked `under` that."""

    name: str
    on_host: str
    files: tuple[str, ...]
    recipe: debian.DebianRecipe
    under: str = ""

    @property
    def here(self) -> bool:
        return fingerprint.found(self.on_host) or self.copy is not None

    @property
    def copy(self) -> Path | None:
        """The folder of the copy that was fetched; None without one."""
        folders = (copy.prefix / FOLDER for copy in debian.fetched(self.recipe.engine))
        return next((each for each in folders if all((each / file).is_file() for file in self.files)), None)

    @property
    def linked(self) -> dict[str, Path]:
        """The files that a server's own folder has to lead to, by their names in it: none where the host has
        them."""
        copy = None if fingerprint.found(self.on_host) else self.copy
        if copy is None:
            return {}
        return {self.under or file: copy / file for file in self.files}


def _beside(name: str, package: str, version: str, on_host: str, files: tuple[str, ...]) -> Beside:
    # The oldest suite that has it: the library then runs on the C library of every newer host.
    recipe = debian.DebianRecipe(
        engine=name, packages=(package,), server=package, binary=f"{FOLDER}/{files[0]}",
        suites={version: "bookworm"}, without=OF_THE_HOST,
    )  # fmt: skip
    return Beside(name, on_host, files, recipe)


TOMMATH = _beside("libtommath", "libtommath1", "1.2", "libtommath.so.1", ("libtommath.so.1",))
# Firebird holds the version in a file's name against the one that the library tells.
_NAMES = tuple(
    f"lib{part}.so.{version}" for part in ("icui18n", "icuuc", "icudata") for version in ("72.1", "72")
)
OLD_TOMMATH = replace(TOMMATH, on_host="libtommath.so.0", under="libtommath.so.0")
"""For Firebird 4, which asks for the name of the release before. No function that it calls is another one
in this release."""
ICU = _beside("libicu", "libicu72", "72.1", "libicui18n.so.[1-9]*", _NAMES)
LIBRARIES = (TOMMATH, ICU)


def libraries_of(version: str) -> tuple[Beside, ...]:
    """Those that a version of Firebird expects."""
    return (OLD_TOMMATH, ICU) if version.startswith("4.") else LIBRARIES


def missing(version: str) -> tuple[Beside, ...]:
    """Those of a version that neither the host nor Dyno's cache has."""
    return tuple(each for each in libraries_of(version) if not each.here)
