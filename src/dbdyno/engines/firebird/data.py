"""Data that come to Firebird: a database's file of a user's, or of an older version."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from dbdyno.engines.embedded import bring_in_file
from dbdyno.engines.engine import Asked, Server
from dbdyno.engines.firebird.server import DATABASE, engine_of, have_done, lay_out, start
from dbdyno.engines.upgrade import series_of
from dbdyno.errors import DynoError, EngineMissing, UserError
from dbdyno.frozen import Level
from dbdyno.host.cache import Tell
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.user_data.dump import Dump
from dbdyno.user_data.folder import holder_of, require_stopped

HEADER_PAGE = 1
FIREBIRD_FLAG = 0x8000
HEADER = struct.Struct("<B15xHH")
"""The beginning of a database's first page: its type, then the size of pages and the structure's version
(`header_page` of Firebird's ods.h)."""
STRUCTURES = {"3": 12, "4": 13, "5": 13}
"""The on-disk structure (ODS) of each major version."""


def writes(_dump: Dump) -> bool:
    """Never: a backup of gbak is no text, and nothing here restores it."""
    return False


def require_dump(_installation: Installation, dump: Dump) -> None:
    raise UserError(
        f"{dump.path} cannot be loaded: Dyno takes no dump for Firebird",
        "restore it with `gbak -create`, and give the database's file as `folder`",
    )


def require_folder(version: str, source: Path) -> None:
    if not source.is_file():
        raise UserError(f"{source} is no file", "for Firebird `folder` is the database's file")
    with source.open("rb") as file:
        start = file.read(HEADER.size)
    kind, page_bytes, structure = HEADER.unpack(start) if len(start) == HEADER.size else (0, 0, 0)
    if kind != HEADER_PAGE or not structure & FIREBIRD_FLAG or page_bytes % 1024:
        raise UserError(
            f"{source} is no database of Firebird",
            "a backup is restored with `gbak -create` first",
        )
    found, wanted = structure & ~FIREBIRD_FLAG, STRUCTURES.get(version.split(".")[0])
    if wanted is not None and found != wanted:
        raise UserError(
            f"{source} has the structure ODS {found}, and Firebird {version} has {wanted}",
            "back it up with the old version's gbak, restore it with this one's",
        )
    if source.stat().st_size % page_bytes:
        raise UserError(f"{source} ends within a page: it was copied while it was written", "copy it again")
    if (delta := source.with_name(f"{source.name}.delta")).exists():
        raise UserError(f"{source} is locked for a backup: there is {delta.name}", "run `nbackup -N` first")
    require_stopped(source, holder_of(source))


def load(
    _installation: Installation, _server: Server, _data: Path, dump: Dump, _database: str, _tell: Tell
) -> list[str]:
    require_dump(_installation, dump)
    return []


def bring_in(_installation: Installation, source: Path, data: Path) -> None:
    bring_in_file(source, data / DATABASE)


def adopt(_installation: Installation, _data: Path) -> AbstractContextManager[Mapping[str, Level]]:
    return nullcontext({})


def require_recovered(log: str) -> None:
    """Firebird has no recovery: what was under way is rolled back by whoever meets it."""


def databases(url: str, asked: Asked) -> list[str]:
    sql = "SELECT COUNT(*) FROM RDB$RELATIONS WHERE RDB$SYSTEM_FLAG = 0 AND RDB$VIEW_BLR IS NULL"
    return [""] if asked(url, sql)[0][0] else []


def settle(_url: str, _asked: Asked) -> list[str]:
    return []


TIMEOUT_S = 3600.0
BACKUP = "taken-over.fbk"


def series(version: str) -> tuple[int, ...]:
    return series_of(version, 1)


def lacking(old: Installation, new: Installation) -> DynoError | None:
    """The service that backs up and restores stands in the engine's own file."""
    for one in (old, new):
        if not engine_of(one.prefix).is_file():
            return EngineMissing(
                f"Firebird {one.version} has no engine beside its client library to back up and restore",
                f"name a whole installation; {one.prefix} holds the client alone",
            )
    return None


def take_over(
    old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    if series(old.version) == series(new.version):
        start(new, data, runtime, {}, Launch())
        return "opening the same file"
    pass_through("backup", old, data, runtime.resolve() / "old")
    pass_through("restore", new, data, runtime.resolve() / "new")
    # A restore keeps the size of pages, but not whether writes are forced.
    start(new, data, runtime, creation, Launch())
    return "backup and restore"


def pass_through(action: str, installation: Installation, data: Path, root: Path) -> None:
    """Makes of the database a backup, or of the backup the database, by one version's own library."""
    environment = lay_out(installation, root, {})
    asked = {"action": action, "backup": str(data / BACKUP)}
    have_done(asked, root, environment, data / DATABASE, TIMEOUT_S)
    (data / (DATABASE if action == "backup" else BACKUP)).unlink()
    shutil.rmtree(root)
