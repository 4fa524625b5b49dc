"""Builds read the same data, as far as their format allows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.engines import built as engines_built
from dbdyno.engines.built import built
from dbdyno.engines.sqlite import SQLITE
from dbdyno.frozen import Level
from dbdyno.host.journal import open_journal
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.source import making
from dbdyno.trial.bench import Bench
from dbdyno.trial.prepare import data_maker
from tests.sqlite_fork import fork_wish, make_fork
from tests.trials import bench_of, study_of

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("homes")]

BASELINE: dict[str, Level] = {
    "source.origin": "fork",
    "source.recipe": "recipe.toml",
    "build.optimisation": "-O1",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, which holds a fork of SQLite."""
    monkeypatch.setattr(engines_built, "_looks", engines_built._Looks())
    monkeypatch.setattr(making, "_failures", {})
    make_fork(tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    return Path()


@pytest.fixture
def bench(folder: Path) -> Iterator[Bench]:
    """The bench of a study whose baseline is a build of that fork."""
    with open_journal() as journal:
        yield bench_of(study_of("sqlite", BASELINE), journal)


def of_another_format(bench: Bench) -> Bench:
    """A bench whose installation no build can read the data of."""
    return replace(bench, installation=replace(bench.installation, version="2.8"))


def test_the_studys_own_installation_makes_the_data_of_all_builds(bench: Bench, folder: Path) -> None:
    candidate = built(SQLITE, fork_wish(optimisation="-O3"), folder)
    assert data_maker(candidate, bench) == bench.installation


def test_else_the_baselines_build_makes_them(bench: Bench, folder: Path) -> None:
    makers: list[Installation] = [
        data_maker(built(SQLITE, fork_wish(optimisation=level), folder), of_another_format(bench))
        for level in ("-O1", "-O3")
    ]
    assert makers[0].digest == makers[1].digest != bench.installation.digest
    assert makers[0].origin.endswith("gcc -O1")


def test_a_build_by_another_recipe_makes_its_own(bench: Bench, folder: Path) -> None:
    recipe = Path("recipe.toml").read_text().replace('name    = "compile"', 'name    = "other"')
    Path("other.toml").write_text(recipe)
    candidate = built(SQLITE, fork_wish(recipe="other.toml"), folder)
    assert data_maker(candidate, of_another_format(bench)) == candidate.installation


def test_without_a_baseline_that_can_be_built_each_makes_its_own(bench: Bench, folder: Path) -> None:
    levels = {**BASELINE, "build.compiler": "gcc-99"}
    study = study_of("sqlite", levels)
    candidate = built(SQLITE, fork_wish(), folder)
    assert data_maker(candidate, replace(of_another_format(bench), study=study)) == candidate.installation
