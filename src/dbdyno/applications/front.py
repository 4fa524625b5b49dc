"""Programs in front of a server, which a level of `front.kind` puts between it and the load: poolers and
proxies that pass SQL on, and applications that take requests. Some are known, and users describe others.

Each is a command, the texts of its files, and what it says of the settings that it runs with. Each worker of
an application says that itself, by files in the program's folder: once it has loaded it writes `told-PID`,
lines of a name and a value; in `spent-PID` it may keep three doubles, the fields of `Spent`. Beside settings
the lines may tell `package.NAME` for each package that it can load, and `server`, the socket of the server
that it reaches: both are proved.
"""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import distributions
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from dbdyno.applications.registry import FRONTS, KnownFront
from dbdyno.driver.passwords import query
from dbdyno.engines.server import ServerProcess, free_port, require_short, start_server
from dbdyno.errors import Blocked, EngineMissing, ServerFailed, UserError, remedy
from dbdyno.frozen import Level, level_text
from dbdyno.host import paths, process
from dbdyno.host.launch import Launch
from dbdyno.host.namespaces import step_down
from dbdyno.host.writers import require_own
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.path import digest_of_binary
from dbdyno.records.record import Evidence, Reading
from dbdyno.study.front import OF_PACKAGES, REQUIREMENT, FrontProgram

if TYPE_CHECKING:
    from dbdyno.engines.engine import Server
    from dbdyno.study.nouns import Study

PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
"""Where a distribution puts servers, which a user's own PATH need not name."""
ASK_S, PREPARE_S, WORKERS_S, LOOK_S = 5.0, 600.0, 120.0, 0.02
LOOPBACK = "127.0.0.1"
PROBLEM = re.compile(r"\b(ERROR|FATAL|ALERT|CRITICAL|PANIC)\b|^Traceback ")
VERSION = re.compile(r"\d+(\.\d+)+")
ONLY_FILE = "front.conf"
"""What the file of a known program is called."""
TOTALS = struct.Struct("3d")
OF_A_PACKAGE, OF_SERVER = "package.", "server"
NO_SETTING = "no such setting"


@dataclass(frozen=True)
class FrontWish:
    """What a variant's levels ask for: the kind of program, and its settings."""

    kind: str
    settings: Mapping[str, Level]


@dataclass(frozen=True)
class Spent:
    """What the workers of an application have spent since they began: how many requests they have had, for
    how many seconds they were busy with them, and for how many of these they waited for the database."""

    requests: float
    busy_s: float
    database_s: float


@dataclass(frozen=True)
class Front:
    """What runs in front of a server. `kind` is its name in the study, and `digest` identifies it. `shown` is
    what it says of its settings, `prove` what else its workers say, and `spent` what they have spent so far,
    summed over all of them; None where they do not tell. What `passes_sql` on takes the statements that its
    server takes."""

    process: ServerProcess
    kind: str = ""
    digest: str = ""
    passes_sql: bool = True
    shown: Callable[[], Mapping[str, str]] = dict
    prove: Callable[[], tuple[Evidence, ...]] = tuple
    spent: Callable[[], Spent | None] = lambda: None


@dataclass(frozen=True)
class FrontPlan:
    """What a variant has in front of its server: what its levels ask for, the program, and the texts of its
    files by name, before they are filled in."""

    wish: FrontWish
    program: FrontProgram
    texts: Mapping[str, str]

    @property
    def section(self) -> str:
        return f"[front.{self.wish.kind}]"

    @property
    def shape(self) -> dict[str, object]:
        """What of it shapes the data that it makes."""
        return {
            "name": self.wish.kind,
            "digest": program_here(self.wish.kind, self.program).digest,
            "settings": dict(self.wish.settings),
            "prepare": self.program.prepare,
            "texts": dict(self.texts),
        }

    def populate(self, url: str, data: Path, runtime: Path) -> None:
        """Makes the tables of an application on the server at that URL, and its folder `data`, which does not
        exist yet. Raises ServerFailed with what a command said."""
        data.mkdir(mode=0o700)
        given = self.written(url, data, runtime)
        for number, command in enumerate(self.program.prepare, 1):
            words = [filled_in(word, given, self.section) for word in shlex.split(command)]
            _carry_out(f"command {number} of `prepare` in {self.section}", words, runtime)

    def written(self, url: str, data: Path, runtime: Path) -> dict[str, str]:
        """Writes its files, and returns what `${...}` stands for in front of the server at that URL."""
        runtime.mkdir(mode=0o700, exist_ok=True)
        given = _given(url, data, runtime, self.program)
        given["configuration"] = str(runtime / next(iter(self.texts), ONLY_FILE))
        if self.program.socket:
            given["socket"] = filled_in(self.program.socket, given, self.section)
            require_short(Path(given["socket"]))
        lines = [self._line(name, level) for name, level in self.wish.settings.items()]
        for name, text in self.texts.items():
            content = filled_in(text, {**given, "settings": "\n".join(lines)}, self.section)
            (runtime / name).write_text(content)
        return given

    def _line(self, name: str, level: Level) -> str:
        section, _, key = name.rpartition(".")
        given = {"name": name, "value": level_text(level), "section": section, "key": key}
        return filled_in(self.program.setting, given, self.section)


def _given(url: str, data: Path, runtime: Path, program: FrontProgram) -> dict[str, str]:
    target = urlsplit(url)
    behind = Path(dict(parse_qsl(target.query)).get("socket", ""))
    given = {
        "runtime": str(runtime),
        "server": str(behind),
        "folder": str(behind.parent),
        "server_port": behind.suffix.lstrip("."),
        "port": str(free_port(LOOPBACK)),
        "database": unquote(target.path.removeprefix("/")),
        "user": unquote(target.username or ""),
        **_account(),
        "data": str(data) if program.prepare else "",
        "environment": str(environment_place(program)) if program.packages else "",
        "workers": str(program.workers or ""),
    }
    return {name: value for name, value in given.items() if value}


def _account() -> dict[str, str]:
    """Whom it runs as: names where this machine has them, else numbers."""
    user, group = os.getuid(), os.getgid()
    with suppress(KeyError):
        return {"account": pwd.getpwuid(user).pw_name, "group": grp.getgrgid(group).gr_name}
    return {"account": str(user), "group": str(group)}


def _carry_out(place: str, words: list[str], folder: Path) -> None:
    """Carries out a command of that place, which prepares the server's database."""
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PREPARE_S,
            umask=0o077,
            preexec_fn=process.die_with_parent(),
        )
    except subprocess.TimeoutExpired:
        told = f"{place} did not end within {PREPARE_S:g} s"
        raise ServerFailed(told, "the server beneath may hang: look at its log") from None
    except OSError as error:
        hint = remedy(error, "name the path of a program that is there")
        raise ServerFailed(f"{place} cannot be started: {error}", hint) from None
    if done.returncode != 0:
        log = done.stderr or done.stdout
        last = (log.strip().splitlines() or ["it said nothing"])[-1]
        raise ServerFailed(f"{place} failed: {last}", "read the log", log)


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


def title_of(found: Installation) -> str:
    """A program with its version, as far as that is known."""
    known = FRONTS.get(found.engine)
    return f"{known.title if known else found.engine} {found.version}".strip()


def front_program(kind: str, own: Mapping[str, FrontProgram]) -> FrontProgram:
    """What starts a program that a study names."""
    return own[kind] if kind in own else FRONTS[kind].program


def environment_place(program: FrontProgram) -> Path:
    """The virtual environment of a program, by the first of its packages: keystone-30.0.0."""
    first = REQUIREMENT.fullmatch(program.packages[0])
    assert first is not None
    return paths.cache_place() / "applications" / "-".join(filter(None, (first[1], first[4])))


@cache
def program_here(kind: str, program: FrontProgram) -> Installation:
    """The program of a kind on this machine, which is looked for until it is there, and then no more. Raises
    EngineMissing with what installs it, and UserError for one that another user could exchange."""
    packages = _required_packages(kind, program)
    words = shlex.split(program.command)
    first = words[0].replace(OF_PACKAGES, str(environment_place(program))) if packages else words[0]
    first = str(Path(first).expanduser()) if first.startswith("~") else first
    found = shutil.which(first, path=PLACES) or shutil.which(first)
    known = FRONTS.get(kind)
    if found is None:
        hint = f"apt install {known.package}" if known else f"name its path: command = {program.command!r}"
        raise EngineMissing(f"{first}, which is to stand in front, is not on this machine", hint)
    path = Path(found)
    require_own(path)
    packages = packages or _packages_beside(path)
    return Installation(
        engine=kind,
        version=_told_version(path, known.version_option) if known else packages.get(kind.lower(), ""),
        origin=str(path),
        prefix=path.parent,
        command=(found, *words[1:]),
        digest=packages_digest(packages) if packages else digest_of_binary(path),
    )


def _required_packages(kind: str, program: FrontProgram) -> dict[str, str]:
    """The packages of a program's environment; none for a program that names none."""
    if not program.packages:
        return {}
    prefix = environment_place(program)
    found = packages_of(prefix)
    versions = {_spelled(name): version for name, version in found.items()}
    for wanted in program.packages:
        named = REQUIREMENT.fullmatch(wanted)
        version = versions.get(_spelled(named[1])) if named else None
        if named is None or version is None or named[4] not in (None, version):
            holds = f"holds {version}" if version else "lacks it"
            wishes = " ".join(map(shlex.quote, program.packages))
            command = f"`python3 -m venv {prefix} && {prefix}/bin/pip install {wishes}`"
            raise EngineMissing(
                f"[front.{kind}] needs {wanted}, and {prefix} {holds}", f"{command} installs it"
            )
    return found


def _spelled(name: str) -> str:
    """A package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _packages_beside(path: Path) -> dict[str, str]:
    """The packages of the virtual environment that a program lies in; none where it lies in none."""
    prefix = path.parent.parent
    return packages_of(prefix) if (prefix / "pyvenv.cfg").is_file() else {}


def packages_of(prefix: Path) -> dict[str, str]:
    """Each package of an environment with its version; none where there is no environment."""
    folders = [str(folder) for folder in prefix.glob("lib/python3*/site-packages")]
    found = distributions(path=folders) if folders else ()
    # pip leaves folders without a name behind when it is interrupted.
    return {one.name.lower(): one.version for one in found if one.name}


def packages_digest(packages: Mapping[str, str]) -> str:
    """Identifies the packages: an application's version is that of all that it runs on."""
    listed = "\n".join(f"{name}=={packages[name]}" for name in sorted(packages))
    return hashlib.sha256(listed.encode()).hexdigest()[:12]


def _told_version(path: Path, option: str) -> str:
    """What a known program says of itself."""
    said = subprocess.run([str(path), option], capture_output=True, text=True, check=False, timeout=ASK_S)
    found = VERSION.search(said.stdout)
    return found[0] if found else ""


def start_front(plan: FrontPlan, server: Server, data: Path, runtime: Path) -> Front:
    """Starts a program in front of a server, and waits until a statement comes through, or until it answers a
    request and all its workers have loaded. Raises Blocked for a setting that it could not show, UserError
    for a text that cannot be filled in, and ServerFailed with what it said where it ends."""
    kind, program, known = plan.wish.kind, plan.program, FRONTS.get(plan.wish.kind)
    _require_shown(plan.wish, known)
    installation = program_here(kind, program)
    given = plan.written(server.url, data, runtime)
    at = Path(given["socket"]) if "socket" in given else None
    title, url = title_of(installation), _url_of(program, server.url, at, given["port"])
    running = start_server(
        title=title,
        url=url,
        installation=installation,
        command=[filled_in(word, given, plan.section) for word in installation.command],
        data=data if program.prepare else runtime,
        folder=runtime,
        runtime=runtime,
        # Poolers refuse to run as root.
        how=Launch(before_exec=() if program.ready else step_down("front.kind", title)),
        socket=at,
        version_sql=program.ready or "SELECT 1",
        problems=_problems,
        hint=lambda _: f"read its log, and the file that it was given: {given['configuration']}",
        stop_signal=signal.Signals[program.stop],
        leftovers=(at,) if at is not None else (),
    )
    # What answered is the server behind it.
    running.version = installation.version
    if program.workers:
        _await_workers(running, runtime, program.workers)
        return _with_workers(running, plan, installation, given)
    show_at = filled_in(program.show_at, given, plan.section)
    return Front(running, kind, installation.digest, not program.ready, partial(_shown, plan, show_at, url))


def _shown(plan: FrontPlan, show_at: str, url: str) -> Mapping[str, str]:
    program, known = plan.program, FRONTS.get(plan.wish.kind)
    settings = settings_shown(program.show, show_at, url) if program.show else {}
    names = known.shown if known and known.shown else {}
    return settings | {name: settings[own] for name, own in names.items() if own in settings}


def _with_workers(
    running: ServerProcess, plan: FrontPlan, installation: Installation, given: Mapping[str, str]
) -> Front:
    """What each of its workers tells."""
    runtime = Path(given["runtime"])

    def shown() -> Mapping[str, str]:
        told = list(told_by_workers(running, runtime).values())
        names = {name for each in told for name in each}
        return {name: " / ".join(sorted({each.get(name, NO_SETTING) for each in told})) for name in names}

    def prove() -> tuple[Evidence, ...]:
        told = list(told_by_workers(running, runtime).values())
        found = [_evidence(running, "workers", str(plan.program.workers), [str(len(told))])]
        packages = [
            {
                name.removeprefix(OF_A_PACKAGE).lower(): each[name]
                for name in each
                if name.startswith(OF_A_PACKAGE)
            }
            for each in told
        ]
        if any(packages):
            found.append(_evidence(running, "packages", installation.digest, map(packages_digest, packages)))
        if any(OF_SERVER in each for each in told):
            reached = [each.get(OF_SERVER, "none that it tells") for each in told]
            found.append(_evidence(running, OF_SERVER, given["server"], reached))
        return tuple(found)

    return Front(
        running,
        plan.wish.kind,
        installation.digest,
        not plan.program.ready,
        shown,
        prove,
        partial(spent_in, runtime),
    )


def _evidence(running: ServerProcess, name: str, requested: str, values: Iterable[str]) -> Evidence:
    """What all workers must say alike."""
    shown = " / ".join(sorted(set(values)))
    same = shown == requested
    return Evidence(
        factor=f"front.{name}",
        requested=requested,
        effective=Reading(value=shown, source=f"each worker of {running.title}, after it had loaded"),
        in_effect=same,
        reason="" if same else f"the workers of {running.title} have {shown}",
        remedy="" if same else "read its log, and look at what its workers write into told-PID",
    )


def _await_workers(running: ServerProcess, runtime: Path, workers: int) -> None:
    """The first answer comes from one worker; the others may still be loading."""
    deadline = time.monotonic() + WORKERS_S
    try:
        while (told := len(told_by_workers(running, runtime))) < workers:
            if not running.alive() or time.monotonic() > deadline:
                message = f"{told} of the {workers} workers of {running.title} told what they run with"
                hint = "each writes told-PID into ${runtime} once it has loaded, a name and a value in a line"
                raise ServerFailed(message, hint, running.log())
            time.sleep(LOOK_S)
    except BaseException:
        running.kill()
        raise


def told_by_workers(running: ServerProcess, runtime: Path) -> dict[int, dict[str, str]]:
    """What each worker that lives has told, by its process."""
    files = {worker: runtime / f"told-{worker}" for worker in running.process_ids}
    return {worker: _pairs(file.read_text()) for worker, file in files.items() if file.is_file()}


def spent_in(runtime: Path) -> Spent | None:
    """What all workers have spent so far, those that have ended included."""
    totals = [TOTALS.unpack(file.read_bytes()) for file in runtime.glob("spent-*[0-9]")]
    return Spent(*map(sum, zip(*totals, strict=True))) if totals else None


def _require_shown(wish: FrontWish, known: KnownFront | None) -> None:
    if known is None or known.shown is None:
        return
    for name in (name for name in wish.settings if name not in known.shown):
        reason = f"{known.title} does not show {name}, so nothing would prove it"
        hint = f"it shows {', '.join(known.shown)}; or describe it in a section [front.NAME] of your own"
        raise Blocked(f"front.{name}", reason, hint)


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


def _url_of(program: FrontProgram, url: str, socket_path: Path | None, port: str) -> str:
    """Where the load goes: to the server's URL, led to another socket, or to a port of loopback; or to an
    application there."""
    if program.ready:
        at = f"localhost?socket={quote(str(socket_path), safe='/')}" if socket_path else f"{LOOPBACK}:{port}"
        return f"http://{at}"
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
        return _pairs(b"".join(iter(lambda: asking.recv(65536), b"")).decode(errors="replace"))


def _pairs(said: str) -> dict[str, str]:
    """Lines of a name and a value."""
    pairs = (re.split(r"\s*[:=]\s*|\s+", line.strip(), maxsplit=1) for line in said.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _problems(log: str) -> list[str]:
    """The lines of a log that tell of errors."""
    return [line for line in log.splitlines() if PROBLEM.search(line)]
