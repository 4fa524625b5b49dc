"""What the command line tells a study's reader of the engines that it knows."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.prepare_run.study_here import catalogue, needed_by, study_at
from tests import warm
from tests.cli.calls import calls_counted, complaint, dyno
from tests.cli.checked_cases import line_of, nothing_is_left, require
from tests.study.reading import mistakes, read

SEARCH = """
title  = "fast"
engine = "firebird@5"
design = "search"
[workload]
name = "tpcb"
[settings]
"config.forced_writes" = false
[factors]
"config.page_buffers" = [2048, 8192]
"config.MaxUnflushedWrites" = [2, 1000]
[search]
time = "20m"
"""


def test_a_search_varies_no_wait_for_firebirds_disk_unless_it_may() -> None:
    known = replace(catalogue(), layers=catalogue(ask_engines=False).layers)
    told = [mistake.message for mistake in mistakes(SEARCH, known)]
    assert told == ["`config.MaxUnflushedWrites` = 1000 gives up durability"]
    allowed = SEARCH.replace('time = "20m"', 'time = "20m"\nallow = ["durability"]')
    assert read(allowed, known).search is not None


STUDY = """\
engine = "sqlite"
[data]
dump = "shop.sql"
[workload]
name = "script"
file = "{file}"
[factors]
"config.cache_size" = ["2M", "4M"]
"""
DUMP = "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE a (b);\nCOMMIT;\n"


@pytest.fixture
def study(homes: Path, tmp_path: Path) -> Path:
    assert homes
    (tmp_path / "shop.toml").write_text('[[transactions]]\nname = "t"\nstatements = ["SELECT b FROM a"]\n')
    (tmp_path / "shop.sql").write_text(DUMP)
    (tmp_path / "study.toml").write_text(STUDY.format(file=tmp_path / "shop.toml"))
    return tmp_path / "study.toml"


def plan(study: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return warm.run("plan", str(study), *options, env={**os.environ, "COLUMNS": "300"})


def test_a_plan_tells_where_the_data_come_from_and_how_large_they_are(study: Path) -> None:
    place = study.with_name("shop.sql")
    assert f"pristine data: one copy, loaded from {place} ({len(DUMP)} B)" in plan(study).stdout
    found = json.loads(plan(study, "--json").stdout)["data"]
    assert found == [{"kind": "dump", "path": str(place), "size_bytes": len(DUMP)}]


DUMPS = {
    "sqlite": DUMP,
    "mariadb@11.8": "-- MariaDB dump 10.19-11.8.6\n\nCREATE TABLE a (b INT);\nINSERT INTO a VALUES (1);\n",
    "postgresql": "--\n-- PostgreSQL database dump\n--\n\nCREATE TABLE public.a (b integer);\n",
}


@pytest.mark.parametrize("engine", DUMPS)
def test_a_misspelt_column_of_a_study_with_a_dump_ends_its_plan(
    homes_with_engines: Path, tmp_path: Path, engine: str
) -> None:
    require(engine)
    file, study = written_on(tmp_path, engine, "SELECT bb FROM a")
    told = plan(study)
    assert told.returncode == 2, told.stdout
    assert f"{line_of(study, 'file')}: {file}:3: " in told.stderr and "bb" in told.stderr
    # Made once, for the check, for what is asked next, and for the run.
    assert "; its run uses them too" in told.stderr and f"loading {tmp_path / 'shop.sql'}" in told.stderr
    with calls_counted() as calls:
        assert dyno("plan", str(study)).returncode == 2
    assert calls["_said"] == calls["make_given"] == 0
    file.write_text(file.read_text().replace("bb", "b"))
    with calls_counted() as calls:
        planned = dyno("plan", str(study))
        assert planned.returncode == 0, planned.stderr
        done = dyno("run", str(study), "--quiet")
    assert done.returncode == 0, done.stderr
    assert (calls["_said"], calls["make_given"]) == (1, 0)
    copied = f"prepared 1 statement of {file} on a copy of the data that the study brings"
    # A path that is longer than a line is broken.
    assert "".join(copied.split()) in "".join(planned.stdout.split())
    assert nothing_is_left()


def test_what_was_said_on_other_data_is_asked_again(homes_with_engines: Path, tmp_path: Path) -> None:
    _, study = written_on(tmp_path, "sqlite", "SELECT b FROM a")
    assert plan(study).returncode == 0
    (tmp_path / "shop.sql").write_text(DUMP.replace("(b)", "(c)"))
    told = plan(study)
    assert told.returncode == 2 and "no such column: b" in told.stderr


def test_what_setup_refuses_on_the_data_is_told_with_its_line(homes: Path, tmp_path: Path) -> None:
    file, study = written_on(tmp_path, "sqlite", "SELECT b FROM a")
    file.write_text('[setup]\nstatements = ["CREATE INDEX i ON nowhere (b)"]\n' + file.read_text())
    study.write_text(study.read_text().replace('shop.sql"', 'shop.sql"\nsetup = true'))
    told = plan(study)
    assert told.returncode == 2
    assert f"{file}:2: " in told.stderr and "nowhere" in told.stderr


def test_a_dump_that_cannot_be_loaded_is_a_mistake_with_its_line(homes: Path, tmp_path: Path) -> None:
    _, study = written_on(tmp_path, "sqlite", "SELECT b FROM a")
    (tmp_path / "shop.sql").write_text(DUMP.replace("CREATE TABLE a (b)", "CREATE TABLE a (b"))
    told = plan(study)
    assert told.returncode == 2 and f"{line_of(study, 'dump')}: " in told.stderr, told.stderr


def written_on(folder: Path, engine: str, sql: str) -> tuple[Path, Path]:
    """A workload of one statement, and a study of it on a dump."""
    file, study = folder / "shop.toml", folder / "study.toml"
    file.write_text(f'[[transactions]]\nname = "t"\nstatements = ["{sql}"]\n')
    (folder / "shop.sql").write_text(DUMPS[engine])
    text = STUDY.replace('"sqlite"', f'"{engine}"\nblocks = 1')
    text = text.replace('"script"', '"script"\nwarmup = "0s"\nduration = "0.3s"')
    study.write_text(text.format(file=file).split('"config')[0] + '"workload.clients" = [1, 2]\n')
    return file, study


def test_a_dump_that_the_engine_does_not_take_is_a_mistake_with_its_line(study: Path) -> None:
    place = study.with_name("shop.sql")
    for content, told in (
        (None, f"there is no {place}"),
        (
            "-- PostgreSQL database dump\n",
            f"{place} is a dump of PostgreSQL, and the study's engine is SQLite",
        ),
    ):
        place.unlink() if content is None else place.write_text(content)
        done = plan(study)
        assert done.returncode == 2
        assert f"line 3: {told}" in done.stderr


ROOT = Path(__file__).parents[2]


def test_a_study_of_platforms_needs_each_engine_for_each_architecture(homes: Path) -> None:
    found = [one.words for one in needed_by(study_at(ROOT / "studies" / "port.toml"))]
    assert len(found) == 12
    assert found[0] == "postgresql@15 --platform amd64" and found[-1] == "sqlite@3.40 --platform s390x"


def test_engines_that_are_here_and_paths_are_not_fetched(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text('engine = "sqlite"\nworkload.name = "tpcb"\nfactors."config.mmap_size" = [0, "64M"]\n')
    assert dyno("engines", "fetch", "--study", str(path)).stdout == "all that the study needs is here\n"
    assert "no engine was named" in complaint("engines", "fetch")
    path.write_text(
        'workload.name = "tpcb"\nfactors.engine = ["sqlite", "mariadb@11.8", "mariadb:/no/such"]\n'
    )
    assert [one.words for one in needed_by(study_at(path))] == ["mariadb@11.8"]
