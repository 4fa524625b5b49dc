"""Two real servers behind one address, struck at every statement that Dyno sends while it moves settings.

`python -m tests.engines.struck ENGINE CASES SEED` prints a line of JSON for each breach, and then the counts.
A number after these says how many of the drawn cases are left out, so that several calls can share them.
The switch lies between Dyno and the driver: it counts statements over all sessions, and carries each to the
server at the address. A case strikes before one statement, in the run or in the cleanup after a kill:

- `switch`: the address leads to the other server from then on, and open sessions stay where they are; `cut`
  ends those; `pooler` leads those elsewhere as well, and lends a session to whoever asks next;
- `stray`: this statement alone is led to the other server;
- `writer`: somebody else gives the setting another value; `beside`: another setting;
- `kill`: Dyno is killed; `revoke`: its account loses its rights.

In a case of a `pair`, Dyno moves two settings, of which one pushes the other where the engine has such.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from dbdyno.driver import passwords as driver_query
from dbdyno.driver.passwords import Ask, Rows
from dbdyno.engines import put_back, registry
from dbdyno.engines.put_back import ReachedSession, SettingBefore, wait_until
from dbdyno.errors import DriverFailed, DynoError
from dbdyno.host import paths
from dbdyno.host.journal import open_journal, replay_abandoned, waiting_servers
from dbdyno.prepare_run.running import Noted, put_back_by
from dbdyno.records.in_use import Identity, InUse, SettingWay
from dbdyno.study.nouns import Reference
from dbdyno.trial.running import switch as switch_module
from dbdyno.trial.running.switch import SettingsSwitch
from tests.running_server import TUNER, UsersServer, users_server

FAULTS = ("switch", "cut", "pooler", "stray", "writer", "beside", "kill", "revoke")
SWITCHES = ("switch", "cut", "pooler")
INSTANT = "ALTER SYSTEM"
"""How a statement begins that writes whatever others have set since Dyno looked."""
ADDRESS = "{scheme}://tuner@at.the.switch/dyno"
HANGS_S = 60
TAKE_S = 1.0
"""How long Dyno waits in vain for a value that somebody else has changed."""


@dataclass(frozen=True)
class Kind:
    """How an engine's settings are moved in the cases: the setting, its levels, what others choose, what
    moves along, two that push each other (what stood, and two levels of each), and a setting beside."""

    reference: str
    name: str
    levels: tuple[str, str]
    before: tuple[str, str]
    of_others: str
    along: str
    pair: Mapping[str, tuple[str, str, str]]
    beside: str
    prepare: tuple[str, ...]
    grant: tuple[str, ...]
    revoke: tuple[str, ...]
    move: str


IO_CAPACITY = (
    "innodb_io_capacity",
    ("400", "10000"),
    ("300", "350"),
    "250",
    "innodb_io_capacity_max",
    {"innodb_io_capacity": ("5000", "200", "300"), "innodb_io_capacity_max": ("6000", "400", "300")},
)
DIRTY_PAGES = (
    "innodb_max_dirty_pages_pct",
    ("20", "5"),
    ("60", "50"),
    "77",
    "innodb_max_dirty_pages_pct_lwm",
    {"innodb_max_dirty_pages_pct_lwm": ("50", "10", "4"), "innodb_max_dirty_pages_pct": ("60", "20", "5")},
)
"""The second level of each moves the last one along."""


def _of_mysql(
    reference: str,
    right: str,
    moved: tuple[str, tuple[str, str], tuple[str, str], str, str, Mapping[str, tuple[str, str, str]]],
) -> Kind:
    return Kind(
        reference,
        *moved,
        "max_connect_errors",
        (
            f"CREATE USER {TUNER}@localhost",
            f"GRANT PROCESS ON *.* TO {TUNER}@localhost",
            f"GRANT SELECT ON dyno.* TO {TUNER}@localhost",
        ),
        (f"GRANT {right} ON *.* TO {TUNER}@localhost",),
        (f"REVOKE {right} ON *.* FROM {TUNER}@localhost",),
        "SET GLOBAL {name} = {value}",
    )


_ALTER = f"ALTER SYSTEM ON PARAMETER checkpoint_timeout, checkpoint_warning {{}} {TUNER}"
KINDS = {
    "postgresql": Kind(
        "postgresql@15",
        "checkpoint_timeout",
        ("300", "900"),
        ("420", "480"),
        "660",
        "",
        {"checkpoint_timeout": ("420", "300", "900"), "checkpoint_warning": ("20", "25", "40")},
        "deadlock_timeout",
        (
            f"CREATE ROLE {TUNER} LOGIN",
            f"GRANT SELECT ON pg_file_settings TO {TUNER}",
            f"GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO {TUNER}",
            f"GRANT EXECUTE ON FUNCTION pg_reload_conf() TO {TUNER}",
        ),
        ("GRANT " + _ALTER.format("TO"),),
        ("REVOKE " + _ALTER.format("FROM"),),
        "ALTER SYSTEM SET {name} = '{value}'",
    ),
    "mariadb": _of_mysql("mariadb@11.8", "SUPER", IO_CAPACITY),
    "mysql": _of_mysql("mysql@9", "SYSTEM_VARIABLES_ADMIN", DIRTY_PAGES),
}


@dataclass(frozen=True)
class Case:
    """A fault before the statement of a number, in the run or in the cleanup of one that was killed."""

    phase: str
    fault: str
    statement: int
    pair: bool = False


class Scene:
    """The servers, what stood there, and the switch. A case is a child of this process."""

    def __init__(self, engine: str, servers: tuple[UsersServer, UsersServer], root: Path) -> None:
        self.kind, self.servers = KINDS[engine], servers
        self.engine, self.runtime = registry.engine(engine), registry.runtime_of(engine)
        self.url = ADDRESS.format(scheme=engine)
        self.at, self.sent, self.case = 0, 0, Case("run", "none", 0)
        self.struck = root / "struck"
        setattr(put_back, "conversation", self.conversation)  # noqa: B010  its type is a function's
        self.lent = dict[int, Ask]()
        for server in servers:
            server.tell(*self.kind.prepare, *self.kind.grant)
        self.stand(False)
        self.late = {pair: self.late_in(pair) for pair in (False, True)}
        self.theirs = dict[str, dict[str, str]]()
        for fault in ("writer", "beside"):
            self.stand(False)
            before = self.state(0)
            self.others_write(fault)
            after = self.state(0)
            self.theirs[fault] = {name: value for name, value in after.items() if before.get(name) != value}
        self.reset()

    def give(self, number: int, statements: Iterable[str]) -> None:
        """What somebody else does to a server, until that server has taken it over."""
        with self.admin(number) as ask:
            for sql in statements:
                ask(sql)
            if self.engine.name == "postgresql":
                [[before]] = ask("SELECT pg_conf_load_time()::text FROM pg_reload_conf()")
                taken = f"SELECT 1 WHERE pg_conf_load_time() <> '{before}'"
                assert wait_until(lambda: bool(ask(taken)), HANGS_S)

    def others_write(self, fault: str) -> None:
        """What somebody else sets on Dyno's own server."""
        name, value = (
            (self.kind.beside, "1234") if fault == "beside" else (self.kind.name, self.kind.of_others)
        )
        self.give(0, [self.kind.move.format(name=name, value=value)])

    def stand(self, pair: bool) -> None:
        """Gives both servers what stands before a case, which is not the same on both."""
        kind = self.kind
        for number, value in enumerate(kind.before):
            values = [(name, kind.pair[name][0]) for name in kind.pair]
            if self.engine.name == "postgresql":
                statements = [f"ALTER SYSTEM RESET {kind.beside}"]
            else:
                # Twice, because one may be cut by the other.
                values += [*values, (kind.beside, "100")]
                statements = []
            if not pair or number == 1:
                values.append((kind.name, value))
            if kind.along and not pair:
                values.append((kind.along, {"mariadb": "2000", "mysql": "10"}[self.engine.name]))
            self.give(number, statements + [kind.move.format(name=name, value=to) for name, to in values])

    def reset(self) -> None:
        """Empties the folders, whatever a case left."""
        for path in (*paths.journals().iterdir(), *paths.marks().iterdir()):
            path.unlink()

    def state(self, number: int) -> dict[str, str]:
        """All settings of a server, and the lines that it keeps for its next start."""
        with self.admin(number) as ask:
            found = dict(self.runtime.in_force(ask).value)
            if self.engine.name == "postgresql":
                rows = ask("SELECT name, setting FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'")
                found |= {f"line of {name}": str(value) for name, value in rows}
        return found

    def admin(self, number: int) -> AbstractContextManager[Ask]:
        """A session of a server's administrator, with what a new session is told."""
        server = self.servers[number].server
        assert server is not None
        return driver_query.conversation(server.url)

    def strikes(self, sql: str) -> None:
        """Counts a statement, and does before it what the case says."""
        self.sent += 1
        if self.sent != self.case.statement:
            return
        self.struck.write_text(sql)
        fault, own = self.case.fault, self.servers[0]
        if fault in SWITCHES:
            self.at = 1
        elif fault in self.theirs:
            self.others_write(fault)
        elif fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "revoke":
            own.tell(*self.kind.revoke)

    @contextmanager
    def conversation(self, _url: str) -> Iterator[Ask]:
        """A session through the switch."""
        with ExitStack() as open_sessions:
            sessions, began_at = dict[int, Ask](), None
            if self.case.fault == "pooler" and not self.runtime.COMPARES:
                sessions = self.lent

            def ask(sql: str) -> Rows:
                nonlocal began_at
                self.strikes(sql)
                began_at = self.at if began_at is None else began_at
                if self.case.fault == "cut" and self.at != began_at:
                    raise DriverFailed("the connection was cut", "", "server")
                at = self.at if self.case.fault == "pooler" else began_at
                if self.case.fault == "stray" and self.sent == self.case.statement:
                    at = 1 - at
                if at not in sessions:
                    talk = driver_query.conversation(self.servers[at].url)
                    sessions[at] = (
                        talk.__enter__() if sessions is self.lent else open_sessions.enter_context(talk)
                    )
                return sessions[at](sql)

            yield ask

    def dyno(self, pair: bool) -> None:
        """What a run does with a server: notes, moves twice, compares, puts back."""
        kind = self.kind
        levels = {name: each[1:] for name, each in kind.pair.items()}
        levels = levels if pair else {kind.name: kind.levels}
        with self.conversation(self.url) as ask:
            at = ReachedSession(self.url, self.runtime.who(ask), ask, self.engine, self.runtime)
            server, lines, now = at.server, at.lines(levels), at.values()
        ways = tuple(SettingWay(name=name, does="moved", now=now[name]) for name in levels)
        standings = tuple(
            SettingBefore.of(server, way, lines[way.name], levels[way.name], "") for way in ways
        )
        in_use = InUse(
            url=self.url,
            identity=Identity(version="", digest="", account=""),
            here=False,
            data="mine",
            ways=ways,
        )
        with open_journal() as journal:
            note = Noted(journal, None, self.url, server, "r")
            note.settings(standings)
            switch = SettingsSwitch(self.engine, in_use, server, standings, note)
            try:
                for number in (0, 1, 0):
                    switch.take_turn({name: each[number] for name, each in levels.items()})
            finally:
                put_back_by(switch, journal)

    def child(self, act: Callable[[], object], case: Case) -> int:
        """A Dyno of its own; the number of statements that it sent, at most 255."""
        process_id = os.fork()
        if process_id == 0:
            try:
                signal.alarm(HANGS_S)
                self.sent, self.case = 0, case
                with suppress(DynoError):
                    act()
                os._exit(min(self.sent, 255))
            except BaseException as fault:
                print(f"a fault of the test's own: {fault!r}", file=sys.stderr)
                os._exit(0)
        _, status = os.waitpid(process_id, 0)
        return os.waitstatus_to_exitcode(status)

    def cleanup(self, case: Case = Case("cleanup", "none", 0)) -> None:
        self.child(lambda: replay_abandoned(lambda _: True), case)

    def tried(self, case: Case) -> dict[str, str]:
        """Carries a case out; what of it breaches the promise."""
        self.stand(case.pair)
        self.struck.write_text("")
        before, found = [self.state(number) for number in (0, 1)], dict[str, str]()
        if case.phase == "cleanup":
            # It dies once both levels were in force.
            self.child(lambda: self.dyno(case.pair), Case("run", "kill", self.late[case.pair]))
            # A cleanup that waits less often than the one that was counted may end before the statement.
            self.struck.write_text("")
            self.cleanup(case)
        else:
            self.child(lambda: self.dyno(case.pair), case)
        named = " ".join(line for lines in waiting_servers().values() for line in lines)
        self.compare(case, before, named, "at its end", found)
        if case.fault in (*SWITCHES, "kill"):
            # Somebody cleans up while the other server is at the address.
            self.at = 1
            self.cleanup()
            left = waiting_servers()
            named = " ".join(line for lines in left.values() for line in lines)
            self.compare(case, before, named, "after a cleanup at the other", found)
            self.at = 0
        self.servers[0].tell(*self.kind.grant)
        self.cleanup()
        named = " ".join(line for lines in waiting_servers().values() for line in lines)
        self.compare(case, before, named, "after the cleanup", found, last=True)
        self.reset()
        return found

    def compare(
        self,
        case: Case,
        before: list[dict[str, str]],
        named: str,
        when: str,
        found: dict[str, str],
        last: bool = False,
    ) -> None:
        """What is neither as it was, nor as others set it, nor named by the journal."""
        overwritten = self.struck.read_text().startswith(INSTANT)
        theirs = self.theirs.get(case.fault, {}) if self.struck.read_text() else {}
        for number in (0, 1):
            now = self.state(number)
            for name in before[number].keys() | now.keys():
                setting = name.removeprefix("line of ")
                was, stands = before[number].get(name), now.get(name)
                if number == 0 and name in theirs:
                    # What others have set is theirs, but for the instant that the guide tells of.
                    if stands == theirs[name] or (overwritten and stands == was):
                        continue
                elif was == stands:
                    continue
                if setting in named and "astray" in named:
                    continue
                if number == 0 and named and (not last or "others beside" in named):
                    continue
                found[f"{when}, server {number}, {name}"] = f"{was} became {stands}; journal: {named}"

    def late_in(self, pair: bool) -> int:
        """The number of a statement once all levels were in force."""
        self.stand(pair)
        whole = self.child(lambda: self.dyno(pair), Case("run", "none", 0))
        assert 10 < whole < 255, whole
        return whole * 2 // 3

    def cases(self) -> list[Case]:
        """A fault at each statement of a run, and of the cleanup after one that was killed."""
        found = []
        for pair in (False, True):
            self.stand(pair)
            whole = self.child(lambda pair=pair: self.dyno(pair), Case("run", "none", 0))  # type: ignore[misc]
            self.child(lambda pair=pair: self.dyno(pair), Case("run", "kill", self.late[pair]))  # type: ignore[misc]
            of_cleanup = self.child(lambda: replay_abandoned(lambda _: True), Case("cleanup", "none", 0))
            assert of_cleanup > 3, of_cleanup
            found += [
                Case(phase, fault, number, pair)
                for phase, length in (("run", whole), ("cleanup", of_cleanup))
                for fault in FAULTS
                for number in range(1, length + 1)
            ]
        self.reset()
        return found


@contextmanager
def scene(engine: str) -> Iterator[Scene]:
    """Two servers of an engine and folders for Dyno."""
    reference = KINDS[engine].reference
    with ExitStack() as stack:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dyno-", dir=memory)))
        folders = (root / "a", root / "b")
        for folder in folders:
            folder.mkdir()
        if engine == "mysql":
            # It takes seconds to make its data, and gives itself a name where it finds none.
            data = root / "a" / "data"
            installation = registry.locate(Reference.of(reference))
            registry.engine(engine).life.initialise(installation, data, {})
            shutil.copytree(data, root / "b" / "data")
            (root / "b" / "data" / "database" / "auto.cnf").unlink(missing_ok=True)
        servers = [stack.enter_context(users_server(reference, folder)) for folder in folders]
        # The engines were found where they are; all that a case leaves is found here.
        os.environ[paths.HOST_VARIABLE] = str(root / "host")
        for variable in ("DATA", "CACHE", "STATE", "CONFIG"):
            os.environ[f"XDG_{variable}_HOME"] = str(root / variable.lower())
        setattr(switch_module, "PAUSE_S", 0.0)  # noqa: B010
        for module in (put_back, switch_module):
            setattr(module, "TAKE_S", TAKE_S)  # noqa: B010
        yield Scene(engine, (servers[0], servers[1]), root)


def main(engine: str, wanted: int, seed: int, first: int = 0) -> int:
    tried, breaches = Counter[str](), 0
    with scene(engine) as here:
        cases = here.cases()
        random.Random(seed).shuffle(cases)
        for number, case in zip(count(), cases[first:][: wanted or None], strict=False):
            tried[f"{case.phase}{' of a pair' if case.pair else ''}: {case.fault}"] += 1
            if found := here.tried(case):
                breaches += 1
                print(json.dumps({**vars(case), "found": found}), flush=True)
            if number % 50 == 49:
                print(f"{number + 1} cases, {breaches} breaches", file=sys.stderr, flush=True)
    print(json.dumps({"all": len(cases), "seed": seed, "breaches": breaches, "tried": tried}))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
