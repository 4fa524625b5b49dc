"""What a study that resets a machine says, and what does not go with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.errors import StudyError
from dbdyno.study import Study, parse_study
from dbdyno.study.designs import acts_of
from dbdyno.study.soak import Act
from tests.study.catalogue import CATALOGUE

WITH_MACHINES = replace(
    CATALOGUE,
    layers={
        **CATALOGUE.layers,
        "platform": lambda factor, engine: [],
        "machine": lambda factor, engine: [],
    },
    lone=True,
)
TEXT = """\
engine = "mariadb"
[workload]
name = "tpcb"
[settings]
{settings}
[factors]
{factors}
[restarts]
{acts}
"""
SETTINGS, FACTORS = '"platform.architecture" = "ppc64el"', '"machine.reset" = ["full", "kexec"]'


def read(settings: str = SETTINGS, factors: str = FACTORS, acts: str = "resets = 5") -> Study:
    text = TEXT.format(settings=settings, factors=factors, acts=acts)
    return parse_study(text.encode(), WITH_MACHINES)


def test_it_times_nothing_and_resets_each_variant() -> None:
    study = read()
    assert study.in_guest and study.untimed and study.blocks == 0
    assert study.restarts is not None and acts_of(study.restarts) == (Act.RESET,) * 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": ""}, "`machine.reset` resets a machine, and the study names none"),
        (
            {"settings": '"platform.architecture" = "s390x"'},
            "only a machine of ppc64el is emulated whole here",
        ),
        ({"acts": "load = '1s'"}, "without `resets`, `machine.reset` does nothing"),
        (
            {"acts": "resets = 1\nkills = 1"},
            "`restarts.kills` and `machine.reset` exclude each other: these act on a server of this host",
        ),
        (
            {"acts": "resets = 1\nstops = 1"},
            "`restarts.stops` and `machine.reset` exclude each other: these act on a server of this host",
        ),
        ({"factors": '"config.a" = [1, 2]'}, "`resets` resets a machine, and there is none"),
    ],
)
def test_what_does_not_go_with_it_is_told(changes: dict[str, str], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        read(**changes)
    assert message in [one.message for one in caught.value.mistakes]


def test_a_level_that_is_none_is_told_once() -> None:
    with pytest.raises(StudyError) as caught:
        read(factors='"machine.reset" = []')
    assert not any("`resets`" in one.message for one in caught.value.mistakes)


def test_without_restarts_it_does_nothing() -> None:
    text = TEXT.format(settings=SETTINGS, factors=FACTORS, acts="").replace("[restarts]", "")
    with pytest.raises(StudyError) as caught:
        parse_study(text.encode(), WITH_MACHINES)
    assert [one.hint for one in caught.value.mistakes] == ["write [restarts] with resets = 5"]
