"""The section [server] of a study, whose engine is the URL of a server that runs already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.frozen import ENGINE_FACTOR, Level, level_text
from dbdyno.study.document import Place
from dbdyno.study.nouns import DURABLE, Factor, ServerInUse
from dbdyno.study.section import SectionReader
from dbdyno.study.tables import SERVER

PATH: Place = ("server",)
EXCLUDED: Mapping[str, str] = {
    "application": "an application in front of it would be the server's own",
    "driver": "a load comes from this host",
    "data": "its data are not put in place",
    "restarts": "it is not killed",
    "soak": "it is not soaked",
    "search": "a search is made on servers of Dyno's own",
    "images": "its data have the layout that they have",
}
"""Keys that do not go with a server that runs already, and why."""


def read_server(
    reader: SectionReader, factors: Sequence[Factor], settings: Mapping[str, Level]
) -> ServerInUse | None:
    """How the server is treated; None for an engine that the study starts."""
    engine = reader.engine
    if engine is None or not engine.url:
        _require_none_runs(reader)
        return None
    server = ServerInUse(**reader.section(SERVER))
    for key, why in EXCLUDED.items():
        if reader.at((key,)) is not None:
            told = f"`{key}` and a server that runs already exclude each other: {why}"
            reader.note((key,), told, "leave it out, or name an installation as the engine")
    if reader.at(("engine", "configuration")) is not None:
        told = "a server that runs already has read its configuration"
        reader.note(("engine", "configuration"), told, "leave it out")
    if any(guard == DURABLE for guard in reader.at(("goal", "guards")) or ()):
        told = f"the guard `{DURABLE}` cuts power, and a server that runs already is not cut"
        reader.note(("goal", "guards"), told, "leave it out")
    if any(factor.name == ENGINE_FACTOR for factor in factors):
        told = f"`{ENGINE_FACTOR}` cannot vary where the engine is a server that runs already"
        reader.note(("factors", ENGINE_FACTOR), told, "make a study of each")
    _require_kept_promises(reader, server, factors, settings)
    return server


def _require_none_runs(reader: SectionReader) -> None:
    """Notes what only a server that runs already may have."""
    if reader.at(PATH) is not None:
        told = "[server] is of a server that runs already, and the engine is none"
        reader.note(PATH, told, 'write engine = "postgresql://USER@HOST/DATABASE", or leave [server] out')
    if any(engine.url for engine in reader.engines):
        told = f"a level of `{ENGINE_FACTOR}` is a server that runs already"
        reader.note(
            ("factors", ENGINE_FACTOR), told, "name such a server as the engine of a study of its own"
        )


def _require_kept_promises(
    reader: SectionReader, server: ServerInUse, factors: Sequence[Factor], settings: Mapping[str, Level]
) -> None:
    """Notes levels that give up what the study does not allow, because others rely on this server."""
    gives_up = reader.catalogue.gives_up
    if gives_up is None or reader.engine is None:
        return
    each = [(factor.name, level, reader.place_of(factor)) for factor in factors for level in factor.levels]
    each += [(name, level, ("settings",)) for name, level in settings.items()]
    for name, level, place in each:
        promise = gives_up(name, level, reader.engine)
        if promise is not None and promise not in server.allow:
            told = f"`{name}` = {level_text(level)} gives up {promise} on a server that others use"
            reader.note(place, told, f'leave it out, or write allow = ["{promise}"] under [server]')
