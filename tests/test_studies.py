"""The studies that come with Dyno can be read by the Dyno that they come with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from dbdyno.plan.blocks import Order, expected_duration_s, make_plan
from dbdyno.plan.search.ask import least_s
from dbdyno.prepare_run.estimate import overhead_s
from dbdyno.prepare_run.study_here import catalogue
from dbdyno.study import read_study, study_schema
from dbdyno.study.designs import size_of_study, trial_count, variants_of
from tests.built_study import EXHIBITS, mistakes

FOLDER = Path(__file__).parent.parent / "studies"
STUDIES = sorted(FOLDER.glob("*.toml"))
PUBLISHED = sorted((FOLDER / "published").glob("*.toml"))
SEARCHES = [path for path in STUDIES if path.stem.startswith("tune-")]


def test_the_quickstart_is_among_them() -> None:
    assert FOLDER / "quickstart.toml" in STUDIES


def test_the_list_of_studies_names_each() -> None:
    listed = re.findall(r"\]\(([\w-]+\.toml)\)", (FOLDER / "README.md").read_text())
    assert sorted(listed) == [path.name for path in STUDIES]


def test_the_list_of_published_studies_names_each() -> None:
    listed = re.findall(r"\]\(published/([\w-]+\.toml)\)", (FOLDER / "README.md").read_text())
    assert sorted(listed) == [path.name for path in PUBLISHED]


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_a_published_study_has_the_figures_of_its_source_and_says_what_it_needs(path: Path) -> None:
    study = read_study(path, catalogue(ask_engines=False))
    assert study.published
    assert all(one.source and one.hardware and one.differs for one in study.published)
    from_path = any(engine.path for engine in study.engines)
    assert from_path == (" Needs " in path.read_text().split("title", 1)[0].replace("Needs root", ""))


@pytest.mark.parametrize("path", [*STUDIES, *PUBLISHED], ids=lambda path: path.stem)
def test_a_study_can_be_read_and_planned(path: Path) -> None:
    names = catalogue(ask_engines=False)
    study = read_study(path, names)
    assert len(make_plan(study, Order(seed=1)).trials) == size_of_study(study).trials == trial_count(study)
    jsonschema.Draft202012Validator(study_schema(names)).validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize("path", SEARCHES, ids=lambda path: path.stem)
def test_a_search_has_time_for_more_than_its_confirmation(path: Path) -> None:
    study = read_study(path, catalogue(ask_engines=False))
    assert study.search is not None
    needed_s = least_s(study, expected_duration_s(1, study, overhead_s(study)))
    assert needed_s < 0.5 * study.search.time_s


@pytest.mark.parametrize("engine", ["mariadb", "postgresql"])
def test_tpcc_is_tuned_in_the_space_of_the_mixed_load_and_held_against_the_same_guides(engine: str) -> None:
    names = catalogue(ask_engines=False)
    mixed, tpcc = (read_study(FOLDER / f"tune-{engine}{load}.toml", names) for load in ("", "-tpcc"))
    assert (mixed.workload.name, tpcc.workload.name) == ("read_write", "tpcc")
    assert (tpcc.engine, tpcc.factors, tpcc.search) == (mixed.engine, mixed.factors, mixed.search)
    assert [one.name for one in tpcc.variants] == [one.name for one in mixed.variants]
    assert len(tpcc.variants) == 10
    sizes = {"config.innodb_buffer_pool_size", "config.innodb_log_file_size"}
    for ours, theirs in zip(tpcc.variants, mixed.variants, strict=True):
        differs = {name for name, level in ours.levels.items() if level != theirs.levels[name]}
        assert differs <= sizes, "only sizes follow the data"


def test_what_the_study_of_builds_is_to_catch_is_in_it() -> None:
    study = read_study(FOLDER / "sqlite-builds.toml", catalogue(ask_engines=False))
    assert {variant.name for variant in variants_of(study)} > EXHIBITS.keys()


def test_a_level_that_ended_otherwise_is_told() -> None:
    verdicts = {**EXHIBITS, "build.lto=full": "faster"}
    layout: dict[str, object] = {"layout": {"placebos": 1}}

    def told(changed: dict[str, str], method: dict[str, object] = layout) -> list[str]:
        ended = [{"name": name, "role": "candidate", "verdict": verdict} for name, verdict in changed.items()]
        return mistakes({"variants": ended, "method": method})

    assert told(verdicts) == []
    assert told({**verdicts, "build.flags=-Wall": "faster"}) == ["build.flags=-Wall is faster, not inert"]
    assert told({**verdicts, "build.lto=full": "failed"}) == ["build.lto=full is failed, not measured"]
    assert told({name: verdicts[name] for name in list(verdicts)[1:]}) == ["there is no build.flags=-Wall"]
    assert told(verdicts, {}) == ["the placebo was not measured, so nobody knows how far luck of layout goes"]
