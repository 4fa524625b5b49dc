"""Builds that a fleet keeps in its store, so that one host makes a build and all others take it.

A build is kept packed, in pieces, so that neither the server nor a host ever holds more than a piece of it in
memory. All of its pieces are written in one transaction, so what is there is whole. Whoever makes a build
holds an advisory lock of his session on its name, which the server frees at once when he dies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psycopg

from dbdyno.fleet.session import ADVISORY, Session
from dbdyno.frozen import Frozen

PIECE_BYTES = 1 << 20
MAKING = ADVISORY + 1
"""The class of the advisory locks of builds."""
_HELD = (
    "FROM dyno_build_makers JOIN pg_locks USING (pid) WHERE locktype = 'advisory' AND granted"
    f" AND objsubid = 2 AND classid = {MAKING}::oid"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
"""Who makes something, and holds a lock for it. A session holds one at a time."""


class KeptBuild(Frozen):
    """A build in the store: its `name` on the shelf of builds, the host that made it, and what it is in
    words. `content` is the digest of what it installed, and `sha256` that of the `packed_bytes`."""

    name: str
    host: str
    words: str
    content: str
    sha256: str
    packed_bytes: int


class Listed(Frozen):
    """A build of the store for a list. `runs` are those that are not over and need it."""

    build: KeptBuild
    kept_unix_s: float
    runs: tuple[str, ...]


class Maker(Frozen):
    """Who makes a build, or asks the correctness gate of it, for a run and under the lease `fence`. Without
    `words` he only looks whether that is needed."""

    run: str
    host: str
    fence: int
    words: str


class Failure(Frozen):
    """Why a build could not be made on a host."""

    host: str
    message: str
    hint: str
    log: str


_COLUMNS = "name, host, words, content, sha256, packed_bytes"


def _build(row: tuple[object, ...]) -> KeptBuild:
    return KeptBuild.model_validate(dict(zip(_COLUMNS.split(", "), row, strict=True)))


def kept(session: Session, name: str) -> KeptBuild | None:
    """The build of a name; None where the store has none."""
    rows = session.execute(f"SELECT {_COLUMNS} FROM dyno_builds WHERE name = %s", name)
    return _build(rows[0]) if rows else None


def all_kept(session: Session) -> list[Listed]:
    """All builds, by name."""
    rows = session.execute(
        f"SELECT {_COLUMNS}, extract(epoch FROM kept_at)::float8,"
        " ARRAY(SELECT run FROM dyno_build_runs AS used JOIN dyno_runs USING (run)"
        " WHERE used.name = dyno_builds.name AND NOT finished ORDER BY run)"
        " FROM dyno_builds ORDER BY name"
    )
    return [Listed(build=_build(row[:-2]), kept_unix_s=row[-2], runs=tuple(row[-1])) for row in rows]


def keep(session: Session, build: KeptBuild, pieces: Iterable[bytes]) -> None:
    """Keeps a build in the place of what the store has of its name, as a whole or not at all. What the
    correctness gate found of the one before goes with that."""
    with session.transaction():
        session.execute("DELETE FROM dyno_builds WHERE name = %s", build.name)
        values = [getattr(build, column) for column in _COLUMNS.split(", ")]
        session.execute(f"INSERT INTO dyno_builds ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s)", *values)
        for number, piece in enumerate(pieces):
            session.execute("INSERT INTO dyno_build_pieces VALUES (%s, %s, %b)", build.name, number, piece)


def pieces_of(session: Session, name: str) -> Iterator[bytes]:
    """The pieces of a build in their order, one at a time."""
    number = 0
    statement = "SELECT piece FROM dyno_build_pieces WHERE name = %s AND number = %s"
    while rows := session.execute(statement, name, number):
        yield bytes(rows[0][0])
        number += 1


def remove(session: Session, name: str) -> None:
    """Removes a build, with what the correctness gate found of it."""
    session.execute("DELETE FROM dyno_builds WHERE name = %s", name)


def content_for(session: Session, run: str, build: KeptBuild) -> str:
    """The digest of what a run measures under the name of a build: that of the first host that asked for
    it."""
    values = (run, build.name, build.content, build.host)
    session.execute("INSERT INTO dyno_build_runs VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", *values)
    ((content,),) = session.execute(
        "SELECT content FROM dyno_build_runs WHERE run = %s AND name = %s", run, build.name
    )
    return str(content)


def note_failure(session: Session, run: str, name: str, failure: Failure) -> None:
    """Notes that a build could not be made, so that a run's other hosts do not try it each."""
    values = (run, name, failure.host, failure.model_dump_json())
    session.execute("INSERT INTO dyno_build_failures VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", *values)


def failure_of(session: Session, run: str, name: str) -> Failure | None:
    """Why a run does without a build; None where nothing is known against it."""
    found = session.execute(
        "SELECT document FROM dyno_build_failures WHERE run = %s AND name = %s", run, name
    )
    return Failure.model_validate_json(found[0][0]) if found else None


def note_gate(session: Session, name: str, content: str, asked: str, document: str) -> None:
    """Keeps what the correctness gate found of a build, where the store still has that one of its name."""
    session.execute(
        "INSERT INTO dyno_build_gates SELECT name, %s, %s FROM dyno_builds WHERE name = %s AND content = %s"
        " FOR SHARE ON CONFLICT (name, asked) DO UPDATE SET document = EXCLUDED.document",
        *(asked, document, name, content),
    )


def gates_of(session: Session, name: str, content: str) -> dict[str, str]:
    """All that the correctness gate found of a build, by what it asked. Nothing where the store has another
    one of its name."""
    found = "SELECT asked, document FROM dyno_build_gates JOIN dyno_builds USING (name)"
    return dict(session.execute(f"{found} WHERE name = %s AND content = %s", name, content))


@contextmanager
def made_by(session: Session, what: str, maker: Maker, wait_s: float = 0.0) -> Iterator[bool]:
    """Holds the lock of what is made within, such as a build by its name. False where another holds it for
    that long."""
    if not _locked(session, what, wait_s):
        yield False
        return
    try:
        session.execute(
            "INSERT INTO dyno_build_makers VALUES (%s, %s, %s, %s, %s, pg_backend_pid()) ON CONFLICT (what)"
            " DO UPDATE SET run = EXCLUDED.run, host = EXCLUDED.host, fence = EXCLUDED.fence,"
            " words = EXCLUDED.words, pid = EXCLUDED.pid",
            *(what, maker.run, maker.host, maker.fence, maker.words),
        )
        yield True
    finally:
        # Of a session that has ended the server frees the lock itself.
        session.execute("DELETE FROM dyno_build_makers WHERE what = %s AND pid = pg_backend_pid()", what)
        session.execute("SELECT pg_advisory_unlock(%s, %s)", MAKING, _number(what))


def begin(session: Session, what: str, words: str) -> None:
    """Says what is begun under a lock that this session holds."""
    session.execute("UPDATE dyno_build_makers SET words = %s WHERE what = %s", words, what)


def maker_of(session: Session, what: str) -> Maker | None:
    """Who makes this now; None where nobody is known."""
    rows = session.execute(f"SELECT run, host, fence, words {_HELD} AND what = %s", what)
    return _maker(rows[0]) if rows else None


def makers_for(session: Session, run: str) -> list[Maker]:
    """Who makes something for a run now."""
    asked = f"SELECT run, host, fence, words {_HELD} AND run = %s AND words <> '' ORDER BY what"
    rows = session.execute(asked, run)
    return [_maker(row) for row in rows]


def end_stopped(session: Session, what: str) -> bool:
    """Ends the session of who makes this though his lease is over, because he was stopped. Returns whether
    there was one."""
    over = "fence IN (SELECT fence FROM dyno_leases WHERE upper(during) < clock_timestamp())"
    return bool(session.execute(f"SELECT pg_terminate_backend(pid) {_HELD} AND what = %s AND {over}", what))


def _maker(row: tuple[object, ...]) -> Maker:
    run, host, fence, words = row
    return Maker.model_validate({"run": run, "host": host, "fence": fence, "words": words})


def _locked(session: Session, what: str, wait_s: float) -> bool:
    if not wait_s:
        ((taken,),) = session.execute("SELECT pg_try_advisory_lock(%s, %s)", MAKING, _number(what))
        return bool(taken)
    session.execute("SELECT set_config('lock_timeout', %s, FALSE)", f"{wait_s:g}s")
    try:
        session.execute("SELECT pg_advisory_lock(%s, %s)", MAKING, _number(what))
    except psycopg.errors.LockNotAvailable:
        return False
    finally:
        session.execute("SELECT set_config('lock_timeout', '0', FALSE)")
    return True


def _number(what: str) -> int:
    """The lock of what is made. Two of one number wait for each other, and are made none the less."""
    return int.from_bytes(hashlib.sha256(what.encode()).digest()[:4], "big", signed=True)
