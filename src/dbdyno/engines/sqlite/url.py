"""A database file as the driver opens it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

from dbdyno.engines.sqlite.settings import pragma
from dbdyno.frozen import Level


def url(database: Path, library: Path | None, settings: Mapping[str, Level] | None = None) -> str:
    """The URL of a file that is opened by this library (None: the one that the dynamic loader finds), with
    settings that are pragmas of the connection."""
    parameters = {name: pragma(name, level) for name, level in (settings or {}).items()}
    if library is not None:
        parameters["library"] = str(library)
    return f"sqlite://{quote(str(database), safe='/')}?{urlencode(parameters, quote_via=quote, safe='/')}"
