"""What sysbench prints: real output of 1.0.20 (`logs/README.md`), whole and spoilt."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.analyse.latency import summed
from dbdyno.errors import UserError
from dbdyno.imported import sysbench

LOGS = Path(__file__).parent / "logs" / "sysbench"


def spoilt(folder: Path, old: str, new: str, name: str = "histogram.txt") -> Path:
    text = (LOGS / name).read_text()
    assert old in text
    path = folder / "spoilt.txt"
    path.write_text(text.replace(old, new, 1))
    return path


def test_the_summary_alone_gives_the_percentile_that_it_prints() -> None:
    found = sysbench.read(LOGS / "plain.txt")
    assert found.operations > 0 and found.clients == 2
    assert found.latency.p95 is not None and found.latency.p99 is None and found.latency.p50 is None
    assert found.histogram == "" and found.intervals is None
    assert found.tally.throughput_per_s == pytest.approx(found.operations / found.duration_s)
    assert any("95th percentile alone" in remark for remark in found.remarks)


def test_a_histogram_gives_all_percentiles() -> None:
    found = sysbench.read(LOGS / "histogram.txt")
    assert summed([found.histogram]).count == found.operations == found.latency.count
    assert found.latency.p50 is not None and found.latency.p99 is not None and found.latency.max is not None
    assert found.latency.p50 <= found.latency.p99 <= found.latency.max * 1.02
    assert found.intervals is not None and found.intervals.interval_s == 1.0
    counted = sum(found.intervals.operations)
    assert counted <= found.operations + len(found.intervals.operations)


def test_a_percentile_of_ones_own_is_taken_and_others_are_not(tmp_path: Path) -> None:
    found = sysbench.read(spoilt(tmp_path, "95th percentile", "99th percentile", "plain.txt"))
    assert found.latency.p99 is not None and found.latency.p95 is None
    none = sysbench.read(spoilt(tmp_path, "95th percentile", "75th percentile", "plain.txt"))
    assert any("no percentile" in remark for remark in none.remarks)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("General statistics:", "Something:", "the summary is missing"),
        (" min:", " least:", "the summary is missing"),
        (" avg:", " mean:", "the summary is missing"),
        (" max:", " most:", "the summary is missing"),
        ("sysbench 1.0", "perfbench 1.0", "line 1: this is not what sysbench prints"),
        ("Threads started!", "sysbench 1.0.20 (using system LuaJIT 2.1)", "a second run of sysbench begins"),
    ],
)
def test_output_that_is_not_whole_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        sysbench.read(spoilt(tmp_path, old, new))


def test_what_sysbench_complained_of_is_told(tmp_path: Path) -> None:
    lines = (LOGS / "plain.txt").read_text().splitlines()[:6]
    path = tmp_path / "cut.txt"
    path.write_text("\n".join([*lines, "FATAL: unable to connect to MySQL server", ""]))
    with pytest.raises(UserError, match="line 7: the summary is missing; sysbench says: FATAL: unable"):
        sysbench.read(path)
