"""pgbench's logs: real ones of PostgreSQL 15 (`logs/README.md`), and ones that are not as they should be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from dbdyno.analyse.latency import summed
from dbdyno.errors import UserError
from dbdyno.imported import pgbench
from dbdyno.imported.files import of_threads
from dbdyno.report.words.numbers import plural

LOGS = Path(__file__).parent / "logs" / "pgbench"
SECOND = 1_700_000_000


def log(folder: Path, *lines: str, name: str = "pgbench_log.7", ending: str = "\n") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + ending)
    return path


def transactions(*rows: tuple[int, int, int, int]) -> list[str]:
    """Lines of (client, transaction, microseconds, end in microseconds)."""
    return [
        f"{client} {number} {took} 0 {SECOND + end // 1_000_000} {end % 1_000_000}"
        for client, number, took, end in rows
    ]


def intervals(*seconds: int) -> list[str]:
    """Lines of an old aggregated log that begin at these seconds."""
    return [f"{SECOND + second} 5 50 500 9 12" for second in seconds]


def test_a_log_is_counted_from_the_first_start_to_the_last_end(tmp_path: Path) -> None:
    rows = transactions(
        (0, 1, 1_000, 1_000), (1, 1, 3_000, 3_000), (0, 2, 500, 500_000), (1, 2, 500, 1_500_000)
    )
    found = pgbench.read([log(tmp_path, *rows)])
    assert (found.operations, found.duration_s, found.clients) == (4, 1.5, 2)
    assert found.started_unix_s == SECOND
    assert [(one.second, one.operations) for one in found.seconds] == [(0, 3), (1, 1)]
    assert (found.latency.min, found.latency.p50, found.latency.max) == (500, 500, 3_000)
    assert found.latency.mean == 1_250
    assert summed([found.histogram]).count == 4
    assert found.tally.throughput_per_s == pytest.approx(4 / 1.5)


def test_failures_are_errors_and_what_was_skipped_is_told(tmp_path: Path) -> None:
    found = pgbench.read(
        [
            log(
                tmp_path,
                f"0 1 900 0 {SECOND} 900 10 0",
                f"0 2 serialization 0 {SECOND} 1900 5000 3",
                f"0 3 deadlock 0 {SECOND} 2900 10 0",
                f"0 4 skipped 0 {SECOND} 3900 7000 0",
            )
        ]
    )
    assert found.operations == 1 and found.errors == {"serialization": 1, "deadlock": 1}
    assert found.retries == 3 and found.duration_s == pytest.approx(0.0029)
    assert any("skipped 1 " in remark for remark in found.remarks)
    assert any("0.01 ms were schedule lag" in remark for remark in found.remarks)


def test_a_failure_before_the_first_success_belongs_to_the_run(tmp_path: Path) -> None:
    lines = [f"0 1 failed 0 {SECOND} 0", f"0 2 1000 0 {SECOND + 1} 999000", f"0 3 1000 0 {SECOND + 2} 0"]
    found = pgbench.read([log(tmp_path, *lines)])
    assert (found.started_unix_s, found.duration_s) == (SECOND, 2.0)
    assert [(one.second, one.operations, one.errors) for one in found.seconds] == [
        (0, 0, 1),
        (1, 1, 0),
        (2, 1, 0),
    ]


def test_a_seventh_column_must_be_named(tmp_path: Path) -> None:
    path = log(tmp_path, f"0 1 900 0 {SECOND} 900 12")
    with pytest.raises(UserError, match="line 1: the seventh column") as refused:
        pgbench.read([path])
    assert "--seventh lag" in refused.value.hint
    assert pgbench.read([path], pgbench.RETRIES).retries == 12
    assert pgbench.read([path], pgbench.LAG).retries == 0


def test_scripts_are_counted_each(tmp_path: Path) -> None:
    lines = [f"0 {n} 100 {n % 2} {SECOND} {n * 1000}" for n in range(1, 8)]
    kinds = pgbench.read([log(tmp_path, *lines)]).kinds
    assert {name: kind.operations for name, kind in kinds.items()} == {"script 0": 3, "script 1": 4}


def sample(client: int, numbers: Iterable[int]) -> list[str]:
    """Lines of these transactions, in turn of two scripts."""
    return [f"{client} {number} 100 {number % 2} {SECOND} {number * 100}" for number in numbers]


def test_a_sample_is_counted_by_the_transactions_numbers(tmp_path: Path) -> None:
    found = pgbench.read([log(tmp_path, *sample(0, range(9, 991, 9)))])
    assert found.operations == 998 and summed([found.histogram]).count == 110
    assert found.latency.count == 998 and found.latency.mean == 100
    assert any("one transaction in 9.07 " in remark for remark in found.remarks)
    for kind in found.kinds.values():
        assert kind.latency_us.count == kind.operations == 499


def test_samples_that_lack_the_last_transaction_are_not_counted_too_low(tmp_path: Path) -> None:
    drawn = np.random.default_rng(7)
    counts = []
    for _ in range(200):
        numbers = sorted(int(number) + 1 for number in drawn.choice(1_000, 50, replace=False))
        counts.append(pgbench.read([log(tmp_path, *sample(0, numbers))]).operations)
    assert np.mean(counts) == pytest.approx(1_000, rel=0.007)


@pytest.mark.parametrize("other", [range(9, 99, 9), ()])
def test_a_sample_with_few_lines_of_a_client_is_refused(tmp_path: Path, other: Sequence[int]) -> None:
    lines = [*sample(1, other), *sample(0, range(100, 1_001, 10)), *sample(2, range(1_100, 2_001, 10))]
    with pytest.raises(UserError, match=f"holds {len(other)} of client 1's transactions") as refused:
        pgbench.read([log(tmp_path, *lines)])
    assert "--sampling-rate" in refused.value.hint


@pytest.mark.parametrize(
    ("lines", "ending", "said"),
    [
        ([], "", "is empty"),
        (["0 1 100 0 1700000000 5", "0 2 10"], "", "line 2: the last line is cut short"),
        (["0 1 100 0 1700000000 5", "0 2 10"], "\n", "line 2: this is no line of a log of pgbench"),
        (["tps = 1200.5 (without initial connection time)"], "\n", "line 1: this is no line"),
        (["0 1 100 0 1700000000 5", "0 2 100 0 1700000000 9 4"], "\n", "line 2: 7 columns after lines of 6"),
        (["0 1 100 0 1700000000 5", "0 2 100 0 1699999999 9"], "\n", "line 2: the time goes back"),
        (["0 9 100 0 1700000000 5", "0 1 100 0 1700000000 9"], "\n", "line 2: client 0 begins anew"),
        (["0 1 1x0 0 1700000000 5"], "\n", "line 1: '1x0' is no time"),
        (["0 1 -5 0 1700000000 5"], "\n", "line 1: a transaction cannot take"),
        (["0 1 failed 0 1700000000 5"], "\n", "no transaction that succeeded"),
        (["2 1 100 0 1700000000 5"], "\n", "no transaction of client 0"),
        (intervals(0), "\n", "fewer than two whole intervals"),
        (intervals(0, 2, 1), "\n", "line 3: the time goes back"),
        (intervals(0, 2, 5), "\n", "line 3: an interval of another length"),
    ],
)  # fmt: skip
def test_a_log_that_is_not_whole_is_refused_with_its_place(
    tmp_path: Path, lines: list[str], ending: str, said: str
) -> None:
    path = log(tmp_path, *lines, ending=ending)
    with pytest.raises(UserError) as refused:
        pgbench.read([path])
    assert said in refused.value.message and str(path) in refused.value.message and refused.value.hint


def test_files_of_two_runs_are_told_apart(tmp_path: Path) -> None:
    one = log(tmp_path, *transactions((0, 1, 100, 1_000)), name="a.log")
    same = log(tmp_path, *transactions((0, 1, 100, 1_000)), name="b.log")
    sums = log(tmp_path, *intervals(0), name="c.log")
    with pytest.raises(UserError, match="client 0 stands in"):
        pgbench.read([one, same])
    with pytest.raises(UserError, match=r"c\.log, line 1: this log has other columns"):
        pgbench.read([one, sums])


def test_sums_of_intervals_are_added_up_without_the_last(tmp_path: Path) -> None:
    lines = [
        f"{SECOND + second} 10 {10 * second} 0 {second} {second + 9} 0 0 0 0 2 1 3 4 5"
        for second in (0, 1, 2)
    ]
    found = pgbench.read([log(tmp_path, *lines)])
    assert (found.operations, found.duration_s, found.retries) == (20, 2.0, 6)
    assert found.errors == {"serialization": 8, "deadlock": 10}
    assert found.latency.mean == 0.5 and (found.latency.min, found.latency.max) == (0, 10)
    assert found.latency.p99 is None and found.histogram == ""
    assert found.intervals is not None and found.intervals.operations == (10, 10)
    assert any("skipped 4 " in remark for remark in found.remarks)


def test_until_postgresql_15_the_sums_counted_what_was_skipped(tmp_path: Path) -> None:
    lines = [f"{SECOND + second} 10 100 0 1 9 0 0 0 0 4" for second in (0, 1, 2)]
    assert pgbench.read([log(tmp_path, *lines)]).operations == 12


REAL: dict[str, tuple[dict[str, str], int | None, tuple[str, ...]]] = {
    "plain": ({}, 50, ()),
    "threads": ({}, 200, ()),
    "rate": ({"seventh": pgbench.LAG}, None, ("schedule lag",)),
    "sampled": ({}, 2_000, ("--sampling-rate",)),
    "failures": ({}, None, ()),
    "late": ({"seventh": pgbench.LAG}, None, ("--latency-limit",)),
    "intervals": ({}, None, ("--aggregate-interval",)),
}
"""By folder: what must be said to read it, how many transactions pgbench reported, what is remarked."""


@pytest.mark.parametrize("case", REAL)
def test_real_logs_are_read(case: str) -> None:
    told, operations, remarked = REAL[case]
    [repetition] = of_threads([LOGS / case])
    found = pgbench.read(repetition.files, **told)
    assert found.operations > 0 and found.duration_s > 0
    if operations is not None:
        assert found.operations == pytest.approx(operations, rel=0.02 if case == "sampled" else 0)
    for words in remarked:
        assert any(words in remark for remark in found.remarks), plural(len(found.remarks), "remark")
    if case == "failures":
        assert found.errors["serialization"] > 0
