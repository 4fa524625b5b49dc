"""The section [driver]: the other host that a load comes from, and what does not go with one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dbdyno.errors import StudyError
from dbdyno.study import Study, parse_study, workload_offers
from dbdyno.study.nouns import RemoteDriver
from tests.study.catalogue import CATALOGUE, WORKLOADS

SCRIPT = {"name": "script", "options": [{"name": "file", "type": "text", "default": ""}]}
NAMES = replace(
    CATALOGUE,
    workloads=workload_offers(json.dumps([*WORKLOADS, SCRIPT])),
    layers={**CATALOGUE.layers, "cpu": lambda *_: []},
    networked=frozenset({"mariadb", "postgresql"}),
)
STUDY = """\
engine = "mariadb"
[driver]
host = "load1"
address = "10.0.0.1"
network = "private"
[workload]
name = "tpcb"
[factors]
"config.a" = [1, 2]
"""


def read(text: str) -> Study:
    return parse_study(text.encode(), NAMES)


def test_a_load_comes_from_the_host_that_the_study_names() -> None:
    driver = RemoteDriver(hosts=("load1",), address="10.0.0.1", network="private")
    assert read(STUDY).driver == driver
    encrypted = STUDY.replace('network = "private"', "tls = true")
    assert read(encrypted).driver == driver.but(network=None, tls=True)


def test_several_hosts_share_a_load() -> None:
    shared = STUDY.replace('"load1"', '["load1", "load2"]').replace(
        'name = "tpcb"', 'name = "tpcb"\nclients = 2'
    )
    study = read(shared)
    assert study.driver is not None and study.driver.hosts == ("load1", "load2")
    assert read(STUDY).model_dump()["driver"]["host"] == "load1", "as it was when there could be no more"
    assert study.meaning != read(STUDY).meaning


def test_a_study_without_the_section_means_what_it_meant() -> None:
    plain = read(STUDY.replace(STUDY[STUDY.index("[driver]") : STUDY.index("[workload]")], ""))
    assert plain.driver is None
    assert "driver" not in plain.model_dump()
    assert plain.meaning != read(STUDY).meaning


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        (
            'network = "private"\n',
            "",
            2,
            "nothing says whether others can read what load and server send",
            'write tls = true, or network = "private" where nobody else is on it',
        ),
        ('host = "load1"\n', "", 2, "`host` is missing", "ssh load1"),
        ('address = "10.0.0.1"\n', "", 2, "`address` is missing", "ip address"),
        ('"load1"', '"-oProxyCommand=x"', 3, '"-oProxyCommand=x"', "ssh"),
        ('"load1"', '["load1", "load1"]', 3, "names a host twice", "once"),
        ('"load1"', '["load1", "-o"]', 3, '"-o"', "ssh"),
        ('"load1"', '["load1", "load2"]', 2, "2 hosts are to share 1 clients", "one client at least"),
        ('"10.0.0.1"', '"127.0.0.1"', 4, "no address of one host on a network", "10.0.0.1"),
        ('"10.0.0.1"', '"load2.local"', 4, "no address of one host on a network", "10.0.0.1"),
        ('"private"', '"public"', 5, "network", "private"),
        ('engine = "mariadb"', 'engine = "firebird"', 2, "firebird cannot be loaded from another host",
         "mariadb, postgresql"),
        ("[factors]", "[restarts]\nkills = 1\n[factors]", 8, "[restarts] and [driver] exclude each other",
         "keep one"),
        ("[factors]", "[soak]\nclients = [1]\n[factors]", 8, "[soak] and [driver] exclude each other",
         "keep one"),
        ("[factors]", '[settings]\n"cpu.driver" = "0"\n[factors]', 9, "`cpu.driver` and [driver]",
         "leave it out"),
        ('"config.a" = [1, 2]', '"cpu.driver" = ["0", "1"]', 9, "`cpu.driver` and [driver]", "leave it out"),
        ('name = "tpcb"', 'name = "script"\nfile = "own.toml"', 8, "what `file` names lies on this host",
         "no file"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_at_its_line(old: str, new: str, line: int, message: str, hint: str) -> None:
    assert old in STUDY
    with pytest.raises(StudyError) as wrong:
        read(STUDY.replace(old, new))
    found = [one for one in wrong.value.mistakes if message in one.message]
    assert [one.line for one in found] == [line], wrong.value.mistakes
    assert hint in found[0].hint


def test_the_guard_of_power_cuts_needs_the_load_on_this_host() -> None:
    with pytest.raises(StudyError) as wrong:
        read(STUDY + '[goal]\nguards = ["durable"]\n')
    assert any(
        "`goal.guards = durable` and [driver] exclude each other" in one.message
        for one in wrong.value.mistakes
    )
