"""How Firebird takes data that a user brings: a database's file."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from dbdyno.engines.embedded import bring_in_file
from dbdyno.engines.engine import Asked, Server
from dbdyno.engines.firebird.life import DATABASE
from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.host.cache import Tell
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
