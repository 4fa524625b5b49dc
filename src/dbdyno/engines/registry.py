"""The engines that Dyno knows, by the name that a study writes."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.engines.runtime import connected
from dbdyno.errors import UserError
from dbdyno.obtain.installation import Installation, Offer
from dbdyno.registry import registry

if TYPE_CHECKING:
    from dbdyno.engines.engine import Engine
    from dbdyno.engines.facts import GuestProgram
    from dbdyno.engines.runtime import Runtime
    from dbdyno.obtain.cross import Platforms
    from dbdyno.registry import LazyTable
    from dbdyno.study.nouns import Reference

ENGINES: LazyTable[Engine] = registry(
    {
        "mariadb": "dbdyno.engines.mariadb:MARIADB",
        "firebird": "dbdyno.engines.firebird:FIREBIRD",
        "postgresql": "dbdyno.engines.postgresql:POSTGRESQL",
        "sqlite": "dbdyno.engines.sqlite:SQLITE",
        "mysql": "dbdyno.engines.mysql:MYSQL",
    }
)


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


def guest(engine: Engine) -> GuestProgram:
    """How an engine is put into the guest of an emulated machine. Raises UserError where it is not."""
    if engine.guest is None:
        have = ", ".join(one.name for one in ENGINES.values() if one.guest)
        raise UserError(f"{engine.title} runs in no emulated machine here", f"there are: {have}")
    return engine.guest


def locate(reference: Reference) -> Installation:
    """The installation that is named, or the server that runs at a URL as it says of itself. Raises
    EngineMissing with the command that obtains it, and DriverFailed where no server answers."""
    named = engine(reference.engine)
    if not reference.url:
        return named.obtaining.locate(reference)
    ask, runtime = connected(reference.url), runtime_of(reference.engine)
    who = runtime.identity(ask)
    return Installation(
        engine=named.name,
        version=who.version,
        origin=f"a server that runs already, {reference.url}",
        prefix=Path("/"),
        command=(),
        digest=who.digest,
        offered=runtime.known(ask),
    )


def runtime_of(name: str) -> Runtime:
    """How servers of an engine are studied while they run. Raises UserError for an engine whose are not."""
    found = engine(name)
    if found.runtime is None:
        raise UserError(f"{found.title} is not studied while it runs", "name an installation of it")
    return found.runtime


def offers() -> list[Offer]:
    """What is here and what can be had, engine by engine; reads the disk alone."""
    found = list[Offer]()
    for engine in ENGINES.values():
        found += [*engine.obtaining.offers(), *(engine.platforms.offers() if engine.platforms else ())]
    return found
