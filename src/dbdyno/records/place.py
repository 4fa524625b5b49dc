"""Where a store lies, by its URL: read without a database's driver, because a plan names the place alone."""

from __future__ import annotations

from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.host import paths
from dbdyno.passwords import without_passwords

URL_HINT = "sqlite:///PATH, or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
LAST = "last"
"""Stands for the latest run that has a result, so no run bears it."""
SQLITE, POSTGRESQL = "sqlite:///", "postgresql://"
TOLD = ("host", "hostaddr", "port", "dbname", "user")
"""What may be told of a PostgreSQL store: its other parameters can hold secrets."""


def store_url(chosen: str | None = None) -> str:
    """The store to use: the one chosen, else the SQLite file under the XDG data folder."""
    return chosen or paths.store_place_url()


def place_of_store(url: str) -> str:
    """Where a store's URL leads, without a password. Raises UserError for what is no store's URL."""
    if url.startswith(SQLITE):
        return _path(url.removeprefix(SQLITE))
    if url.startswith(POSTGRESQL):
        return _postgresql_place(url)
    scheme, found, _ = url.partition("://")
    # What has no scheme can hold a password anywhere.
    known = found and scheme.isalnum()
    raise UserError(f"no store speaks {scheme}" if known else "not a store's URL: it has no scheme", URL_HINT)


def from_root(place: str) -> str:
    """What to write for the file at a place that was meant from the root; empty where there is none. Three
    slashes lead to a path from the folder of the command."""
    meant = Path("/", place)
    is_meant = not place.startswith("/") and meant.is_file()
    return f"a path from the root has four slashes: {SQLITE}{meant}" if is_meant else ""


def _path(path: str) -> str:
    """The path of a SQLite store as its URL has it: `%41` is a name of three characters."""
    if not path:
        raise UserError("the URL of the store names no file", URL_HINT)
    if "?" in path:
        url = without_passwords(SQLITE + path)
        raise UserError(f"the URL of a SQLite store has no parameters: {url}", URL_HINT)
    return path


def _postgresql_place(url: str) -> str:
    # Here, because most stores are files, and the driver takes as long to import as all that reads them.
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        parameters = conninfo_to_dict(url)
    except psycopg.Error:
        # The driver's own words hold the password.
        raise UserError("the URL of the store cannot be read", URL_HINT) from None
    return f"PostgreSQL ({make_conninfo('', **{key: parameters.get(key) for key in TOLD})})"
