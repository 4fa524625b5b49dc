"""The command line as a user meets it: a process of its own, its output, its exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.cli import VERBS
from tests.cli.calls import STUDY, changed, complaint, dyno
from tests.cli.calls import study as study
from tests.conftest import DYNO


def test_help_shows_ten_verbs_on_one_screen(homes: Path) -> None:
    shown = dyno("--help").stdout
    assert len(shown.splitlines()) <= 40 and max(map(len, shown.splitlines())) <= 80
    assert sum(f"\n  {verb} " in shown for verb in VERBS) == 10
    assert all(word in shown for word in ("upgrade", "CI", "production", "--help --all"))
    assert dyno("--all").stdout == dyno("--help", "--all").stdout == dyno("--all", "--help").stdout != shown


def test_all_help_names_every_verb(homes: Path) -> None:
    result = dyno("--help", "--all")
    assert result.returncode == 0
    for verb in (
        "run",
        "plan",
        "report",
        "compare",
        "profile",
        "runs",
        "export",
        "engines",
        "cache",
        "load",
        "cleanup",
    ):
        assert f"\n  {verb} " in result.stdout
        assert dyno(verb, "--help").returncode == 0
    assert "For programs and packagers: schema, completion, man" in result.stdout


def test_a_probe_keeps_to_eighty_columns(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = dyno("probe").stdout.splitlines()
    assert len(lines) > 10 and max(map(len, lines)) <= 80


def test_the_version(homes: Path) -> None:
    assert dyno("--version").stdout.startswith("dyno 0.")


def test_a_misspelt_verb(homes: Path) -> None:
    assert "No such command 'rum'" in complaint("rum")


def test_a_plan_has_no_side_effect(study: Path, homes: Path) -> None:
    before = seen_in(homes)
    result = dyno("plan", str(study))
    assert result.returncode == 0, result.stderr
    assert "4 trials, about 7 s" in result.stdout
    assert seen_in(homes) == before


def seen_in(folder: Path) -> dict[Path, tuple[int, int]]:
    """Each file below a folder, with its size and the time of its last change."""
    files = {path: path.stat() for path in folder.rglob("*") if not path.is_dir()}
    return {path: (found.st_size, found.st_mtime_ns) for path, found in files.items()}


def test_a_plan_tells_what_will_be_done_to_the_host(study: Path) -> None:
    assert "nothing is done to this host" in dyno("plan", str(study)).stdout
    with study.open("a") as file:
        file.write('"memory.thp" = ["never", "always"]\n"cpu.weight" = [100, 50]\n')
    told = " ".join(dyno("plan", str(study)).stdout.split())
    assert "transparent_hugepage/enabled := always; restored after each trial; needs root (variant 2)" in told
    changes = json.loads(dyno("plan", str(study), "--json").stdout)["host"]
    (change,) = [change for change in changes if change["factor"] == "memory.thp"]
    assert change["variants"] == ["memory.thp=always"]
    assert (change["scope"], change["needs"]) == ("host", "root")


def test_a_plan_refuses_a_level_that_the_engine_cannot_take(study: Path) -> None:
    study.write_text(STUDY.replace("16384", "5000"))
    told = complaint("plan", str(study))
    assert "line 10: config.page_size: Firebird 5" in told
    assert "does not take '5000'\n" in told and "it takes 4096, 8192, 16384, 32768" in told


def test_a_plan_says_that_levels_were_not_checked(study: Path) -> None:
    study.write_text(STUDY.replace("firebird@5", "firebird@5.9").replace("16384", "5000"))
    told = " ".join(dyno("plan", str(study)).stdout.split())
    assert "the levels of `config` were not checked, because firebird@5.9 is not on this machine" in told
    assert "5.9" in json.loads(dyno("plan", str(study), "--json").stdout)["unchecked"]
    study.write_text(STUDY)
    assert json.loads(dyno("plan", str(study), "--json").stdout)["unchecked"] == ""


def test_a_plan_tells_of_the_images_of_the_data(study: Path) -> None:
    told = " ".join(dyno("plan", str(study)).stdout.split())
    assert "up to 6 copies, each made anew; fewer if the others take longer than" in told
    study.write_text("images = 3\n" + STUDY)
    plans = {blocks: dyno("plan", str(study), "--blocks", blocks).stdout for blocks in ("2", "4", "6")}
    assert "data: 1 copy\n" in plans["2"], "both blocks of a pair have the same"
    assert "data: 2 copies, each made anew" in plans["4"]
    assert "data: 3 copies, each made anew" in plans["6"]


def test_a_plan_tells_which_trials_are_counted(study: Path) -> None:
    study.write_text(STUDY + "[goal]\ncounted = true\n")
    told = " ".join(dyno("plan", str(study)).stdout.split())
    assert "after the timed blocks, 2 trials under Valgrind, with one client" in told
    assert "6 trials, about" in told
    plan = json.loads(dyno("plan", str(study), "--json").stdout)
    assert (plan["counted"], len(plan["trials"])) == (["baseline", "config.page_size=16384"], 4)
    assert plan["counting"] is None, "the study says it itself"
    assert plan["expected_s"] > 30.0


def test_a_plan_counts_one_block_as_one(study: Path) -> None:
    told = dyno("plan", str(study), "--blocks", "1").stdout
    assert ", 1 block, seed" in told and "2 trials, about" in told


def test_a_plan_for_machines(study: Path) -> None:
    plan = json.loads(dyno("plan", str(study), "--json", "--blocks", "3", "--seed", "9").stdout)
    assert (len(plan["trials"]), plan["seed"]) == (6, 9)


def test_a_plan_without_a_seed_draws_one_and_says_how_to_run_it(study: Path) -> None:
    drawn = {json.loads(dyno("plan", str(study), "--json").stdout)["seed"] for _ in range(3)}
    assert len(drawn) > 1
    told = " ".join(dyno("plan", str(study)).stdout.split())
    seed = re.search(r"order drawn from seed (\d+); give --seed (\d+) to `dyno run`", told)
    assert seed is not None and seed[1] == seed[2]
    again = " ".join(dyno("plan", str(study), "--seed", seed[1]).stdout.split())
    assert told.replace(f"{seed[0]} to have this order ", "") == again


def test_the_schema_is_json(homes: Path) -> None:
    schema = json.loads(dyno("schema").stdout)
    assert schema["title"]
    knobs = schema["properties"]["factors"]["properties"]
    assert knobs["cpu.quota"]["description"].endswith(
        "levels: max, or CPUs' worth of time such as 50% or 150%"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"firebird@5"', '"fireburd@5"', "fireburd"),
        ('"tpcb"', '"tpcd"', "unknown workload"),
        ('"config.page_size"', '"config.page_sise"', "page_size"),
        ('"config.page_size"', '"colour.page_size"', "colour"),
        ('"1s"', '"soon"', "soon"),
        ("blocks = 2", 'blocks = "two"', "two"),
        ("[8192, 16384]", "[8192]", "page_size"),
        ("[8192, 16384]", "[8192, 8192]", "8192"),
        ("[8192, 16384]", "[]", "page_size"),
        ("blocks = 2", "blocks = 2\nblocks = 3", "blocks"),
        ("[workload]", "[workload", "line 5"),
        ("[factors]", '[factors]\n"storage.mkfs" = ["defaults", "/tmp/victim.img"]', "'/tmp/victim.img'"),
        ("[factors]", '[factors]\n"storage.mount" = ["defaults", "logdev=sdb"]', "logdev=sdb names a device"),
        ("[factors]", '[factors]\n"config.ExternalFileAccess" = ["None", "Restrict /etc"]', "Restrict /etc"),
        ("[factors]", '[factors]\n"config.TempDirectories" = ["a", "/etc"]', "leads outside"),
    ],
)
def test_a_mistake_in_a_study_is_named_with_its_line(study: Path, old: str, new: str, said: str) -> None:
    path = changed(study, old, new)
    for verb in ("plan", "run"):
        message = complaint(verb, path)
        assert message.startswith(f"error: {study}: 1 mistake; nothing was measured\n  line ")
        assert said in message


def test_all_mistakes_are_reported_at_once(study: Path) -> None:
    study.write_text(STUDY.replace("tpcb", "tpcd").replace("firebird", "fireburd").replace("1s", "soon"))
    message = complaint("plan", str(study))
    assert "3 mistakes" in message
    assert message.count("  line ") == 3


@pytest.mark.parametrize("content", ["", "\n# nothing\n", "\x00\x01\x02", "{]", "[[[["])
def test_a_file_that_is_no_study(study: Path, content: str) -> None:
    study.write_text(content)
    assert "nothing was measured" in complaint("plan", str(study))


def test_ten_megabytes_are_refused_quickly(study: Path) -> None:
    study.write_text("x = 1\n" * 1_700_000)
    assert "nothing was measured" in complaint("plan", str(study))


@pytest.mark.parametrize("name", ["missing.toml", ".", "\N{WHALE}.toml"])
def test_a_study_that_cannot_be_read(homes: Path, name: str) -> None:
    assert "error:" in complaint("plan", str(homes / name))


def test_a_run_without_a_study(homes: Path) -> None:
    assert "no study was named" in complaint("run")


def test_resuming_where_there_is_nothing(study: Path) -> None:
    assert "no unfinished run" in complaint("run", str(study), "--resume")
    assert "no unfinished run" in complaint("run", "--resume", str(study))
    assert "no run 'mine'" in complaint("run", "--resume", "mine")


def test_a_report_of_nothing(homes: Path) -> None:
    assert "no run yet" in complaint("report")
    assert "no run 'x'" in complaint("report", "x")
    assert "no folder to write into" in complaint("export", "x")


def test_a_store_that_cannot_be(homes: Path) -> None:
    assert "not a store's URL" in complaint("runs", "--store", "nonsense")
    assert "failed" in complaint("runs", "--store", "postgresql://x@/y?host=/nowhere", code=1)


def test_homes_that_cannot_be_made(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/proc/nothing")
    assert "no run yet" in dyno("runs").stderr, "a verb that only reads needs no folder"
    result = dyno("run", str(study))
    assert result.returncode == 2
    assert "cannot make /proc/nothing/dyno" in result.stderr
    assert "hint: set XDG_DATA_HOME" in result.stderr


def test_an_empty_store_lists_nothing(homes: Path) -> None:
    result = dyno("runs")
    assert (result.returncode, result.stdout) == (0, "")
    assert "no run yet" in result.stderr
    assert json.loads(dyno("runs", "--json").stdout) == []


def test_engines_are_listed_for_people_and_machines(homes: Path) -> None:
    assert "mariadb" in dyno("engines").stdout
    assert {offer["engine"] for offer in json.loads(dyno("engines", "--json").stdout)} >= {
        "mariadb",
        "firebird",
    }


def test_an_engine_that_nobody_has(homes: Path) -> None:
    assert "there is no engine `oracle`" in complaint("engines", "fetch", "oracle")
    machine = ("engines", "fetch", "postgresql", "--machine")
    assert "give --platform ppc64el" in complaint(*machine)
    # Said of the engine before the host is asked for an emulator, because no package mends it.
    assert "PostgreSQL runs in no emulated machine here" in complaint(*machine, "--platform", "ppc64el")


def test_cleaning_up_nothing(homes: Path) -> None:
    result = dyno("cleanup")
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.parametrize(
    ("url", "said", "code"),
    [
        ("nonsense", "url", 2),
        ("mysql://root@localhost/test?socket=/nowhere/socket", "/nowhere/socket", 1),
        ("mysql://root@127.0.0.1:1/test", "127.0.0.1", 1),
        ("oracle://x", "oracle", 2),
    ],
)
def test_a_load_on_a_server_that_is_not_there(homes: Path, url: str, said: str, code: int) -> None:
    """A URL that cannot be is the user's mistake; a server that is not there is a failure."""
    result = dyno("load", "run", "tpcb", "--url", url, "--time", "1")
    assert result.returncode == code
    assert result.stderr.startswith("error: ")
    assert said in result.stderr.lower()


def test_a_load_with_an_unknown_option(homes: Path) -> None:
    assert "--scales" in complaint("load", "run", "tpcb", "--url", "mysql://localhost/x", "--scales", "2")


def test_output_that_nobody_reads_is_no_failure(homes: Path) -> None:
    command = " ".join([f"'{part}'" for part in DYNO]) + " schema | head -c 1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
    assert "Broken" not in result.stderr


def test_colours_only_on_a_terminal_that_wants_them(homes: Path) -> None:
    assert "\x1b[" not in complaint("engines", "fetch", "oracle")
    assert b"\x1b[" in _on_terminal("engines", "fetch", "oracle")
    assert b"\x1b[" not in _on_terminal("engines", "fetch", "oracle", NO_COLOR="1")


def _on_terminal(*arguments: str, **environment: str) -> bytes:
    """What the command prints on a terminal of its own."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [*DYNO, *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, **environment},
    )
    os.close(follower)
    said = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(leader)
    child.wait(30)
    return said


def test_a_fault_in_dyno_is_one_line_and_a_file(homes: Path) -> None:
    code = (
        "import dbdyno.cli, dbdyno.cli.runs as runs\n"
        "def fail(*_): raise RuntimeError('two\\nlines')\n"
        "runs.store_url = fail\n"
        "import sys; sys.argv = ['dyno', 'runs']\n"
        "dbdyno.cli.main()\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    first, second = result.stderr.splitlines()
    assert first == "error: Dyno failed: RuntimeError: two lines"
    [kept] = (homes / "state" / "dyno").glob("failure-*.txt")
    assert second.endswith(str(kept))
    assert "Traceback" in kept.read_text()
