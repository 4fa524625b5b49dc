"""A study whose levels change plans says so beside the effect, and one that asks for none has none."""

from __future__ import annotations

import json
from pathlib import Path

from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.cli.calls import dyno

SCRIPT = """
[setup]
statements = [
    "CREATE TABLE one (a INTEGER NOT NULL, b INTEGER NOT NULL)",
    "CREATE TABLE other (c INTEGER NOT NULL, d INTEGER NOT NULL)",
]
[[tables]]
name    = "one"
rows    = 300
columns = { a = "row()", b = "row()" }
[[tables]]
name    = "other"
rows    = 300
columns = { c = "row()", d = "row()" }
[finish]
statements = ["CREATE INDEX one_a ON one (a)"]
[[transactions]]
name       = "q1"
values     = { a = "uniform(1, 300)" }
statements = ["SELECT b FROM one WHERE a = :a"]
[[transactions]]
name       = "q2"
statements = ["SELECT COUNT(*) FROM one JOIN other ON one.b = other.c"]
"""
STUDY = """
title  = "Which plans?"
engine = "{engine}"
blocks = 1
[workload]
name     = "script"
file     = "{file}"
warmup   = "0s"
duration = "0.3s"
{more}
[factors]
{factor}
"""


def run(homes: Path, engine: str, factor: str, more: str = "") -> dict[str, object]:
    """The report of a study of one block."""
    script, path = homes / "own.toml", homes / "study.toml"
    script.write_text(SCRIPT)
    path.write_text(STUDY.format(engine=engine, file=script, factor=factor, more=more))
    said = dyno("run", str(path), "--json")
    assert said.returncode == 0, said.stderr
    report: dict[str, object] = json.loads(said.stdout)
    return report


def test_a_plan_that_a_level_changes_is_told_beside_its_effect(homes: Path) -> None:
    report = run(homes, "postgresql", '"config.enable_hashjoin" = [true, false]')
    plans = report["plans"]
    assert isinstance(plans, dict)
    [variant] = plans["variants"]
    [change] = variant["changes"]
    assert change["statement"] == "q2", "the other statement's plan is the baseline's"
    gone, come = change["change"].split(" -> ")
    assert "hash join" in gone and "hash" not in come
    said = dyno("report", "last", "--details")
    assert "and the plan of `q2` changed: " in " ".join(said.stdout.split())
    shown = dyno("report", "last", "0").stdout
    assert "q1" in shown and "q2" in shown and "plans of its statements" in shown


def test_a_study_may_ask_for_no_plans(homes: Path) -> None:
    report = run(homes, "sqlite", '"config.synchronous" = ["FULL", "OFF"]', "plans = false")
    assert "plans" not in report
    with Store(store_url()) as store:
        records = store.records(store.run("last").run)
    assert records and all(record.plans is None and "plans" not in record.stages_s for record in records)
