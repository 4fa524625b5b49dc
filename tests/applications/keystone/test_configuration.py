"""The files that Keystone and gunicorn read."""

from __future__ import annotations

import configparser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from dbdyno.applications.keystone import life
from dbdyno.applications.product import ApplicationPlace
from dbdyno.engines.server import url_of

SOCKET = Path("/run/a b/mariadb.sock")


def place(folder: Path) -> ApplicationPlace:
    return ApplicationPlace(folder / "data", folder / "runtime", url_of("mysql", SOCKET))


def test_the_database_is_reached_over_the_servers_own_socket() -> None:
    target = urlsplit(life.connection(url_of("mysql", SOCKET)))
    assert (target.scheme, target.username, target.path) == ("mysql+pymysql", "dyno", "/dyno")
    assert parse_qs(target.query)["unix_socket"] == [str(SOCKET)]


def test_settings_stand_in_their_sections_beside_those_of_dyno(tmp_path: Path) -> None:
    here = place(tmp_path)
    life.write(here, {"identity.password_hash_rounds": 4, "cache.enabled": False, "debug": True}, 3)
    read = configparser.RawConfigParser(strict=True)
    read.read(life.file_of(here))
    assert read["identity"]["password_hash_rounds"] == "4"
    assert (read["cache"]["enabled"], read["DEFAULT"]["debug"]) == ("false", "true")
    keys = [read[name]["key_repository"] for name in ("fernet_tokens", "fernet_receipts", "credential")]
    assert keys == [str(here.data / name) for name in ("fernet-keys", "fernet-keys", "credential-keys")]


def test_gunicorns_file_loads_what_stands_beside_it(tmp_path: Path) -> None:
    here = place(tmp_path)
    life.write(here, {}, 3)
    options: dict[str, object] = {}
    exec((here.runtime / "gunicorn.conf.py").read_text(), options)
    assert (options["workers"], options["bind"]) == (3, f"unix:{life.socket_of(here)}")
    module, _, name = str(options["wsgi_app"]).partition(":")
    assert f"\n{name} = " in (here.runtime / f"{module}.py").read_text()
