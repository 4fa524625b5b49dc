"""Fractions of a two-level factorial: what the tables promise, computed from the setups themselves."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pytest

from dbdyno.errors import StudyError
from dbdyno.frozen import Level
from dbdyno.study import DURABLE, Guard, Restarts, Study, designs, parse_study, study_schema
from dbdyno.study.designs import CONTROL
from dbdyno.study.nodes import OF_NODES
from dbdyno.study.soak import Act
from dbdyno.study.tables import CUTS_OF_GUARD
from dbdyno.study.trials import phases_of
from tests.study.catalogue import CATALOGUE, that_may_only_read

ALL = sorted(designs.GENERATORS)
PUBLISHED = {5: 5, 6: 6, 7: 4, 8: 4, 9: 4, 10: 4, 11: 4, 12: 4}
"""Resolutions in Box, Hunter and Hunter's and in Montgomery's tables, by the number of factors."""


@pytest.mark.parametrize("factors", ALL)
def test_the_resolution_is_the_published_one(factors: int) -> None:
    assert designs.resolution(factors) == PUBLISHED[factors]


@pytest.mark.parametrize("factors", ALL)
def test_setups_differ_and_are_balanced_and_begin_with_the_baseline(factors: int) -> None:
    rows = designs.fraction(factors)
    assert rows[0] == (-1,) * factors
    assert len(set(rows)) == len(rows) == (16 if factors == 5 else 32)
    assert np.array(rows).sum(axis=0).tolist() == [0] * factors
    assert (1,) * factors in designs.points(factors)


@pytest.mark.parametrize("factors", ALL)
def test_factors_are_clear_of_each_other_and_of_interactions_of_two(factors: int) -> None:
    rows = np.array(designs.fraction(factors))
    pairs = [rows[:, i] * rows[:, j] for i, j in itertools.combinations(range(factors), 2)]
    assert np.array_equal(rows.T @ rows, len(rows) * np.eye(factors, dtype=int))
    assert not (rows.T @ np.array(pairs).T).any()


@pytest.mark.parametrize("factors", ALL)
def test_what_is_together_is_one_column_up_to_its_sign_and_nothing_else_is(factors: int) -> None:
    rows = np.array(designs.fraction(factors))
    groups = designs.together(factors)
    told = sorted(one for group in groups for one in group.interactions)
    assert told == list(itertools.combinations(range(factors), 2))
    firsts = []
    for group in groups:
        columns = [
            sign * rows[:, i] * rows[:, j]
            for (i, j), sign in zip(group.interactions, group.signs, strict=True)
        ]
        assert all(np.array_equal(columns[0], column) for column in columns)
        firsts.append(columns[0])
    products = np.array(firsts) @ np.array(firsts).T
    assert np.array_equal(products, len(rows) * np.eye(len(groups), dtype=int))


@pytest.mark.parametrize("factors", ALL)
def test_a_share_names_every_interaction_of_three_that_it_holds(factors: int) -> None:
    rows = np.array(designs.fraction(factors))
    for index in range(factors):
        held = {}
        for three in itertools.combinations(range(factors), 3):
            agreement = int(rows[:, list(three)].prod(axis=1) @ rows[:, index])
            if agreement:
                held[three] = agreement // len(rows)
        named = designs.within(factors, index)
        assert held == (dict(zip(named.interactions, named.signs, strict=True)) if named else {})


def test_the_text_is_the_textbooks() -> None:
    lines = designs.description(7)
    assert "32 of 128 variants, resolution IV" in lines[0]
    assert [line.strip() for line in lines if "×" in line] == ["C×E + F×G", "C×F + E×G", "C×G + E×F"]


LOSING = replace(CATALOGUE, losing=lambda reference: {"forced_writes": False})
SHORT = """\
engine = "firebird"
[workload]
name = "{workload}"
[factors]
"config.a" = [1, 2]
{rest}
"""


def read(rest: str, workload: str = "tpcb") -> Study:
    return parse_study(SHORT.format(workload=workload, rest=rest).encode(), LOSING)


def mistake(rest: str, workload: str = "tpcb") -> str:
    with pytest.raises(StudyError) as caught:
        read(rest, workload)
    [found] = caught.value.mistakes
    return f"{found.message}; {found.hint}"


def test_a_study_without_restarts_has_none() -> None:
    study = read("")
    assert study.restarts is None
    assert "restarts" not in study.model_dump(mode="json")
    assert [phase.then for phase in phases_of(study)] == [None]


def test_restarts_are_counted_by_what_comes_before_them() -> None:
    counts = "power_cuts = 50\ntorn_pages = 10\nkills = 5\nstops = 2\nflipped_bits = 3"
    study = read(f'[restarts]\n{counts}\nload = "1.5s"')
    control: dict[str, Level] = {"config.forced_writes": False}
    assert study.restarts == Restarts(
        power_cuts=50, torn_pages=10, kills=5, stops=2, flipped_bits=3, load_s=1.5, control=control
    )


def test_the_guard_asks_for_power_cuts_by_itself() -> None:
    study = read('[goal]\nguards = ["durable"]')
    assert study.goal.guards == (Guard(text=DURABLE, metric=DURABLE),)
    assert study.restarts is not None
    assert study.restarts.power_cuts == CUTS_OF_GUARD
    given = read('[restarts]\npower_cuts = 7\n[goal]\nguards = ["durable"]').restarts
    assert given is not None
    assert given.power_cuts == 7
    torn = read('[restarts]\ntorn_pages = 3\n[goal]\nguards = ["durable"]').restarts
    assert torn is not None
    assert (torn.power_cuts, torn.torn_pages) == (0, 3)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("[restarts]", "nothing is to be restarted"),
        ("[restarts]\nkills = 0", "nothing is to be restarted"),
        ("[restarts]\ncuts = 3\nkills = 1", "unknown key `cuts`"),
        ("[restarts]\nkills = -1\nstops = 1", "cannot be -1"),
        ('[restarts]\nkills = 1\nload = "1ms"', "cannot be"),
        ('[goal]\nguards = ["durabel"]', '"durable"'),
    ],
)
def test_mistakes_say_what_is_allowed(rest: str, said: str) -> None:
    assert said in mistake(rest)


def test_a_metric_of_restarts_needs_a_load_with_a_ledger() -> None:
    assert "keeps a ledger" in mistake('[goal]\nresponse = "ready_after_kill_s"', "point_select")


def test_a_load_that_only_reads_keeps_no_ledger() -> None:
    text = SHORT.format(workload="tpcb", rest='[goal]\nresponse = "stop_s"')
    reading = text.replace('"tpcb"', '"tpcb"\nselect_only = true')
    with pytest.raises(StudyError) as caught:
        parse_study(reading.encode(), that_may_only_read(LOSING))
    [found] = caught.value.mistakes
    assert "is not known under tpcb that only reads" in found.message
    assert found.line == 4


def test_a_goal_that_times_restarts_has_them_in_each_trial() -> None:
    guards = 'guards = ["stop_s <= 2x", "ready_after_kill_s <= 9"]'
    study = read(f'[goal]\nresponse = "ready_after_stop_s"\n{guards}')
    assert [phase.then for phase in phases_of(study)] == [None, Act.STOP, Act.KILL]
    assert study.restarts is None


def test_full_speed_after_the_last_act_is_shown_by_the_load_before_a_kill() -> None:
    asked = '[goal]\nresponse = "full_speed_after_stop_s"'
    assert [phase.then for phase in phases_of(read(asked))] == [None, Act.STOP, Act.KILL]
    followed = read(f'{asked}\nguards = ["ready_after_cut_s <= 9"]')
    assert [phase.then for phase in phases_of(followed)] == [None, Act.STOP, Act.CUT]
    last = read(f'{asked}\nguards = ["full_speed_after_cut_s <= 9"]')
    assert [phase.then for phase in phases_of(last)] == [None, Act.STOP, Act.CUT, Act.KILL]


def test_a_bound_that_no_load_is_long_enough_for_is_a_mistake() -> None:
    asked = '[goal]\nguards = ["full_speed_after_cut_s <= {}"]'
    told = mistake(asked.format(20))
    assert "a load of 20 s cannot show whether full_speed_after_cut_s <= 20 holds" in told
    assert read(asked.format("19.5")).goal.guards[0].bound == 19.5
    assert read(asked.format("20x")).goal.guards[0].relative


def test_the_control_s_name_is_not_to_be_had() -> None:
    rest = f'''design = "list"
engine = "firebird"
[workload]
name = "tpcb"
[[variants]]
levels = {{ "config.a" = 1 }}
[[variants]]
name = "{CONTROL}"
levels = {{ "config.a" = 2 }}
'''
    with pytest.raises(StudyError) as caught:
        parse_study(rest.encode(), LOSING)
    assert any("a name of Dyno's own" in one.message for one in caught.value.mistakes)


@pytest.mark.parametrize(
    ("restarts", "is_right"),
    [({"power_cuts": 3}, True), ({"power_cuts": -3}, False), ({"load": 3}, False), ({"cuts": 3}, False)],
)
def test_the_schema_knows_restarts(restarts: dict[str, Any], is_right: bool) -> None:
    study = {"engine": "firebird", "workload": {"name": "tpcb"}, "restarts": restarts}
    study["goal"] = {"guards": ["invariants", "durable"]}
    found = jsonschema.Draft202012Validator(study_schema(LOSING)).is_valid(study)
    assert found is is_right


@pytest.mark.parametrize("act", OF_NODES)
def test_an_act_on_a_node_needs_a_cluster(act: str) -> None:
    assert f"`{act}` strikes a node of a cluster, and there is none; write" in mistake(
        f"[restarts]\n{act} = 1"
    )
