"""`dyno import`, and every verb that reads such a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.calls import complaint, dyno
from tests.cli.import_cases import REPETITIONS
from tests.cli.import_cases import logs as logs
from tests.cli.schemas import require_valid
from tests.imported.summaries_cases import WHOLE
from tests.report.shown import packed_in

SYSBENCH = Path(__file__).parent.parent / "imported" / "logs" / "sysbench"


def imported(logs: Path, *more: str) -> None:
    said = dyno(
        "import", "pgbench", "--as", f"old={logs}/old", "--as", f"new={logs}/new", "--name", "both", *more
    )
    assert said.returncode == 0, said.stderr
    assert "6 repetitions" in said.stderr and said.stdout.startswith("run ")


def report(*arguments: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(dyno("report", "both", "--json", *arguments).stdout)
    return found


def variant(name: str) -> dict[str, object]:
    variants = report()["variants"]
    assert isinstance(variants, list)
    [found] = [one for one in variants if one["name"] == name]
    assert isinstance(found, dict)
    return found


def test_two_sets_of_logs_are_compared_as_independent_repetitions(logs: Path) -> None:
    imported(logs)
    effect = variant("new")["effect"]
    assert isinstance(effect, dict) and variant("new")["verdict"] == "faster"
    assert effect["ratio"] == pytest.approx(1.5, rel=0.02) and effect["pairs"] == REPETITIONS
    assert variant("new")["block_ratios"] == [] and variant("new")["dropped"] == []
    assert report()["method"]["unit"] == "repetition"  # type: ignore[index]
    require_valid("report", dyno("report", "both", "--json").stdout)


def test_pairs_are_compared_only_where_the_user_states_them(logs: Path) -> None:
    imported(logs, "--paired")
    ratios = variant("new")["block_ratios"]
    assert isinstance(ratios, list) and len(ratios) == REPETITIONS
    # Each pair has one and the same repetition of both sides, so its ratio hardly varies.
    assert all(one["ratio"] == pytest.approx(1.5, rel=0.01) for one in ratios)
    (logs / "new" / "pgbench_log.10").unlink()
    said = complaint("import", "pgbench", "--as", f"a={logs}/old", "--as", f"b={logs}/new", "--paired")
    assert "a has 6, b has 5" in said


def order(run: str, *files: str) -> list[str]:
    """The files in the order in which the run has them."""
    shown = "".join(dyno("report", run, "--trials").stdout.split())
    return sorted(files, key=shown.index)


def test_pairs_of_pgbench_follow_the_time_and_those_of_sysbench_the_order_given(logs: Path) -> None:
    old = logs / "old"
    timed = dyno("import", "pgbench", f"{old}/pgbench_log.11", f"{old}/pgbench_log.10", "--paired")
    names = ["old/pgbench_log.10", "old/pgbench_log.11"]
    assert order(timed.stdout.split()[1], *names) == names
    given = dyno("import", "sysbench", f"{SYSBENCH}/plain.txt", f"{SYSBENCH}/histogram.txt", "--paired")
    names = ["sysbench/plain.txt", "sysbench/histogram.txt"]
    assert order(given.stdout.split()[1], *names) == names
    counted = logs / "counted"
    counted.mkdir()
    for name in ("10.txt", "2.txt"):
        (counted / name).write_text((SYSBENCH / "plain.txt").read_text())
    by_name = dyno("import", "sysbench", str(counted), "--paired")
    names = ["counted/2.txt", "counted/10.txt"]
    assert order(by_name.stdout.split()[1], *names) == names


def test_a_log_belongs_to_one_variant(logs: Path) -> None:
    said = complaint("import", "pgbench", "--as", f"a={logs}/old", "--as", f"b={logs}/old/pgbench_log.12")
    assert "pgbench_log.12 is given for a and for b" in said


@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
@pytest.mark.parametrize("how", [(), ("--paired",)], ids=["independent", "paired"])
def test_every_report_says_that_dyno_did_not_measure_it(logs: Path, form: str, how: tuple[str, ...]) -> None:
    imported(logs, *how)
    text = " ".join(dyno("report", "both", "--format", form).stdout.split())
    assert "not measured by Dyno" in text and "logs of pgbench" in text
    assert "random order" not in text and "warm-up, " not in text
    shown = text.partition("<main>")[2].partition("<script")[0] or text
    assert "block" not in shown.lower() and "resume" not in shown
    if form == "html":
        assert "What was asked for, and what each later reading showed" not in text


def test_too_few_logs_give_no_verdict_and_one_variant_is_a_report(logs: Path) -> None:
    one = str(logs / "old" / "pgbench_log.10")
    other = f"new={logs}/new/pgbench_log.10"
    assert dyno("import", "pgbench", one, "--as", other, "--name", "both").returncode == 0
    text = " ".join(dyno("report", "both").stdout.split())
    assert (
        "a verdict needs 6 repetitions; one repetition says" in text
        and variant("new")["verdict"] == "inconclusive"
    )
    assert dyno("import", "pgbench", one, "--name", "alone").returncode == 0
    text = " ".join(dyno("report", "alone", "--details").stdout.split())
    assert "Throughput: 100.0 per s (1 repetition)." in text and "95th percentile latency 10.00 ms" in text


def test_runs_of_logs_are_shown_listed_exported_and_compared(logs: Path) -> None:
    imported(logs, "--note", "the old disk", "--title", "Old or new?")
    assert "Old or new?" in dyno("report", "both", "--trials").stdout
    assert "/old/pgbench_log.10" in dyno("report", "both", "--trials").stdout.replace("\n", "")
    assert "the old disk" in " ".join(dyno("runs").stdout.split())
    for output, verb in (
        ("show", ["show", "both"]),
        ("show-trial", ["show", "both", "0"]),
        ("runs", ["runs"]),
    ):
        require_valid(output, dyno(*verb, "--json").stdout)
    said = dyno("export", "both", "--csv", str(logs / "tables"))
    assert said.returncode == 0 and len((logs / "tables" / "trials.csv").read_text().splitlines()) == 13
    assert dyno("import", "pgbench", "--as", f"old={logs}/new", "--name", "again").returncode == 0
    compared = dyno("compare", "both", "again")
    assert compared.returncode == 0 and "not measured by Dyno" in " ".join(compared.stdout.split())
    assert "Apples to apples: nothing" not in compared.stdout


@pytest.mark.parametrize(("how", "word"), [((), ""), (("--paired",), "pair")], ids=["independent", "paired"])
def test_repetitions_that_stand_alone_are_in_no_block(logs: Path, how: tuple[str, ...], word: str) -> None:
    imported(logs, *how)
    heads = dyno("report", "both", "--trials").stdout.partition("trial ")[2].partition("variant")[0]
    trial = dyno("report", "both", "7").stdout
    assert heads.strip() == word
    assert "block" not in trial and "place" not in trial and ("pair" in trial) == bool(word)
    page = dyno("report", "both", "--format", "html").stdout
    records = page[page.index("Every repetition, by variant") :]
    assert ('<th scope="col" class="n">pair</th>' in records) == bool(word) and ">order</th>" not in records
    told = {name: set(re.findall(TIP, json.dumps(figure))) for name, figure in packed_in(page).items()}
    assert told["trials"] & {"block", "pair", "order in block"} == ({word} if word else set())
    assert told["series"] & {"block", "pair"} == ({word} if word else set())


TIP = r'\\"([^"\\]+)\\": isValid'
"""What a figure of Vega tells where one points at it, by its title."""


def test_what_needs_a_setup_refuses_a_run_of_logs(logs: Path) -> None:
    imported(logs)
    assert "logs of pgbench" in complaint("profile", "both")
    assert "logs of pgbench" in complaint("run", "--resume", "both", "--add-blocks", "2")
    assert dyno("import", "pgbench", str(logs / "old"), "--name", "again").returncode == 0
    assert "logs of pgbench" in complaint("gate", "both", "--against", "again")


def test_output_of_sysbench_is_imported_as_well(homes: Path) -> None:
    said = dyno(
        "import", "sysbench", str(SYSBENCH / "plain.txt"), str(SYSBENCH / "histogram.txt"), "--name", "both"
    )
    assert said.returncode == 0, said.stderr
    text = " ".join(dyno("report", "both", "--format", "markdown").stdout.split())
    assert "2 repetitions" in text and "logs of sysbench" in text
    trials = report()["trials"]
    assert isinstance(trials, list)
    assert "sysbench printed the 95th percentile alone" in text
    assert "95th percentile latency" in text and "ms (in 1 of 2)" in text
    known = [set(trial["metrics"]) & {"p50_ms", "p95_ms", "p99_ms"} for trial in trials]
    # Of the histogram's few transactions less than ten lie above the others.
    assert known == [{"p95_ms"}, {"p50_ms"}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pgbench"], "no log was named"),
        (["pgbench", "nowhere.log"], "nowhere.log is not there"),
        (["pgbench", "--as", "logs"], "does not say whose logs these are"),
        (["pgbench", "x.log", "--margin", "2"], '--margin: "2" is no percentage'),
        (["pgbench", "x.log", "--response", "p98_ms"], "unknown metric"),
    ],
)
def test_a_mistake_is_told_before_anything_is_kept(homes: Path, arguments: list[str], said: str) -> None:
    assert said in complaint("import", *arguments)
    assert json.loads(dyno("runs", "--json").stdout) == []


def test_what_each_tool_left_becomes_a_report(homes: Path) -> None:
    for tool, text in WHOLE.items():
        files = [homes / f"{tool}-{number}" for number in (1, 2)]
        for file in files:
            file.write_text(text)
        said = dyno("import", tool, *map(str, files), "--name", tool)
        assert said.returncode == 0 and "2 repetitions" in said.stderr, said.stderr
        assert f"logs of {tool}" in dyno("report", tool).stdout


def test_a_log_of_hdrhistogram_is_a_report_with_its_percentiles(homes: Path) -> None:
    logs = SYSBENCH.parent / "hdrhistogram"
    assert "--unit" in complaint("import", "hdrhistogram", str(logs / "us.hlog"))
    said = dyno("import", "hdrhistogram", str(logs / "us.hlog"), "--unit", "us", "--name", "drawn")
    assert said.returncode == 0, said.stderr
    text = " ".join(dyno("report", "drawn", "--details").stdout.split())
    assert "Throughput: 500.0 per s (1 repetition)." in text and "99th percentile latency 3.867 ms" in text
    for form in ("markdown", "html"):
        assert "not measured by Dyno" in " ".join(dyno("report", "drawn", "--format", form).stdout.split())


def test_a_result_of_phoronix_and_three_repetitions_get_honest_words(homes: Path) -> None:
    entries = "".join(
        f"<Entry><Identifier>{system}</Identifier><RawString>{raw}</RawString></Entry>"
        for system, raw in (("old", "1000:1010:990"), ("new", "2000:2020:1980"))
    )
    result = f"<Description>Test: GET</Description><Scale>TPS</Scale><Data>{entries}</Data>"
    path = homes / "composite.xml"
    path.write_text(f"<PhoronixTestSuite><Result>{result}</Result></PhoronixTestSuite>")
    named = [word for system in ("old", "new") for word in ("--as", f"{system}={path}#Test: GET#{system}")]
    said = dyno("import", "phoronix", *named, "--name", "both")
    assert said.returncode == 0, said.stderr
    told = json.loads(dyno("report", "both", "--json").stdout)
    assert told["variants"][1]["effect"]["ratio"] == pytest.approx(2.0, rel=0.01)
    shown = " ".join(dyno("report", "both", "--details").stdout.split())
    assert "3 repetitions are few: without any difference" in shown and "in 10% of cases" in shown
    twice = complaint(
        "import", "phoronix", "--as", f"a={path}#Test: GET#old", "--as", f"b={path}#Test: GET#old"
    )
    assert "is given for a and for b" in twice


def test_folders_of_many_tests_are_a_run_for_each(homes: Path) -> None:
    output = (SYSBENCH / "plain.txt").read_text()
    for side, tests in (("old", ("point-query", "scan", "insert")), ("new", ("point-query", "insert"))):
        (homes / side).mkdir()
        for test in tests:
            (homes / side / f"sb.o.{test}.range100.pk1.dop4").write_text(
                f"/bin/sysbench run\n4 CPUs\n{output}"
            )
            (homes / side / f"sb.r.qps.{test}.range100.pk1").write_text("9174\n")
        (homes / side / "sb.o.pw.insert.range100.pk1").write_text("Sleep for 60\n")
    said = dyno("import", "sysbench", "--as", f"old={homes}/old", "--as", f"new={homes}/new", "--name", "all")
    assert said.returncode == 0, said.stderr
    assert (
        "not all folders have them: scan.range100.pk1.dop4" in said.stderr and said.stdout.count("run ") == 2
    )
    told = json.loads(dyno("report", "all-insert.range100.pk1.dop4", "--json").stdout)
    assert told["study"]["title"] == "Logs of sysbench: old, new: insert.range100.pk1.dop4"
    (homes / "new" / "sb.o.insert.range100.pk1.dop4").write_text("killed\n")
    runs = dyno("runs", "--json").stdout
    assert "this is not what sysbench prints" in complaint(
        "import", "sysbench", "--as", f"old={homes}/old", "--as", f"new={homes}/new"
    )
    assert dyno("runs", "--json").stdout == runs
