"""A small shop in a real server, and what the engines' own tools write of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dbdyno.engines.server import ACCOUNT, socket_of
from dbdyno.errors import DynoError
from dbdyno.host.journal import open_journal
from dbdyno.layers.setup import Running
from dbdyno.obtain import debian
from dbdyno.records.run import Data
from dbdyno.study import Study, Workload
from dbdyno.study.nouns import GivenData, Reference
from dbdyno.study.trials import Trial, Variant, phases_of
from dbdyno.trial.prepare import prepare
from tests.trials import bench_of, study_of

SCRIPT = """\
[[transactions]]
name = "look"
statements = ["SELECT name FROM articles WHERE id = 1"]

[[invariants]]
name = "two_articles"
query = "SELECT COUNT(*) AS n FROM articles"
expect = ":n = 2"
"""

MYSQL_SHOP = r"""
CREATE TABLE articles (id INT PRIMARY KEY, name VARCHAR(80) CHARACTER SET utf8mb4, picture VARBINARY(20));
CREATE TABLE sales (id INT AUTO_INCREMENT PRIMARY KEY, article INT NOT NULL, FOREIGN KEY (article)
    REFERENCES articles (id));
CREATE TABLE counts (n INT);
INSERT INTO articles VALUES (1, 'Käse; ''Żółw'' 🐢 \\ "q"', x'00FF0A0D1A27225C'), (2, 'two\nlines', NULL);
INSERT INTO counts VALUES (0);
CREATE USER clerk@'%' IDENTIFIED BY 'Secret-1';
GRANT ALL PRIVILEGES ON *.* TO clerk@'%';
CREATE DEFINER = clerk@'%' SQL SECURITY DEFINER VIEW sold AS SELECT a.name, s.id FROM articles a
    JOIN sales s ON s.article = a.id;
DELIMITER //
CREATE DEFINER = clerk@'%' TRIGGER counted AFTER INSERT ON sales FOR EACH ROW BEGIN
    UPDATE counts SET n = n + 1; END//
CREATE DEFINER = clerk@'%' PROCEDURE sell(IN which INT) BEGIN
    DECLARE i INT DEFAULT 0;
    WHILE i < 2 DO INSERT INTO sales (article) VALUES (which); SET i = i + 1; END WHILE;
END//
DELIMITER ;
CALL sell(1);
"""

POSTGRESQL_SHOP = r"""
CREATE ROLE clerk;
CREATE ROLE "Odd Reader";
CREATE TABLE articles (id int PRIMARY KEY, name text, picture bytea);
CREATE TABLE sales (id serial PRIMARY KEY, article int REFERENCES articles);
CREATE TABLE counts (n int);
INSERT INTO articles VALUES (1, E'Käse; ''Żółw'' 🐢 \\ "q"\t.', '\x00ff0a0d'), (2, E'two\nlines', NULL);
INSERT INTO counts VALUES (0);
CREATE VIEW sold AS SELECT a.name, s.id FROM articles a JOIN sales s ON s.article = a.id;
CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE counts SET n = n + 1; RETURN NEW; END $$;
CREATE TRIGGER counted AFTER INSERT ON sales FOR EACH ROW EXECUTE FUNCTION counted();
CREATE PROCEDURE sell(which int) LANGUAGE sql AS 'INSERT INTO sales (article) VALUES (which), (which)';
CALL sell(1);
ALTER TABLE articles OWNER TO clerk;
ALTER FUNCTION counted() OWNER TO clerk;
GRANT SELECT ON sales TO "Odd Reader";
"""

MARIADB_TOOLS = debian.DebianRecipe(
    engine="dumper-of-mariadb",
    packages=("mariadb-client",),
    server="mariadb-client",
    binary="usr/bin/mariadb-dump",
    suites={"11.8": "trixie"},
)


def tool_of(recipe: debian.DebianRecipe, name: str) -> list[str]:
    """The command of a tool that comes in these packages, fetched when they are not here."""
    copies = debian.fetched(recipe.engine)
    try:
        copy = copies[0] if copies else debian.fetch(recipe)
    except DynoError as failed:
        pytest.skip(f"{recipe.engine} cannot be had here: {failed.message}")
    program = (copy.prefix / recipe.binary).with_name(name)
    return [*debian.loader(copy.prefix), "--argv0", str(program), str(program)]


def run(command: Sequence[str], text: str = "", into: Path | None = None) -> bytes:
    """What a tool writes; into a file where one is given."""
    done = subprocess.run(
        list(command),
        input=text.encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stderr.decode()
    if into is not None:
        into.write_bytes(done.stdout)
    return done.stdout


def mysql_options(url: str) -> list[str]:
    return ["--no-defaults", f"--socket={socket_of(url)}", f"--user={ACCOUNT}"]


def study_with(engine: str, data: GivenData, folder: Path, script: str = SCRIPT) -> Study:
    """A study of a script that asks for articles, on data that it brings; `engine` may name a version."""
    (folder / "shop.toml").write_text(script)
    options = {"file": str(folder / "shop.toml")}
    workload = Workload(name="script", warmup_s=0.0, duration_s=0.3, options=dict(options))
    found, (name, _, version) = study_of(engine.partition("@")[0], {}), engine.partition("@")
    reference = Reference(name, version) if version else found.engine
    return found.but(engine=reference, workload=workload, data=data, path=str(folder / "study.toml"))


@dataclass
class Tried:
    running: Running
    told: list[str]

    def ask(self, sql: str) -> list[list[str | float | None]]:
        return self.running.ask(sql)


@contextmanager
def tried_with(study: Study, began: tuple[Data, ...] = ()) -> Iterator[Tried]:
    """One trial of the study, as far as the server that holds its data, in a run that `began` with some."""
    variant = Variant(name="baseline", levels={})
    trial = Trial(index=0, block=0, position=0, variant=variant, phases=phases_of(study))
    told: list[str] = []
    with open_journal() as journal:
        bench = bench_of(study, journal)
        run = bench.run.but(data=began)
        bench = replace(bench, tell=told.append, run=run)
        with journal.scope(), ExitStack() as undo:
            running, _ = prepare(trial, bench, undo)
            yield Tried(running, told)
