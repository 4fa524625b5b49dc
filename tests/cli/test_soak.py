"""`dyno soak`: a real engine that leaks 64 bytes a query drifts, and one that does not stands."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from tests.cli.calls import complaint, dyno
from tests.cli.schemas import require_valid
from tests.needs import needs_root, require_file_system, skip_blocked
from tests.trials import alone_on_host
from tests.warm import Process

STILL = """
[[transactions]]
name = "still"
statements = ["SELECT 64", { sleep = "1ms" }]
"""
"""It pauses, because a client that does not takes a whole CPU from the other tests."""
LEAKING = """
[[transactions]]
name = "leaking"
atomic = false
statements = ["CREATE TEMP TABLE IF NOT EXISTS leak (x BLOB)", "INSERT INTO leak VALUES (zeroblob(64))"]
"""
"""A temporary table in memory is never seen by anyone else, and goes with its connection."""
STUDY = """
title  = "Does it leak?"
engine = "sqlite"
[workload]
name   = "script"
file   = "{folder}/{script}.toml"
warmup = "1s"
[settings]
"config.temp_store" = "memory"
[soak]
clients  = [1, 2]
duration = "12s"
opening  = "1s"
control  = "8s"
horizon  = "1m"
rise     = "20%"
"""


def study(folder: Path, script: str, **changes: str) -> str:
    (folder / "still.toml").write_text(STILL)
    (folder / "leaking.toml").write_text(LEAKING)
    text = STUDY.format(folder=folder, script=script)
    for old, new in changes.items():
        text = text.replace(old, new)
    path = folder / f"{script}-study.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.engine
def test_an_engine_that_leaks_64_bytes_a_query_is_caught(homes: Path) -> None:
    report = homes / "soak.xml"
    # A client that does as many as it can takes a whole CPU from the other tests.
    path = study(homes, "leaking", **{'"1s"\n[settings]': '"1s"\nrate_per_s = 10000\n[settings]'})
    said = dyno("soak", path, "--clients", "1", "--output", str(report))
    suite = ElementTree.parse(report).getroot()[0]
    told = {case.attrib["name"]: case[0].tag for case in suite.iter("testcase") if len(case)}
    assert "1 client: private memory" in told, said.stderr
    document = json.loads(dyno("report", "--json").stdout)
    [drift] = [one for one in document["rungs"][0]["drifts"] if one["gauge"] == "private_bytes"]
    assert (drift["standing"], said.returncode) == ("rising", 6), said.stderr
    # A row takes some bytes beside its 64.
    assert drift["per_million"]["high"] >= 64e6 and drift["per_million"]["low"] < 200e6
    require_valid("soak", json.dumps(document))


LEAKING_SERVER = """
[[transactions]]
name = "leaking"
atomic = false
statements = [
    "CREATE TEMPORARY TABLE IF NOT EXISTS leak (x CHAR(255) CHARACTER SET utf8mb4) ENGINE = MEMORY",
    "INSERT INTO leak SELECT '' FROM seq_1_to_64",
]
"""
"""A row takes 1,020 bytes, so 200 transactions a second leak 13 megabytes. A busy machine may carry out
fewer: a quarter of that is a rise as well."""
OF_SERVER = """
title  = "Does the server leak?"
engine = "mariadb@11.8"
[workload]
name   = "script"
file   = "{folder}/leaking.toml"
mode   = "simple"
warmup = "1s"
rate_per_s = 200
arrivals   = "uniform"
[settings]
"config.max_heap_table_size" = "1G"
[soak]
clients  = [2]
duration = "12s"
opening  = "1s"
disturb  = []
control  = "8s"
"""


@pytest.mark.engine
def test_a_server_that_leaks_in_its_sessions_is_caught(homes_with_engines: Path) -> None:
    (homes_with_engines / "leaking.toml").write_text(LEAKING_SERVER)
    path = homes_with_engines / "server.toml"
    path.write_text(OF_SERVER.format(folder=homes_with_engines))
    said = dyno("soak", str(path), "--json")
    [rung] = json.loads(said.stdout)["rungs"]
    assert rung["verdict"] == "drifts", said.stdout + said.stderr
    rising = {one["gauge"] for one in rung["drifts"] if one["standing"] == "rising"}
    # By its own count MariaDB holds the whole table from its first row on.
    assert {"private_bytes", "resident_bytes"} <= rising
    assert [phase["name"] for phase in rung["phases"] if phase["broken"]] == []


@pytest.mark.engine
def test_one_that_does_not_is_not_and_every_form_is_written(homes: Path) -> None:
    said = dyno("soak", study(homes, "still"), "--clients", "1", "--quiet")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "✓ stands" in said.stdout
    page = Path(said.stdout.rsplit("Page: ", 1)[1].strip())
    assert "data-figure" in page.read_text()
    with Store(store_url()) as store:
        [record] = store.records(store.run("last").run)
    assert [phase.name for phase in record.phases] == ["storm", "gradual", "sustained", "control", "stop"]
    for verb in (["compare", "last", "last"], ["explain"]):
        refused = dyno(*verb)
        assert refused.returncode == 2 and "is a soak" in refused.stderr


WARMING = """
title  = "Does it only warm up?"
engine = "sqlite"
[workload]
name       = "point_select"
table_size = 50000
warmup     = "1s"
rate_per_s = 2000
arrivals   = "uniform"
[settings]
"config.cache_size" = -200000
[soak]
clients  = [1]
duration = "20s"
opening  = "1s"
control  = "8s"
"""


@pytest.mark.engine
def test_one_that_only_warms_its_cache_is_no_leak(homes: Path) -> None:
    path = homes / "warming.toml"
    path.write_text(WARMING)
    said = dyno("soak", str(path), "--json")
    assert said.returncode == 0, said.stdout + said.stderr
    [rung] = json.loads(said.stdout)["rungs"]
    [memory] = [curve["values"] for curve in rung["curves"] if curve["gauge"] == "private_bytes"]
    assert max(memory) - memory[0] > 5 << 20, "its cache did fill"


@pytest.mark.engine
def test_a_soak_whose_dyno_is_killed_goes_on_with_the_rungs_that_are_left(homes: Path) -> None:
    path = study(homes, "still", **{'"12s"': '"2s"', '"8s"': '"0s"'})
    with Process("soak", path, stderr=subprocess.PIPE) as soak:
        assert soak.stderr is not None
        for line in soak.stderr:
            if line.startswith("[1/2]"):
                break
        os.kill(soak.pid, signal.SIGKILL)
    with Store(store_url()) as store:
        [run] = store.unfinished_runs()
        first = [record for record in store.records(run.run) if record.whole]
    refused = dyno("run", "--resume", run.run)
    assert refused.returncode == 2 and "is a soak" in refused.stderr
    said = dyno("soak", "--resume", run.run)
    assert said.returncode == 0, said.stdout + said.stderr
    with Store(store_url()) as store:
        assert store.unfinished_runs() == []
        records = store.records(run.run)
    assert [record.block for record in records if record.whole] == [0, 1]
    assert {phase.clients for phase in records[1].phases} == {2}
    assert records[0] == first[0], "what was over stays as it was"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no study was named"),
        (["--clients", "5,2"], "is no ladder"),
        (["--clients", "many"], "is no list of numbers"),
        (["--resume", "--smoke"], "exclude each other"),
    ],
)
def test_a_mistake_is_told_and_nothing_runs(homes: Path, arguments: list[str], told: str) -> None:
    named = [study(homes, "still")] if arguments and arguments[0] == "--clients" else []
    said = dyno("soak", *named, *arguments)
    assert said.returncode == 2 and told in said.stderr
    with Store(store_url()) as store:
        assert store.runs() == []


@pytest.mark.engine
def test_of_a_search_the_baseline_is_soaked(homes: Path) -> None:
    space = 'design = "search"\n[factors]\n"config.cache_size" = [-2000, -4000]\n[workload]'
    path = study(homes, "still", **{'"12s"': '"2s"', '"8s"': '"0s"', "[workload]": space})
    said = dyno("soak", path, "--clients", "1")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "[1/1] baseline: " in said.stderr


def test_the_clients_of_a_soak_are_those_of_its_rungs(homes: Path) -> None:
    path = Path(study(homes, "still"))
    path.write_text(path.read_text().replace('warmup = "1s"', 'warmup = "1s"\nclients = [1, 2]'))
    assert "the ladder of a soak gives the clients" in complaint("soak", str(path))


def test_a_study_without_a_soak_is_told_how_long_it_takes_and_what_takes_less(homes: Path) -> None:
    path = Path(study(homes, "still"))
    factors = '[factors]\n"config.cache_size" = [-2000, -4000]\n'
    path.write_text(path.read_text().partition("[soak]")[0] + factors)
    with Process("soak", str(path), stderr=subprocess.PIPE) as soak:
        assert soak.stderr is not None
        said = []
        for line in soak.stderr:
            said.append(line)
            if line.startswith("run "):
                break
        soak.send_signal(signal.SIGINT)
        soak.stderr.read()
    [told] = [line for line in said if line.startswith("the study has no [soak]")]
    assert "30 min of load with each of 100, 500, 1000 and 5000 clients" in told
    assert "--duration 5m, or --smoke" in told
    assert "8 rungs (a rung is one number of clients), about" in said[-1]


def test_a_study_that_compares_nothing_is_for_soaks_alone(homes: Path) -> None:
    assert "compares nothing" in complaint("run", study(homes, "still"))


SERVER = """
title  = "Is it refused?"
engine = "mariadb@11.8"
[workload]
name   = "tpcb"
warmup = "0s"
[settings]
"config.max_connections" = 20
[soak]
clients   = [5, 40, 60]
duration  = "2s"
opening   = "1s"
disturb   = ["churn"]
disturbed = "1s"
control   = "2s"
ends      = ["stop", "kill"]
"""


@pytest.mark.engine
def test_a_server_that_refuses_at_its_limit_ends_the_ladder_there(homes_with_data: Path) -> None:
    path = homes_with_data / "refused.toml"
    path.write_text(SERVER)
    said = dyno("soak", str(path), "--json")
    assert said.returncode == 5, said.stdout + said.stderr
    found = json.loads(said.stdout)
    assert found["verdict"] == "failed" and found["rungs_left"] == 1
    low, high = found["rungs"]
    assert [phase["name"] for phase in low["phases"]] == [
        "storm", "gradual", "sustained", "churn", "control", "stop", "kill",
    ]  # fmt: skip
    assert [phase["broken"] for phase in low["phases"]] == [[]] * 7
    ends = [phase["recovery"] for phase in low["phases"][-2:]]
    assert ends[0]["stop_s"] > 0 and all(end["ready_s"] > 0 for end in ends)
    assert high["verdict"] == "failed" and "Too many connections" in high["cause"]
    assert "max_connections" in high["remedy"]


CUT = """
title  = "Does it come back?"
engine = "sqlite"
[workload]
name   = "tpcb"
warmup = "0s"
[soak]
clients = [1]
[settings]
"config.journal_mode" = "wal"
"config.synchronous"  = "full"
"""


@needs_root
@pytest.mark.engine
def test_a_smoke_soak_cuts_the_power_as_well(homes: Path) -> None:
    require_file_system("ext4")
    path = homes / "cut.toml"
    path.write_text(CUT)
    with alone_on_host():
        said = dyno("soak", str(path), "--smoke", "--clients", "2", "--duration", "2s", "--json")
    [rung] = json.loads(said.stdout)["rungs"]
    assert rung["verdict"] not in ("broken", "failed", "blocked"), said.stdout + said.stderr
    assert [phase["name"] for phase in rung["phases"]] == [
        "storm", "gradual", "sustained", "kill", "cut", "tear", "stop",
    ]  # fmt: skip
    cut, tear, stop = (phase["recovery"] for phase in rung["phases"][-3:])
    if cut["blocked"]:
        skip_blocked(cut["blocked"], cut["remedy"])
    assert all(one["acknowledged"] > 0 and one["ready_s"] is not None for one in (cut, tear, stop))
    assert [(one["lost"], one["damage"]) for one in (cut, tear, stop)] == [(0, "")] * 3
    assert tear["torn_pages"] is not None and cut["torn_pages"] is None


@pytest.mark.engine
def test_a_cut_that_is_not_possible_is_told_and_the_rest_is_soaked(homes: Path) -> None:
    path, report = homes / "cut.toml", homes / "cut.xml"
    # A kill loses nothing of what the system has, so no commit has to wait for a disk that others keep busy.
    text = CUT.replace('"full"', '"off"')
    path.write_text(f'{text}"storage.filesystem" = "host"\n')
    said = dyno("soak", str(path), "--smoke", "--clients", "1", "--duration", "2s", "--output", str(report))
    suite = ElementTree.parse(report).getroot()[0]
    told = {case.attrib["name"]: case[0].tag for case in suite.iter("testcase") if len(case)}
    assert (told.get("1 client: cut"), told.get("1 client: tear")) == ("skipped", "skipped"), (
        report.read_text() + said.stderr
    )
    assert not {"1 client: kill", "1 client: stop"} & told.keys()
    [rung] = json.loads(dyno("report", "--json").stdout)["rungs"]
    *_, cut, _, stop = (phase["recovery"] for phase in rung["phases"])
    assert "is not cut" in cut["blocked"] and "ext4" in cut["remedy"]
    assert stop["acknowledged"] > 0 and stop["lost"] == 0


FULL = """
title  = "Is the disk full?"
engine = "sqlite"
[workload]
name   = "script"
file   = "{folder}/filling.toml"
warmup = "0s"
[settings]
"storage.filesystem" = "ext4"
"fault.disk_free"    = "40M"
[soak]
clients  = [1]
duration = "60s"
opening  = "1s"
control  = "0s"
"""
FILLING = """
[setup]
statements = ["CREATE TABLE filled (x BLOB)"]
[[transactions]]
name = "filling"
statements = ["INSERT INTO filled VALUES (zeroblob(100000))"]
"""


@needs_root
@pytest.mark.engine
def test_a_disk_that_fills_is_the_hosts_fault_and_named(homes: Path) -> None:
    require_file_system("ext4")
    (homes / "filling.toml").write_text(FILLING)
    path = homes / "full.toml"
    path.write_text(FULL.format(folder=homes))
    with alone_on_host():
        said = dyno("soak", str(path), "--json")
    found = json.loads(said.stdout)
    [rung] = found["rungs"]
    if rung["verdict"] == "blocked":
        skip_blocked(rung["cause"], rung["remedy"])
    assert (said.returncode, rung["verdict"]) == (5, "failed"), said.stdout
    assert "the disk that holds the data was full after" in rung["cause"]
    assert "make room" in rung["remedy"]


def test_more_clients_than_descriptors_are_told_before_anything_runs(homes_with_engines: Path) -> None:
    path = homes_with_engines / "refused.toml"
    path.write_text(SERVER)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard > 100_000:
        pytest.skip("this user may open as many files as a ladder can ask for")
    assert f"this user may have {hard:,}" in complaint("soak", str(path), "--clients", "100000")


def test_a_plan_tells_what_a_soak_would_take(homes: Path) -> None:
    assert "rungs of 1, 2 clients, and takes about " in dyno("plan", study(homes, "still")).stdout
