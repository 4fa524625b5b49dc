"""What a study of platforms says, and what does not go with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.errors import StudyError
from dbdyno.study import Study, parse_study
from dbdyno.study.designs import restart_trial_count, trial_count, trials_in_all
from dbdyno.study.excludes import TIMES_NOTHING
from tests.study.catalogue import CATALOGUE

WITH_PLATFORMS = replace(
    CATALOGUE,
    layers={**CATALOGUE.layers, **dict.fromkeys(("build", "platform"), lambda factor, engine: [])},
    lone=True,
)
TEXT = """\
engine = "mariadb"
{head}
[workload]
name = "tpcb"
[{table}]
{levels}
[restarts]
{acts}
{rest}
"""
LEVELS = '"platform.architecture" = ["amd64", "s390x"]'


def read(
    head: str = "", levels: str = LEVELS, table: str = "factors", acts: str = "kills = 2", rest: str = ""
) -> Study:
    text = TEXT.format(head=head, table=table, levels=levels, acts=acts, rest=rest)
    return parse_study(text.encode(), WITH_PLATFORMS)


def mistakes(**given: str) -> list[str]:
    with pytest.raises(StudyError) as caught:
        read(**given)
    return [f"{one.line}: {one.message}" for one in caught.value.mistakes]


def test_it_has_no_blocks_and_a_trial_for_each_architecture() -> None:
    study = read()
    assert study.untimed and study.blocks == 0
    assert (trial_count(study), restart_trial_count(study), trials_in_all(study)) == (0, 2, 2)
    fixed = read(levels='"platform.architecture" = "s390x"', table="settings")
    assert fixed.untimed and fixed.blocks == 0
    assert not read(levels='"config.a" = [1, 2]').untimed


PLATFORM = "`platform.architecture` exclude each other"


@pytest.mark.parametrize(("head", "key"), [("blocks = 6", "blocks"), ("aa = true", "aa")])
def test_what_asks_for_speed_does_not_go_with_it(head: str, key: str) -> None:
    assert mistakes(head=head) == [f"2: `{key}` and {PLATFORM}: {TIMES_NOTHING}"]
    told = mistakes(rest="[goal]\nmargin = '2%'")
    assert told == [f"9: [goal] and {PLATFORM}: {TIMES_NOTHING}"]


def test_levels_that_act_on_this_host_do_not_go_with_it() -> None:
    assert read(levels=f'{LEVELS}\n"config.a" = [1, 2]').untimed
    told = mistakes(levels=f'{LEVELS}\n"storage.a" = [1, 2]')
    assert told == [f"7: `storage.a` and {PLATFORM}: programs of other machines run under emulation"]


def test_without_restarts_it_asks_nothing() -> None:
    text = TEXT.format(head="", table="factors", levels=LEVELS, acts="", rest="").replace("[restarts]", "")
    with pytest.raises(StudyError) as caught:
        parse_study(text.encode(), WITH_PLATFORMS)
    assert [one.hint for one in caught.value.mistakes] == ["write [restarts] with kills = 2 and stops = 1"]


def test_power_is_cut_of_no_platform() -> None:
    (told,) = mistakes(acts="power_cuts = 2")
    assert told.startswith(f"8: `restarts.power_cuts` and {PLATFORM}: ")


def test_a_build_goes_with_it_and_what_only_makes_one_faster_does_not() -> None:
    assert read(levels=f'{LEVELS}\n"build.optimisation" = ["-O2", "-O3"]').untimed
    told = mistakes(levels=f'{LEVELS}\n"build.layout" = ["none", "1"]')
    assert told == [f"7: `build.layout` and {PLATFORM}: {TIMES_NOTHING}"]
