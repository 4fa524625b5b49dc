"""Sections of a study ([soak], [cluster], [driver], [front]): what each says, and every mistake in one
with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import StudyError
from dbdyno.study import Study, parse_study, sections, workload_offers
from dbdyno.study.catalogue import NamesFiles
from dbdyno.study.front import FrontProgram, StopSignal
from dbdyno.study.nouns import RemoteDriver
from dbdyno.study.soak import SMOKE, Act, Disturbance, Soak
from dbdyno.study.trials import CONTROL, SUSTAINED, phases_of, rung_of
from tests.study.catalogue import CATALOGUE, WORKLOADS, that_may_only_read

STUDY = """\
engine = "mariadb"
[workload]
name = "tpcb"
warmup = "3s"
[soak]
"""


def soak_of(section: str) -> Soak:
    found = parse_study(f"{STUDY}{section}".encode(), CATALOGUE).soak
    assert found is not None
    return found


def study() -> Study:
    return parse_study(STUDY.encode(), CATALOGUE)


def test_a_section_of_its_own_says_all() -> None:
    found = soak_of(
        'clients = [10, 20]\nduration = "2m"\nopening = "5s"\ndisturb = ["churn"]\ndisturbed = "20s"\n'
        'control = "0s"\nbeside = ["point_select"]\nends = ["kill", "stop"]\n'
        'horizon = "12h"\nrise = "5%"\n'
    )
    assert found == Soak(
        clients=(10, 20),
        duration_s=120.0,
        opening_s=5.0,
        disturb=(Disturbance.CHURN,),
        disturbed_s=20.0,
        control_s=0.0,
        beside=("point_select",),
        ends=(Act.KILL, Act.STOP),
        horizon_s=43_200.0,
        rise=0.05,
    )


def test_an_empty_section_takes_the_defaults_and_needs_no_factors() -> None:
    assert soak_of("") == Soak()
    assert study().factors == ()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("clients = [20, 10]", "is no ladder: 20, 10"),
        ("clients = []", "is no ladder: empty"),
        ("clients = 5", "must be a list"),
        ('rise = "0%"', "cannot be"),
        ('horizon = "2d"', "is no duration"),
        ('duration = "0.1s"', "cannot be"),
        ('disturb = ["churm"]', "cannot be"),
        ('disturb = ["churn", "churn"]', "twice"),
        ('beside = ["no_workload"]', "cannot be"),
        ('ends = ["explode"]', "cannot be"),
        ("rungs = 3", "unknown key"),
        ('beside = ["tpcb"]', "would drop the tables of the load"),
    ],
)
def test_a_mistake_is_told_with_its_line(line: str, told: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_study(f"{STUDY}{line}\n".encode(), CATALOGUE)
    [mistake] = refused.value.mistakes
    assert mistake.line == STUDY.count("\n") + 1
    assert told in mistake.message


def test_a_power_cut_needs_a_workload_that_keeps_a_ledger() -> None:
    reading = STUDY.replace("tpcb", "point_select")
    with pytest.raises(StudyError) as refused:
        parse_study(f'{reading}ends = ["kill", "cut", "tear"]\n'.encode(), CATALOGUE)
    [mistake] = refused.value.mistakes
    assert mistake.line == STUDY.count("\n") + 1
    assert "a power cut takes along is not known under point_select" in mistake.message
    parse_study(f'{reading}ends = ["kill", "stop"]\n'.encode(), CATALOGUE)


def test_a_power_cut_needs_a_load_that_writes() -> None:
    catalogue = that_may_only_read(CATALOGUE)
    reading = STUDY.replace('"3s"\n', '"3s"\nselect_only = true\n')
    with pytest.raises(StudyError) as refused:
        parse_study(f'{reading}ends = ["cut"]\n'.encode(), catalogue)
    [mistake] = refused.value.mistakes
    assert "not known under tpcb that only reads" in mistake.message
    parse_study(f'{reading}ends = ["stop"]\n'.encode(), catalogue)


def test_from_the_first_power_cut_on_transactions_are_known_one_by_one() -> None:
    soak = Soak(clients=(4,), ends=(Act.KILL, Act.CUT, Act.TEAR, Act.STOP))
    ends = rung_of(soak, study(), 0)[-4:]
    assert [(phase.then, phase.ledger) for phase in ends] == [
        (Act.KILL, False), (Act.CUT, True), (Act.TEAR, True), (Act.STOP, True),
    ]  # fmt: skip
    assert [phase.cuts_power for phase in ends] == [False, True, True, False]
    assert all(phase.optional and phase.clients == 4 for phase in ends)


def test_without_a_ledger_a_rung_needs_no_volume() -> None:
    other = parse_study(STUDY.replace("tpcb", "point_select").encode(), CATALOGUE)
    phases = rung_of(SMOKE, other, 0)
    assert {phase.then for phase in phases} >= {Act.CUT, Act.TEAR}
    assert not any(phase.ledger or phase.cuts_power for phase in phases)


def test_how_a_study_is_soaked_does_not_change_what_it_asks() -> None:
    other = parse_study(f"{STUDY}clients = [7]\n".encode(), CATALOGUE)
    assert other.meaning == study().meaning and other.digest != study().digest


def test_a_rung_opens_disturbs_sustains_rests_and_ends() -> None:
    soak = Soak(clients=(10, 200), disturb=(Disturbance.SLOW,), beside=("point_select",))
    phases = rung_of(soak, study(), 1)
    assert [phase.name for phase in phases] == [
        "storm", "gradual", SUSTAINED, "slow", "point_select", CONTROL, "stop",
    ]  # fmt: skip
    assert {phase.clients for phase in phases} == {200}
    by_name = {phase.name: phase for phase in phases}
    assert by_name["storm"].ramp_s == 0.0 and by_name["gradual"].ramp_s == soak.opening_s
    assert [guest.clients for guest in by_name["slow"].guests] == [20]
    assert by_name[SUSTAINED].warmup_s == 3.0 and by_name[SUSTAINED].duration_s == soak.duration_s
    assert by_name[CONTROL].rests and [guest.clients for guest in by_name[CONTROL].guests] == [200]
    assert by_name["stop"].then is Act.STOP and not by_name["stop"].watched
    assert all(phase.watched for phase in phases[:-1])


def test_an_engine_in_the_load_process_has_no_guests() -> None:
    phases = rung_of(Soak(clients=(4,)).within_process(), study(), 0)
    assert [phase.guests for phase in phases] == [()] * len(phases)


def test_a_smoke_soak_takes_less_than_five_minutes_of_load() -> None:
    phases = rung_of(SMOKE, study(), 0)
    assert [phase.then for phase in phases if phase.then] == [Act.KILL, Act.CUT, Act.TEAR, Act.STOP]
    assert sum(phase.takes_s for phase in phases) < 200.0


WITHOUT = 'engine = "mariadb"\n[workload]\nname = "tpcb"\n'


@pytest.mark.parametrize(
    ("text", "whole", "short"),
    [
        (f"{STUDY}clients = [10, 20]", (10, 20), (10,)),
        (STUDY, Soak().clients, SMOKE.clients[:1]),
        (f"{WITHOUT}clients = 7", (7,), (7,)),
        (f"{WITHOUT}clients = 7\n[soak]\nclients = [30, 40]", (30, 40), (30,)),
        (f"{WITHOUT}clients = 7\n[soak]\nduration = '5m'", (7,), (7,)),
        (f"{WITHOUT}clients = 1", (1,), (1,)),
    ],
)
def test_the_clients_that_a_study_names_hold(
    text: str, whole: tuple[int, ...], short: tuple[int, ...]
) -> None:
    factors = "" if "[soak]" in text else '\n[factors]\n"config.a" = [1, 2]'
    read = parse_study((text + factors).encode(), CATALOGUE)
    assert sections.soak_of(read, smoke=False).clients == whole
    assert sections.soak_of(read, smoke=True).clients == short


SCRIPT = {"name": "script", "options": [{"name": "file", "type": "text", "default": ""}]}


FLEXASYNC = {"name": "flexasync", "options": [], "transactions": ["insert"]}
CLUSTER_NAMES = replace(
    CATALOGUE,
    workloads=workload_offers(json.dumps([*WORKLOADS, FLEXASYNC])),
    layers={**CATALOGUE.layers, "cluster": lambda *_: []},
    each_writes=frozenset({"mariadb"}),
)
CLUSTER_STUDY = """\
engine = "mariadb"
[workload]
name = "tpcb"
clients = 4
[factors]
"cluster.nodes" = [1, 3]
"cluster.load" = ["one", "all"]
"""


def read_of_cluster(text: str) -> Study:
    return parse_study(text.encode(), CLUSTER_NAMES)


def mistakes(text: str) -> list[str]:
    with pytest.raises(StudyError) as caught:
        read_of_cluster(text)
    return [f"{one.line}: {one.message}" for one in caught.value.mistakes]


def test_a_load_goes_to_all_nodes_where_each_of_them_takes_writes() -> None:
    assert [factor.levels for factor in read_of_cluster(CLUSTER_STUDY).factors] == [(1, 3), ("one", "all")]
    said = "7: in a cluster of postgresql the first node alone takes writes"
    assert mistakes(CLUSTER_STUDY.replace("mariadb", "postgresql")) == [said]


def test_of_replicas_none_takes_writes_and_a_kind_needs_nodes() -> None:
    kind = CLUSTER_STUDY + '"cluster.kind" = ["asynchronous"]\n'
    assert mistakes(kind.replace('= ["asyn', '= ["galera", "asyn')) == [
        "7: in a cluster of mariadb the first node alone takes writes"
    ]
    alone = kind.replace('"cluster.nodes" = [1, 3]\n"cluster.load" = ["one", "all"]\n', "")
    assert mistakes(alone.replace('["asyn', '["galera", "asyn')) == [
        "6: `cluster.kind` is of a cluster, and there is none"
    ]


def test_reads_go_to_all_nodes_of_any_engine_unless_one_of_them_is_struck() -> None:
    reads = CLUSTER_STUDY.replace("mariadb", "postgresql").replace("tpcb", "point_select")
    assert read_of_cluster(reads).workload.name == "point_select"
    assert "takes writes" in " ".join(mistakes(f"{reads}[restarts]\nnodes_killed = 1\n"))


def test_a_load_on_all_nodes_needs_a_cluster_and_a_client_for_each_node() -> None:
    alone = CLUSTER_STUDY.replace('"cluster.nodes" = [1, 3]\n', "")
    assert mistakes(alone) == ["6: `cluster.load` is of a cluster, and there is none"]
    assert mistakes(CLUSTER_STUDY.replace("clients = 4", "clients = 2")) == [
        "7: 3 nodes are to share 2 clients"
    ]


def test_clients_that_wait_for_each_other_stay_on_one_node() -> None:
    [found] = mistakes(CLUSTER_STUDY.replace("tpcb", "flexasync"))
    assert found.startswith("7: `cluster.load = all` and `workload.name = flexasync` exclude")


DRIVER_SCRIPT = {"name": "script", "options": [{"name": "file", "type": "text", "default": ""}]}
DRIVER_NAMES = replace(
    CATALOGUE,
    workloads=workload_offers(json.dumps([*WORKLOADS, DRIVER_SCRIPT])),
    layers={**CATALOGUE.layers, "cpu": lambda *_: []},
    networked=frozenset({"mariadb", "postgresql"}),
)
DRIVER_STUDY = """\
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


def read_of_driver(text: str) -> Study:
    return parse_study(text.encode(), DRIVER_NAMES)


def test_a_load_comes_from_the_host_that_the_study_names() -> None:
    driver = RemoteDriver(hosts=("load1",), address="10.0.0.1", network="private")
    assert read_of_driver(DRIVER_STUDY).driver == driver
    encrypted = DRIVER_STUDY.replace('network = "private"', "tls = true")
    assert read_of_driver(encrypted).driver == driver.but(network=None, tls=True)


def test_several_hosts_share_a_load() -> None:
    shared = DRIVER_STUDY.replace('"load1"', '["load1", "load2"]').replace(
        'name = "tpcb"', 'name = "tpcb"\nclients = 2'
    )
    study = read_of_driver(shared)
    assert study.driver is not None and study.driver.hosts == ("load1", "load2")
    assert read_of_driver(DRIVER_STUDY).model_dump()["driver"]["host"] == "load1", (
        "as it was when there could be no more"
    )
    assert study.meaning != read_of_driver(DRIVER_STUDY).meaning


def test_a_study_without_the_section_means_what_it_meant() -> None:
    plain = read_of_driver(
        DRIVER_STUDY.replace(
            DRIVER_STUDY[DRIVER_STUDY.index("[driver]") : DRIVER_STUDY.index("[workload]")], ""
        )
    )
    assert plain.driver is None
    assert "driver" not in plain.model_dump()
    assert plain.meaning != read_of_driver(DRIVER_STUDY).meaning


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
    assert old in DRIVER_STUDY
    with pytest.raises(StudyError) as wrong:
        read_of_driver(DRIVER_STUDY.replace(old, new))
    found = [one for one in wrong.value.mistakes if message in one.message]
    assert [one.line for one in found] == [line], wrong.value.mistakes
    assert hint in found[0].hint


def test_the_guard_of_power_cuts_needs_the_load_on_this_host() -> None:
    with pytest.raises(StudyError) as wrong:
        read_of_driver(DRIVER_STUDY + '[goal]\nguards = ["durable"]\n')
    assert any(
        "`goal.guards = durable` and [driver] exclude each other" in one.message
        for one in wrong.value.mistakes
    )


CAPACITY = """\
engine = "mariadb"
[workload]
name = "tpcb"
[factors]
"config.innodb_buffer_pool_size" = ["64M", "1G"]
[goal]
response = "capacity"
promise = "p99_ms <= 20, errors <= 0.1 %"
"""


def test_a_promise_bounds_latencies_errors_and_retries() -> None:
    goal = parse_study(f"{CAPACITY}rates = 8\n[host]\nprice_per_hour = 0.4".encode(), CATALOGUE)
    assert [(one.text, one.metric, one.bound) for one in goal.goal.promise] == [
        ("p99_ms <= 20", "p99_ms", 20.0),
        ("errors <= 0.1 %", "failed_share", 0.001),
    ]
    assert goal.goal.rates == 8
    assert goal.price_per_hour == 0.4
    # What the host costs is no part of what is asked.
    assert goal.meaning == parse_study(f"{CAPACITY}rates = 8".encode(), CATALOGUE).meaning
    assert [phase.tries_rate for phase in phases_of(goal)] == [False, *[True] * 8]


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        ('response = "capacity"\n', "", 7, "`promise` is for the response `capacity`", "write response"),
        ('promise = "p99_ms <= 20, errors <= 0.1 %"\n', "", 7, "there is none", "write promise ="),
        ('"capacity"', '"capacty"', 7, 'unknown metric "capacty"', "did you mean `capacity`?"),
        ("p99_ms", "p98_ms", 8, "no promise can be made on `p98_ms`", "did you mean `p99_ms`?"),
        ("errors <= 0.1 %", "p99_ms <= 3", 8, "bounds `p99_ms` twice", "keep one"),
        ("<= 20", "< 20", 8, "is no promise", "p99_ms <= 20"),
        ("<= 20", "<= 20 %", 8, "is a time in percent", "write milliseconds"),
        ('"tpcb"', '"tpcb"\nrate_per_s = 9', 4, "a search for a capacity chooses the rates", "leave it out"),
    ],
)
def test_a_wrong_promise_is_one_mistake(old: str, new: str, line: int, message: str, hint: str) -> None:
    text = CAPACITY.replace(old, new, 1)
    with pytest.raises(StudyError) as caught:
        parse_study(text.encode(), CATALOGUE)
    [mistake] = caught.value.mistakes
    assert mistake.line == line
    assert message in mistake.message
    assert hint in mistake.hint


def test_a_guard_on_the_capacity_needs_it_as_the_response() -> None:
    text = CAPACITY.split("response")[0] + 'guards = ["capacity >= 100"]\n'
    with pytest.raises(StudyError) as caught:
        parse_study(text.encode(), CATALOGUE)
    [mistake] = caught.value.mistakes
    assert "is known where it is the response alone" in mistake.message


FRONT_NAMES = replace(
    CATALOGUE,
    layers={**CATALOGUE.layers, "front": lambda *_: []},
    fronts=frozenset({"pgbouncer"}),
)
FRONT_STUDY = """\
engine = "postgresql"
[workload]
name = "tpcb"
[front.mine]
command = "/opt/mine ${configuration}"
show = "SHOW CONFIG"
stop = "SIGINT"
[settings]
"front.pool_mode" = "session"
[factors]
"front.kind" = ["none", "pgbouncer", "mine"]
"""


def test_a_program_of_the_users_can_stand_in_front() -> None:
    study = parse_study(FRONT_STUDY.encode(), FRONT_NAMES)
    own = FrontProgram(command="/opt/mine ${configuration}", show="SHOW CONFIG", stop=StopSignal.INT)
    assert study.fronts == {"mine": own}
    assert study.front_kinds == ("pgbouncer", "mine")
    fixed = parse_study(FRONT_STUDY.replace('"front.pool_mode" = "session"', '"front.kind" = "mine"').replace(
        '"front.kind" = ["none", "pgbouncer", "mine"]', '"config.a" = [1, 2]'
    ).encode(), FRONT_NAMES)  # fmt: skip
    assert fixed.front_kinds == ("mine",)


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ('"pgbouncer", "mine"]', '"pgbounce", "mine"]', 11, 'nothing called "pgbounce" can stand in front'),
        (
            '"front.kind" =',
            '"config.a" =',
            9,
            "is a setting of what stands in front, and nothing does",
        ),
        ('show = "SHOW CONFIG"\n', "", 4, "nothing reads `front.pool_mode` back from mine"),
        ("[front.mine]", "[front.pgbouncer]", 4, '"pgbouncer" is a front that Dyno knows'),
        ('command = "/opt/mine ${configuration}"\n', "", 4, "`command` is missing"),
        ('stop = "SIGINT"', 'stop = "SIGKILL"', 7, "`stop`"),
        ('stop = "SIGINT"', 'stopp = "SIGINT"', 7, "unknown key `stopp`"),
        ("[settings]", "[restarts]\nkills = 1\n[settings]", 8, "[restarts] and `front.kind`"),
    ],
)
def test_a_mistake_in_a_front_is_told_with_its_line(old: str, new: str, line: int, told: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_study(FRONT_STUDY.replace(old, new).encode(), FRONT_NAMES)
    assert any(told in one.message and one.line == line for one in refused.value.mistakes), (
        refused.value.mistakes
    )


APPLICATION_NAMES = replace(
    FRONT_NAMES,
    workloads=workload_offers(json.dumps([*WORKLOADS, SCRIPT])),
    beside=lambda *_: [],
)
APPLICATION_STUDY = """\
engine = "mariadb"
[front.served]
command = "${environment}/bin/served -c ${configuration}"
packages = ["served[all]==1.0"]
configuration = ["served.ini", "more/told.py"]
setting = "[${section}]\\n${key} = ${value}"
prepare = ["${environment}/bin/served migrate"]
ready = "GET /health"
workers = 2
[workload]
name = "script"
file = "users.toml"
[settings]
"front.kind" = "served"
"front.token.expiration" = 60
[factors]
"config.a" = [1, 2]
"""


def test_an_application_is_read_with_its_settings_by_their_full_names() -> None:
    study = parse_study(APPLICATION_STUDY.encode(), APPLICATION_NAMES)
    own = study.fronts["served"]
    assert (own.ready, own.workers, own.packages) == ("GET /health", 2, ("served[all]==1.0",))
    assert own.configuration == ("served.ini", "more/told.py") and own.in_sections
    assert study.applications == study.front_kinds == ("served",)
    assert study.application_levels == {"front.kind": "served", "front.token.expiration": 60}


def test_a_front_of_sql_has_the_digest_that_it_had() -> None:
    study = parse_study(FRONT_STUDY.encode(), FRONT_NAMES)
    assert study.applications == () and study.application_levels == {}
    assert study.fronts["mine"].model_dump().keys().isdisjoint({"ready", "prepare", "packages", "workers"})


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ('name = "script"\nfile = "users.toml"', 'name = "tpcb"', 11, "served takes requests, and no SQL"),
        ('"front.kind" = "served"\n', "", 14, "is a setting of what stands in front, and nothing does"),
        ("front.token.expiration", "front.expiration", 15, "has no section"),
        ("workers = 2\n", "", 2, "nothing reads `front.token.expiration` back from served"),
        ("workers = 2", "workers = 0", 9, "`workers`"),
        ('ready = "GET /health"', 'ready = "/health"', 8, "`ready`: cannot be"),
        ('ready = "GET /health"\n', "", 7, "`prepare` makes the tables of an application"),
        ('["served[all]==1.0"]', '["served>=1"]', 4, "cannot be"),
        ('packages = ["served[all]==1.0"]\n', "", 3, "stands for the packages of served, and it has none"),
        ("served migrate", "served ${workes}", 7, "${workes} stands for nothing in `prepare` of served"),
        ("-c ${configuration}", "-c ${socket}", 3, "${socket} stands for nothing in `command` of served"),
        ("-c ${configuration}", "-c 5$", 3, "a `$` begins no name in `command` of served"),
        ("= ${value}", "= ${velue}", 6, "${velue} stands for nothing in `setting` of served"),
        (
            "workers = 2",
            "shares = true\nworkers = 2",
            9,
            "`shares` is of statements, and served takes requests",
        ),
        ("more/told.py", "more/served.ini", 5, "two files are called served.ini"),
        ("served migrate", "served 'migrate", 7, "is no command: No closing quotation"),
        ("-c ${configuration}", "-c '${configuration}", 3, "is no command: No closing quotation"),
        (
            "[workload]",
            '[data]\ndump = "a.sql"\n[workload]',
            10,
            "`data` brings tables, and served makes its own",
        ),
        (
            "[workload]",
            '[[phases]]\nname = "a"\n[workload]',
            10,
            "phases send SQL, and served takes requests",
        ),
        (
            '"front.kind" = "served"\n"front.token.expiration" = 60\n[factors]',
            '[factors]\n"front.kind" = ["none", "served"]',
            15,
            "served takes requests, and `front.kind` = none takes SQL",
        ),
        ("[factors]", "[soak]\nclients = [1]\n[factors]", 16, "[soak] and `front.kind`"),
        ("[workload]", '[application]\nname = "keystone"\n[workload]', 10, "no application by its name"),
    ],
)
def test_a_mistake_in_an_application_is_told_with_its_line(old: str, new: str, line: int, told: str) -> None:
    assert old in APPLICATION_STUDY
    with pytest.raises(StudyError) as refused:
        parse_study(APPLICATION_STUDY.replace(old, new).encode(), APPLICATION_NAMES)
    assert any(told in one.message and one.line == line for one in refused.value.mistakes), (
        refused.value.mistakes
    )


def test_a_stored_study_with_an_application_of_a_name_is_read_without_it() -> None:
    text = APPLICATION_STUDY.replace("[workload]", '[application]\nname = "keystone"\n[workload]')
    stored = replace(APPLICATION_NAMES, beside=None)
    assert parse_study(text.encode(), stored).workload.name == "script"


def test_a_name_that_stands_for_nothing_in_a_file_of_a_front_is_told(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "served.ini").write_text("port = ${prot}\n${settings}\nprice = 5$$\n")
    (tmp_path / "more" / "told.py").write_text("price = '5$'\n")
    names = replace(APPLICATION_NAMES, files=NamesFiles(lambda *_: (), lambda *_: ()))
    with pytest.raises(StudyError) as refused:
        parse_study(APPLICATION_STUDY.encode(), names, folder=tmp_path)
    assert [(one.line, one.message) for one in refused.value.mistakes] == [
        (5, "${prot} stands for nothing in served.ini"),
        (5, "a `$` begins no name in more/told.py"),
    ]
