"""The section [application]: what it means, and what is wrong with it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dbdyno.errors import Mistake, StudyError
from dbdyno.study import Study, parse_study, workload_offers
from dbdyno.study.nouns import Application, Reference
from tests.study.catalogue import CATALOGUE, WORKLOADS

SCRIPT = {"name": "script", "options": [{"name": "file", "type": "text", "default": ""}]}


def _check(wish: Application, engine: Reference) -> list[Mistake]:
    own = [Mistake(0, "Dyno itself sets `database.connection`", "leave it out")]
    return own if "database.connection" in wish.settings else []


NAMES = replace(
    CATALOGUE,
    workloads=workload_offers(json.dumps([*WORKLOADS, SCRIPT])),
    applications={"keystone": _check},
)
STUDY = """\
engine = "mariadb"
[application]
name = "keystone@30"
[workload]
name = "script"
file = "users.toml"
[factors]
"config.a" = [1, 2]
"""


def read(text: str) -> Study:
    return parse_study(text.encode(), NAMES)


def test_an_application_is_read_with_its_settings_by_their_full_names() -> None:
    more = 'workers = 2\nsettings.identity.password_hash_rounds = 4\nsettings."token.expiration" = 60\n'
    study = read(STUDY.replace("[workload]", f"{more}[workload]"))
    assert study.application == Application(
        name="keystone",
        version="30",
        workers=2,
        settings={"identity.password_hash_rounds": 4, "token.expiration": 60},
    )
    path = read(STUDY.replace("keystone@30", "keystone:/opt/keystone")).application
    assert path is not None and (path.path, path.workers) == ("/opt/keystone", 4)


def test_a_study_without_one_has_the_digest_that_it_had() -> None:
    without = read(STUDY.replace('[application]\nname = "keystone@30"\n', ""))
    assert without.application is None
    assert "application" not in without.model_dump()
    assert without.meaning != read(STUDY).meaning


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("keystone@30", "keyston", 3, "unknown application"),
        ("keystone@30", "keystone:opt", 3, "is not absolute"),
        ("[workload]", "workers = 0\n[workload]", 4, "`workers`"),
        ("[workload]", "threads = 2\n[workload]", 4, "unknown key"),
        ("[workload]", 'settings = { "database.connection" = "x" }\n[workload]', 2, "Dyno itself sets"),
        ("[workload]", 'settings = { "a.b" = [1] }\n[workload]', 4, "a level cannot be a list"),
        ('"script"\nfile = "users.toml"', '"tpcb"', 5, "takes requests, and no SQL"),
        ("[factors]", "[soak]\nclients = [1]\n[factors]", 7, "[soak] and [application]"),
        ("[factors]", "[restarts]\nkills = 1\n[factors]", 7, "[restarts] and [application]"),
    ],
)
def test_a_mistake_is_told_with_its_line(old: str, new: str, line: int, told: str) -> None:
    with pytest.raises(StudyError) as refused:
        read(STUDY.replace(old, new))
    assert any(told in one.message and one.line == line for one in refused.value.mistakes), (
        refused.value.mistakes
    )
