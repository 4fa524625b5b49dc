"""Time by statement, as tables; statements one by one, their answers, and what a variant changes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbdyno.analyse.found import Estimate, StatementTime, StatementTimes
from dbdyno.findings import analyse, statements
from dbdyno.records.record import Record
from dbdyno.study.files import FileKind, StudyFile
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.statements_cases import a_statement, timed
from tests.cli.calls import dyno
from tests.report.cases import HOSTILE
from tests.report.forms import as_markdown, as_page, on_terminal, print_report, print_sections

STUDY = a_study(blocks=2)


def a_kind(text: str, mean: float, half: float | None = None) -> StatementTime:
    low, high = (None, None) if half is None else (mean - half, mean + half)
    estimate = Estimate(name="us_per_op", mean=mean, low=low, high=high, trials=6)
    return StatementTime(text=text, per_op=2.0, us_per_op=estimate, errors=0)


def times(variant: str, *kinds: StatementTime) -> StatementTimes:
    return StatementTimes(variant=variant, trials=6, kinds=kinds)


def test_the_kinds_of_variants_stand_beside_each_other_by_their_text() -> None:
    baseline = times("baseline", a_kind("COMMIT", 300.0, 5.0), a_kind("SELECT ?", 50.0))
    other = times("other", a_kind("SELECT ?", 400.0), a_kind("BEGIN", 1.0))
    table = statements.kinds([baseline, other])
    assert [column.head for column in table.columns] == ["statement", "per op", "baseline", "other"]
    assert table.rows == (
        ["SELECT ?", "2.000", "50.00", "400.0"],
        ["COMMIT", "1.000", "300.0 ±5.0", "–"],
        ["BEGIN", "1.000", "–", "1.000"],
    )


def test_kinds_beyond_the_most_are_summed_up() -> None:
    many = times("baseline", *(a_kind(f"SELECT {number}", 1000.0 - number) for number in range(20)))
    rows = statements.kinds([many]).rows
    assert len(rows) == statements.KINDS_MOST + 1
    assert rows[-1] == ["5 further kinds", "", "4,915"]


def forms(records: list[Record]) -> list[str]:
    """The report on a terminal, as a page and as Markdown."""
    analysis = analyse(STUDY, a_run(STUDY), records)
    printed = on_terminal(lambda console: print_report(analysis, console, details=True))
    return [printed, as_page(analysis), as_markdown(analysis)]


def test_each_form_of_report_shows_them_where_statements_were_timed() -> None:
    found = {HOSTILE: a_statement(100, 4_000.0), "COMMIT": a_statement(100, 9_000.0)}
    printed, page, text = shown = forms([timed(record, **found) for record in records_of(STUDY)])
    assert all(statements.TITLE in form for form in shown)
    assert "\x1b" not in printed and "<script>alert" not in page and "<script>" not in text
    assert not any(statements.TITLE in form for form in forms(records_of(STUDY)))


def test_more_variants_than_a_terminal_has_columns_for_are_left_to_the_page() -> None:
    found = [times(f"variant {number}", a_kind("COMMIT", 300.0)) for number in range(5)]
    printed = on_terminal(lambda console: print_sections(statements.sections(found), console), 80)
    assert "for 5 variants" in printed and "COMMIT" not in printed


SETUP = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, price REAL NOT NULL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO orders SELECT i, i % 500, i * 0.1 FROM n;
"""
QUERIES = {
    "by_customer": "SELECT COUNT(*), SUM(price) FROM orders WHERE customer = 7",
    "dear": "-- the dearest\nSELECT id, price FROM orders WHERE price > 1990 ORDER BY price DESC;",
    "cheaper": "UPDATE orders SET price = price - 1 WHERE id <= 3",
    "lucky": "SELECT id, random() FROM orders WHERE id < 4",
}
OF_STATEMENTS = """
title  = "Which statements?"
engine = "sqlite"
blocks = 2
[workload]
name   = "statements"
folder = "queries"
setup  = "setup.sql"
rounds = 2
cache  = "cold"
[factors]
{factors}
[goal]
guards = ["answers"]
"""


def write(folder: Path, factors: str, **others: str) -> Path:
    """The study with its files, and other texts in a folder of their own."""
    (folder / "setup.sql").write_text(SETUP)
    for place, texts in (("queries", QUERIES), ("new", others)):
        (folder / place).mkdir()
        for name, text in texts.items():
            (folder / place / f"{name}.sql").write_text(text)
    study = folder / "study.toml"
    study.write_text(OF_STATEMENTS.format(factors=factors))
    return study


def run(study: Path) -> dict[str, Any]:
    said = dyno("run", str(study), "--json")
    assert said.returncode in (0, 1), said.stderr
    report: dict[str, Any] = json.loads(said.stdout)
    return report


def test_an_index_and_wrong_rewrites_are_told_statement_by_statement(homes: Path) -> None:
    study = write(
        homes,
        '"schema.index" = ["", "CREATE INDEX of_customer ON orders (customer)"]\n'
        '"statement.dear" = ["queries/dear.sql", "new/dear.sql"]\n'
        '"statement.cheaper" = ["queries/cheaper.sql", "new/cheaper.sql"]',
        dear="SELECT id, price FROM orders WHERE price >= 1990 ORDER BY price DESC",
        cheaper="UPDATE orders SET price = price - 1 WHERE id < 3",
    )
    report = run(study)
    found = report["statements_compared"]
    index, dear, cheaper = (one["name"] for one in report["variants"][1:])
    assert found["comparisons"] == 3 * 2 * len(QUERIES), "warm and cold"
    ratio = {(one["variant"], one["statement"]): one["ratio"] for one in found["ratios"]}
    assert ratio[index, "by_customer"] < 0.5, "20,000 rows are read, or 40"
    told = {
        one["variant"]: {
            each["statement"]: (each["what"], bool(each.get("harmless"))) for each in one["differences"]
        }
        for one in found["answers"]
    }
    lucky = {"lucky": ("values", True)}
    assert told[index] == lucky, "what differs from itself says nothing"
    assert told[dear] == {**lucky, "dear": ("number of rows", False)}
    assert told[cheaper] == {**lucky, "cheaper": ("rows changed", False)}
    verdict = {one["name"]: one.get("verdict") for one in report["variants"]}
    assert verdict[index] != "broken" and verdict[dear] == verdict[cheaper] == "broken"
    assert all(not one["differences"] and one["compared"] >= 4 for one in found["schemas"]), "its own index"
    [cost] = found["indexes"]
    assert cost["factor"] == "schema.index" and cost["build_s"] > 0 and cost["size_bytes"] > 0
    evidence = {
        one["factor"]: one["effective"]["value"]
        for trial in report["trials"]
        if trial["variant"] == index
        for one in trial["evidence"]
    }
    assert evidence["schema.index"] == "of_customer" and "WHERE price > 1990" in evidence["statement.dear"]
    assert {one["statement"] for each in report["plans"]["variants"] for one in each["changes"]} >= {
        "by_customer"
    }
    [gone] = [one for one in found["answers"][2]["differences"] if one["statement"] == "cheaper"]
    assert gone["before"][0].startswith(("-3 |", "+3 |")), "row 3 is changed by the baseline alone"
    for details in ((), ("--details",)):
        shown = dyno("report", "last", *details).stdout
        assert "by_customer" in shown and "ratio" in shown


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT 1; SELECT 2", "holds 2 statements"),
        ("CREATE TABLE t (a INTEGER)", "neither reads nor changes rows"),
        ("SELECT 'a", "a quote does not end"),
    ],
)
def test_a_file_that_is_no_statement_is_refused_at_its_place(homes: Path, text: str, told: str) -> None:
    study = write(homes, '"config.synchronous" = ["FULL", "OFF"]')
    (homes / "queries" / "wrong.sql").write_text(text)
    said = dyno("plan", str(study))
    assert said.returncode == 2 and told in said.stderr and "wrong.sql:1" in said.stderr


def test_what_is_no_index_or_no_file_is_a_mistake_of_the_study(homes: Path) -> None:
    for factor, told in (
        ('"schema.index" = ["none", "DROP TABLE orders"]', "makes no index"),
        ('"schema.tables" = ["none", "CREATE INDEX a ON b (c)"]', "has no knob"),
        ('"statement.dear" = ["queries/dear.sql", "SELECT 1"]', "is no .sql file"),
    ):
        (homes / "study.toml").write_text(OF_STATEMENTS.format(factors=factor))
        said = dyno("plan", str(homes / "study.toml"))
        assert said.returncode == 2 and told in said.stderr, said.stderr


@pytest.mark.parametrize(("weights", "calls"), [((3, 1), {"a": 3, "b": 1}), ((1, 1), {})])
def test_calls_are_known_where_a_log_told_them(weights: tuple[int, int], calls: dict[str, int]) -> None:
    """A file that a person wrote gives each statement the same weight, and no calls."""
    text = "".join(
        f'[[transactions]]\nname = "{name}"\nweight = {weight}\nstatements = ["SELECT 1"]\n'
        for name, weight in zip("ab", weights, strict=True)
    )
    file = StudyFile(
        kind=FileKind.WORKLOAD, path="log.toml", place="/log.toml", size_bytes=1, digest="0", text=text
    )
    workload = STUDY.workload.but(name="statements", options={"file": "./log.toml"})
    assert statements.calls_of(STUDY.but(workload=workload, files=(file,))) == calls
