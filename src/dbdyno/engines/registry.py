"""The engines that Dyno knows, by the name that a study writes."""

from __future__ import annotations

from difflib import get_close_matches

from dbdyno.engines.engine import Engine
from dbdyno.engines.firebird import FIREBIRD
from dbdyno.engines.mariadb import MARIADB
from dbdyno.engines.mysql import MYSQL
from dbdyno.engines.postgresql import POSTGRESQL
from dbdyno.engines.sqlite import SQLITE
from dbdyno.errors import UserError
from dbdyno.obtain.installation import Offer
from dbdyno.obtain.platforms import Platforms

ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (MARIADB, FIREBIRD, POSTGRESQL, SQLITE, MYSQL)
}


def engine(name: str) -> Engine:
    """The engine of that name. Raises UserError with the nearest name."""
    if name in ENGINES:
        return ENGINES[name]
    near = get_close_matches(name, ENGINES, n=1)
    suggestion = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(ENGINES)}"
    raise UserError(f"there is no engine `{name}`", suggestion)


def platforms(engine: Engine) -> Platforms:
    """Where an engine's programs of other architectures come from. Raises UserError where nowhere."""
    if engine.platforms is None:
        have = ", ".join(one.name for one in ENGINES.values() if one.platforms)
        raise UserError(f"{engine.title} cannot be had for other architectures", f"there are: {have}")
    return engine.platforms


def offers() -> list[Offer]:
    """What is here and what can be had, engine by engine; reads the disk alone."""
    found = list[Offer]()
    for engine in ENGINES.values():
        found += [*engine.obtaining.offers(), *(engine.platforms.offers() if engine.platforms else ())]
    return found
