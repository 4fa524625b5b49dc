"""How PostgreSQL takes over data of an older version without `pg_upgrade`: `pg_dumpall` of the old server,
read by `psql` into the new one, as the documentation of both tools has it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dbdyno.engines.engine import ending
from dbdyno.engines.postgresql import server
from dbdyno.engines.postgresql.server import SERVER
from dbdyno.engines.server import ACCOUNT, DATABASE, ServerProcess, socket_of
from dbdyno.engines.upgrade import STOP_S, series_of
from dbdyno.errors import ServerFailed
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.host.process import die_with_parent, how_it_ended, kill_family
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import fronts, programs
from dbdyno.user_data.feed import environment

TOOLS = ("pg_dumpall", "pg_dump", "psql")
RELEASE = re.compile(r"\d+\.\d+")
REFUSAL = re.compile(r"^psql:<stdin>:\d+: (?:ERROR|FATAL|error): +(.*)$", re.MULTILINE)
OWN = {f'role "{ACCOUNT}" already exists', f'database "{DATABASE}" already exists'}
"""A data folder of Dyno's has them from its making, and a dump holds them too."""


def release_of(command: Sequence[str]) -> str:
    """The version of one of PostgreSQL's programs, as it tells it; empty where it tells none."""
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    found = RELEASE.search(said.stdout)
    return found[0] if found else ""


def clients(old: Installation, new: Installation) -> tuple[str, Mapping[str, Sequence[str]]] | None:
    """The newest release whose clients read the old server and write for the new one, with their commands;
    None where there is none. A dump is promised to load into servers of its own version and later ones."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in TOOLS:
        for command in programs(new, SERVER.client, name):
            found.setdefault(release_of(command), {}).setdefault(name, command)
    whole = [
        release
        for release, commands in found.items()
        if set(commands) == set(TOOLS)
        and series_of(old.version, 1) <= series_of(release, 1) <= series_of(new.version, 1)
    ]
    newest = max(whole, key=lambda release: series_of(release, 2), default=None)
    return None if newest is None else (newest, found[newest])


def dump_and_restore(
    old: Installation, new: Installation, data: Path, runtime: Path, creation: Mapping[str, Level]
) -> str:
    """Moves the data aside, and makes a cluster of the new version of them; what was done, in words.
    Raises ServerFailed where either tool fails, or a statement is refused."""
    chosen = clients(old, new)
    assert chosen is not None, "asked for only where the clients are here"
    release, commands = chosen
    before, fresh = data / "before", data / "fresh"
    before.mkdir(mode=0o700)
    (data / "database").rename(before / "database")
    server.initialise(new, fresh, creation)
    beside = fronts(runtime / "clients", commands)
    source, target = _started(old, before, runtime / "old"), _started(new, fresh, runtime / "new")
    with ending(source, STOP_S), ending(target, STOP_S):
        _pour(beside, source.url, target.url)
    (fresh / "database").rename(data / "database")
    for left in (before, fresh):
        shutil.rmtree(left)
    return f"pg_dumpall and psql {release}"


def _started(installation: Installation, data: Path, runtime: Path) -> ServerProcess:
    runtime.mkdir(mode=0o700)
    return server.start(installation, data, runtime, {}, Launch())


def _pour(clients: Path, source: str, target: str) -> None:
    reading = [str(clients / "pg_dumpall"), *_to(source)]
    writing = [str(clients / "psql"), "--no-psqlrc", "--quiet", *_to(target), "--file=-"]
    with tempfile.TemporaryFile() as of_dump, tempfile.TemporaryFile() as of_restore:
        with (
            _running(reading, subprocess.DEVNULL, subprocess.PIPE, of_dump) as dump,
            _running(writing, dump.stdout, subprocess.DEVNULL, of_restore) as restore,
        ):
            assert dump.stdout is not None
            # Else the dump would not notice that its reader is gone.
            dump.stdout.close()
            codes = restore.wait(), dump.wait()
        refused = [line for line in REFUSAL.findall(_text(of_restore)) if line not in OWN]
        if refused:
            raise ServerFailed(
                f"psql could not restore the dump: {refused[0]}", "look at what the dump holds"
            )
        for title, code, said in zip(("psql", "pg_dumpall"), codes, (of_restore, of_dump), strict=True):
            if code:
                told = _text(said).strip().splitlines()
                raise ServerFailed(
                    f"{title} {how_it_ended(code)}{f': {told[-1]}' if told else ''}",
                    "look at its output, which follows",
                    _text(said),
                )


def _to(url: str) -> list[str]:
    return [f"--dbname=host={socket_of(url).parent} port={server.PORT} user={ACCOUNT} dbname=postgres"]


@contextmanager
def _running(
    command: Sequence[str], source: IO[bytes] | int | None, target: int, errors: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        list(command),
        stdin=source,
        stdout=target,
        stderr=errors,
        env=environment(("PG",)),
        start_new_session=True,
        preexec_fn=die_with_parent(),
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            kill_family(child)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
