"""Engines as a factor, with two libraries that are the same SQLite but not the same bytes."""

from __future__ import annotations

from pathlib import Path

from dbdyno.engines.sqlite.server import LIBRARY
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.host import cache, fingerprint
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome
from dbdyno.records.store import Store
from tests.cli.calls import dyno

STUDY = """
title  = "Is the other library faster?"
blocks = 1
[workload]
name     = "tpcb"
warmup   = "0s"
duration = "0.5s"
[factors]
engine = ["sqlite", "sqlite:{other}"]
"""


def _other_library(folder: Path) -> Path:
    """The host's SQLite with a byte after its end: another file, as another version is."""
    own = fingerprint.find(LIBRARY)
    assert own is not None
    other = folder / LIBRARY
    other.write_bytes(own.read_bytes() + b"\0")
    return other


def _study(homes: Path) -> Path:
    path = homes / "study.toml"
    path.write_text(STUDY.format(other=_other_library(homes)))
    return path


def test_each_variant_runs_on_its_own_engine_and_its_own_data(homes: Path) -> None:
    said = dyno("run", str(_study(homes)), "--json")
    assert said.returncode == 0, said.stderr
    with Store(store_url()) as store:
        [summary] = store.runs()
        run = summary.run
        records = store.records(run.run)
    assert [record.outcome for record in records] == [Outcome.MEASURED] * 2
    held = set()
    for record in records:
        [evidence] = [one for one in record.evidence if one.factor == ENGINE_FACTOR]
        assert (
            evidence.in_effect and evidence.effective is not None and "build id" in evidence.effective.source
        )
        held.add(evidence.effective.source)
    assert len(held) == 2, "each load process holds a file of its own"
    assert len(cache.shelf("pristine").names()) == 2, "each engine has made its own data"
    [level] = run.engines
    assert run.engines[level].digest != run.installation.digest
    assert run.engines[level].version == run.installation.version


def test_a_run_goes_on_with_the_engines_that_it_began_with_alone(homes: Path) -> None:
    study = _study(homes)
    assert dyno("run", str(study), "--json").returncode == 0
    with Store(store_url()) as store:
        [summary] = store.runs()
    again = ("run", "--resume", summary.run.run, "--add-blocks", "1")
    assert dyno(*again).returncode == 0
    other = homes / LIBRARY
    other.write_bytes(other.read_bytes() + b"\0")
    said = dyno(*again)
    assert said.returncode == 2
    assert str(other) in said.stderr and "restore that engine" in said.stderr


def test_levels_that_are_one_server_are_refused_with_their_place(homes: Path) -> None:
    study = _study(homes)
    own = fingerprint.find(LIBRARY)
    study.write_text(study.read_text().replace(str(homes / LIBRARY), str(own)))
    said = dyno("plan", str(study))
    assert said.returncode == 2
    assert "line 9" in said.stderr and "are the same server" in said.stderr


def test_a_setting_that_no_engine_of_the_study_knows_is_a_mistake(homes: Path) -> None:
    study = _study(homes)
    study.write_text(study.read_text().replace("[factors]", "[settings]\nconfig.no_such = 1\n[factors]"))
    said = dyno("plan", str(study))
    assert said.returncode == 2 and said.stderr.count("no setting 'no_such'") == 1
