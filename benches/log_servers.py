"""What servers of every version here log is read back, and what sessions of tools log is played on a copy.

    python -m benches.log_servers [--engine NAME@VERSION ...] [--session NAME ...] [--orm PYTHON]
        [--no-forms] [--rows]

Each line of the first table is a server and a form of its log: how many of the statements that it was asked
came out of the log as they were asked, each in its session. A text of PostgreSQL is read with six prefixes.
Statements that hold what looks like another entry are asked too, and may be left out.

Each line of the second table is a session of a tool: pgbench, sysbench, a dump, an ORM (SQLAlchemy of the
interpreter that `--orm` names, with pymysql and pg8000). The server logs it, a copy of the data from before
plays the recording at its times, and the tables of both are compared: by CHECKSUM TABLE, or by a digest of
their ordered rows.

With `--rows` a shop is asked 2,400 statements with ranges, lists, pages, pairs of a key and rows of INSERTs,
and `dyno init study` prints the rows of each statement in the log and on a copy.
"""

from __future__ import annotations

import argparse
import datetime
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.driver import _driver
from dbdyno.driver.job import Job
from dbdyno.driver.tally import Tally
from dbdyno.engines.engine import Server
from dbdyno.engines.postgresql.server import SERVER
from dbdyno.engines.postgresql.settings import LOGGED
from dbdyno.engines.registry import ENGINES, locate
from dbdyno.engines.server import ACCOUNT, DATABASE, ServerProcess, socket_of
from dbdyno.errors import DynoError
from dbdyno.frozen import Level
from dbdyno.host.launch import Launch
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.server import program
from dbdyno.sql_logs.postgresql.prefix import prefix_pattern
from dbdyno.sql_logs.read import log_of
from dbdyno.sql_logs.record import record
from dbdyno.sql_logs.seen import LogReading
from dbdyno.study.nouns import Reference
from tests.conformance.sessions_cases import rows
from tests.conformance.traffic_cases import PREFIXES, asked, read, told
from tests.given_data import MARIADB_TOOLS, mysql_options, run, tool_of

VERSIONS = (
    *("mariadb@10.11", "mariadb@11.8", "mysql@9"),
    *(f"postgresql@{version}" for version in (13, 14, 15, 16, 17, 18)),
)
TEXT_PREFIX = "%m [%p] %q%u@%d "
TO_FILES: dict[str, Level] = {"log_output": "FILE", "long_query_time": 0}
VERBOSE: dict[str, dict[str, Level]] = {
    "mariadb": {"log_slow_verbosity": "full"}, "mysql": {"log_slow_extra": 1},
}  # fmt: skip
SESSIONS = ("dump", "pgbench", "sysbench", "orm")
ORM = r"""
import datetime
import decimal
import sys

import sqlalchemy as sa
from sqlalchemy import orm


class Base(orm.DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(80))
    born: orm.Mapped[datetime.date]
    books: orm.Mapped[list["Book"]] = orm.relationship(back_populates="author", cascade="all, delete-orphan")


class Book(Base):
    __tablename__ = "book"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    author_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("author.id"))
    title: orm.Mapped[str] = orm.mapped_column(sa.Text)
    price: orm.Mapped[decimal.Decimal | None] = orm.mapped_column(sa.Numeric(9, 2))
    cover: orm.Mapped[bytes | None] = orm.mapped_column(sa.LargeBinary)
    sold: orm.Mapped[bool] = orm.mapped_column(default=False)
    author: orm.Mapped[Author] = orm.relationship(back_populates="books")


def main(url: str) -> None:
    engine = sa.create_engine(url)
    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        for number in range(40):
            author = Author(name=f"Ünal O'Brien {number}\n\\", born=datetime.date(1950, 1, 1 + number % 28))
            for book in range(number % 5):
                price = decimal.Decimal(book) / 4 if book else None
                cover = bytes(range(number)) if book % 2 else None
                author.books.append(Book(title=f"'{number}': {book}% :x ?", price=price, cover=cover))
            session.add(author)
        session.commit()
        for author in session.scalars(sa.select(Author).where(Author.id.in_([3, 5, 7])).order_by(Author.id)):
            author.name = author.name.upper()
            for one in author.books:
                one.sold = True
        session.commit()
        dear = sa.update(Book).where(Book.price > 0.5, Book.sold.is_(False))
        session.execute(dear.values(price=Book.price + 1))
        session.delete(session.get(Author, 9))
        session.commit()
        session.add(Author(name="taken back", born=datetime.date(2000, 1, 1)))
        session.flush()
        session.rollback()
        count = sa.select(Author.name, sa.func.count(Book.id)).join(Author.books, isouter=True)
        print(len(session.execute(count.group_by(Author.name).limit(7).offset(3)).all()))


if __name__ == "__main__":
    main(sys.argv[1])
"""
"""Carried out by an interpreter that has SQLAlchemy, which Dyno does not need."""


@dataclass
class Place:
    """Where an installation's servers have their data and their sockets."""

    installation: Installation
    folder: Path
    started: int = 0

    @property
    def engine(self) -> str:
        return self.installation.engine

    @property
    def of_mysql(self) -> bool:
        """Whether it writes slow logs."""
        production = ENGINES[self.engine].production
        return production is not None and "mysql" in production.protocols

    @contextmanager
    def server(self, data: Path, settings: dict[str, Level], clean: bool = False) -> Iterator[Server]:
        life = ENGINES[self.engine].life
        if not data.exists():
            life.initialise(self.installation, data, {})
        self.started += 1
        runtime = self.folder / f"r{self.started}"
        runtime.mkdir()
        server = life.start(self.installation, data, runtime, settings, Launch())
        try:
            yield server
            if clean:
                server.stop()
        finally:
            server.kill()


def compared(what: str, texts: list[str], path: Path, reading: LogReading, doubtful: list[str]) -> None:
    found = told(read(path, reading))
    written = [seen.text for seen in found]
    wanted = [text for text in texts if text not in doubtful]
    kept = [text for text in written if text not in doubtful]
    sessions = len({seen.session for seen in found}) == len(found)
    verdict = "equal" if kept == wanted and sessions else "OTHER"
    print(f"{what:60} {len(kept):3} of {len(wanted)} {verdict}", flush=True)


def forms(place: Place) -> None:
    """Reads back what one server writes in each of its forms."""
    name = f"{place.installation.engine} {place.installation.version}"
    if place.of_mysql:
        logs = {kind: place.folder / f"{kind}.log" for kind in ("slow_query", "general")}
        settings = TO_FILES | {f"{kind}_log": 1 for kind in logs}
        settings |= {f"{kind}_log_file": str(path) for kind, path in logs.items()}
        more = VERBOSE[place.engine]
        with place.server(place.folder / "data", settings | more) as server:
            texts = asked(server.url)
            for kind, path in logs.items():
                doubtful = [text for text in texts if "# Time" in text] if kind == "slow_query" else []
                compared(f"{name}, {kind.removesuffix('_query')} log", texts, path, LogReading(), doubtful)
        return
    as_json = int(place.installation.version.split(".")[0]) >= 15
    for prefix in PREFIXES:
        logs_at = place.folder / f"logs{place.started}"
        settings = {
            "logging_collector": "on", "log_destination": "stderr,csvlog" + (",jsonlog" if as_json else ""),
            "log_filename": "log", "log_directory": str(logs_at), "log_line_prefix": prefix,
            "log_min_duration_statement": 0, "log_connections": "on", "log_disconnections": "on",
            "log_error_verbosity": "verbose",
        }  # fmt: skip
        with place.server(place.folder / "data", settings, clean=True) as server:
            texts = asked(server.url)
            inside = [text for text in texts if prefix_pattern(prefix).search(text)]
            for reading in (LogReading(prefix), LogReading()):
                how = "known" if reading.prefix else "found"
                compared(f"{name}, text {prefix!r} {how}", texts, logs_at / "log", reading, inside)
            if prefix == PREFIXES[0]:
                compared(f"{name}, CSV", texts, logs_at / "log.csv", LogReading(), [])
                if as_json:
                    compared(f"{name}, JSON", texts, logs_at / "log.json", LogReading(), [])


def tool(session: str, place: Place, server: Server, python: str) -> list[list[str]]:
    """The commands of a session, the first of which makes its data before anything is logged."""
    socket = socket_of(server.url)
    if not place.of_mysql:
        at = [f"--host={socket.parent}", f"--username={ACCOUNT}"]
        bench = ["pgbench", *at, "--no-vacuum"]
        commands = {
            "pgbench": [
                ["pgbench", *at, "--initialize", "--scale=1", "--quiet", DATABASE],
                *(
                    [*bench, "--client=4", "--transactions=100", f"--protocol={protocol}", DATABASE]
                    for protocol in ("simple", "extended", "prepared")
                ),
            ],
            "dump": [
                ["pgbench", *at, "--initialize", "--scale=1", "--quiet", DATABASE],
                [*program(place.installation, SERVER.client, "pg_dump"), *at, DATABASE],
                [*bench, "--transactions=50", DATABASE],
            ],
        }
        sysbench = ["--db-driver=pgsql", f"--pgsql-host={socket.parent}", f"--pgsql-user={ACCOUNT}",
                    f"--pgsql-db={DATABASE}"]  # fmt: skip
        url = f"postgresql+pg8000://{ACCOUNT}@/{DATABASE}?unix_sock={socket}"
    else:
        prepared = [
            [*sysbench_of(place, socket), "oltp_read_write", "--tables=2", "--table-size=2000", "prepare"]
        ]
        dump = [
            *tool_of(MARIADB_TOOLS, "mariadb-dump"),
            *mysql_options(server.url),
            "--single-transaction",
            DATABASE,
        ]
        load = [*sysbench_of(place, socket), "oltp_read_write", "--tables=2", "--table-size=2000", "--time=0",
                "--events=50", "run"]  # fmt: skip
        commands = {"dump": [*prepared, dump, load]}
        sysbench = sysbench_of(place, socket)[1:]
        url = f"mysql+pymysql://{ACCOUNT}@/{DATABASE}?unix_socket={socket}&charset=utf8mb4"
    own = [
        "sysbench",
        *sysbench,
        "oltp_read_write",
        "--tables=2",
        "--table-size=2000",
        "--threads=1",
        "--time=0",
    ]
    commands["sysbench"] = [
        [*own, "prepare"],
        [*own, "--events=200", "--range_size=20", "run"],
        [*own, "--events=100", "--db-ps-mode=disable", "run"],
    ]
    commands["orm"] = [[], [python, "-c", ORM, url]]
    return commands.get(session, [])


def sysbench_of(place: Place, socket: Path) -> list[str]:
    return ["sysbench", "--db-driver=mysql", f"--mysql-socket={socket}", f"--mysql-user={ACCOUNT}",
            f"--mysql-db={DATABASE}"]  # fmt: skip


TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = {} ORDER BY 1"


def tables(of_mysql: bool, url: str) -> dict[str, str]:
    """What each table holds. Moments of the server's own clock are not compared."""
    if not of_mysql:
        names = [str(row[0]) for row in rows(url, TABLES.format("'public'"))]
        found = {}
        for name in names:
            sql = (
                f"SELECT string_agg(quote_ident(column_name), ',') FROM information_schema.columns "
                f"WHERE table_name = '{name}' AND column_name <> 'mtime'"
            )
            columns = rows(url, sql)[0][0]
            ordered = "SELECT md5(string_agg(t::text, ',' ORDER BY t::text))"
            found[name] = str(rows(url, f'{ordered} FROM (SELECT {columns} FROM "{name}") t')[0][0])
        return found
    names = [str(row[0]) for row in rows(url, TABLES.format("DATABASE()"))]
    return {name: str(rows(url, f"CHECKSUM TABLE `{name}` EXTENDED")[0][1]) for name in names}


def replayed(session: str, place: Place, python: str) -> None:
    """Has a tool work, and plays what the server logged of it."""
    name = f"{place.installation.engine} {place.installation.version}, {session}"
    data, before, log = (place.folder / f"{session}-{what}" for what in ("data", "copy", "log"))
    with place.server(data, {}, clean=True) as server:
        commands = tool(session, place, server, python)
        if not commands:
            return
        if commands[0]:
            run(commands[0])
    shutil.copytree(data, before, symlinks=True)
    settings: dict[str, Level] = TO_FILES | {"slow_query_log": 1, "slow_query_log_file": str(log)}
    if not place.of_mysql:
        settings = {
            "log_min_duration_statement": 0, "log_connections": "on", "log_disconnections": "on",
            "log_line_prefix": TEXT_PREFIX,
        }  # fmt: skip
    with place.server(data, settings, clean=True) as server:
        for command in tool(session, place, server, python)[1:]:
            run(command)
        wanted = tables(place.of_mysql, server.url)
        if isinstance(server, ServerProcess) and not place.of_mysql:
            shutil.copyfile(server.log_path, log)
    # The comparison's own statements are in the log too, and change nothing.
    recording = place.folder / f"{session}.replay"
    prefix = TEXT_PREFIX if not place.of_mysql else None
    about = record(log_of([log], LogReading(prefix, whole=True)), log.name, recording, DATABASE)
    with place.server(before, {}) as server:
        options = {"file": str(recording), "speed": 1.0}
        job = Job(url=server.url, workload="replay", options=options, duration_s=max(1.0, about.length_s))
        tally = Tally.model_validate_json(_driver.run(job.model_dump_json()), strict=True)
        replay = tally.replay
        assert replay is not None
        found = tables(place.of_mysql, server.url)
    verdict = "equal" if found == wanted else f"OTHER: {sorted(set(wanted.items()) ^ set(found.items()))}"
    left = ", ".join(f"{count} {why}" for why, count in about.left_out.items())
    print(
        f"{name:40} {about.count:>6,} statements, {replay.rows_compared:>6,} with rows, {replay.rows_differ}"
        f" with others; errors {tally.errors}; {len(wanted)} tables {verdict}; left out: {left or 'nothing'}",
        flush=True,
    )


SHOP = """
CREATE TABLE item (id INT PRIMARY KEY, kind INT, price DECIMAL(9, 2), made DATE, name VARCHAR(40));
CREATE INDEX item_made ON item (made);
CREATE TABLE pair (a INT, b INT, note VARCHAR(40), PRIMARY KEY (a, b));
CREATE TABLE history (id {serial} PRIMARY KEY, k INT, v VARCHAR(40), made DATE);
"""
ITEMS, PAIRS, STATEMENTS, DAYS = 20_000, (60, 200), 2_400, 1_000
START = datetime.date(2020, 1, 1)


def rows_of_shop(draw: random.Random) -> Iterator[str]:
    """The data, some rows a statement."""
    day = [START + datetime.timedelta(days=number) for number in range(DAYS)]
    items = [f"({n}, {n % 17}, {n % 500}.25, '{day[n % DAYS]}', 'item {n}')" for n in range(1, ITEMS + 1)]
    pairs = [f"({a}, {b}, 'note {a}')" for a in range(PAIRS[0]) for b in range(draw.randrange(PAIRS[1]))]
    history = [f"({n}, 'v{n}', '{day[n % DAYS]}')" for n in range(5_000)]
    for name, found in (("item", items), ("pair", pairs), ("history (k, v, made)", history)):
        for at in range(0, len(found), 500):
            yield f"INSERT INTO {name} VALUES {', '.join(found[at : at + 500])}"


def of_production(draw: random.Random) -> Iterator[str]:
    """What the shop is asked."""
    for number in range(STATEMENTS):
        first, length = draw.randrange(1, ITEMS - 100), draw.randrange(5, 60)
        a, b = draw.randrange(PAIRS[0]), draw.randrange(PAIRS[1] // 4)
        day = START + datetime.timedelta(days=draw.randrange(DAYS - 30))
        until = day + datetime.timedelta(days=draw.randrange(1, 15))
        listed = ", ".join(str(draw.randrange(1, ITEMS)) for _ in range(draw.randrange(1, 12)))
        made = ", ".join(f"({n}, 'v {number}', '{day}')" for n in range(draw.randrange(1, 7)))
        yield (
            f"SELECT name FROM item WHERE id = {first}",
            f"SELECT sum(price) FROM item WHERE id BETWEEN {first} AND {first + length}",
            f"SELECT id, name FROM item WHERE id >= {first} AND id < {first + length}",
            f"SELECT name, price FROM item WHERE id IN ({listed})",
            f"SELECT id FROM item ORDER BY id LIMIT {draw.choice((10, 50))} OFFSET {10 * draw.randrange(40)}",
            f"SELECT note FROM pair WHERE a = {a} AND b = {b}",
            f"SELECT count(*) FROM item WHERE made BETWEEN '{day}' AND '{until}'",
            f"UPDATE item SET price = price + 1 WHERE id BETWEEN {first} AND {first + length}",
            f"UPDATE pair SET note = 'n {number}' WHERE a = {a} AND b = {b}",
            f"DELETE FROM history WHERE id = {draw.randrange(1, 5_000)}",
            f"INSERT INTO history (k, v, made) VALUES {made}",
            f"SELECT a, count(*) FROM pair WHERE a IN ({a}, {a + 1}) GROUP BY a",
        )[number % 12]


def rows_in_both(place: Place) -> None:
    """Asks a server of a shop, and has `dyno init study` hold the rows of its log against those on a copy."""
    log, dump, study = (place.folder / name for name in ("shop.log", "shop.sql", "shop"))
    mysql = place.of_mysql
    settings: dict[str, Level] = TO_FILES | {"slow_query_log_file": str(log)}
    with place.server(place.folder / "shop-data", settings if mysql else dict(LOGGED)) as server:
        draw = random.Random(7)
        for statement in SHOP.format(serial="INT AUTO_INCREMENT" if mysql else "serial").split(";")[:-1]:
            rows(server.url, statement)
        for statement in rows_of_shop(draw):
            rows(server.url, statement)
        at = (
            mysql_options(server.url)
            if mysql
            else [f"--host={socket_of(server.url).parent}", f"--username={ACCOUNT}"]
        )
        tool_ = (
            tool_of(MARIADB_TOOLS, "mariadb-dump")
            if mysql
            else program(place.installation, SERVER.client, "pg_dump")
        )
        run([*tool_, *at, DATABASE], into=dump)
        before = 0 if mysql else server.log_path.stat().st_size if isinstance(server, ServerProcess) else 0
        if mysql:
            rows(server.url, "SET GLOBAL slow_query_log = ON")
        for statement in of_production(draw):
            rows(server.url, statement)
        if mysql:
            rows(server.url, "SET GLOBAL slow_query_log = OFF")
        elif isinstance(server, ServerProcess):
            log.write_bytes(server.log_path.read_bytes()[before:])
    command = ["init", "study", "--from", str(log), "--dump", str(dump), "--whole", "--copy"]
    version = place.installation.version
    production = ENGINES[place.engine].production
    parts = version.split(".")[: production.release_parts if production else 1]
    named = f"{place.engine}@{'.'.join(parts)}"
    done = subprocess.run(
        [str(Path(sys.executable).with_name("dyno")), *command, "--engine", named, "-o", str(study)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(f"{named}: {STATEMENTS:,} statements\n{done.stdout}{done.stderr}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--engine", nargs="+", default=VERSIONS)
    parser.add_argument("--session", nargs="*", default=SESSIONS)
    parser.add_argument("--orm", default=sys.executable)
    parser.add_argument("--no-forms", action="store_true")
    parser.add_argument("--rows", action="store_true")
    given = parser.parse_args()
    for written in given.engine:
        name, _, version = re.sub(":.*", "", written).partition("@")
        try:
            installation = locate(Reference(name, version))
        except DynoError as missing:
            print(f"{written}: cannot be had here: {missing.message}")
            continue
        folder = Path(tempfile.mkdtemp(prefix="dyno-logs-"))
        place = Place(installation, folder)
        try:
            if not given.no_forms:
                forms(place)
            if given.rows:
                rows_in_both(place)
            for session in given.session:
                try:
                    replayed(session, place, given.orm)
                except (AssertionError, DynoError, OSError, subprocess.SubprocessError) as failed:
                    print(f"{written}, {session}: FAILED: {failed}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
