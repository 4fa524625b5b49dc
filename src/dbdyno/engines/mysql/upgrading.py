"""How MySQL takes over the data of an older version: its server does it when it starts on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbdyno.engines.engine import ending
from dbdyno.engines.mysql import life
from dbdyno.engines.upgrade import STOP_S, series_of
from dbdyno.errors import DynoError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation


def series(version: str) -> tuple[int, ...]:
    return series_of(version, 2)


def lacking(_old: Installation, _new: Installation) -> DynoError | None:
    return None


def take_over(
    _old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    server = life.start(new, data, runtime, creation, Launch())
    with ending(server, STOP_S):
        pass
    return "the server's first start"
