"""Phases as a study says them, and what they make of a trial's load."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import StudyError
from dbdyno.study import Study, parse_study
from dbdyno.study.phases import LoadPhase
from dbdyno.study.trials import phases_of
from tests.study.data_cases import NAMES

STUDY = """\
engine = "mariadb"
[workload]
name = "script"
file = "base.toml"
clients = 8
[factors]
"config.innodb_doublewrite" = [true, false]
[[phases]]
name = "load"
file = "load.toml"
operations = 100
clients = 1
[[phases]]
name = "read"
duration = "5s"
beside = "writes.toml"
beside_rate_per_s = 50
"""


def read(text: str, folder: Path) -> Study:
    return parse_study(text.encode(), NAMES, folder=folder)


def mistakes(text: str, folder: Path) -> list[str]:
    with pytest.raises(StudyError) as caught:
        read(text, folder)
    return [f"{one.line}: {one.message}" for one in caught.value.mistakes]


def test_phases_are_the_load_of_each_trial(tmp_path: Path) -> None:
    study = read(STUDY, tmp_path)
    assert study.phases[0] == LoadPhase(name="load", file="load.toml", operations=100, clients=1)
    load, reading = phases_of(study)
    assert (load.name, load.clients, load.operations) == ("load", 1, 100)
    assert load.options == {"file": "load.toml", "variables": ""} and not load.guests
    assert (reading.duration_s, reading.clients, reading.options) == (5.0, None, {})
    [guest] = reading.guests
    assert (guest.name, guest.clients, guest.rate_per_s) == ("writes.toml", 8, 50.0)
    assert load.warmup_s == reading.warmup_s == 0.0 and load.slices is reading.slices is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "read"', 'name = "load"', '14: there is another phase "load"'),
        ('name = "read"\n', "", "13: `name` is missing"),
        ("beside_rate_per_s = 50\n", "", "13: `beside_rate_per_s` is missing beside the other one"),
        ('beside = "writes.toml"\n', "", "13: `beside` is missing beside the other one"),
        (
            'duration = "5s"',
            "operations = 5",
            "15: what is sent beside a phase lasts as long as it, and one with `operations` has no known end",
        ),
        (
            'name = "script"\nfile = "base.toml"',
            'name = "tpcb"',
            "7: phases send transactions of scripts, and ",
        ),
        ("[workload]\n", '[workload]\nwarmup = "1s"\n', "3: `workload.warmup` and [[phases]] exclude"),
    ],
)
def test_each_mistake_is_told_at_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    found = mistakes(STUDY.replace(old, new, 1), tmp_path)
    assert any(one.startswith(said) for one in found), found
