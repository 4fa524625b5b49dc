"""Pristine data: what they are made for once, and when they are made anew."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.driver.job import Job
from dbdyno.engines import registry
from dbdyno.errors import DynoError
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.host import cache, paths
from dbdyno.host.journal import open_journal
from dbdyno.layers.setup import Setup
from dbdyno.plan.blocks import Order, make_plan
from dbdyno.prepare_run.study_here import on_engines
from dbdyno.records.record import Outcome
from dbdyno.study import Factor
from dbdyno.study.designs import trial_count
from dbdyno.study.nouns import Reference
from dbdyno.study.trials import phases_of
from dbdyno.trial import pristine
from dbdyno.trial.pristine import Pristine, pristine_data
from tests.fakes import FakeEngine, make_study
from tests.spine import carry_out, with_images
from tests.trials import TPCB, bench_of, study_of


def test_rows_that_an_earlier_driver_made_are_not_taken(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, study = FakeEngine(), with_images(make_study(1, 2, blocks=1), 1)
    for generation in (1, 2, 2):
        monkeypatch.setattr("dbdyno.trial.pristine.GENERATED", generation)
        carry_out(study, engine=engine)
        (paths.data() / "dyno.sqlite").unlink()
    assert len(engine.initialised) == 2


@pytest.mark.parametrize("torn", ["", "\0" * 80, '{"engine": "fa'], ids=["empty", "zeros", "cut"])
def test_data_whose_account_cannot_be_read_are_made_anew(homes: Path, torn: str) -> None:
    engine, study = FakeEngine(), with_images(make_study(1, 2, blocks=1), 1)
    carry_out(study, engine=engine)
    [account] = (paths.cache() / "pristine").glob("*/pristine.json")
    cache.release()
    account.write_text(torn)
    (paths.data() / "dyno.sqlite").unlink()
    records = carry_out(study, engine=engine)
    assert {record.outcome for record in records} == {Outcome.MEASURED}
    assert len(engine.initialised) == 2


@pytest.mark.parametrize(
    ("further", "over_s", "images"), [(5, 0.0, 6), (5, 0.01, 2), (1, 0.0, 2), (1, 0.01, 1)]
)
def test_further_images_may_take_five_percent_of_the_time_of_all_loads(
    homes: Path, further: int, over_s: float, images: int
) -> None:
    engine, study = FakeEngine(), make_study(1, 2, blocks=12)
    workload = study.workload.but(duration_s=100.0, warmup_s=0.0)
    study = study.but(workload=workload)
    loads_s = trial_count(study) * sum(phase.takes_s for phase in phases_of(study))
    carry_out(with_images(study, 1), engine=engine)
    [account] = (paths.cache() / "pristine").glob("*/pristine.json")
    told = json.loads(account.read_text())
    account.write_text(json.dumps(told | {"seconds": 0.05 * loads_s / further + over_s}))
    (paths.data() / "dyno.sqlite").unlink()
    records = carry_out(study, engine=engine)
    assert {record.reset["image"] for record in records} == set(range(images))


def test_six_images_that_would_take_too_much_of_the_disk_are_two(
    homes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make_study(1, 2, blocks=12)
    study = study.but(workload=study.workload.but(duration_s=3600.0))
    monkeypatch.setattr(pristine, "IMAGES_BYTES", 0)
    records = carry_out(study, engine=FakeEngine())
    assert {record.reset["image"] for record in records} == {0, 1}


def test_images_are_made_from_different_seeds(homes: Path) -> None:
    study = with_images(study_of("sqlite", {}, blocks=4), 2)
    job = Job(url="", workload="point_select", options={"tables": 1, "table_size": 500}, threads=1, clients=1)
    rows: dict[int, list[tuple[int, ...]]] = {}
    with open_journal() as journal, journal.scope():
        bench = bench_of(study, journal)
        setup = Setup(bench.engine, bench.installation, paths.cache() / "trials" / "t", journal, job)
        for trial in make_plan(study, Order(seed=1)).trials:
            found = pristine_data(setup, bench, trial)
            with closing(sqlite3.connect(found.data / "dyno.sqlite")) as database:
                keys = database.execute("SELECT id, k FROM sbtest1 ORDER BY id").fetchall()
            assert rows.setdefault(found.image, keys) == keys
    assert [len(keys) for keys in rows.values()] == [500, 500]
    assert rows[0] != rows[1]


def another_library(folder: Path) -> Path:
    """Two files of one library are two engines."""
    other = folder / "libsqlite3.so.0"
    library = registry.engine("sqlite").obtaining.locate(Reference("sqlite")).library
    assert library is not None
    other.write_bytes(library.read_bytes() + b"\0")
    return other


def test_engines_have_as_many_images_as_the_first_one(homes: Path) -> None:
    """The second one's data took too long for another image."""
    other = another_library(homes)
    study = study_of("sqlite", {}, blocks=12)
    study = study.but(
        factors=(Factor(name=ENGINE_FACTOR, levels=("sqlite", f"sqlite:{other}")),),
        workload=study.workload.but(duration_s=3600.0),
    )
    job = Job(url="", workload="tpcb", options=TPCB, threads=1, clients=1)
    with open_journal() as journal, journal.scope():
        bench = replace(bench_of(study, journal), engines=on_engines(study))
        images: dict[int, set[int]] = {}
        for trial in make_plan(study, Order(seed=1)).trials:
            own = bench.of(trial)
            scratch = paths.cache() / "trials" / str(trial.index)
            found = pristine_data(Setup(own.engine, own.installation, scratch, journal, job), own, trial)
            if own.installation.library == other:
                account = found.folder / "pristine.json"
                told = json.loads(account.read_text())
                account.write_text(json.dumps(told | {"seconds": 1e9}))
            images.setdefault(trial.block // 2, set()).add(found.image)
    assert images == {pair: {pair} for pair in range(6)}


def test_a_level_runs_on_its_own_engine_or_not_at_all(homes: Path) -> None:
    """By a path of any form: it ran on the baseline's engine where its own was not found under its text."""
    beside = another_library(homes)
    level = f"sqlite:./{beside.relative_to(homes)}"
    study = study_of("sqlite", {}, blocks=1).but(place=str(homes))
    study = study.but(factors=(Factor(name=ENGINE_FACTOR, levels=("sqlite", level)),))
    with open_journal() as journal, journal.scope():
        bench = replace(bench_of(study, journal), engines=on_engines(study))
        _, later = sorted(
            make_plan(study, Order(seed=1)).trials, key=lambda one: one.variant.name != "baseline"
        )
        assert bench.of(later).installation.library == beside
        with pytest.raises(KeyError):
            replace(bench, engines={"sqlite": bench.engines["sqlite"]}).of(later)


def data_of_each(levels: tuple[str, ...], upgraded: bool) -> dict[str, Pristine]:
    """The pristine data of each level of the engine."""
    first = Reference.of(levels[0])
    study = with_images(study_of(first.engine, {}, blocks=1), 1).but(engine=first, upgraded=upgraded)
    study = study.but(factors=(Factor(name=ENGINE_FACTOR, levels=levels),))
    job = Job(url="", workload="tpcb", options=TPCB, threads=1, clients=1)
    found: dict[str, Pristine] = {}
    with open_journal() as journal, journal.scope():
        bench = replace(bench_of(study, journal), engines=on_engines(study))
        for trial in make_plan(study, Order(seed=1)).trials:
            own = bench.of(trial)
            scratch = paths.cache() / "trials" / f"{upgraded}-{trial.index}"
            setup = Setup(own.engine, own.installation, scratch, journal, job)
            found[str(trial.variant.levels[ENGINE_FACTOR])] = pristine_data(setup, own, trial)
    return found


@pytest.mark.engine
def test_data_go_from_version_to_version_whichever_comes_first(homes_with_engines: Path) -> None:
    levels = ("postgresql@15", "postgresql@18", "postgresql@17")
    for level in levels:
        try:
            registry.locate(Reference.of(level))
        except DynoError as missing:
            pytest.skip(f"{level} cannot be had here: {missing.message}")
    found = data_of_each(levels, upgraded=True)
    first, last, between = (found[level] for level in levels)
    assert first.upgrade is None and between.upgrade is not None and last.upgrade is not None
    assert last.upgrade.by.startswith(f"{between.upgrade.by}, then from 17.")
    assert last.upgrade.seconds > between.upgrade.seconds > 0
    assert first.rows == between.rows == last.rows != ""


def test_a_later_version_takes_over_what_the_first_one_made_and_never_mixes_it_with_its_own(
    homes: Path,
) -> None:
    other = another_library(homes)
    levels = ("sqlite", f"sqlite:{other}")
    found = {
        (upgraded, level): data
        for upgraded in (True, False)
        for level, data in data_of_each(levels, upgraded).items()
    }
    taken, made = found[True, levels[1]], found[False, levels[1]]
    assert taken.upgrade is not None and taken.upgrade.seconds > 0
    assert taken.rows == found[True, levels[0]].rows != ""
    assert made.upgrade is None and made.folder != taken.folder
    assert found[True, levels[0]].folder == found[False, levels[0]].folder, "the first makes the same data"
    assert found[True, levels[0]].upgrade is None
