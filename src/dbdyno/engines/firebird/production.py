"""How a Firebird server is deployed, as its own packages lay it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from dbdyno.engines.firebird.settings import as_attributes, as_parameter
from dbdyno.engines.production import Production
from dbdyno.frozen import Level


def written(settings: Mapping[str, Level]) -> str:
    """Lines of a `firebird.conf`."""
    return "".join(f"{name} = {as_parameter(level)}\n" for name, level in settings.items())


def _by_gfix(option: str, words: Mapping[int, str], name: str) -> Callable[[Level], str]:
    """The command that sets an attribute of a database, by its number or by the word for it."""

    def command(level: Level) -> str:
        [number] = as_attributes({name: level}).values()
        return f"gfix -{option} {words.get(number, number)} DATABASE"

    return command


def _by_restoring(options: Callable[[Level], str], level: Level) -> str:
    """A backup and its restore: what is fixed when a database is made."""
    return f"gbak -b DATABASE backup.fbk; gbak -c {options(level)} backup.fbk NEW_DATABASE"


PRODUCTION = Production(
    file="firebird.conf",
    written=written,
    version_sql="SELECT RDB$GET_CONTEXT('SYSTEM', 'ENGINE_VERSION') FROM RDB$DATABASE",
    data_sql="SELECT MON$DATABASE_NAME FROM MON$DATABASE",
    protocols=("firebird",),
    folder="/opt/firebird",
    shared=True,
    service="firebird",
    port=3050,
    in_data={
        "page_buffers": _by_gfix("buffers", {}, "page_buffers"),
        "forced_writes": _by_gfix("write", {0: "async", 1: "sync"}, "forced_writes"),
        "sweep_interval": _by_gfix("housekeeping", {}, "sweep_interval"),
        # The attribute is kept as its opposite.
        "reserve_space": _by_gfix("use", {0: "reserve", 1: "full"}, "reserve_space"),
        "page_size": partial(_by_restoring, lambda level: f"-p {level}"),
    },
)
