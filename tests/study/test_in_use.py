"""A study of a server that runs already: its URL, the section [server], and what does not go with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbdyno.errors import StudyError
from dbdyno.study import Study, parse_study
from dbdyno.study.nouns import Promise, Reference, ServerInUse
from tests.study.catalogue import CATALOGUE

URL = "postgresql://tuner@db1:5433/shop"
NAMES = replace(
    CATALOGUE,
    layers={**CATALOGUE.layers, "engine": lambda *_: []},
    gives_up=lambda name, level, _: Promise.DURABILITY if (name, level) == ("config.a", 3) else None,
)
STUDY = f"""\
engine = "{URL}"
[server]
data = "mine"
guard_p99 = "20ms"
[workload]
name = "tpcb"
[factors]
"config.a" = [1, 2]
"""


def read(text: str) -> Study:
    return parse_study(text.encode(), NAMES)


def test_an_engine_may_be_the_url_of_a_server() -> None:
    study = read(STUDY)
    assert study.engine == Reference(engine="postgresql", path=URL.partition(":")[2])
    assert study.engine.url == URL
    assert Reference.of(study.engine.written) == study.engine
    assert study.server == ServerInUse(data="mine", guard_p99_s=0.02)


def test_without_the_section_data_are_dynos_own() -> None:
    text = STUDY.replace(STUDY[STUDY.index("[server]") : STUDY.index("[workload]")], "")
    assert read(text).server == ServerInUse(data="own")


def test_a_study_that_starts_its_server_means_what_it_meant() -> None:
    plain = STUDY.replace(URL, "mariadb").replace(
        STUDY[STUDY.index("[server]") : STUDY.index("[workload]")], ""
    )
    assert read(plain).server is None
    assert "server" not in read(plain).model_dump()


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (URL, "mariadb", 2, "[server] is of a server that runs already"),
        (URL, "postgresql://tuner:secret@db1/shop", 1, "a URL on this line holds a password"),
        (URL, "postgresql://db1/shop", 1, "names no account"),
        ("[workload]", "[restarts]\nkills = 1\n[workload]", 5, "[restarts] and a server that runs already"),
        ("[server]", "images = 2\n[server]", 2, "`images` and a server that runs already"),
        ("[factors]", '[goal]\nguards = ["durable"]\n[factors]', 8, "that guard cuts power"),
        ("[1, 2]", "[1, 3]", 8, "gives up durability on a server that others use"),
        ("[factors]", f'[factors]\nengine = ["{URL}", "mariadb"]', 8, "a study is of one such server"),
        ('"mine"', '"theirs"', 3, "`data`"),
    ],
)
def test_one_mistake(old: str, new: str, line: int, message: str) -> None:
    assert old in STUDY
    with pytest.raises(StudyError) as found:
        read(STUDY.replace(old, new, 1))
    said = [(one.line, one.message) for one in found.value.mistakes]
    assert any(at == line and message in told for at, told in said), said


def test_a_server_that_runs_already_is_no_level() -> None:
    text = STUDY.replace(URL, "mariadb", 1).replace(
        STUDY[STUDY.index("[server]") : STUDY.index("[workload]")], ""
    )
    with pytest.raises(StudyError) as found:
        read(text.replace("[factors]", f'[factors]\nengine = ["mariadb", "{URL}"]'))
    assert any("is a server that runs already" in one.message for one in found.value.mistakes)


def test_what_a_study_allows_is_no_mistake() -> None:
    text = STUDY.replace("[1, 2]", "[1, 3]").replace('data = "mine"', 'allow = ["durability"]')
    assert read(text).server == ServerInUse(allow=(Promise.DURABILITY,), guard_p99_s=0.02)
