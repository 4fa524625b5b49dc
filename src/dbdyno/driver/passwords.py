"""The password of an account whose URL holds none, from where its server's own client looks for it.

And one question to a server by such an account, before there is a load process, or without one.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qs, quote, unquote

from dbdyno.driver import _driver
from dbdyno.errors import DriverFailed

Rows = list[list[str | float | None]]


class Ask(Protocol):
    """Runs one SQL statement on a server and returns its rows."""

    def __call__(self, sql: str) -> Rows: ...


def query(url: str, sql: str) -> Rows:
    """The rows of one statement. Raises DriverFailed with the driver's own message and hint."""
    try:
        return _rows(_driver.query(url, sql))
    except _driver.DriverError as error:
        raise failed(url, error) from None


@contextmanager
def conversation(url: str) -> Iterator[Ask]:
    """Asks a server one statement after another in one session. Raises like `query`, and does not connect
    again."""
    try:
        session = _driver.Conversation(url)
    except _driver.DriverError as error:
        raise failed(url, error) from None

    def ask(sql: str) -> Rows:
        try:
            return _rows(session.ask(sql))
        except _driver.DriverError as error:
            raise failed(url, error) from None

    try:
        yield ask
    finally:
        session.close()


def failed(url: str, error: _driver.DriverError) -> DriverFailed:
    """What the driver says of a server at a URL. Where its password was refused, the hint says where that
    comes from."""
    return DriverFailed(error.message, hint_with_source(url, error.hint), error.kind)


def hint_with_source(url: str, hint: str) -> str:
    """A hint, with where the password in a URL comes from where the hint is about that, or with where one was
    looked for where there is none."""
    if "its password" not in hint:
        return hint
    source, places = source_of(url), without_any(url)
    if places:
        return f"give a password: neither {places} holds one; {hint}"
    return f"{hint.replace(' in the URL', '')}; the password comes from {source}" if source else hint


def _rows(answer: str) -> Rows:
    rows: Rows = json.loads(answer)["rows"]
    return rows


PGPASS, MY_CNF = Path("~/.pgpass"), Path("~/.my.cnf")
POSTGRESQL_PORT = "5432"
SOCKET = re.compile(r"\.s\.PGSQL\.(\d+)")
FIELD = re.compile(r"((?:\\.|[^:\\])*)(?::|$)")
"""A field of a line of ~/.pgpass: a backslash takes the next character as it is."""
ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " "}

Tell = Callable[[str], None]


@dataclass(frozen=True)
class _Account:
    """Who connects, and where to, as a URL says it; each part without its percent signs."""

    user: str
    place: str
    database: str
    query: Mapping[str, list[str]]


def with_password(url: str, tell: Tell) -> str:
    """The URL, with the account's password where it holds none and the client's own places have one. `tell`
    hears of a file that is not read, because of its mode."""
    return _found(url, tell)[0]


def source_of(url: str) -> str:
    """Where the password in a URL comes from that `with_password` gave, in words; empty where it stood in the
    URL that the user gave, or where there is none."""
    scheme, mark, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    account, at, place = authority.rpartition("@")
    user, colon, _ = account.partition(":")
    if not mark or not colon:
        return ""
    whole, source = _found(f"{scheme}://{user}{at}{place}{slash}{path}", lambda _: None)
    return source if whole == url else ""


def without_any(url: str) -> str:
    """Where no password was found for a URL, in words that follow "neither"; empty where the URL has one, or
    where its server takes none."""
    scheme, _, rest = url.partition("://")
    if scheme not in OF_SCHEME or ":" in rest.partition("/")[0].rpartition("@")[0]:
        return ""
    return f"the URL nor {PLACES[OF_SCHEME[scheme]]}"


def _found(url: str, tell: Tell) -> tuple[str, str]:
    """The URL with the password, and where that is from."""
    scheme, found, rest = url.partition("://")
    ask = OF_SCHEME.get(scheme)
    before, mark, query = rest.partition("?")
    authority, slash, path = before.partition("/")
    account, _, place = authority.rpartition("@")
    # A password that holds a slash as it is leaves its `@` behind in the path.
    if not found or ask is None or ":" in account or "@" in path:
        return url, ""
    asked = _Account(unquote(account), place, unquote(path), parse_qs(query))
    password, source = ask(asked, tell)
    if not password:
        return url, ""
    return f"{scheme}://{account}:{quote(password, safe='')}@{place}{slash}{path}{mark}{query}", source


def _of_mysql(_account: _Account, tell: Tell) -> tuple[str, str]:
    """A file's password wins over the variable's, as it does for `mysql`."""
    path = MY_CNF.expanduser()
    in_file = _read(path, tell, stat.S_IWOTH, "others may write it", "chmod o-w")
    found = [_unquoted(value) for value in _passwords_of_clients(in_file)]
    return (found[-1], str(MY_CNF)) if found else (os.environ.get("MYSQL_PWD", ""), "MYSQL_PWD")


def _passwords_of_clients(text: str) -> Iterator[str]:
    """What the lines `password = ...` below [client] hold."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line[1:].partition("]")[0].strip()
        name, equals, value = line.partition("=")
        if group == "client" and equals and name.strip() == "password":
            yield value.strip()


def _unquoted(value: str) -> str:
    """An option's value without its quotes, its escapes and the comment behind it."""
    quoted = re.match(r"""(["'])((?:\\.|(?!\1).)*)\1""", value)
    text = quoted[2] if quoted else value.partition("#")[0].rstrip()
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), text)


def _of_postgresql(account: _Account, tell: Tell) -> tuple[str, str]:
    """The variable's password wins over the file's, as it does for `psql`."""
    if password := os.environ.get("PGPASSWORD"):
        return password, "PGPASSWORD"
    path = Path(os.environ.get("PGPASSFILE") or PGPASS).expanduser()
    text = _read(path, tell, stat.S_IRWXG | stat.S_IRWXO, "others may read it", "chmod 600")
    wanted = [
        (hosts, {port}, {account.database or account.user}, {account.user}) for hosts, port in _where(account)
    ]
    for line in text.splitlines():
        raw = FIELD.findall(line)
        fields = [re.sub(r"\\(.)", r"\1", field) for field in raw]
        if line.startswith("#") or len(fields) < 5:
            continue
        if any(
            all(raw[place] == "*" or fields[place] in names for place, names in enumerate(one))
            for one in wanted
        ):
            return fields[4], os.environ.get("PGPASSFILE") or str(PGPASS)
    return "", ""


def _where(account: _Account) -> Iterator[tuple[set[str], str]]:
    """The names of each of the server's hosts in ~/.pgpass, and its port. A socket is at its folder and
    localhost."""
    socket = account.query.get("socket", ())
    for place in account.place.split(","):
        bracketed = re.fullmatch(r"\[(.*)\](?::(\d+))?", place)
        host, _, port = place.partition(":") if bracketed is None else (bracketed[1], "", bracketed[2])
        port = port or POSTGRESQL_PORT
        hosts = socket or [one for named in account.query.get("host", ()) for one in named.split(",")]
        if not hosts:
            yield {unquote(host)}, port
        for one in hosts:
            yield _of_socket(Path(one), port) if socket or one.startswith("/") else ({one}, port)


def _of_socket(socket: Path, port: str) -> tuple[set[str], str]:
    file = SOCKET.fullmatch(socket.name)
    if file is None:
        return {"localhost", str(socket)}, port
    return {"localhost", str(socket.parent)}, file[1]


def _read(path: Path, tell: Tell, refused: int, why: str, remedy: str) -> str:
    """A file's text; empty where there is none, and where its mode has a bit that is `refused`."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return ""
        if mode & refused:
            tell(f"{path} is not read, because {why}: {remedy} {path}")
            return ""
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


OF_SCHEME: Mapping[str, Callable[[_Account, Tell], tuple[str, str]]] = {
    "mysql": _of_mysql,
    "mariadb": _of_mysql,
    "postgresql": _of_postgresql,
    "postgres": _of_postgresql,
}
PLACES: Mapping[Callable[[_Account, Tell], tuple[str, str]], str] = {
    _of_mysql: f"{MY_CNF} nor MYSQL_PWD",
    _of_postgresql: f"PGPASSWORD nor {PGPASS}",
}
"""Where each of them looks, as a sentence that begins with "neither" names it."""
