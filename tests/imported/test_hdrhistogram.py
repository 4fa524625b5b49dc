"""Logs of HdrHistogram: those that its library for Python and Dyno's driver wrote, and spoilt ones.

The figures expected are what HdrHistogram for Python (hdrhistogram 0.10.8) says of the same logs.
"""

from __future__ import annotations

import base64
import gzip
import lzma
import struct
import zlib
from pathlib import Path

import pytest

from dbdyno.analyse.latency import summed
from dbdyno.errors import UserError
from dbdyno.imported.hdrhistogram import read

LOGS = Path(__file__).parent / "logs" / "hdrhistogram"
US, NS = (LOGS / "us.hlog").read_text(), (LOGS / "ns.hlog").read_text()
HEAD = '#[Histogram log format version 1.3]\n"StartTimestamp","Interval_Length","Interval_Max"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "log.hlog"
    path.write_text(text)
    return path


def packed(numbers: list[int], digits: int = 3, shorter: int = 0) -> str:
    """A histogram of these zigzag numbers, whose last octets may lack."""
    body = bytearray()
    for number in numbers:
        left = number * 2 if number >= 0 else -number * 2 - 1
        while left > 0x7F:
            body.append(left & 0x7F | 0x80)
            left >>= 7
        body.append(left)
    head = struct.pack(">iiiiqqd", 0x1C849313, len(body), 0, digits, 1, 3_600_000_000, 1.0)
    payload = zlib.compress(head + bytes(body[: len(body) - shorter]))
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(payload)) + payload).decode()


def test_the_library_s_percentiles_come_back() -> None:
    found = read(LOGS / "us.hlog", "us")
    assert (found.operations, found.duration_s, found.started_unix_s) == (3000, 6.0, 1_700_000_000.0)
    told = found.latency
    assert (told.p50, told.p90, told.p95, told.p99, told.p99_9) == (662.0, 1840.0, 2425.0, 3867.0, 7627.0)
    assert (told.min, told.max) == (45.0, 11_367.0)
    assert told.mean == pytest.approx(895.189, rel=1e-3)
    assert summed([found.histogram]).count == 3000
    assert [(one.second, one.operations) for one in found.seconds] == [(place, 500) for place in range(6)]


def test_the_intervals_without_a_tag_are_all_and_tags_are_kinds() -> None:
    found = read(LOGS / "ns.hlog")
    assert (found.operations, found.duration_s, found.started_unix_s) == (636, 3.0, 1_795_975_706.081)
    # Where its library's rank, rounded, is the nearest one that Dyno takes.
    assert (found.latency.p50, found.latency.p99) == pytest.approx((85.183, 8929.279))
    assert found.latency.max == pytest.approx(25_067.519)
    assert {name: kind.operations for name, kind in found.kinds.items()} == {"one_row": 478, "a_count": 158}
    assert found.kinds["one_row"].latency_us.p50 == pytest.approx(84.863)
    assert found.kinds["a_count"].latency_us.p50 == pytest.approx(85.759)


def test_tags_alone_add_up_and_a_part_without_a_tag_is_refused(tmp_path: Path) -> None:
    lines = NS.splitlines(keepends=True)
    alone = "".join(line for line in lines if line.startswith(("#", "Tag=")))
    assert read(written(tmp_path, alone)).operations == 636
    without = NS.replace(next(line for line in lines if line.startswith("Tag=a_count,1")), "")
    with pytest.raises(UserError, match="636 values without a tag and"):
        read(written(tmp_path, without))


def test_the_unit_must_be_told_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not say what its values are in") as refused:
        read(LOGS / "us.hlog")
    assert "--unit" in refused.value.hint
    with pytest.raises(UserError, match=r"in ns, --unit says us"):
        read(LOGS / "ns.hlog", "us")
    as_ms = read(LOGS / "us.hlog", "ms").latency
    assert as_ms.p50 == 662_000.0


def test_packed_logs_are_read(tmp_path: Path) -> None:
    for name, text in (("a.hlog.gz", gzip.compress(NS.encode())), ("b.hlog.xz", lzma.compress(NS.encode()))):
        path = tmp_path / name
        path.write_bytes(text)
        assert read(path).operations == 636
    path.write_bytes(lzma.compress(NS.encode())[:-200])
    with pytest.raises(UserError, match="damaged from here on"):
        read(path)


def test_intervals_of_another_length_are_a_series(tmp_path: Path) -> None:
    one = packed([3, -9, 2])
    log = HEAD + "".join(f"{place * 10}.000,10.000,0.011,{one}\n" for place in (0, 1, 3))
    found = read(written(tmp_path, log), "us")
    assert found.intervals is not None and found.seconds == ()
    assert (found.intervals.interval_s, found.intervals.operations) == (10.0, (5, 5, 0, 5))
    assert found.latency.max == 10.0 and found.latency.p50 == 0.0


def test_what_no_load_reaches_is_refused(tmp_path: Path) -> None:
    for histogram, why in (
        (packed([1 << 52]), "more than can be"),
        (packed([1 << 54]), r"more than 2\^53"),
        (packed([1 << 60]), r"above 2\^56"),
        (packed([-(1 << 40), 1]), r"a value above 2\^56"),
        (packed([5, 700], shorter=1), "cut short"),
        (packed([5])[:-8], "cut short"),
        ("HISTFA!!", "HdrHistogram"),
        ("!" * 40, "HdrHistogram"),
        (base64.b64encode(struct.pack(">iiii", 0x1C849301, 4, 0, 3)).decode(), "HdrHistogram"),
    ):
        with pytest.raises(UserError, match=f"line 3: .*{why}"):
            read(written(tmp_path, f"{HEAD}0.000,1.000,0.001,{histogram}\n"), "us")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NS + NS, "line 15: a second log begins here"),
        (NS[:-30], "line 14: the last line is cut short"),
        (NS.replace("1.3]", "1.9]"), "line 1: this is version 1.9"),
        (NS.replace("1.000,1.000", "0.000,1.000", 1), "line 9: this interval begins no later"),
        (NS.replace("0.000,1.000", "soon,1.000", 1), "line 6: this is no interval"),
        (NS[NS.index("0.000") :], "line 1: this is no log of HdrHistogram"),
        (HEAD, "no finished operation"),
        ("#a comment\n", "is no log of HdrHistogram"),
        (f"{HEAD}0.000,0.000,0.001,{packed([1])}\n", "no time that passed"),
    ],
)  # fmt: skip
def test_a_log_that_is_not_whole_is_refused_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        read(written(tmp_path, text), "ns")
