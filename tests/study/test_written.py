"""Studies that Dyno writes itself can be read by it."""

from __future__ import annotations

import tomllib

import pytest

from dbdyno.frozen import Level
from dbdyno.study import Design
from dbdyno.study.written import toml, winner_on
from tests.study.reading import read
from tests.study.test_search import SEARCH


@pytest.mark.parametrize("value", ['a "quoted"\n line', "a duck: 🦆", 3, 0.5, True, ["2M", 4]])
def test_a_value_is_read_back(value: Level | list[Level]) -> None:
    assert tomllib.loads(f"value = {toml(value)}\n") == {"value": value}


def test_a_winner_is_held_against_its_baseline_on_another_workload() -> None:
    study = read(SEARCH + '[settings]\nconfig.fixed = "3G"\n')
    text = winner_on(study, "candidate-7 with 1 change", {"config.pool": "2G"}, "point_select")
    other = read(text)
    assert other.design is Design.LIST and other.workload.name == "point_select"
    assert [variant.name for variant in other.variants] == ["baseline", "candidate-7 with 1 change"]
    assert [variant.levels for variant in other.variants] == [{"config.pool": "128M"}, {"config.pool": "2G"}]
    assert other.settings == {"config.fixed": "3G"}
    assert (other.engine, other.blocks, other.goal.margin) == (study.engine, study.blocks, study.goal.margin)
