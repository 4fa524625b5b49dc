"""The bench that strikes fleets: a history of a killed and a stopped worker and a cut network, on hosts in
namespaces, and the table of past ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benches import fleet
from tests.fleet.machines import lacking
from tests.needs import INITDB

ALL_THREE, BLOCKS = 75, 2
"""The history in which a drawn seed strikes each host by another of these faults, and its blocks of each."""


@pytest.mark.engine
def test_nothing_is_lost_or_stored_twice_on_hosts_that_are_struck(homes: Path) -> None:
    if INITDB is None:
        pytest.skip("no PostgreSQL under /usr/lib/postgresql")
    if why := lacking():
        pytest.skip(f"no hosts in namespaces: {why}")
    with fleet.bench_in(homes, BLOCKS) as bench:
        found = fleet.history(bench, ALL_THREE, 1, ("kill", "stop", "split"))
    assert found["blocks"] == BLOCKS
    struck = {event.split(": ")[1].split()[0] for event in found["events"]}
    assert struck >= {"kill", "stop", "cut"}
    assert found["faults"] == [] and found["records"] == 12


def test_past_histories_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.jsonl"
    past = {"number": 0, "seed": 1, "events": ["0.40 s: kill b"], "records": 12, "late": 2, "faults": []}
    wrong = {**past, "number": 1, "faults": ["trial 3 of a is missing"]}
    results.write_text("".join(json.dumps(one) + "\n" for one in (past, wrong)))
    monkeypatch.setattr(sys, "argv", ["fleet", "--results", str(results), "--show"])
    fleet.main()
    told = capsys.readouterr().out
    assert "2 histories, 1 with faults" in told and "24 records kept, 4 late ones refused" in told
    assert "trial 3 of a is missing" in told
