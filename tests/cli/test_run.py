"""`dyno run`: nothing is done twice, and each run has an order of its own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dbdyno.host import cache
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.study import Arrangement
from dbdyno.study.trials import NO_BLOCK
from dbdyno.trial import count
from tests.cli.calls import calls_counted, dyno
from tests.needs import needs_valgrind
from tests.study_texts import STUDY


def test_a_plain_run_does_nothing_twice(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(STUDY)
    with calls_counted() as calls:
        said = dyno("run", str(path))
    assert said.returncode == 0, said.stderr
    assert "4 trials" in said.stdout
    assert {name: calls[name] for name in ("parse_study", "make_plan", "Store.records", "analyse")} == {
        # The second time as stored studies are read, which tells the runs that ask the same.
        "parse_study": 2,
        # No plan is made whole: each block is drawn when it is due, and looked at again when it is over,
        # the first one after its baseline as well.
        "make_plan": 0,
        "Store.records": 1,
        "analyse": 1,
    }
    # Where the baseline is not the last of its block.
    assert calls["block_of"] in (2 * 2, 2 * 2 + 1)


def test_each_run_draws_an_order_and_records_it(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(STUDY)
    for given in ([], [], ["--seed", str(2**63 - 1)]):
        said = dyno("run", str(path), "--blocks", "1", "--json", *given)
        assert said.returncode == 0, said.stderr
    with Store(store_url()) as store:
        runs = [run.run for run in store.runs()]
        seeds = [run.seed for run in runs]
        loads = {record.tally.seed for run in runs for record in store.records(run.run) if record.tally}
    assert len(set(seeds)) == 3 and 2**63 - 1 in seeds
    assert all(run.mirrored for run in runs)
    assert len(loads) == 3, "the variants of a block draw the same keys, another run draws others"
    assert len(cache.shelf("pristine").names()) == 1, "data do not depend on the order"


def test_data_are_made_anew_where_connections_begin_otherwise(homes: Path) -> None:
    path = homes / "study.toml"
    for begin in ("", 'connect_sql = "CREATE TEMP TABLE t (x)"\n'):
        path.write_text(STUDY.replace('"tpcb"\n', f'"tpcb"\n{begin}'))
        said = dyno("run", str(path), "--blocks", "1", "--json")
        assert said.returncode == 0, said.stderr
    assert len(cache.shelf("pristine").names()) == 2


def test_a_study_times_its_statements(homes: Path) -> None:
    path = homes / "study.toml"
    path.write_text(STUDY.replace('"tpcb"\n', '"tpcb"\nby_statement = true\n'))
    said = dyno("run", str(path), "--blocks", "1", "--json")
    assert said.returncode == 0, said.stderr
    report = json.loads(said.stdout)
    assert [one["variant"] for one in report["statements"]] == [one["name"] for one in report["variants"]]
    for one in report["statements"]:
        per_op = {kind["text"]: kind["per_op"] for kind in one["kinds"]}
        # A transaction has each once. The first and the last one lie half outside of the measured part.
        for text in ("COMMIT", "UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?"):
            assert 0.5 <= per_op[text] <= 2.0


def test_a_run_until_the_margin_goes_round_in_slices(homes: Path) -> None:
    """Whatever this machine does meanwhile: each block is a pair of slices, and what is decided stays out."""
    path = homes / "study.toml"
    # Nothing is nearer than 99 %, so the first six blocks decide: verdicts need no more.
    path.write_text(STUDY.replace("blocks = 2", 'blocks = 2\nslice = "0.25s"') + '[goal]\nmargin = "99%"\n')
    said = dyno("run", str(path), "--until", "margin", "--blocks", "8", "--json")
    with Store(store_url()) as store:
        run = store.run("last")
        records = store.records(run.run)
    assert run.sequential and run.looks_planned and run.arrangement is Arrangement.SIDE_BY_SIDE
    assert all(record.tally is not None and len(record.tally.slices) == 2 for record in records), said.stderr
    by_block = Counter(record.block for record in records)
    assert set(by_block) in ({*range(6)}, {*range(8)}) and set(by_block.values()) == {2}
    [candidate] = [one for one in json.loads(said.stdout)["variants"] if one["role"] == "candidate"]
    assert candidate["decided"] or len(by_block) == 8


@needs_valgrind
def test_work_is_counted_after_the_last_block(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count, "WARMUP_OPERATIONS", 20)
    monkeypatch.setattr(count, "OPERATIONS", 20)
    path = homes / "study.toml"
    path.write_text(STUDY.replace("blocks = 2", "blocks = 1") + "[goal]\ncounted = true\n")
    said = dyno("run", str(path))
    assert said.returncode == 0, said.stderr
    assert "[4/4] config.synchronous=OFF" in said.stderr and "instructions per transaction" in said.stderr
    assert "Counted work" in " ".join(said.stdout.split())
    with Store(store_url()) as store:
        records = store.records(store.run("last").run)
    assert [record.block for record in records] == [0, 0, NO_BLOCK, NO_BLOCK]
    assert all(record.instructions and not record.tally for record in records[2:])
    # It goes on from its records: nothing is left to be counted.
    assert dyno("run", "--resume", "last").returncode == 0
    with Store(store_url()) as store:
        assert store.records(store.run("last").run) == records
