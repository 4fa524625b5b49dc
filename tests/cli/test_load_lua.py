"""`dyno load` with a script of sysbench in the place of a workload's name."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.cli.calls import complaint, dyno
from tests.cli.load_cases import tally

COUNTERS = """
sysbench.cmdline.options = {rows = {"Rows of the table", 10}, skip = {"Do nothing", false}}

function prepare()
   local con = sysbench.sql.driver():connect()
   con:query("CREATE TABLE counters (id INTEGER PRIMARY KEY, value INTEGER)")
   con:bulk_insert_init("INSERT INTO counters VALUES")
   for id = 1, sysbench.opt.rows do
      con:bulk_insert_next("(" .. id .. ", 0)")
   end
   con:bulk_insert_done()
   print("made by " .. sysbench.opt.threads)
end

function thread_init()
   con = sysbench.sql.driver():connect()
   add = con:prepare("UPDATE counters SET value = value + 1 WHERE id = ?")
   id = add:bind_create(sysbench.sql.type.INT)
   add:bind_param(id)
end

function event()
   if not sysbench.opt.skip then
      id:set(sysbench.rand.uniform(1, sysbench.opt.rows))
      add:execute()
   end
end

function cleanup()
   sysbench.sql.driver():connect():query("DROP TABLE counters")
end
"""
"""A script of sysbench's that runs on every engine."""


@pytest.fixture
def counters(tmp_path: Path) -> tuple[str, str]:
    """The script, and a database that its tables were made in."""
    script = tmp_path / "counters.lua"
    script.write_text(COUNTERS)
    return str(script), f"sqlite://{tmp_path / 'counters.db'}?synchronous=off"


def test_a_script_of_sysbench_prepares_runs_and_cleans_up(
    homes: Path, counters: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    script, url = counters
    made = dyno("load", "prepare", script, "--url", url, "--clients", "3", "--rows=25")
    assert made.returncode == 0, made.stderr
    assert capfd.readouterr().err == "made by 3\n"
    assert made.stdout.startswith("25 rows in ")
    counted = tally(url, "--rows", "25", "--operations", "40", "--time", "60", workload=script)
    assert (counted["operations"], counted["errors"]) == (40, {})
    assert list(counted["by_transaction"]) == ["event"]
    assert _sum_of_counters(url) == 40
    tally(url, "--rows", "25", "--skip", "--operations", "9", "--time", "60", workload=script)
    assert _sum_of_counters(url) == 40
    assert dyno("load", "cleanup", script, "--url", url).returncode == 0
    again = complaint("load", "run", script, "--url", url, "--warmup", "0", code=1)
    assert "no such table" in again


REPORTS = """
function sysbench.hooks.report_intermediate(stat)
   print(("second %d of %d thread"):format(stat.time_total, stat.threads_running))
end

function sysbench.hooks.report_cumulative(stat)
   assert(stat.latency_min <= stat.latency_avg and stat.latency_avg <= stat.latency_max)
   print(("%d events"):format(stat.events))
end
"""


def test_hooks_of_a_script_report_while_it_runs(
    homes: Path, counters: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    script, url = counters
    Path(script).write_text(COUNTERS + REPORTS)
    assert dyno("load", "prepare", script, "--url", url).returncode == 0
    capfd.readouterr()
    counted = tally(url, "--report-interval=1", "--time", "3", workload=script)
    said = [line for line in capfd.readouterr().err.splitlines() if "thread" in line or "events" in line]
    seconds = [f"second {second} of 1 thread" for second in (1, 2)]
    assert said[:2] == seconds and len(said) == 4
    assert said[3] == f"{counted['operations']} events"


def _sum_of_counters(url: str) -> int:
    with sqlite3.connect(url.removeprefix("sqlite://").partition("?")[0]) as database:
        return int(database.execute("SELECT SUM(value) FROM counters").fetchone()[0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rws=25"], "did you mean rows?"),
        (["--rows=many"], 'the option rows cannot be "many"'),
        (["--cleints=3"], "did you mean --clients, which is Dyno's own? Of the script: there are: "),
        (["--patience", "9"], "did you mean --patience-s, which is Dyno's own?"),
        (["--mysql-host=db"], "the server is that of --url"),
        (["25"], "'25' is neither an option nor the value of one"),
    ],
)
def test_a_wrong_option_of_a_script_is_told(
    homes: Path, counters: tuple[str, str], options: list[str], said: str
) -> None:
    script, url = counters
    assert said in " ".join(complaint("load", "prepare", script, "--url", url, *options).split())


def test_a_script_that_fails_names_its_line(homes: Path, counters: tuple[str, str]) -> None:
    script, url = counters
    Path(script).write_text("function prepare()\n  nowhere()\nend\n")
    message = complaint("load", "prepare", script, "--url", url)
    assert "counters.lua:2: attempt to call global 'nowhere'" in message
