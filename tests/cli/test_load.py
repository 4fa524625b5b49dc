"""`dyno load` as a user meets it, on SQLite, which every machine has: its options, its line, its files."""

from __future__ import annotations

import base64
import contextlib
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import termios
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from dbdyno.report.words.tally import tally_text
from tests.cli.calls import complaint, dyno
from tests.cli.load_cases import tally
from tests.cli.load_cases import url as url
from tests.fakes import make_tally
from tests.warm import Process


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--schedule", "up"], '"up" is no schedule'),
        (["--schedule", "ramp:9"], "no `/`"),
        (["--schedule", "ramp:x/3"], '"x" in "ramp:x/3" is no rate'),
        (["--schedule", "steps:1=2,1"], '"1" in "steps:1=2,1" is no AT=RATE'),
        (["--schedule", "file:/nowhere"], "there is no file /nowhere"),
        (["--schedule", "ramp:9/3"], "--schedule needs --rate"),
        (["--schedule", "points:0=9", "--rate", "5"], "--schedule gives every rate itself"),
        (["--schedule", "sine:9/3", "--rate", "5"], "--schedule has a sine that goes below 0"),
        (["--think-time", "gamma:3"], '"gamma:3" is no think time'),
        (["--think-time", "soon"], '"soon" is no duration'),
        (["--think-time", "1", "--rate", "5"], "--think-time is of the closed loop"),
        (["--arrivals", "uniform"], "--arrivals needs --rate"),
        (["--rate", "many"], "'many' is no number"),
        (["--rate", "nan"], "cannot be nan"),
        (["--rate", "1e12"], "the driver can send at most 10,000,000 per second"),
        (["--rate", "1", "--schedule", "sine:1/0.001ms"], "faster than the driver can follow"),
        (["--rate", "0"], "cannot be 0"),
        (["--time", "0"], "no time at all"),
        (["--time", "-3"], '"-3" is no duration'),
        (["--time", "2d"], '"2d" is no duration'),
        (["--ramp", "-1"], '"-1" is no duration'),
        (["--cpus", "0-"], "'0-' in '0-' is not a CPU"),
        (["--cpus", "9999"], "CPU 9999 is not available"),
        (["--cpus", "3-1"], "CPU 3-1 is not available"),
        (["--metrics-port", "0"], "--metrics-port"),
        (["--metrics-port", "http"], "--metrics-port"),
        (["--hdr-log", "/nowhere/log"], "/nowhere/log"),
        (["--hdr-log", "/"], "--hdr-log"),
        (["--connect-timeout", "never"], "--connect-timeout"),
    ],
)
def test_a_wrong_value_is_one_clear_message(homes: Path, url: str, options: list[str], said: str) -> None:
    message = complaint("load", "run", "tpcb", "--url", url, "--time", "1", *options)
    assert said in message
    assert message.count("rror: ") == 1


def test_the_help_tells_the_forms(homes: Path) -> None:
    shown = " ".join(dyno("load", "run", "tpcb", "--help").stdout.split())
    for form in ("ramp:TO/OVER", "steps:AT=RATE", "sine:AMPLITUDE/PERIOD", "points:AT=RATE", "file:PATH"):
        assert form in shown
    assert "exponential:MEAN" in shown


def offered(counted: dict[str, Any]) -> int:
    """Transactions that were due, however many of them a busy machine got through in time."""
    return round(float(counted["open_loop"]["offered_per_s"]) * float(counted["duration_s"]))


def test_steps_offer_what_they_say(homes: Path, url: str) -> None:
    counted = tally(url, "--rate", "10", "--arrivals", "uniform", "--schedule", "steps:1=30", "--time", "2")
    assert offered(counted) == 40


def test_a_file_of_rates(homes: Path, url: str) -> None:
    rates = homes / "rates"
    rates.write_text("# second, rate\n0 20\n1, 60\n")
    assert offered(tally(url, "--schedule", f"file:{rates}", "--arrivals", "uniform")) == 40
    rates.write_text("at,rate\n08:00,200\n20:00,600\n")
    for seconds, due in (("1", 30), ("2", 80)):
        scaled = f"file:{rates},over 2,x0.1"
        counted = tally(url, "--schedule", scaled, "--arrivals", "uniform", "--time", seconds)
        assert offered(counted) == due
    rates.write_text("0 20\nsoon 30\n")
    message = complaint("load", "run", "tpcb", "--url", url, "--schedule", f"file:{rates}")
    assert f'{rates}, line 2: "soon" is no time' in message


def test_a_think_time_holds_a_client_back(homes: Path, url: str) -> None:
    # However slow the machine: each transaction is followed by a wait of a quarter of a second.
    assert 1 <= tally(url, "--think-time", "0.25")["operations"] <= 5


def test_the_threads_run_where_they_are_told(homes: Path, url: str) -> None:
    last = max(os.sched_getaffinity(0))
    assert tally(url, "--cpus", str(last), "--operations", "10")["operations"] == 10


def latencies_of(encoded: str) -> Counter[int]:
    """The counts by index of a histogram: V2 of HdrHistogram's format, deflated, in base64."""
    compressed = base64.b64decode(encoded, validate=True)
    cookie, length = struct.unpack_from(">II", compressed)
    assert (cookie & ~0xF0, length) == (0x1C849304, len(compressed) - 8)
    content = zlib.decompress(compressed[8:])
    cookie, length, normalizing, digits, lowest, highest, ratio = struct.unpack_from(">IIIIqqd", content)
    assert (cookie & ~0xF0, normalizing, digits, ratio) == (0x1C849303, 0, 3, 1.0)
    assert (lowest, highest) == (1, 3_600_000_000_000)
    payload = content[40 : 40 + length]
    counts: Counter[int] = Counter()
    index = 0
    for number in _zig_zag(payload):
        if number < 0:
            index -= number
        else:
            if number:
                counts[index] = number
            index += 1
    return counts


def _zig_zag(payload: bytes) -> Iterator[int]:
    """Signed numbers in little-endian base 128; a ninth byte holds eight bits."""
    position = 0
    while position < len(payload):
        number = shift = 0
        for place in range(9):
            byte = payload[position]
            position += 1
            number |= (byte if place == 8 else byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield (number >> 1) ^ -(number & 1)


LINE = re.compile(r"(?:Tag=([^, ]+),)?(\d+\.\d{3}),(\d+\.\d{3}),(\d+\.\d{3}),([A-Za-z0-9+/=]+)")
MIXED = """
[[transactions]]
name = "one row"
weight = 3
statements = ["SELECT abalance FROM pgbench_accounts WHERE aid = 1"]
[[transactions]]
name = "a count"
weight = 1
statements = ["SELECT COUNT(*) FROM pgbench_tellers"]
"""


def test_the_log_is_hdrhistograms_and_holds_what_ended(homes: Path, url: str) -> None:
    log, script = homes / "latencies.hlog", homes / "mixed.toml"
    script.write_text(MIXED)
    counted = tally(url, "--time", "1.5", "--clients", "2", "--hdr-log", str(log), workload=str(script))
    head = [line for line in log.read_text().splitlines() if not LINE.fullmatch(line)]
    assert head[0] == "#[Histogram log format version 1.3]"
    assert head[-1] == '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"'
    [start] = (line for line in head if line.startswith("#[StartTime: "))
    assert abs(float(start.split()[1]) - counted["started_unix_s"]) < 0.002
    intervals = [LINE.fullmatch(line) for line in log.read_text().splitlines()[len(head) :]]
    assert {match[1] for match in intervals if match} == {None, "one_row", "a_count"}
    assert {(match[2], match[3]) for match in intervals if match} <= {("0.000", "1.000"), ("1.000", "0.500")}
    sums: dict[str | None, Counter[int]] = {}
    for match in intervals:
        assert match is not None
        sums.setdefault(match[1], Counter()).update(latencies_of(match[5]))
    assert sums[None] == sums["one_row"] + sums["a_count"]
    # The log counts a transaction where it ended, the tally's histogram where it began: they differ by what
    # the clients had under way when the measured part began and when it ended.
    assert sums[None].total() == counted["operations"]
    whole = latencies_of(counted["histogram"])
    assert (sums[None] - whole).total() <= counted["clients"]
    assert (whole - sums[None]).total() == counted["unfinished"] <= counted["clients"]
    for name, tag in (("one row", "one_row"), ("a count", "a_count")):
        assert sums[tag].total() == counted["by_transaction"][name]["operations"] > 0


def test_statements_are_told_apart_by_their_text_without_values(homes: Path, url: str) -> None:
    script = homes / "mixed.toml"
    script.write_text(MIXED)
    counted = tally(url, "--operations", "200", "--time", "60", "--by-statement", workload=str(script))
    statements = counted["by_statement"]
    row = "SELECT abalance FROM pgbench_accounts WHERE aid = ?"
    assert {row, "SELECT COUNT(*) FROM pgbench_tellers"} <= statements.keys()
    for text, name in ((row, "one row"), ("SELECT COUNT(*) FROM pgbench_tellers", "a count")):
        times = statements[text]["latency_us"]
        assert times["count"] == counted["by_transaction"][name]["operations"] > 0
        assert statements[text]["errors"] == 0
    sums = [statement["latency_us"]["sum"] for statement in statements.values()]
    assert sums == sorted(sums, reverse=True)
    assert tally(url, "--operations", "9", "--time", "60")["by_statement"] == {}


def test_each_connection_begins_with_the_users_own_statements(homes: Path, url: str) -> None:
    script = homes / "shop.toml"
    script.write_text('[[transactions]]\nname = "count"\nstatements = ["SELECT COUNT(*) FROM shop"]\n')
    begin = ("--connect-sql", "CREATE TEMP TABLE shop (x)", "--connect-sql", "INSERT INTO shop VALUES (1)")
    short = ("--operations", "5", "--clients", "2", "--time", "60")
    counted = tally(url, *begin, *short, workload=str(script))
    assert (counted["operations"], counted["errors"]) == (5, {})


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["--connect-sql", "SELEKT"], '"SELEKT" at the start of a connection', 1),
        (["--isolation", "serializable"], "the isolation level cannot be chosen with SQLite", 2),
        (["--storage-engine", "Aria"], "sqlite has no storage engines", 2),
        (["--isolation", "snapshot"], "--isolation", 2),
    ],
)
def test_what_a_connection_cannot_begin_with_is_refused(
    homes: Path, url: str, options: list[str], said: str, code: int
) -> None:
    assert said in complaint("load", "run", "tpcb", "--url", url, *options, code=code)


METRIC = re.compile(r"(# (TYPE|UNIT|HELP) \w+ .+|[a-z_]+(\{[a-z]+=\"[^\"]*\"\})? -?[0-9.e+-]+)")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running_load(url: str, *options: str) -> Iterator[Process]:
    """A load that goes on until it is no longer wanted."""
    command = ("load", "run", "tpcb", "--url", url, "--warmup", "0", "--time", "1h", *options)
    with Process(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            yield child
        finally:
            child.kill()


def _metrics(port: int, child: Process) -> tuple[str, str]:
    """The first answer that tells of a second that is over: its type and its text."""
    while child.poll() is None:
        with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
            if "dyno_latency_seconds" in text:
                return str(answer.headers["Content-Type"]), text
        time.sleep(0.1)
    raise AssertionError(child.communicate()[1])


def test_metrics_are_served_while_it_runs(homes: Path, url: str) -> None:
    port = free_port()
    with running_load(url, "--metrics-port", str(port)) as child:
        kind, text = _metrics(port, child)
        assert kind.startswith("application/openmetrics-text; version=1.0.0")
        *lines, last, rest = text.split("\n")
        assert (last, rest) == ("# EOF", "")
        assert all(METRIC.fullmatch(line) for line in lines), text
        values = dict(line.split() for line in lines if not line.startswith("#"))
        assert float(values["dyno_operations_total"]) > 0
        assert float(values['dyno_latency_seconds{quantile="1"}']) > 0
        listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        assert f"0100007F:{port:04X}" in listening
        assert f"00000000:{port:04X}" not in listening
        message = complaint("load", "run", "tpcb", "--url", url, "--metrics-port", str(port))
        assert f"metrics_port {port}: " in message
        assert "hint: name a port of this machine that is free" in message


def on_terminal(columns: int, *arguments: str) -> tuple[str, int]:
    """What the command prints on a terminal of this width, and its exit code."""
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    child = Process(*arguments, stdin=follower, stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    said = b""
    with contextlib.suppress(OSError):
        while part := os.read(leader, 4096):
            said += part
    os.close(leader)
    return said.decode(), child.wait()


def test_a_terminal_shows_a_line_a_second_and_then_the_summary(homes: Path, url: str) -> None:
    short = ["--warmup", "1", "--time", "2", "--clients", "2"]
    said, code = on_terminal(72, "load", "run", "tpcb", "--url", url, *short)
    assert code == 0
    *live, cleared, summary = said.split("\r", said.count("\r") - said.count("\r\n"))
    seconds = [line.split()[:2] for line in live if line.strip()]
    assert {word for word, _ in seconds} == {"warm-up", "measured"}
    assert [int(second) for _, second in seconds] == sorted({int(second) for _, second in seconds})
    assert all(len(line) < 72 for line in live)
    assert not cleared.strip()
    assert summary.startswith("tpcb on sqlite ")


@pytest.mark.parametrize("verb", ["run", "check", "cleanup"])
def test_a_mistyped_path_of_sqlite_is_refused_and_not_made(homes: Path, verb: str) -> None:
    path = homes / "nosuch.db"
    said = complaint("load", verb, "tpcb", "--url", f"sqlite://{path}")
    assert f"there is no database {path}" in said and "dyno load prepare" in said
    assert not path.exists()


@pytest.mark.parametrize(("achieved", "explained"), [(99.9, False), (100.0, False), (100.4, True)])
def test_more_than_was_offered_is_explained(achieved: float, explained: bool) -> None:
    loop = {
        "offered_per_s": 100.0,
        "achieved_per_s": achieved,
        "kept": True,
        "backlog_max": 2,
        "backlog_end": 0,
    }
    said = tally_text(make_tally(operations=100, open_loop=loop))
    assert f"achieved {achieved}" in said
    assert ("more than offered: starts are drawn by chance" in said) == explained


def test_the_line_is_cleared_before_an_error(homes: Path, url: str) -> None:
    script = homes / "fails.sql"
    script.write_text("\\sleep 1200 ms\nSELECT nothing FROM nowhere;\n")
    said, code = on_terminal(72, "load", "run", str(script), "--url", url, "--time", "3")
    assert code != 0
    assert re.search(r"(^|\r\n|\r)\x1b\[31m\x1b\[1merror:", said), said


def test_a_misspelt_workload_is_named_with_what_there_is(homes: Path, url: str) -> None:
    for verb in ("prepare", "run", "check", "cleanup"):
        message = complaint("load", verb, "point_selct", "--url", url)
        assert "There is no workload 'point_selct'. Did you mean point_select? There are: " in message
        assert ".toml, .sql, .pgbench" in message


@pytest.mark.parametrize("workload", ["tpcb", "tpcc"])
def test_an_interrupt_in_the_warm_up_says_that_nothing_was_measured(
    homes: Path, tmp_path: Path, workload: str
) -> None:
    url = f"sqlite://{tmp_path / 'test.db'}?synchronous=off"
    assert dyno("load", "prepare", workload, "--url", url).returncode == 0
    leader, follower = pty.openpty()
    command = ("load", "run", workload, "--url", url, "--warmup", "1h")
    with Process(*command, stdout=subprocess.PIPE, stderr=follower) as child:
        os.close(follower)
        live = b""
        while b"warm-up" not in live:
            live += os.read(leader, 4096)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate()
    os.close(leader)
    assert child.returncode == 130
    assert b"error" not in live.replace(b"errors 0", b"")
    assert "throughput  not measured: the run ended in the warm-up" in said
