"""What is done to a server beside its load, at its moment: statements in sessions of their own, and commands.

An act begins at the same moment in every trial, and the load lasts as long as it would without. What is not
done when the load is over is ended then. Meanwhile a session of Dyno's own asks who waits for whom.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from resource import struct_rusage
from urllib.parse import parse_qsl, unquote, urlsplit

from dbdyno.applications.front import PLACES, filled_in
from dbdyno.driver.passwords import Rows, conversation, query
from dbdyno.engines import registry
from dbdyno.engines.facts import without_values
from dbdyno.errors import DriverFailed, DynoError, UserError
from dbdyno.frozen import Level
from dbdyno.host.journal import Journal
from dbdyno.host.launch import read_only_host
from dbdyno.host.process import confine, family, how_it_ended
from dbdyno.layers.setup import Running
from dbdyno.obtain.installation import Installation, environment_of
from dbdyno.obtain.server import client_program
from dbdyno.records.meanwhile import ActMeanwhile, LockWait
from dbdyno.study import Study
from dbdyno.study.soak import Meanwhile, acts_with

LOOK_EVERY_S = 1.0
REAP_EVERY_S = 0.02
TERM_S = 5.0
"""How long a command may take to end once it is asked to, before it is killed."""
END_S = 60.0
"""How long a session may take to end: a server may take back what a statement has done so far."""
BLOCK_BYTES = 512
"""In which the kernel counts what a process reads from and writes towards storage (getrusage(2))."""
OF_COMMANDS = ("host", "port", "socket", "user", "password_file", "database", "folder")
"""What stands for where the server is, and for a folder of the command's own."""
BLOCKED_MOST, STATEMENT_MOST, ERROR_MOST = 8, 100, 400
STATEMENT = re.compile(r"""(?:[^;'"`]|'(?:[^']|'')*'|"[^"]*"|`[^`]*`)+""")


@dataclass
class _Going:
    """An act on its way. `session` is its number at the server, and `folder` what its command may fill."""

    act: Meanwhile
    folder: Path
    session: int | None = None
    began_s: float | None = None
    ended_s: float | None = None
    ended_by_us: bool = False
    fault: str = ""
    usage: tuple[float, float, float] | None = None
    thread: threading.Thread | None = None


@dataclass
class _Seen:
    """Who was seen to wait for whom, and in how many looks."""

    looks: int = 0
    counted: Counter[tuple[str, str, str, bool]] = field(default_factory=Counter)
    sessions: dict[tuple[str, str, str, bool], int] = field(default_factory=dict)

    def add(self, rows: Rows, names: dict[int, str]) -> None:
        """Takes up one look. `names` are those of the acts' sessions."""
        self.looks += 1
        waiting: dict[tuple[str, str, str, bool], set[int]] = {}
        for one, text, other, blocking, lock, inferred in rows:
            waiter, blocker = int(one or 0), int(other or 0)
            if waiter in names and names.get(blocker) == names[waiter]:
                continue
            key = (
                names.get(waiter) or shortened(str(text or "")),
                names.get(blocker) or shortened(str(blocking or "")),
                str(lock),
                bool(int(inferred or 0)),
            )
            waiting.setdefault(key, set()).add(waiter)
        self.counted.update(waiting.keys())
        for key, sessions in waiting.items():
            self.sessions[key] = max(len(sessions), self.sessions.get(key, 0))

    def told(self) -> tuple[LockWait, ...]:
        return tuple(
            LockWait(
                waiter=key[0],
                blocker=key[1],
                lock=key[2],
                looks=looks,
                sessions=self.sessions[key],
                inferred=key[3],
            )
            for key, looks in self.counted.most_common(BLOCKED_MOST)
        )


def shortened(statement: str) -> str:
    """A statement in one line without its values."""
    text = " ".join(without_values(statement).split())
    return text if len(text) <= STATEMENT_MOST else f"{text[: STATEMENT_MOST - 1]}…"


def statements_of(sql: str) -> list[str]:
    """The statements between semicolons that stand in no quotes."""
    return [found.strip() for found in STATEMENT.findall(sql) if found.strip()]


class ActsBeside:
    """The acts beside one load in one piece. A context manager, after which none of them goes on. They count
    from `zero_unix_s`: `lead_s` after the load began, which is when its measured part begins, but for the
    time that its clients need to connect."""

    def __init__(self, running: Running, acts: Sequence[Meanwhile], lead_s: float, journal: Journal) -> None:
        self._running, self._lead_s, self._journal = running, lead_s, journal
        scratch = running.setup.scratch
        self._going = [_Going(act, scratch / f"meanwhile-{act.name}") for act in acts]
        self._over, self._begun, self._noting = threading.Event(), threading.Event(), threading.Lock()
        self._zero_s = 0.0
        self.zero_unix_s = 0.0
        self._seen = _Seen()
        self._watch: threading.Thread | None = None

    def __enter__(self) -> ActsBeside:
        for one in self._going:
            one.thread = threading.Thread(target=self._carry_out, args=(one,), name=one.act.name, daemon=True)
            one.thread.start()
        if self._running.setup.engine.locks is not None:
            self._watch = threading.Thread(target=self._look_on, name="locks", daemon=True)
            self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        for one in self._going:
            shutil.rmtree(one.folder, ignore_errors=True)

    @contextmanager
    def stretch(self) -> Iterator[None]:
        """The time in which the load is on the server."""
        self._zero_s = time.monotonic() + self._lead_s
        self.zero_unix_s = time.time() + self._lead_s
        self._begun.set()
        try:
            yield
        finally:
            self._end()

    def told(self) -> tuple[ActMeanwhile, ...]:
        """What became of each act, once all are over."""
        blocked = self._seen.told()
        return tuple(
            ActMeanwhile(
                name=one.act.name,
                text=one.act.text,
                at_s=one.act.at_s,
                began_s=one.began_s,
                took_s=0.0 if one.began_s is None else max(0.0, (one.ended_s or one.began_s) - one.began_s),
                done=one.began_s is not None and not one.ended_by_us and not one.fault,
                fault=one.fault,
                **dict(zip(("cpu_s", "read_bytes", "written_bytes"), one.usage or (), strict=False)),
                looks=self._seen.looks,
                every_s=LOOK_EVERY_S if self._seen.looks else 0.0,
                blocked=blocked if one is self._going[0] else (),
            )
            for one in self._going
        )

    def _now_s(self) -> float:
        return round(time.monotonic() - self._zero_s, 3)

    def _end(self) -> None:
        """Ends what is not done, and waits for that. Raises DynoError for a statement that does not end."""
        self._over.set()
        self._begun.set()
        locks, url = self._running.setup.engine.locks, self._running.server.url
        for one in (one for one in self._going if one.thread is not None and one.thread.is_alive()):
            if one.session is not None and locks is not None:
                # A server that is gone has ended it.
                with suppress(DriverFailed):
                    query(url, locks.end.format(session=one.session))
        for thread in filter(None, (*(one.thread for one in self._going), self._watch)):
            thread.join(END_S)
            if thread.is_alive():
                told = f"what was done beside the load ({thread.name}) does not end within {END_S:g} s"
                raise DynoError(told, "look at the server's log in the record")

    def _carry_out(self, one: _Going) -> None:
        try:
            if one.act.sql:
                self._ask(one)
            else:
                self._run(one)
        except (DynoError, OSError, subprocess.SubprocessError) as failure:
            if not one.ended_by_us and (one.began_s is None or not self._over.is_set()):
                one.fault = failure.message if isinstance(failure, DynoError) else str(failure)
            one.ended_by_us = one.ended_by_us or not one.fault
        if one.began_s is not None:
            one.ended_s = self._now_s()

    def _is_due(self, one: _Going) -> bool:
        """Waits for the moment of an act; False where the load is over before."""
        self._begun.wait()
        if self._over.wait(max(0.0, self._zero_s + one.act.at_s - time.monotonic())):
            return False
        one.began_s = self._now_s()
        return True

    def _ask(self, one: _Going) -> None:
        locks = self._running.setup.engine.locks
        assert locks is not None, "the study's reader has asked"
        with conversation(self._running.server.url) as ask:
            [[session]] = ask(locks.own)
            if not self._is_due(one):
                return
            one.session = int(session or 0)
            for statement in statements_of(one.act.sql):
                if self._over.is_set():
                    one.ended_by_us = True
                    return
                ask(statement)
            # From here on there is nothing to end.
            one.session = None

    def _run(self, one: _Going) -> None:
        one.folder.mkdir(mode=0o700)
        command = command_of(one.act.command, self._running, one.folder)
        steps = read_only_host((one.folder, *self._running.setup.launch.writable))
        if not self._is_due(one):
            return
        with (one.folder / "output").open("wb") as output, (one.folder / "errors").open("wb") as errors:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=environment_of({"PATH": path_beside(self._running)}),
                cwd=one.folder,
                start_new_session=True,
                preexec_fn=confine(before_exec=steps),
            )
        status = self._reaped(one, child)
        if status and not one.ended_by_us:
            said = (one.folder / "errors").read_bytes()[-ERROR_MOST:].decode(errors="replace")
            one.fault = f"{shlex.split(one.act.command)[0]} {how_it_ended(status)}: {' '.join(said.split())}"

    def _reaped(self, one: _Going, child: subprocess.Popen[bytes]) -> int:
        """How a command ended, by itself or because the load is over, with what it took."""
        noted, look_s = set[int](), 0.0
        while not (ended := os.wait4(child.pid, os.WNOHANG))[0]:
            if time.monotonic() >= look_s:
                self._note_family(child.pid, noted)
                look_s = time.monotonic() + LOOK_EVERY_S
            if self._over.wait(REAP_EVERY_S):
                one.ended_by_us = True
                one.ended_s = self._now_s()
                ended = _ended(child.pid)
                break
        _, status, usage = ended
        child.returncode = os.waitstatus_to_exitcode(status)
        moved = (usage.ru_inblock * BLOCK_BYTES, usage.ru_oublock * BLOCK_BYTES)
        one.usage = (round(usage.ru_utime + usage.ru_stime, 4), float(moved[0]), float(moved[1]))
        return child.returncode

    def _note_family(self, process_id: int, noted: set[int]) -> None:
        """Notes a command with all that descends from it, so that none of it outlives a Dyno that dies."""
        members = set(family(process_id)) - noted
        with self._noting:
            self._journal.note_processes(sorted(members))
        noted |= members

    def _names_of_sessions(self) -> dict[int, str]:
        return {one.session: one.act.name for one in self._going if one.session is not None}

    def _look_on(self) -> None:
        """Asks who waits for whom while the load goes on."""
        locks = self._running.setup.engine.locks
        assert locks is not None
        # A server that answers no more has nothing to tell, and why is told by what failed under load.
        with suppress(DriverFailed), conversation(self._running.server.url) as ask:
            self._begun.wait()
            while not self._over.wait(LOOK_EVERY_S):
                names = self._names_of_sessions()
                rows = ask(locks.blocked.format(acts=", ".join(map(str, names)) or "0"))
                # An act may begin, and one may end, while the server answers.
                names |= self._names_of_sessions()
                # Of all variants alike it is asked, and told of what an act was there for.
                if any(one.began_s is not None and one.ended_s is None for one in self._going):
                    self._seen.add(rows, names)


def _ended(process_id: int) -> tuple[int, int, struct_rusage]:
    """Ends a command and all that descends from it: asks first, then kills."""
    members = family(process_id)
    _signal(members, signal.SIGTERM)
    over_s = time.monotonic() + TERM_S
    while not (ended := os.wait4(process_id, os.WNOHANG))[0]:
        if time.monotonic() > over_s:
            break
        time.sleep(REAP_EVERY_S)
    _signal(set(members) | set(family(process_id)), signal.SIGKILL)
    return ended if ended[0] else os.wait4(process_id, 0)


def _signal(process_ids: Sequence[int] | set[int], number: signal.Signals) -> None:
    for process_id in process_ids:
        with suppress(ProcessLookupError):
            os.kill(process_id, number)


def unstartable_commands(
    study: Study, levels: Mapping[str, Level], installation: Installation
) -> Iterator[tuple[Meanwhile, UserError]]:
    """The commands of a variant that cannot be started on this host, with the reason."""
    engine = registry.engine(study.engine_of(levels).engine)
    for act in (one for one in acts_with(study.meanwhile, levels) if one.command):
        try:
            words = _words(act.command, dict.fromkeys(OF_COMMANDS, "it"))
            client_program(engine.obtaining, installation, words[0])
        except UserError as wrong:
            yield act, wrong


def _words(command: str, given: Mapping[str, str]) -> list[str]:
    """The words of a command with what stands for `${...}` in them. Raises UserError."""
    try:
        words = shlex.split(command)
    except ValueError as fault:
        raise UserError(f"the command cannot be read: {fault}", "close each quote") from None
    return [filled_in(word, given, "[[meanwhile]]") for word in words]


def command_of(command: str, running: Running, folder: Path) -> list[str]:
    """A command with the server's place in it. Its program comes from the server's own installation, or else
    from this host. Raises UserError for a name that stands for nothing, and EngineMissing for a program that
    is not here."""
    given = place_of_server(running.server.url) | {"folder": str(folder)}
    if "${password_file}" in command:
        # Servers of Dyno's own take no password from this host.
        given["password_file"] = str(folder / "password")
        (folder / "password").touch(mode=0o600)
    first, *rest = _words(command, given)
    setup = running.setup
    return [*client_program(setup.engine.obtaining, setup.installation, first), *rest]


def place_of_server(url: str) -> dict[str, str]:
    """Where a server is, by the names that stand for it in a command: at a socket, or at a port of a host. A
    socket whose name ends with a port is found by its folder."""
    parts = urlsplit(url)
    socket = dict(parse_qsl(parts.query)).get("socket", "")
    port = Path(socket).suffix.lstrip(".") if socket else str(parts.port or "")
    numbered = port.isdigit()
    found = {
        "host": (str(Path(socket).parent) if numbered else "localhost") if socket else parts.hostname or "",
        "port": port if numbered else "",
        "socket": socket,
        "user": unquote(parts.username or ""),
        "database": unquote(parts.path if not parts.netloc else parts.path.removeprefix("/")),
    }
    return {name: value for name, value in found.items() if value}


def path_beside(running: Running) -> str:
    """Where a command finds programs: beside the server first."""
    beside = [str(Path(word).parent) for word in running.setup.installation.command[-1:]]
    return os.pathsep.join([*beside, PLACES, os.environ.get("PATH", "")])
