"""Programs that pass SQL on: poolers and proxies, which a level of `front.kind` puts between the load and its
server, and programs of the user's that are described in the same words.

Each is a command, the text of its file, and what it is asked for the settings that it runs with.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from dbdyno.applications.product import Front, KnownFront
from dbdyno.applications.registry import FRONTS
from dbdyno.driver.passwords import query
from dbdyno.engines.server import free_port, require_short, start_server
from dbdyno.errors import Blocked, EngineMissing, UserError
from dbdyno.frozen import Level, level_text
from dbdyno.host.launch import Launch
from dbdyno.host.namespaces import step_down
from dbdyno.host.writers import require_own
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.path import digest_of_binary
from dbdyno.study.nouns import FrontProgram

if TYPE_CHECKING:
    from dbdyno.engines.engine import Server
    from dbdyno.study.nouns import Study

PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
"""Where a distribution puts servers, which a user's own PATH need not name."""
ASK_S = 5.0
LOOPBACK = "127.0.0.1"
PROBLEM = re.compile(r"\b(ERROR|FATAL|ALERT|CRITICAL|PANIC)\b")
VERSION = re.compile(r"\d+(\.\d+)+")


@dataclass(frozen=True)
class FrontWish:
    """What a variant's levels ask for: the kind of program, and its settings."""

    kind: str
    settings: Mapping[str, Level]


@dataclass(frozen=True)
class SqlFront(Front):
    """A program that passes SQL on. `kind` is its name in the study, `digest` that of its file, and `shown`
    asks it for the settings that it runs with."""

    kind: str = ""
    digest: str = ""
    shown: Callable[[], Mapping[str, str]] = dict

    @property
    def passes_sql(self) -> bool:
        return True


def load_url(url: str, study: Study, pooled: str) -> str:
    """The URL of a study's load. Where one of its fronts shares sessions, all variants send their statements
    in the way that is `pooled`, which leaves nothing behind in a session."""
    if not any(front_program(kind, study.fronts).shares for kind in study.front_kinds):
        return url
    return _with(urlsplit(url), statements=pooled)


def _with(parts: SplitResult, **parameters: str | None) -> str:
    """The URL with these parameters, and without those that are None. A blank becomes `%20`, because a `+` is
    one in forms alone."""
    given = {**dict(parse_qsl(parts.query)), **parameters}
    told = {name: value for name, value in given.items() if value is not None}
    return urlunsplit(parts._replace(query=urlencode(told, quote_via=quote, safe="/")))


def front_identity(kind: str, study: Study) -> str:
    """A program in front of a study's server, with what identifies it. Raises EngineMissing."""
    found = program_here(kind, front_program(kind, study.fronts).command)
    return f"{_title(found)} ({found.digest})"


def _title(found: Installation) -> str:
    known = FRONTS.get(found.engine)
    return f"{known.title} {found.version}" if known else found.engine


def front_program(kind: str, own: Mapping[str, FrontProgram]) -> FrontProgram:
    """What starts a program that a study names."""
    return own[kind] if kind in own else FRONTS[kind].program


@cache
def program_here(kind: str, command: str) -> Installation:
    """The program of a kind on this machine. Raises EngineMissing with what installs it, and UserError for
    one that another user could exchange."""
    words = shlex.split(command)
    found = shutil.which(words[0], path=PLACES) or shutil.which(words[0])
    known = FRONTS.get(kind)
    if found is None:
        remedy = f"apt install {known.package}" if known else f"name its path: command = {command!r}"
        raise EngineMissing(f"{words[0]}, which is to stand in front, is not on this machine", remedy)
    path = Path(found)
    require_own(path)
    return Installation(
        engine=kind,
        version=_told_version(path, known.version_option) if known else "",
        origin=str(path),
        prefix=path.parent,
        command=(found, *words[1:]),
        digest=digest_of_binary(path),
    )


def _told_version(path: Path, option: str) -> str:
    """What a known program says of itself."""
    said = subprocess.run([str(path), option], capture_output=True, text=True, check=False, timeout=ASK_S)
    found = VERSION.search(said.stdout)
    return found[0] if found else ""


def start_front(wish: FrontWish, program: FrontProgram, text: str, server: Server, runtime: Path) -> SqlFront:
    """Starts a program in front of a server, and waits until a statement comes through. `text` is that of its
    own file, before it is filled in. Raises Blocked for a setting that it could not show, UserError for a
    text that cannot be filled in, and ServerFailed with what it said where it ends."""
    known = FRONTS.get(wish.kind)
    _require_shown(wish, known)
    installation = program_here(wish.kind, program.command)
    runtime.mkdir(mode=0o700, exist_ok=True)
    given = _given(server.url, runtime)
    at = Path(filled_in(program.socket, given, f"[front.{wish.kind}]")) if program.socket else None
    if at is not None:
        require_short(at)
        given["socket"] = str(at)
    _write(wish, program, text, given)
    title = _title(installation)
    url = _at(server.url, at, given["port"])
    process = start_server(
        title=title,
        url=url,
        installation=installation,
        command=[filled_in(word, given, f"[front.{wish.kind}]") for word in installation.command],
        data=runtime,
        folder=runtime,
        runtime=runtime,
        how=Launch(before_exec=step_down("front.kind", title)),
        socket=at,
        version_sql="SELECT 1",
        problems=_problems,
        hint=lambda _: f"read its log, and the file that it was given: {given['configuration']}",
        stop_signal=signal.Signals[program.stop],
        leftovers=(at,) if at is not None else (),
    )
    # What answered is the server behind it.
    process.version = installation.version
    show_at = filled_in(program.show_at, given, f"[front.{wish.kind}]")

    def shown() -> Mapping[str, str]:
        settings = settings_shown(program.show, show_at, url) if program.show else {}
        names = known.shown if known and known.shown else {}
        return settings | {name: settings[own] for name, own in names.items() if own in settings}

    return SqlFront(
        process, prove=tuple, spent=lambda: None, kind=wish.kind, digest=installation.digest, shown=shown
    )


def _given(url: str, runtime: Path) -> dict[str, str]:
    """What `${...}` stands for in front of the server at that URL."""
    target = urlsplit(url)
    behind = Path(dict(parse_qsl(target.query)).get("socket", ""))
    return {
        "runtime": str(runtime),
        "server": str(behind),
        "folder": str(behind.parent),
        "server_port": behind.suffix.lstrip("."),
        "port": str(free_port(LOOPBACK)),
        "database": unquote(target.path.removeprefix("/")),
        "user": unquote(target.username or ""),
        "configuration": str(runtime / "front.conf"),
    }


def _write(wish: FrontWish, program: FrontProgram, text: str, given: Mapping[str, str]) -> None:
    """Writes the program's own file, with a line for each setting."""
    lines = (
        filled_in(program.setting, {"name": name, "value": level_text(level)}, f"[front.{wish.kind}]")
        for name, level in wish.settings.items()
    )
    content = filled_in(text, {**given, "settings": "\n".join(lines)}, f"[front.{wish.kind}]")
    Path(given["configuration"]).write_text(content)


def _require_shown(wish: FrontWish, known: KnownFront | None) -> None:
    if known is None or known.shown is None:
        return
    for name in (name for name in wish.settings if name not in known.shown):
        reason = f"{known.title} does not show {name}, so nothing would prove it"
        remedy = f"it shows {', '.join(known.shown)}; or describe it in a section [front.NAME] of your own"
        raise Blocked(f"front.{name}", reason, remedy)


def filled_in(text: str, given: Mapping[str, str], place: str) -> str:
    """A text of that section with what stands for `${...}` in it. Raises UserError for a name that stands for
    nothing."""
    try:
        return Template(text).substitute(given)
    except KeyError as unknown:
        told = f"${{{unknown.args[0]}}} stands for nothing in {place}"
    except ValueError:
        told = f"a `$` in {place} begins no name: {text!r}"
    raise UserError(told, f"write $$ for a dollar sign; known are {', '.join(sorted(given))}")


def _at(url: str, socket_path: Path | None, port: str) -> str:
    """The server's URL, led to another socket, or to a port of loopback."""
    parts = urlsplit(url)
    if socket_path is not None:
        return _with(parts, socket=str(socket_path))
    account = f"{parts.username}@" if parts.username else ""
    return _with(parts._replace(netloc=f"{account}{LOOPBACK}:{port}"), socket=None)


def settings_shown(show: str, at: str, url: str) -> dict[str, str]:
    """What a program says of its settings, by name: rows of a name and a value from a database of its own, or
    lines of both from a socket. Raises DriverFailed or OSError where it does not answer."""
    if not at.startswith("/"):
        console = urlsplit(url)._replace(path=f"/{quote(at, safe='')}")
        rows = query(_with(console, statements="text"), show)
        return {str(row[0]): "" if row[1] is None else str(row[1]) for row in rows}
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(ASK_S)
        asking.connect(at)
        asking.sendall(f"{show}\n".encode())
        said = b"".join(iter(lambda: asking.recv(65536), b"")).decode(errors="replace")
    pairs = (re.split(r"\s*[:=]\s*|\s+", line.strip(), maxsplit=1) for line in said.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _problems(log: str) -> list[str]:
    """The lines of a log that tell of errors."""
    return [line for line in log.splitlines() if PROBLEM.search(line)]
