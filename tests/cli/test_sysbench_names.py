"""Each name that scripts of sysbench 0.5, 1.0 and 1.1 find: the same here, refused, or unknown."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.calls import dyno
from tests.needs import on_machine

_FUNCTIONS = (
    # Of 0.5, and kept by 1.0.
    *(f"sb_{name}" for name in ("rand", "rand_uniq", "rnd", "rand_str", "rand_uniform", "rand_gaussian")),
    *("sb_rand_special", "db_connect", "db_disconnect", "db_query", "db_prepare", "db_bind_param"),
    *("db_bulk_insert_init", "db_bulk_insert_next", "db_bulk_insert_done", "db_bind_result", "db_execute"),
    *("db_store_results", "db_free_results", "db_close"),
    *(f"sysbench.db.{name}" for name in ("connect", "disconnect", "query", "prepare", "bind_param", "close")),
    *(f"sysbench.db.bulk_insert_{name}" for name in ("init", "next", "done")),
    *(f"sysbench.db.{name}" for name in ("bind_result", "execute", "store_results", "free_results")),
    # Of 1.0.
    *(f"sysbench.rand.{name}" for name in ("default", "uniform", "gaussian", "special", "pareto", "unique")),
    *("sysbench.rand.string", "sysbench.rand.uniform_double", "sysbench.rand.uniform_uint64"),
    *("sysbench.report_default", "sysbench.report_csv", "sysbench.report_json", "sysbench.sql.driver"),
)
_NUMBERS = (
    *("DB_ERROR_NONE", "DB_ERROR_RESTART_TRANSACTION", "DB_ERROR_FAILED", "thread_id", "myisam_max_rows"),
    *("sysbench.tid", "sysbench.error.NONE", "sysbench.error.RESTART_EVENT"),
    *("sysbench.db.DB_ERROR_NONE", "sysbench.db.DB_ERROR_RESTART_TRANSACTION", "sysbench.db.DB_ERROR_FAILED"),
    # Options that a script without any of its own finds as global variables.
    *("threads", "events", "time", "rate", "rand_seed", "percentile", "report_interval", "verbosity"),
    *("num_threads", "max_requests", "max_time", "tx_rate", "rand_spec_iter", "rand_spec_pct"),
    *("rand_spec_res", "rand_pareto_h"),
)
_TEXTS = (
    *("test", "mysql_table_engine", "sysbench.version", "sysbench.version_string", "rand_type"),
    *("sysbench.cmdline.command", "sysbench.cmdline.script_path", "db_ps_mode", "forced_shutdown"),
)
_TABLES = (
    *("sysbench", "sysbench.opt", "sysbench.hooks", "sysbench.error", "sysbench.rand", "sysbench.sql"),
    *("sysbench.sql.type", "sysbench.sql.error", "sysbench.db", "sysbench.cmdline", "ffi"),
)
SAME = {
    **dict.fromkeys(_FUNCTIONS, "function"),
    **dict.fromkeys(_NUMBERS, "number"),
    **dict.fromkeys(_TEXTS, "string"),
    **dict.fromkeys(_TABLES, "table"),
    "sysbench.cmdline.PARALLEL_COMMAND": "boolean",
}
"""Names with the type that they have in sysbench 1.0.20 and here."""
OF_1_1 = {"sysbench.rand.zipfian": "function", "sysbench.rand.varstring": "function"}
"""What 1.0 does not have."""
BEYOND = {
    **{
        f"sysbench.cmdline.ARG_{kind}": "number"
        for kind in ("BOOL", "INT", "SIZE", "DOUBLE", "STRING", "LIST")
    },
    **{f"sysbench.sql.error.{kind}": "number" for kind in ("NONE", "IGNORABLE", "FATAL")},
    **{
        f"sysbench.sql.type.{kind}": "number"
        for kind in ("NONE", "INT", "BIGINT", "DOUBLE", "CHAR", "VARCHAR")
    },
}
"""Constants that sysbench has as numbers of C, which are numbers of Lua here."""
REFUSED = (
    *("sysbench.histogram", "sysbench.cmdline.argv", "sysbench.cmdline.read_cmdline_options"),
    *("sysbench.cmdline.call_command", "sysbench.cmdline.command_defined"),
    *("sysbench.cmdline.command_parallel", "sysbench.cmdline.print_test_options", "sysbench.db.none"),
)
"""Named to a script that asks for them."""
UNKNOWN = ("mysql_table_options", "oltp_table_size", "oltp_tables_count", "mysql_engine_trx")
"""Options of the scripts of 0.5 that are nil until they are given."""


def _script(names: list[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in names)
    return f"""
        function event()
           for _, name in ipairs({{{listed}}}) do
              local ok, value = pcall(assert(loadstring("return " .. name)))
              print("name", name, ok and type(value) or value)
           end
           return true
        end"""


def _told(text: str) -> dict[str, str]:
    lines = [line.split("\t", 2) for line in text.splitlines() if line.startswith("name\t")]
    return {name: value for _, name, value in lines}


@pytest.fixture
def url(tmp_path: Path) -> str:
    (tmp_path / "own.db").touch()
    return f"sqlite://{tmp_path / 'own.db'}"


def test_every_name_of_sysbench_is_the_same_or_refused_or_unknown(
    homes: Path, tmp_path: Path, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = SAME | OF_1_1 | BEYOND
    script = tmp_path / "names.lua"
    script.write_text(_script([*expected, *REFUSED, *UNKNOWN]))
    said = dyno("load", "run", str(script), "--url", url, "--warmup", "0", "--time", "5")
    told = _told(capfd.readouterr().err)
    assert {name: told.get(name) for name in expected} == expected, said.stderr
    assert all(f"{name} is not supported" in told[name] for name in REFUSED), told
    assert {told[name] for name in UNKNOWN} == {"nil"}


@pytest.mark.skipif(not on_machine("sysbench"), reason="needs sysbench: apt install sysbench")
def test_the_table_of_names_is_that_of_the_real_sysbench(tmp_path: Path) -> None:
    script = tmp_path / "names.lua"
    script.write_text(_script(list(SAME)))
    said = subprocess.run(
        ["sysbench", str(script), "run", "--events=1"], capture_output=True, text=True, timeout=60
    )
    told = _told(said.stdout)
    assert {name: told[name] for name in SAME} == SAME, said.stderr


def test_options_of_before_1_0_reach_a_script_as_global_variables(
    homes: Path, tmp_path: Path, url: str
) -> None:
    script = tmp_path / "old.lua"
    script.write_text(
        'function prepare() db_query("CREATE TABLE t (n INT) /* " .. mysql_table_engine .. "'
        ' " .. myisam_max_rows .. (mysql_table_options or "") .. " */") end\n'
        'function event() db_query("SELECT COUNT(*) FROM t") end\n'
    )
    given = ("--mysql-table-engine=rocksdb", "--myisam-max-rows=7", "--mysql-table-options=x")
    made = dyno("load", "prepare", str(script), "--url", url, *given)
    assert made.returncode == 0, made.stderr
    ran = dyno("load", "run", str(script), "--url", url, "--warmup", "0", "--operations", "3")
    assert ran.returncode == 0, ran.stderr
    for given_then, now in (("--num-threads=2", "--clients"), ("--max-requests=9", "--operations")):
        refused = dyno("load", "run", str(script), "--url", url, given_then)
        assert refused.returncode == 2 and now in refused.stderr, refused.stderr


@pytest.mark.parametrize("bounds", ["1000000000, 4000000000", "5, 900000", "4294967000, 4294967295"])
def test_a_unique_number_lies_within_its_bounds_and_comes_once(
    homes: Path, tmp_path: Path, url: str, bounds: str, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "unique.lua"
    low, high = bounds.split(", ")
    script.write_text(f"""
        function event()
           local seen, wrong = {{}}, 0
           for _ = 1, 20 do
              local drawn = sb_rand_uniq({bounds})
              if drawn < {low} or drawn > {high} or seen[drawn] then wrong = wrong + 1 end
              seen[drawn] = true
           end
           print("wrong", wrong)
           return true
        end""")
    said = dyno("load", "run", str(script), "--url", url, "--warmup", "0", "--time", "60")
    assert "wrong\t0\n" in capfd.readouterr().err, said.stderr


@pytest.mark.parametrize("bounds", ["9, 8", "-5, -1", "4294967296, 4294967300", "0.2, 0.8"])
def test_a_range_without_a_number_is_refused(homes: Path, tmp_path: Path, url: str, bounds: str) -> None:
    script = tmp_path / "empty.lua"
    script.write_text(f"function event() sb_rand_uniq({bounds}) end")
    said = dyno("load", "run", str(script), "--url", url, "--warmup", "0", "--time", "5")
    assert said.returncode == 2 and "no number lies between" in said.stderr, said.stderr


def test_a_loop_of_the_scripts_own_is_refused(homes: Path, tmp_path: Path, url: str) -> None:
    script = tmp_path / "loop.lua"
    script.write_text("function event() end\nfunction thread_run(tid) end")
    said = dyno("load", "run", str(script), "--url", url, "--warmup", "0", "--time", "5")
    assert said.returncode == 2 and "thread_run is not supported" in said.stderr, said.stderr
