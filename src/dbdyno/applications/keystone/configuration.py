"""What Keystone and the server of its workers read: their files, written anew for each start."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from dbdyno.applications.product import Place
from dbdyno.frozen import Level, level_text

SERVED = Path(__file__).with_name("served.py")
CONNECTION = "database.connection"
TOKEN_KEYS, CREDENTIAL_KEYS = "fernet-keys", "credential-keys"
KEY_FOLDERS = (TOKEN_KEYS, CREDENTIAL_KEYS)
OWN = frozenset(
    (
        "DEFAULT.use_stderr",
        CONNECTION,
        "fernet_tokens.key_repository",
        "fernet_receipts.key_repository",
        "credential.key_repository",
    )
)
GRACE_S = 5
"""How long a request under way may take when Keystone is stopped."""


def socket_of(place: Place) -> Path:
    return place.runtime / "http.sock"


def file_of(place: Place) -> Path:
    return place.runtime / "keystone.conf"


def connection(database_url: str) -> str:
    """The URL of Dyno's driver in the words of SQLAlchemy."""
    target = urlsplit(database_url)
    [socket] = parse_qs(target.query)["socket"]
    where = f"unix_socket={quote(socket, safe='/')}&charset=utf8mb4"
    return f"mysql+pymysql://{target.username}@localhost{target.path}?{where}"


def write(place: Place, settings: Mapping[str, Level], workers: int) -> None:
    """Writes Keystone's own file, that of gunicorn, and what gunicorn loads."""
    own: dict[str, Level] = {
        "DEFAULT.use_stderr": True,
        CONNECTION: connection(place.database_url),
        "fernet_tokens.key_repository": str(place.data / TOKEN_KEYS),
        "fernet_receipts.key_repository": str(place.data / TOKEN_KEYS),
        "credential.key_repository": str(place.data / CREDENTIAL_KEYS),
    }
    place.runtime.mkdir(mode=0o700, exist_ok=True)
    file_of(place).write_text(sections({**own, **settings}))
    (place.runtime / "gunicorn.conf.py").write_text(gunicorn(socket_of(place), workers))
    shutil.copyfile(SERVED, place.runtime / SERVED.name)


def sections(options: Mapping[str, Level]) -> str:
    """Options by their full names as a file of oslo.config; one without a section belongs to DEFAULT."""
    lines: dict[str, list[str]] = {}
    for name, level in options.items():
        section, _, key = name.rpartition(".")
        lines.setdefault(section or "DEFAULT", []).append(f"{key} = {level_text(level)}")
    return "\n".join(line for section, those in lines.items() for line in (f"[{section}]", *those, ""))


def gunicorn(socket: Path, workers: int) -> str:
    """A worker serves one request at a time and keeps no connection. A kept one would stay with the worker
    that accepted it, so chance would decide how many clients share a worker."""
    options = {
        "wsgi_app": f"{SERVED.stem}:application",
        "bind": f"unix:{socket}",
        "workers": workers,
        "worker_class": "sync",
        # A slow answer is for the driver's own patience.
        "timeout": 0,
        "graceful_timeout": GRACE_S,
        # It would lie in the home of the user.
        "control_socket_disable": True,
    }
    return "".join(f"{name} = {value!r}\n" for name, value in options.items())
