"""`dyno register` writes a study down, lists what is registered, and checks the chain."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dbdyno.host import paths
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.cli.trend_cases import keep
from tests.study_texts import STUDY


def test_what_is_registered_is_printed_and_listed(homes: Path) -> None:
    study = homes / "study.toml"
    study.write_text(STUDY)
    said = dyno("register", str(study), "--blocks", "9")
    assert said.returncode == 0 and len(said.stdout.strip()) == 64
    assert "registered as entry 1" in said.stderr and "9 blocks of 0.5 s measured" in said.stderr
    dyno("register", str(study), "--until", "margin")
    listed = dyno("register")
    assert listed.stdout.split()[:2] == ["1", said.stdout[:12]]
    assert "2 registrations in " in listed.stderr
    with Store(store_url()) as store:
        plans = [entry.content["plan"] for entry in store.chain() if entry.content]
    assert [(plan["blocks"], plan["sequential"]) for plan in plans] == [(9, False), (50, True)]


def test_a_study_with_a_mistake_is_not_registered(homes: Path) -> None:
    study = homes / "study.toml"
    study.write_text(STUDY.replace("tpcb", "tpc"))
    assert "mistake" in complaint("register", str(study))
    assert "no study was named" in complaint("register", "--blocks", "3")
    assert "0 registrations" in dyno("register").stderr


def test_a_chain_that_somebody_changed_is_told(homes: Path) -> None:
    study = homes / "study.toml"
    study.write_text(STUDY)
    dyno("register", str(study))
    with sqlite3.connect(paths.data() / "dyno.sqlite") as connection:
        connection.execute("UPDATE dyno_chain SET content = replace(content, '0.02', '0.05')")
    said = complaint("register", code=1)
    assert "do not follow from each other: the digest of entry 1 is another one" in said


def test_a_report_says_that_its_run_was_not_registered(homes: Path) -> None:
    keep("first")
    told = "This run was not registered: nobody wrote down beforehand what it would measure."
    assert told in dyno("report", "first", "--format", "markdown").stdout
    assert told not in dyno("report", "first", "--details").stdout, (
        "a terminal says it where there is more to say"
    )
    keep("second")
    said = " ".join(dyno("report", "first", "--details").stdout.split())
    assert (
        f"{told} The store knows 1 other run of this study: second (not registered, not published)." in said
    )
