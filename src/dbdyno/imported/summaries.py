"""What tools print or write when they are done: totals and percentiles, and seldom single transactions.

HammerDB (a log, or the JSON of a job), BenchBase (`*.summary.json`, `*.raw.csv`), go-tpc, YCSB and go-ycsb,
k6 (`--summary-export`, or what `handleSummary` gets), wrk, and fio (`--output-format=json`). A percentile
that a tool does not print stays unknown, and so does one over several kinds of operations that it prints
apart. No file is trusted to be whole: what marks the end of a run must be there, once.
"""

from __future__ import annotations

import json
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dbdyno.driver.tally import Latency, Second
from dbdyno.errors import UserError
from dbdyno.imported.files import Line, lines_held, lines_of, one_each, wrong
from dbdyno.imported.tallies import (
    CountedRepetition,
    Tool,
    by_second,
    distribution,
    summary,
    transaction_type,
)

ALONE = "give what the tool wrote, alone"
MS, S = 1e3, 1e6
"""Microseconds of a unit."""
OF_TIME = {"us": 1.0, "ms": MS, "s": S, "m": 60.0 * S, "h": 3600.0 * S}


@dataclass(frozen=True)
class Told:
    """What a file tells of a run. `kinds` are its kinds of operations, each with how many there were and its
    latencies; without `latency` that of all is made from them."""

    duration_s: float
    operations: int
    latency: Latency | None = None
    clients: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, Latency] = field(default_factory=dict)
    seconds: tuple[Second, ...] = ()
    histogram: str = ""
    began_unix_s: float | None = None
    remarks: tuple[str, ...] = ()


def _counted(tool: str, reader: Callable[[Path], Told], path: Path) -> CountedRepetition:
    """What a tool's file tells. Raises UserError with the file, and the line where there is one, for a file
    that is not whole or not the tool's."""
    told = reader(path)
    if told.operations <= 0 or told.duration_s <= 0.0:
        raise UserError(f"{path} tells of no finished operation", f"look why {tool} did none")
    kinds = {name: transaction_type(latency, told.duration_s) for name, latency in told.kinds.items()}
    latency = told.latency or _of_all(told.kinds.values()) or summary(told.operations, 0.0).but(mean=None)
    ended_unix_s = path.stat().st_mtime
    return CountedRepetition(
        tool=tool,
        started_unix_s=ended_unix_s - told.duration_s if told.began_unix_s is None else told.began_unix_s,
        duration_s=told.duration_s,
        operations=told.operations,
        latency=latency,
        clients=told.clients,
        errors=told.errors,
        kinds=kinds,
        seconds=told.seconds,
        histogram=told.histogram,
        remarks=(*told.remarks, *_unknown(tool, latency)),
    )


def _unknown(tool: str, latency: Latency) -> Iterator[str]:
    if latency.p99 is None:
        yield f"The 99th percentile is not known, because {tool} does not print it of all operations together"


def _of_all(kinds: Iterable[Latency]) -> Latency | None:
    """Count, sum, least and most of several kinds; the percentiles of one kind alone."""
    each = [kind for kind in kinds if kind.count]
    if not each:
        return None
    if len(each) == 1:
        return each[0]
    lows, highs = [one.min for one in each], [one.max for one in each]
    return summary(
        sum(one.count for one in each),
        sum(one.sum for one in each),
        low=None if None in lows else min(low for low in lows if low is not None),
        high=None if None in highs else max(high for high in highs if high is not None),
    )


def _lines(path: Path, tool: str) -> list[Line]:
    """All lines of what a tool prints."""
    return list(lines_held(path, tool, ALONE))


def _only(path: Path, tool: str, found: Sequence[Line]) -> Line:
    """The one line that ends a run. Raises UserError where there is none, or a second one."""
    if not found:
        raise UserError(
            f"{path} is not what {tool} prints to its end",
            f"give what {tool} printed when it had ended, whole",
        )
    if len(found) > 1:
        raise wrong(path, found[1][0], f"a second run of {tool} ends here", "give each run a file of its own")
    return found[0]


def _document(path: Path, tool: str) -> Mapping[str, Any]:
    """A file that holds one JSON object; what stands before its first brace is a tool's complaint."""
    text = "\n".join(line for _, line in lines_held(path, tool, ALONE, ended=False))
    try:
        found = json.loads(text[max(text.find("{"), 0) :])
    except ValueError as error:
        raise UserError(
            f"{path} is not the JSON that {tool} writes: {error}", "give the file as it was"
        ) from None
    if not isinstance(found, dict):
        raise UserError(f"{path} is not the JSON that {tool} writes", "give the file as it was")
    return found


def _number(path: Path, tool: str, given: Mapping[str, Any], *names: str) -> float:
    """A number in nested objects. Raises UserError where it is missing or none."""
    found: Any = given
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    try:
        return float(found)
    except (TypeError, ValueError):
        raise UserError(
            f"{path} lacks {' / '.join(names)}, which {tool} writes", f"give the summary that {tool} wrote"
        ) from None


RESULT = re.compile(
    r"TEST RESULT : System achieved (?:(?P<nopm>\d+) NOPM from (?P<tpm>\d+) (?P<engine>[\w ]+?) TPM"
    r"|(?P<old_tpm>\d+) (?P<old_engine>[\w ]+?) TPM at (?P<old_nopm>\d+) NOPM)"
)
PERIOD = re.compile(r"Timing test period of (\d+) in minutes")
USERS = re.compile(r"(\d+) Active Virtual Users configured")
FAILED = re.compile(r"FINISHED FAILED|Error in Virtual User \d+")
PROFILE = re.compile(r"PROC: (\w+)\W+CALLS: (\d+)\s+MIN: ([\d.]+)ms\s+AVG: ([\d.]+)ms\s+MAX: ([\d.]+)ms")
TAIL = re.compile(r"\s+TOTAL: [\d.]+ms\W+P99: ([\d.]+)ms\s+P95: ([\d.]+)ms\s+P50: ([\d.]+)ms")
NEW_ORDER = "NEWORD"
MINUTE_S = 60.0


def _hammerdb(path: Path) -> Told:
    """A log of TPROC-C, or what `hammerdb` says of a job. Its NOPM are the operations, because its TPM count
    what each engine calls a transaction."""
    lines = _lines_or_json(path)
    number, line = _only(path, "HammerDB", [one for one in lines if RESULT.search(one[1])])
    text = "\n".join(line for _, line in lines)
    found, period, users = RESULT.search(line), PERIOD.findall(text), USERS.findall(text)
    assert found is not None
    nopm, tpm = int(found["nopm"] or found["old_nopm"]), int(found["tpm"] or found["old_tpm"])
    if len(set(period)) > 1:
        raise wrong(
            path, number, "this log tells of tests of several lengths", "give each run a file of its own"
        )
    minutes = int(period[-1]) if period else 1
    kinds = dict(_profiles(text))
    remarks = [
        f"Operations are new orders (NOPM / 60); HammerDB counted {tpm:,} transactions a minute beside"
    ]
    if not period:
        remarks.append("How long HammerDB measured is not known: the counts are those of a minute")
    failed = len(FAILED.findall(text))
    return Told(
        duration_s=minutes * MINUTE_S,
        operations=nopm * minutes,
        latency=kinds.get(NEW_ORDER),
        clients=int(users[-1]) if users else 0,
        errors={"virtual user": failed} if failed else {},
        kinds=kinds,
        remarks=tuple(remarks),
    )


def _lines_or_json(path: Path) -> list[Line]:
    """Lines of a log; of a list of JSON its texts, each as one."""
    lines = list(lines_held(path, "HammerDB", ALONE, ended=False))
    if not lines or not lines[0][1].lstrip().startswith(("[", "{")):
        return lines
    try:
        found = json.loads("\n".join(line for _, line in lines))
    except ValueError:
        return lines
    return [(number, text) for number, text in enumerate(_texts(found), 1)]


def _texts(found: Any) -> Iterator[str]:
    """The texts within JSON, each line by itself."""
    if isinstance(found, str):
        yield from found.splitlines()
    elif isinstance(found, Mapping | list):
        for each in found.values() if isinstance(found, Mapping) else found:
            yield from _texts(each)


def _profiles(text: str) -> Iterator[tuple[str, Latency]]:
    """The latencies by procedure over all virtual users, where the time profiler was on; its summary is
    last."""
    start = text.rfind("SUMMARY OF")
    for found in PROFILE.finditer(text, max(start, 0)) if start >= 0 else ():
        name, calls, least, mean, most = found.groups()
        tail = TAIL.match(text, found.end())
        points = (
            dict(zip(("p99", "p95", "p50"), (float(each) * MS for each in tail.groups()), strict=True))
            if tail
            else {}
        )
        count = int(calls)
        yield (
            name,
            summary(count, float(mean) * MS * count, low=float(least) * MS, high=float(most) * MS, **points),
        )


BENCHBASE_POINTS = {
    "p50": "Median",
    "p90": "90th Percentile",
    "p95": "95th Percentile",
    "p99": "99th Percentile",
}


RAW = "Transaction Type Index,Transaction Name,Start Time (microseconds),Latency (microseconds)"


def _benchbase(path: Path) -> Told:
    """`*.summary.json`, whose time is in microseconds and nanoseconds, or `*.raw.csv`."""
    if next(lines_of(path, ended=False))[1].startswith(RAW):
        return _raw(path)
    found = _document(path, "BenchBase")
    of = "Latency Distribution"

    def latency_us(name: str) -> float:
        return _number(path, "BenchBase", found, of, f"{name} Latency (microseconds)")

    throughput = _number(path, "BenchBase", found, "Throughput (requests/second)")
    requests, took_ns = found.get("Measured Requests"), found.get("Elapsed Time (nanoseconds)")
    remarks = []
    if requests is None or took_ns is None:
        # Versions before 2021-12 tell the rate alone.
        requests, took_ns = throughput * MINUTE_S, MINUTE_S * 1e9
        remarks.append("How many requests BenchBase measured is not known: the counts are those of a minute")
    count = round(requests)
    goodput = found.get("Goodput (requests/second)")
    failed = round((1.0 - float(goodput) / throughput) * count) if goodput is not None and throughput else 0
    began = found.get("Start timestamp (milliseconds)")
    terminals = str(found.get("terminals", ""))
    return Told(
        duration_s=float(took_ns) / 1e9,
        operations=count - failed,
        latency=summary(
            count, latency_us("Average") * count, low=latency_us("Minimum"), high=latency_us("Maximum"),
            **{point: latency_us(name) for point, name in BENCHBASE_POINTS.items()},
        ),
        clients=int(terminals) if terminals.isdecimal() else 0,
        errors={"no goodput": failed} if failed > 0 else {},
        began_unix_s=float(began) / 1e3 if began is not None else None,
        remarks=tuple(remarks),
    )  # fmt: skip


def _raw(path: Path) -> Told:
    """A line for each transaction: its start in seconds, whatever the head says, and its latency."""
    began, took, names, workers = array("d"), array("q"), list[str](), set[str]()
    for number, line in lines_of(path):
        fields = line.split(",")
        if number == 1:
            continue
        try:
            began.append(float(fields[2]))
            took.append(int(fields[3]))
            names.append(sys.intern(fields[1]))
            workers.add(fields[4])
        except (IndexError, ValueError):
            raise wrong(
                path, number, f"this is no transaction of BenchBase: {line[:60]!r}", "give it whole"
            ) from None
    if not took:
        raise UserError(f"{path} holds no transaction", "look why BenchBase did none")
    moments, latencies, kind_names = np.array(began), np.array(took, dtype=np.int64), np.array(names)
    ended = moments + latencies / 1e6
    latency, histogram = distribution(latencies)
    counted = ((ended - moments.min()) * 1e6).astype(np.int64)
    return Told(
        duration_s=float(ended.max() - moments.min()),
        operations=len(took),
        latency=latency,
        clients=len(workers),
        kinds={str(name): distribution(latencies[kind_names == name])[0] for name in np.unique(kind_names)},
        seconds=by_second(counted, latencies, counted[:0], 1.0),
        histogram=histogram,
        began_unix_s=float(moments.min()),
        remarks=("A raw.csv of BenchBase does not say which transactions failed",),
    )


OF_A_KIND = re.compile(
    r"(?:\[Summary\] )?(\w[\w-]*)\s* - Takes\(s\): ([\d.]+), Count: (\d+), (?:TPM|OPS): [\d.]+(.*)"
)
FIGURE = re.compile(r"([\w.]+)\((us|ms)\): ([\d.]+)")
POINTS = {"50th": "p50", "90th": "p90", "95th": "p95", "99th": "p99", "99.9th": "p99_9", "99.99th": "p99_99"}
ERRONEOUS = ("_ERR", "_ERROR", "-FAILED")
"""How kinds of operations end that failed."""


def _of_pingcap(path: Path, tool: str, lines: Sequence[Line], clients: int) -> Told:
    """The last lines of go-tpc and go-ycsb: one for each kind."""
    kinds, errors, took_s = dict[str, Latency](), dict[str, int](), 0.0
    for number, line in lines:
        found = OF_A_KIND.fullmatch(line.strip())
        if found is None:
            continue
        name, seconds, count, rest = found[1], float(found[2]), int(found[3]), found[4]
        if name == "TOTAL":
            continue
        if name in kinds or name in errors:
            raise wrong(path, number, f"a second run of {tool} is in it", "give each run a file of its own")
        took_s = max(took_s, seconds)
        if name.endswith(ERRONEOUS):
            errors[name] = count
            continue
        figures = {each[1]: float(each[3]) * OF_TIME[each[2]] for each in FIGURE.finditer(rest)}
        known = {point: figures[told] for told, point in POINTS.items() if told in figures}
        whole = figures.get("Sum", figures.get("Avg", 0.0) * count)
        kinds[name] = summary(count, whole, low=figures.get("Min"), high=figures.get("Max"), **known)
    if not kinds:
        raise UserError(f"{path} is not what {tool} prints to its end", f"give all that {tool} printed")
    operations = sum(kind.count for kind in kinds.values())
    return Told(took_s, operations, clients=clients, errors=errors, kinds=kinds)


def _go_tpc(path: Path) -> Told:
    """The lines that begin with `[Summary]`, of all five transactions of TPC-C together."""
    lines = [(number, line.lstrip("> ")) for number, line in _lines(path, "go-tpc")]
    _only(path, "go-tpc", [one for one in lines if one[1].startswith("tpmC: ")])
    return _of_pingcap(path, "go-tpc", [one for one in lines if one[1].startswith("[Summary]")], 0)


FINISHED = re.compile(r"Run finished, takes .*")
THREADS = re.compile(r'"?threadcount"?\s*=\s*"?(\d+)"?|-threads (\d+)|--threads[ =](\d+)')
OF_YCSB = re.compile(r"\[([\w-]+)\], ([^,]+), ([-\d.]+)")
WHOLE_LEAST = 0.99
"""Of the operations that the head of a file tells, its kinds have so many at least; rounding takes some."""
NOT_OPERATIONS = ("OVERALL", "CLEANUP")
YCSB_POINTS = {"50thPercentileLatency(us)": "p50", "90thPercentileLatency(us)": "p90",
               "95thPercentileLatency(us)": "p95", "99thPercentileLatency(us)": "p99",
               "99.9PercentileLatency(us)": "p99_9", "99.99PercentileLatency(us)": "p99_99"}  # fmt: skip


def _ycsb(path: Path) -> Told:
    """YCSB's measurements, or what go-ycsb prints last."""
    lines = _lines(path, "YCSB")
    threads = [found for _, line in lines if (found := THREADS.search(line))]
    clients = int(next(filter(None, threads[0].groups()))) if threads else 0
    finished = [place for place, (_, line) in enumerate(lines) if FINISHED.fullmatch(line.strip())]
    if finished:
        _only(path, "go-ycsb", [lines[place] for place in finished])
        return _of_pingcap(path, "go-ycsb", lines[finished[0] :], clients)
    ended = [one for one in lines if one[1].startswith("[OVERALL], RunTime(ms)")]
    _only(path, "YCSB", ended)
    figures = dict[str, dict[str, float]]()
    for _, line in lines:
        if (found := OF_YCSB.fullmatch(line.strip())) is not None:
            figures.setdefault(found[1], {})[found[2]] = float(found[3])
    kinds = {
        name: summary(
            int(each["Operations"]), each.get("AverageLatency(us)", 0.0) * each["Operations"],
            low=each.get("MinLatency(us)"), high=each.get("MaxLatency(us)"),
            **{point: each[told] for told, point in YCSB_POINTS.items() if told in each},
        )
        for name, each in figures.items()
        if "Operations" in each and name not in NOT_OPERATIONS
    }  # fmt: skip
    overall = figures["OVERALL"]
    done = overall.get("Throughput(ops/sec)", 0.0) * overall["RunTime(ms)"] / 1e3
    if sum(kind.count for kind in kinds.values()) < WHOLE_LEAST * done:
        raise UserError(
            f"{path} tells of fewer operations than it says were done: {done:,.0f}",
            "give what YCSB printed, whole",
        )
    failed = {name: kind.count for name, kind in kinds.items() if name.endswith(ERRONEOUS)}
    good = {name: kind for name, kind in kinds.items() if name not in failed}
    return Told(
        duration_s=overall["RunTime(ms)"] / 1e3,
        operations=sum(kind.count for kind in good.values()),
        clients=clients,
        errors=failed,
        kinds=good,
    )


def _k6(path: Path) -> Told:
    """Requests, or iterations where none was over HTTP. What was exported has its values one level higher."""
    found = _document(path, "k6")
    metrics = found.get("metrics")
    if not isinstance(metrics, Mapping):
        raise UserError(
            f"{path} is not a summary of k6: it has no metrics", "k6 run --summary-export=FILE SCRIPT"
        )
    values = {name: each.get("values", each) for name, each in metrics.items() if isinstance(each, Mapping)}
    counted, timed = (
        ("http_reqs", "http_req_duration") if "http_reqs" in values else ("iterations", "iteration_duration")
    )
    count = _number(path, "k6", values, counted, "count")
    rate = _number(path, "k6", values, counted, "rate")
    times = values.get(timed, {})

    def point(name: str) -> float | None:
        return float(times[name]) * MS if name in times else None

    failed = values.get("http_req_failed", {})
    # Of a rate k6 counts as passes what was true: here, that a request failed.
    broken = round(float(failed.get("value", failed.get("rate", 0.0))) * count)
    points = {"p50": point("med"), "p90": point("p(90)"), "p95": point("p(95)"), "p99": point("p(99)")}
    return Told(
        duration_s=count / rate if rate else 0.0,
        operations=round(count) - broken,
        latency=summary(
            round(count), (point("avg") or 0.0) * count, low=point("min"), high=point("max"),
            **{name: value for name, value in points.items() if value is not None},
        ),
        clients=round(float(values.get("vus_max", {}).get("max", 0))),
        errors={"http_req_failed": broken} if broken else {},
    )  # fmt: skip


DONE = re.compile(r"\s*(\d+) requests in ([\d.]+)(us|ms|s|m|h), .*read")
CONNECTIONS = re.compile(r"\s*\d+ threads and (\d+) connections")
OF_WRK = re.compile(r"\s*(\d+(?:\.\d+)?)%\s+([\d.]+)(us|ms|s|m)")
LATENCY = re.compile(
    r"\s*Latency\s+([\d.]+)(us|ms|s|m)\s+[\d.]+(?:us|ms|s|m)\s+([\d.]+)(us|ms|s|m)\s+[\d.]+%"
)
SOCKETS = re.compile(r"\s*Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
REFUSED = re.compile(r"\s*Non-2xx or 3xx responses: (\d+)")
PERCENT_POINTS = {50.0: "p50", 90.0: "p90", 95.0: "p95", 99.0: "p99", 99.9: "p99_9", 99.99: "p99_99"}


def _wrk(path: Path) -> Told:
    """wrk and wrk2. Responses that say no are among the requests that it counts, so they are taken off."""
    lines = _lines(path, "wrk")
    _only(path, "wrk", [one for one in lines if one[1].startswith("Transfer/sec:")])
    _, last = _only(path, "wrk", [one for one in lines if DONE.fullmatch(one[1])])
    done, errors, points = DONE.fullmatch(last), dict[str, int](), dict[str, float]()
    clients, mean, most = 0, 0.0, None
    for _, line in lines:
        if found := CONNECTIONS.fullmatch(line):
            clients = int(found[1])
        elif found := LATENCY.fullmatch(line):
            mean, most = float(found[1]) * OF_TIME[found[2]], float(found[3]) * OF_TIME[found[4]]
        elif (found := OF_WRK.fullmatch(line)) and float(found[1]) in PERCENT_POINTS:
            points[PERCENT_POINTS[float(found[1])]] = float(found[2]) * OF_TIME[found[3]]
        elif found := SOCKETS.fullmatch(line):
            names = ("connect", "read", "write", "timeout")
            errors |= {
                f"socket {name}": int(n) for name, n in zip(names, found.groups(), strict=True) if int(n)
            }
        elif found := REFUSED.fullmatch(line):
            errors["no 2xx or 3xx"] = int(found[1])
    assert done is not None
    count = int(done[1])
    return Told(
        duration_s=float(done[2]) * OF_TIME[done[3]] / S,
        operations=count - errors.get("no 2xx or 3xx", 0),
        latency=summary(count, mean * count, high=most, **points),
        clients=clients,
        errors=errors,
    )


DIRECTIONS = ("read", "write", "trim")


def _fio(path: Path) -> Told:
    """All jobs of a file together; a job that reads and writes has two kinds of operations."""
    found = _document(path, "fio")
    jobs = found.get("jobs")
    if not isinstance(jobs, list) or "fio version" not in found:
        raise UserError(
            f"{path} is not the JSON that fio writes", "fio --output-format=json --output=FILE JOB"
        )
    kinds, errors, took_s = dict[str, Latency](), dict[str, int](), 0.0
    for job in jobs:
        name = str(job.get("jobname", ""))
        if job.get("error"):
            errors[f"{name}: error {job['error']}"] = 1
        for direction in DIRECTIONS:
            side = job.get(direction) or {}
            if count := int(side.get("total_ios", 0)):
                took_s = max(took_s, float(side.get("runtime", 0.0)) / 1e3)
                label = f"{name} {direction}"
                while label in kinds:
                    label += "'"
                kinds[label] = _of_fio(count, side)
    began = found.get("timestamp")
    return Told(
        duration_s=took_s,
        operations=sum(kind.count for kind in kinds.values()),
        clients=len(jobs),
        errors=errors,
        kinds=kinds,
        began_unix_s=float(began) - took_s if began is not None else None,
    )


def _of_fio(count: int, side: Mapping[str, Any]) -> Latency:
    """In nanoseconds since fio 3, where not in microseconds."""
    known = next((one for one in ("clat_ns", "lat_ns") if side.get(one, {}).get("N", 0)), "")
    times, unit = (side[known], 1e-3) if known else (side.get("clat") or side.get("lat") or {}, 1.0)
    percentiles = {
        float(name): float(value) * unit for name, value in (times.get("percentile") or {}).items()
    }
    return summary(
        count,
        float(times.get("mean", 0.0)) * unit * count,
        low=float(times["min"]) * unit if "min" in times else None,
        high=float(times["max"]) * unit if "max" in times else None,
        **{PERCENT_POINTS[share]: value for share, value in percentiles.items() if share in PERCENT_POINTS},
    )


def _tool(name: str, reader: Callable[[Path], Told]) -> Tool:
    return Tool(one_each, lambda each, _: _counted(name, reader, each.files[0]))


HAMMERDB = _tool("hammerdb", _hammerdb)
BENCHBASE = _tool("benchbase", _benchbase)
GO_TPC = _tool("go-tpc", _go_tpc)
YCSB = _tool("ycsb", _ycsb)
K6 = _tool("k6", _k6)
WRK = _tool("wrk", _wrk)
FIO = _tool("fio", _fio)
