"""Studies that Dyno writes itself can be read by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.study import Design, Goal, Guard, Interval, Workload
from dbdyno.study.designs import variants_of
from dbdyno.study.nouns import GivenData
from dbdyno.study.values import ValueFault
from dbdyno.study.written import CLIENTS, filled, parse_workload, winner_on, with_old_defaults
from tests.study.catalogue import CATALOGUE
from tests.study.data_cases import NAMES
from tests.study.reading import read
from tests.study.search_cases import SEARCH


def test_a_winner_is_held_against_its_baseline_on_another_workload() -> None:
    study = read(SEARCH + '[settings]\nconfig.fixed = "3G"\n')
    load = Workload(
        name="point_select", clients=3, warmup_s=0.5, options={"table_size": 7, "prepared": False}
    )
    guards = (study.goal.guards[0], Guard(text="p99_ms <= 1.2x", metric="p99_ms", bound=1.2, relative=True))
    goal = Goal(response="p50_ms", margin=0.07, confidence=0.99, interval=Interval.SIGNED_RANK, guards=guards)
    text = winner_on(study, "candidate-7 with 1 change", {"config.pool": "2G"}, load, goal)
    other = read(text)
    assert other.design is Design.LIST and other.goal == goal
    assert (other.workload.name, other.workload.clients, other.workload.warmup_s) == ("point_select", 3, 0.5)
    assert other.workload.options["table_size"] == 7 and other.workload.options["prepared"] is False
    assert [variant.name for variant in other.variants] == ["baseline", "candidate-7 with 1 change"]
    assert [variant.levels for variant in other.variants] == [{"config.pool": "128M"}, {"config.pool": "2G"}]
    assert other.settings == {"config.fixed": "3G"}
    assert (other.engine, other.blocks) == (study.engine, study.blocks)


def test_a_goal_without_guards_is_written_as_one() -> None:
    study = read(SEARCH)
    text = winner_on(study, "candidate-7", {"config.pool": "2G"}, study.workload, Goal(guards=()))
    assert read(text).goal == Goal(guards=())


def test_an_option_that_the_winner_changes_is_written_once() -> None:
    study = read(SEARCH.replace("[search]", '"workload.scale" = [1, 2]\n[search]'))
    load = Workload(name="tpcb", options={"scale": 1, "variant": "N"})
    other = read(winner_on(study, "candidate-7", {"workload.scale": 2}, load, study.goal))
    assert [variant.levels for variant in other.variants] == [{"workload.scale": 1}, {"workload.scale": 2}]
    assert other.workload.options == {"scale": 1, "variant": "N"}


@pytest.mark.parametrize(
    ("data", "paths"),
    [
        (
            GivenData(dump=("a.sql", "/b.sql.gz"), database="shop", setup=True),
            ("/studies/a.sql", "/b.sql.gz"),
        ),
        (GivenData(folder="../stopped"), ("/studies/../stopped",)),
    ],
)
def test_the_data_that_a_search_brought_are_brought_again(data: GivenData, paths: tuple[str, ...]) -> None:
    study = read(SEARCH).model_copy(update={"place": "/studies"})
    load = Workload(name="script", options={"file": "/other.toml"})
    other = read(winner_on(study, "candidate-7", {"config.pool": "2G"}, load, study.goal, data), NAMES)
    assert other.data is not None
    assert tuple(map(str, other.data.paths(other.folder))) == paths
    assert (other.data.database, other.data.setup) == (data.database, data.setup)


def test_two_versions_are_written_with_their_defaults_apart() -> None:
    layers = {**CATALOGUE.layers, "engine": lambda *_: []}
    names = replace(CATALOGUE, layers=layers, networked=frozenset({"mariadb"}))
    text = (
        'title = "Newer?"\ndata = "upgraded"\nblocks = 9\n[workload]\nname = "tpcb"\nclients = [1, 4]\n'
        'duration = "7s"\nisolation = "serializable"\nconnect_sql = ["SET a = 1"]\n'
        '[factors]\nengine = ["mariadb@10.11", "mariadb@11.8"]\n[settings]\n"config.fixed" = "3G"\n'
        '[driver]\nhost = "load1"\naddress = "10.0.0.1"\ntls = true\n'
    )
    study = read(text, names)
    found = {one.name: one for one in variants_of(study)}
    ends = (
        found["workload.clients=4"],
        found["workload.clients=4"].but(levels={"workload.clients": 4, "engine": "mariadb@11.8"}),
    )
    other = read(with_old_defaults(study, ends, {"config.a": "1"}, {"config.a": "2"}), names)
    assert other.title == "Newer? the version and its defaults apart" and other.upgraded
    assert other.design is Design.LIST and other.blocks == 9
    assert other.driver == study.driver and study.driver is not None
    assert other.workload == study.workload.but(clients=4)
    assert other.settings == {"config.fixed": "3G"}
    assert [one.levels for one in other.variants] == [
        {"engine": "mariadb@10.11", "config.a": "1"},
        {"engine": "mariadb@11.8", "config.a": "1"},
        {"engine": "mariadb@11.8", "config.a": "2"},
    ]


OFFERS = CATALOGUE.workloads


def test_a_text_names_a_workload_and_some_of_its_options() -> None:
    text = "point_select table_size=500 exponent=1.5 prepared=false clients=3"
    offer, given = parse_workload(text, OFFERS, own=(CLIENTS,))
    assert offer.name == "point_select"
    assert given == {"table_size": 500, "exponent": 1.5, "prepared": False, "clients": 3}


def test_what_a_text_leaves_out_is_the_studys_or_the_default() -> None:
    offer, given = parse_workload("point_select exponent=1.5", OFFERS)
    options = filled(offer, given, {"table_size": 7, "scale": 3, "exponent": 0.1})
    assert options == {"table_size": 7, "exponent": 1.5, "prepared": True, "note": ""}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", '"" is no workload', "tpcb"),
        ("tpcz", '"tpcz" is no workload', "did you mean `tpcb`?"),
        ("of", '"of" is no workload', "did you mean `off`?"),
        ("tpcb sclae=2", 'the workload tpcb has no option "sclae"', "did you mean `scale`?"),
        ("tpcb scale", '"scale" is no option of the workload tpcb', "read_write tables=4"),
        ("tpcb scale=1 scale=2", "has the option `scale` twice", "keep one"),
        ("tpcb scale=many", '`scale`: "many" is no number', "read_write tables=4"),
        ("tpcb variant=X", '`variant`: cannot be "X"', "full"),
        ("tpcb clients=2", 'the workload tpcb has no option "clients"', "scale"),
    ],
)
def test_a_mistake_is_told_once_with_what_would_be_right(text: str, message: str, hint: str) -> None:
    with pytest.raises(ValueFault) as caught:
        parse_workload(text, OFFERS, others=("off",))
    assert message in caught.value.message and hint in caught.value.hint


def test_an_option_of_the_study_must_be_one_that_the_workload_can_have() -> None:
    offer, given = parse_workload("tpcb", OFFERS)
    with pytest.raises(ValueFault) as caught:
        filled(offer, given, {"scale": 0})
    assert "`scale`: cannot be 0" in caught.value.message
