"""What one execution of a statement takes, by the kernel and by the engine's own word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbdyno.engines.registry import locate
from dbdyno.errors import DynoError
from dbdyno.records.load_words import StatementCost
from dbdyno.study.nouns import Reference
from dbdyno.trial.statement_costs import of_each_name
from tests.cli.calls import dyno

STUDY = """
title  = "What does a small memory cost?"
engine = "{engine}"
blocks = 1
[workload]
name   = "statements"
folder = "queries"
setup  = "setup.sql"
rounds = 1
[factors]
"config.{memory}" = ["{large}", "{small}"]
"""
SETUP = """
CREATE TABLE digits (d INTEGER);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE TABLE words (id INTEGER PRIMARY KEY, word VARCHAR(60));
INSERT INTO words SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d, REPEAT('w', 50)
FROM digits a, digits b, digits c, digits e;
"""
QUERIES = {
    "sorts": "SELECT MAX(place) FROM"
    " (SELECT ROW_NUMBER() OVER (ORDER BY word, id DESC) AS place FROM words) s",
    "writes": "UPDATE words SET word = 'other' WHERE id < 100",
    "refused": "SELECT word FROM words WHERE id = (SELECT d FROM digits)",
}


@pytest.mark.engine
@pytest.mark.parametrize(
    ("engine", "memory", "large", "small", "title"),
    [
        ("postgresql@17", "work_mem", "64MB", "64kB", "spilled, bytes"),
        ("mariadb@11.8", "sort_buffer_size", "8M", "32K", "merge passes of sorts"),
    ],
)
def test_spilled_sorts_and_cpu_are_told_of_each_statement_of_both_sides(
    engine: str, memory: str, large: str, small: str, title: str, homes_with_engines: Path
) -> None:
    try:
        locate(Reference.of(engine))
    except DynoError as missing:
        pytest.skip(f"{engine} cannot be had here: {missing.message}")
    folder = homes_with_engines
    (folder / "queries").mkdir()
    (folder / "setup.sql").write_text(SETUP)
    for name, text in QUERIES.items():
        (folder / "queries" / f"{name}.sql").write_text(text)
    study = folder / "study.toml"
    study.write_text(STUDY.format(engine=engine, memory=memory, large=large, small=small))
    said = dyno("run", str(study), "--json")
    assert said.returncode == 0, said.stderr
    report: dict[str, Any] = json.loads(said.stdout)
    found = {one["statement"]: one for one in report["statement_costs"]["ratios"]}
    assert found.keys() == {"sorts", "writes"}, "what is refused has no cost"
    before, after = found["sorts"]["counted"][title]
    assert before < after and after > 0
    for one in found.values():
        assert 0.0 < one["cpu_ms"] < 10_000.0 and 0.0 < one["baseline_cpu_ms"] < 10_000.0
    costs = [trial["costs"]["statements"] for trial in report["trials"]]
    for each in costs:
        [refused] = [one for one in each if one["statement"] == "refused"]
        assert "more than" in refused["why_not"], "the server's own words"
    [told] = report["statements_compared"]["answers"]
    assert told["differences"] == [], "what was sent once more was rolled back"
    details = " ".join(dyno("report", "last", "--details").stdout.split())
    assert "What statements cost" in details and title in details
    assert "What statements cost" not in dyno("report", "last").stdout


OF_INDEX = """
title  = "Does the index help?"
engine = "{engine}"
blocks = 1
[workload]
name   = "statements"
folder = "queries"
setup  = "setup.sql"
rounds = 1
[factors]
"schema.index" = ["none", "CREATE INDEX of_kind ON things (kind)"]
"""
DIGITS = "".join(f"INSERT INTO digits VALUES ({number});\n" for number in range(10))
THINGS = f"""
CREATE TABLE digits (d INTEGER);
{DIGITS}
CREATE TABLE things (id INTEGER NOT NULL PRIMARY KEY, kind INTEGER);
INSERT INTO things SELECT a.d + 10 * b.d + 100 * c.d, a.d
FROM digits a CROSS JOIN digits b CROSS JOIN digits c;
"""


@pytest.mark.engine
@pytest.mark.parametrize(
    ("engine", "scanned", "others"),
    [
        ("sqlite", "rows stepped over in full scans", "steps of SQLite's machine"),
        ("firebird@5", "rows read in scans", "pages looked at"),
    ],
)
def test_an_embedded_engine_tells_what_a_statement_steps_over(
    engine: str, scanned: str, others: str, homes_with_engines: Path
) -> None:
    try:
        locate(Reference.of(engine))
    except DynoError as missing:
        pytest.skip(f"{engine} cannot be had here: {missing.message}")
    folder = homes_with_engines
    (folder / "queries").mkdir()
    (folder / "setup.sql").write_text(THINGS)
    (folder / "queries" / "few.sql").write_text("SELECT COUNT(*), SUM(id) FROM things WHERE kind = 7")
    study = folder / "study.toml"
    study.write_text(OF_INDEX.format(engine=engine))
    said = dyno("run", str(study), "--json")
    assert said.returncode == 0, said.stderr
    [found] = json.loads(said.stdout)["statement_costs"]["ratios"]
    before, after = found["counted"][scanned]
    assert before >= 990 and after <= 10, "all 1,000 rows, or no scan"
    many, few = found["counted"][others]
    assert many > 3 * few > 0 or engine.startswith("firebird")


def test_the_statements_of_one_transaction_are_summed_up() -> None:
    costs = (
        StatementCost(statement="a", cpu_ms=1.0, counted={"rows read": 2.0}),
        StatementCost(statement="b", why_not="refused"),
        StatementCost(statement="a", cpu_ms=2.0, counted={"rows read": 3.0, "spilled, bytes": 1.0}),
        StatementCost(statement="b", cpu_ms=1.0),
    )
    both, refused = of_each_name(costs)
    assert both == StatementCost(statement="a", cpu_ms=3.0, counted={"rows read": 5.0, "spilled, bytes": 1.0})
    assert (refused.cpu_ms, refused.why_not) == (None, "refused"), "half of it is none"
