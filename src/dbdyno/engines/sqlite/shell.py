"""SQLite on another architecture: its shell of that machine, which runs a script of transfers.

A load process of this machine loads no library of another one. So Dyno writes transactions to the shell, one
after the other, and reads the line with which the shell acknowledges each commit. Then it ends the shell, and
asks a second one of the same machine, and the library of this machine, what is in the file.
"""

from __future__ import annotations

import os
import random
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from dbdyno.engines.facts import ShellRound
from dbdyno.engines.sqlite.server import PLATFORMS
from dbdyno.errors import ServerFailed
from dbdyno.host.launch import Launch
from dbdyno.host.process import confine, how_it_ended, kill_family
from dbdyno.obtain.cross import count_instructions
from dbdyno.obtain.installation import Installation
from dbdyno.records.record import Check, Recovery
from dbdyno.study.soak import Act

FILE = "database.sqlite"
ACCOUNTS = 1000
COUNTED = (2, 6)
"""Transactions whose instructions are counted, of two shells."""
LEAST = 20
"""Fewer commits would say little, however short the load is."""
ANSWER_S = 60.0
"""How long a shell may be silent before it counts as hanging."""
SCHEMA = f"""
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE branch (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
CREATE TABLE ledger (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, amount INTEGER NOT NULL);
INSERT INTO branch VALUES (1, 0);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ACCOUNTS})
INSERT INTO account SELECT i, 0 FROM n;
"""
ASKED = {
    "integrity": "PRAGMA integrity_check",
    "accounts": "SELECT sum(balance) FROM account",
    "branch": "SELECT sum(balance) FROM branch",
    "ledger": "SELECT coalesce(sum(amount), 0) FROM ledger",
}


def make(installation: Installation, folder: Path) -> None:
    """Makes the file with the tables of the load. Raises ServerFailed."""
    _run(installation, folder, SCHEMA)


@contextmanager
def opened(installation: Installation, folder: Path) -> Iterator[int]:
    """The process of a shell that has answered, until it is left. Raises ServerFailed."""
    with _started(installation, folder) as shell:
        _write(shell, folder, "SELECT 1;\n")
        _acknowledged(shell, folder)
        yield shell.pid


def instructions(installation: Installation, folder: Path) -> int | None:
    """How many instructions one transaction of the load takes, in a file of its own: those of a shell that
    has some, less those of one that has fewer, so that its start does not count. None where nothing here
    counts them. Raises ServerFailed where the shell fails."""
    found = []
    for transactions in COUNTED:
        own = folder / f"counted-{transactions}"
        own.mkdir()
        make(installation, own)
        script = own / "script.sql"
        draw = random.Random(0)
        script.write_text("".join(_transaction(number, draw) for number in range(1, transactions + 1)))
        found.append(count_instructions(installation, ("-batch", "-bail", str(own / FILE)), script))
    few, many = found
    return None if few is None or many is None else round((many - few) / (COUNTED[1] - COUNTED[0]))


def round_of(installation: Installation, folder: Path, act: Act, load_s: float) -> ShellRound:
    """A load of so many seconds, ended by a kill in its midst or by the end of its input, and what is there
    afterwards. Raises ServerFailed for a shell that fails before that, or does not answer."""
    first = int(_run(installation, folder, "SELECT coalesce(max(id), 0) FROM ledger;")) + 1
    acknowledged = _loaded(installation, folder, act, load_s, first)
    told = _run(installation, folder, "".join(f"{sql};" for sql in ASKED.values())).splitlines()
    answers = dict(zip(ASKED, told, strict=False))
    present = {int(line) for line in _run(installation, folder, "SELECT id FROM ledger;").split()}
    lost = sorted(set(acknowledged) - present)
    checks = (sound(answers), _same_here(folder / FILE, answers))
    broken = "; ".join(f"{check.name}: {check.detail}" for check in checks if not check.holds)
    recovery = Recovery(
        act=act,
        damage=broken,
        acknowledged=len(acknowledged),
        lost=len(lost),
        present=sum(one >= first for one in present),
    )
    return ShellRound(recovery, checks)


def sound(answers: dict[str, str]) -> Check:
    """Whether the file is whole, and its sums agree, by the answers to what is asked."""
    sums = {answers.get(name) for name in ("accounts", "branch", "ledger")}
    holds = answers.get("integrity") == "ok" and len(sums) == 1
    return Check(name="sums_agree", holds=holds, detail="" if holds else f"the shell says {answers}")


def _same_here(file: Path, answers: dict[str, str]) -> Check:
    """The format of the file has one byte order for all machines, so the library here reads the same."""
    # Here, because a command that only shows asks no file.
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as here:
            found = {name: str(here.execute(sql).fetchone()[0]) for name, sql in ASKED.items()}
    except sqlite3.Error as error:
        return Check(name="read_by_this_machine", holds=False, detail=str(error))
    holds = found == answers
    return Check(name="read_by_this_machine", holds=holds, detail="" if holds else f"it reads {found}")


def _loaded(installation: Installation, folder: Path, act: Act, load_s: float, first: int) -> list[int]:
    """The transactions, by their numbers, whose commit the shell acknowledged."""
    draw, number, acknowledged = random.Random(first), first, list[int]()
    with _started(installation, folder) as shell:
        until = time.monotonic() + load_s
        while time.monotonic() < until or len(acknowledged) < LEAST:
            _send(shell, folder, number, draw)
            acknowledged.append(_acknowledged(shell, folder))
            number += 1
        if act is Act.KILL:
            # Nobody waits for this one, so the kill meets it somewhere on its way.
            _send(shell, folder, number, draw)
        else:
            _end(shell, folder)
    return acknowledged


@contextmanager
def _started(installation: Installation, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A shell that takes statements, and is killed when it is left."""
    with (folder / "shell.log").open("wb") as errors:
        shell = subprocess.Popen(
            _command(installation, folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
            start_new_session=True,
            preexec_fn=confine(before_exec=Launch().steps(folder)),
        )
        try:
            yield shell
        finally:
            kill_family(shell)


def _send(shell: subprocess.Popen[bytes], folder: Path, number: int, draw: random.Random) -> None:
    _write(shell, folder, _transaction(number, draw))


def _transaction(number: int, draw: random.Random) -> str:
    account, amount = draw.randint(1, ACCOUNTS), draw.randint(-5000, 5000)
    return (
        "BEGIN IMMEDIATE;"
        f"UPDATE account SET balance = balance + {amount} WHERE id = {account};"
        f"UPDATE branch SET balance = balance + {amount};"
        f"INSERT INTO ledger VALUES ({number}, {account}, {amount});"
        f"COMMIT;SELECT {number};\n"
    )


def _write(shell: subprocess.Popen[bytes], folder: Path, text: str) -> None:
    assert shell.stdin is not None
    try:
        shell.stdin.write(text.encode())
    except BrokenPipeError:
        raise _failed(shell.wait(), folder) from None


def _acknowledged(shell: subprocess.Popen[bytes], folder: Path) -> int:
    assert shell.stdout is not None
    told = b""
    while not told.endswith(b"\n"):
        if not select.select([shell.stdout], [], [], ANSWER_S)[0]:
            raise ServerFailed(f"SQLite's shell did not answer within {ANSWER_S:g} s", "look at its log")
        piece = os.read(shell.stdout.fileno(), 4096)
        if not piece:
            raise _failed(shell.wait(), folder)
        told += piece
    return int(told)


def _end(shell: subprocess.Popen[bytes], folder: Path) -> None:
    assert shell.stdin is not None
    shell.stdin.close()
    if code := shell.wait(ANSWER_S):
        raise _failed(code, folder)


def _failed(code: int, folder: Path) -> ServerFailed:
    log = (folder / "shell.log").read_text(errors="replace")
    reason = next(iter(log.strip().splitlines()), how_it_ended(code))
    return ServerFailed(f"SQLite's shell failed under the load: {reason}", "look at its log", log)


def _run(installation: Installation, folder: Path, script: str) -> str:
    """What a shell of its own answers to a script."""
    done = subprocess.run(
        _command(installation, folder),
        input=script,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=ANSWER_S,
        preexec_fn=confine(before_exec=Launch().steps(folder)),
    )
    if done.returncode != 0:
        said = next(iter(done.stderr.strip().splitlines()), how_it_ended(done.returncode))
        raise ServerFailed(f"SQLite's shell failed: {said}", "look at its log", done.stderr)
    return done.stdout


def _command(installation: Installation, folder: Path) -> Sequence[str]:
    return [*installation.command, "-batch", "-bail", str(folder / FILE)]


RECIPE = PLATFORMS.recipes[0]
PROGRAM = RECIPE.binary
ASK = f'/{PROGRAM} -batch -bail /data/{FILE} "{"; ".join(ASKED.values())}"'
TRANSFERS = 2_000


def data() -> Mapping[str, bytes]:
    """A file with transfers between accounts. It has one byte order on all machines, so it is made here."""
    # Here, because a command that only shows asks no file.
    import sqlite3

    draw = random.Random(0)
    transfers = [
        (number, draw.randint(1, ACCOUNTS), draw.randint(-5000, 5000)) for number in range(1, TRANSFERS + 1)
    ]
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(SCHEMA)
        made.executemany("INSERT INTO ledger VALUES (?, ?, ?)", transfers)
        made.execute(
            "UPDATE account SET balance ="
            " (SELECT coalesce(sum(amount), 0) FROM ledger WHERE account = account.id)"
        )
        made.execute("UPDATE branch SET balance = (SELECT sum(amount) FROM ledger)")
        made.commit()
        return {f"data/{FILE}": made.serialize()}


def check(answers: Sequence[str]) -> Check:
    """The file is whole, and its three sums agree."""
    return sound(dict(zip(ASKED, answers, strict=False)))
