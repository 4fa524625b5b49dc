"""What only a search has in its file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.frozen import Level
from dbdyno.study import Design, Factor
from dbdyno.study.designs import extremes_of, size_of_study, variants_of
from dbdyno.study.nouns import Condition, Promise, Reference, Search
from tests.study.catalogue import CATALOGUE
from tests.study.reading import mistakes, read, require_mistake
from tests.study.search_cases import SEARCH


def gives_up(factor: str, level: Level, engine: Reference) -> Promise | None:
    return Promise.DURABILITY if (factor, level) == ("config.log", "OFF") else None


CAREFUL = replace(CATALOGUE, gives_up=gives_up)


def test_a_search_is_read_whole() -> None:
    study = read(SEARCH)
    pool, log, capacity, threads = study.factors
    assert study.design is Design.SEARCH
    assert pool.baseline == "128M" and pool.rising[0] == "64M" and pool.rising[-1] == "8G"
    assert set(pool.rising) == set(pool.levels) and len(pool.rising) == len(pool.levels)
    assert log == Factor(name="config.log", levels=("ON", "OFF"))
    assert capacity.baseline == 200
    assert capacity.only_if == (Condition(factor="config.log", levels=("ON",)),)
    assert threads.levels == (1, 2, 4) and not threads.rising
    assert study.search is not None and study.search.time_s == 1200.0
    assert [one.factors for one in study.search.constraints] == [("config.pool", "config.capacity")]
    [manual] = study.variants
    assert manual.levels == {**study.baseline, "config.pool": "10G"}


def test_without_a_table_a_search_has_the_default_time_and_gives_nothing_up() -> None:
    assert read(SEARCH[: SEARCH.index("[search]")]).search == Search(time_s=1800.0)


def test_what_a_search_asks_does_not_depend_on_how_it_is_written() -> None:
    other = SEARCH.replace("config.log       =", '"config.log" =').replace('"20m"', '"1200s"')
    assert read(other).meaning == read(SEARCH).meaning
    assert read(SEARCH.replace("20000", "10000")).meaning != read(SEARCH).meaning


def test_a_condition_may_be_that_a_setting_is_empty() -> None:
    found = read(SEARCH.replace('["ON", "OFF"]', '["ON", "OFF", ""]').replace('= "ON" } }', '= "" } }'))
    assert found.factors[2].only_if == (Condition(factor="config.log", levels=("",)),)
    [mistake] = mistakes(SEARCH.replace('= "ON" } }', '= "" } }'))
    assert '`config.log` never is ""' in mistake.message


def test_only_the_baseline_is_known_beforehand_and_the_extremes_show_what_may_come() -> None:
    study = read(SEARCH)
    assert [variant.name for variant in variants_of(study)] == ["baseline"]
    names = [variant.name for variant in extremes_of(study)]
    assert names[:3] == ["baseline", "config.pool=64M", "config.pool=8G"]
    assert "config.log=OFF" in names and "config.capacity=20000" in names


def test_a_space_of_many_points_costs_nothing() -> None:
    factors = "\n".join(f'config.f{n} = {{ from = 1, to = 1000000, scale = "log" }}' for n in range(12))
    study = read(SEARCH[: SEARCH.index("[factors]")] + f"[factors]\n{factors}\n")
    assert size_of_study(study).trials == study.blocks


ONE_MISTAKE = [
    ('from = "64M", to = "8G"', 'from = "8G", to = "64M"', 6, "goes from", "smaller"),
    ('"config.pool"    = { from = "64M", to', '"config.pool"    = { to', 6, "`from` is missing", "from ="),
    ('scale = "log", base', 'scale = "cubic", base', 6, 'cannot be "cubic"', "linear, log"),
    ('baseline = "128M"', 'baseline = "16M"', 6, "lies beyond", "widen"),
    ('baseline = "128M"', 'bassline = "128M"', 6, "unknown key `bassline`", "baseline"),
    ("levels = [1, 2, 4]", "levels = [1]", 9, "has one level", "BASELINE"),
    ("levels = [1, 2, 4]", "levels = [1, 2, 4], to = 3", 9, "has `levels` and `to`", "leave one"),
    ('"config.log" = "ON"', '"config.lag" = "ON"', 8, "no factor before it", "config.log"),
    ('"config.log" = "ON"', '"config.threads" = 1', 8, "no factor before it", "config.pool"),
    ('"config.log" = "ON"', '"config.log" = "YES"', 8, "never is YES", "ON"),
    ('"config.log" = "ON"', '"config.log" = ["ON", "OFF"]', 8, "always holds", "leave it out"),
    ('"config.log" = "ON"', '"config.log" = []', 8, "names no level", "leave it out"),
    ('time        = "20m"', 'time = "20s"', 11, "`time`", "60s"),
    ('time        = "20m"', 'allow = ["speed"]', 11, "`allow`", "durability"),
    ('time        = "20m"', 'allow = "durability"', 11, "must be a list", "allow = [...]"),
    ('["config.pool + 2', '["config.pol + 2', 12, "is no factor of this search", "config.pool"),
    ("<= 6G", "<= 64M", 12, "the baseline breaks the constraint", "another"),
    ("2 * config.capacity", "config.log", 12, "which is no amount", "numbers and sizes"),
    ('"config.pool" = "10G"', '"config.poll" = "10G"', 15, "is no factor of this search", "config.pool"),
    ('"config.pool" = "10G"', '"config.pool" = "128M"', 13, "is the baseline", "differs"),
    ('name   = "the manual"', 'name = "candidate-3"', 14, "a name of Dyno's own", "another"),
    ("[workload]", "aa = true\n[workload]", 3, "`aa` and `design = search`", "leave"),
    ("[workload]", "baselines = 2\n[workload]", 3, "`baselines` and `design = search`", "leave"),
]


@pytest.mark.parametrize(("old", "new", "line", "message", "hint"), ONE_MISTAKE)
def test_one_mistake(old: str, new: str, line: int, message: str, hint: str) -> None:
    assert old in SEARCH
    require_mistake(mistakes(SEARCH.replace(old, new, 1)), line, message, hint)


def test_a_level_that_gives_up_durability_must_be_allowed() -> None:
    [mistake] = mistakes(SEARCH, CAREFUL)
    assert mistake.message == "`config.log` = OFF gives up durability"
    assert 'allow = ["durability"]' in mistake.hint
    allowed = SEARCH.replace('time        = "20m"', 'time = "20m"\nallow = ["durability"]')
    study = read(allowed, CAREFUL)
    assert study.search is not None and study.search.allow == (Promise.DURABILITY,)


def test_a_baseline_that_gives_durability_up_already_is_taken_as_it_is() -> None:
    text = SEARCH.replace('["ON", "OFF"]', '["OFF", "ON"]')
    read(text, CAREFUL)


def test_a_search_does_not_vary_builds() -> None:
    layers = {**CATALOGUE.layers, "build": CATALOGUE.layers["storage"]}
    text = SEARCH.replace("[search]", 'build.optimisation = ["-O2", "-O3"]\n[search]')
    found = mistakes(text, replace(CATALOGUE, layers=layers))
    assert "and `design = search` exclude each other: each build takes minutes" in found[0].message
