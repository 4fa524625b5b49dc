"""What an analysis costs by the number of records, and how that grows.

    python -m benches.analyse [--records COUNT ...] [--kept COUNT ...] [--runs COUNT] [--rounds COUNT]

Each line is a process of its own, and the sizes take turns, round by round, so that whatever else the machine
does meets all of them. It reads the records of one run with two variants from JSON, as a store does, and then
times, by the CPU's clock, the whole analysis and what a run with `--until` asks after its last block, when it
has asked after the one before. Figures are the median over rounds, with the lowest and the highest. Memory is
resident: `records` is what the records themselves hold, and `analysis` what comes on top at its peak.
`growth` is the time of one record over that of one in the smallest run: 1 is linear.

A run that is over has its columns kept (`prepare_run/stored_run.py`). The second table times an analysis of
those, with the reading of their file and of the whole records that it wants. `MiB` is the most that the
process had resident, imports included. `first` is what comes before that once: records become columns, and
are kept.

Then `dyno museum` and `dyno trend` read a store of many finished runs, in processes of their own: first with
an empty cache, and then with what that one kept. Figures are seconds of CPU, start and page included.

No server is measured: the records are made up (`tests/analyse/factory.py`), with a histogram of 2,800 slots
and a series of 25 s each. A thousand of them differ, and larger runs hold each of these many times, as
objects of their own. Kept columns hold the rows of these thousand many times, and `first` is of them alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np

from dbdyno.analyse.columns import Floats, Places
from dbdyno.analyse.kept import Keeping, kept_input
from dbdyno.findings import analyse
from dbdyno.plan.sequential import SequentialMemory, ask
from dbdyno.prepare_run.stored_run import keep_at, kept_at
from dbdyno.prepare_run.study_here import catalogue
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study import Study, parse_study
from tests.analyse.factory import a_run, a_study, records_of
from tests.study_texts import STUDY

DIFFERENT = 1000
FOLLOWS_FROM = "a bench"
CANDIDATE = "config.page_cache=64k"
Cost = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, nargs="+", default=[10**3, 10**4])
    parser.add_argument("--runs", type=int, default=1000, help="of the store for museum and trend; 0: none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--kept", type=int, nargs="*", default=[10**3, 10**4, 10**5, 10**6], help="in thousands; none: none"
    )
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--make", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--read", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for count, cost in (
        (arguments.one, _cost),
        (arguments.make, partial(_made, arguments.place)),
        (arguments.read, partial(_read, arguments.place)),
    ):
        if count is not None:
            print(json.dumps(cost(count)))
            return 0
    found: dict[int, list[Cost]] = {count: [] for count in arguments.records}
    for _ in range(arguments.rounds):
        for count, costs in found.items():
            costs.append(_in_a_process("--one", str(count)))
    kept = _of_columns(arguments.kept, arguments.rounds)
    many = _many_runs(arguments.runs, arguments.rounds) if arguments.runs else {}
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print(f"{'records':>9} {'analyse s':>24} {'us each':>8} {'growth':>7} {'until s':>24}"
          f" {'records MiB':>12} {'analysis MiB':>13}")  # fmt: skip
    first = min(found)
    for count, costs in found.items():
        each = _middle(costs, "analyse_s") / count
        growth = each / (_middle(found[first], "analyse_s") / first)
        print(f"{count:>9,} {_spread(costs, 'analyse_s'):>24} {1e6 * each:>8.0f} {growth:>7.2f}"
              f" {_spread(costs, 'until_s'):>24} {_middle(costs, 'records_mib'):>12,.0f}"
              f" {_middle(costs, 'analysis_mib'):>13,.0f}")  # fmt: skip
    _print_kept(kept)
    for name, costs in many.items():
        print(f"{name} over {arguments.runs:,} runs: first {_spread(costs, 'first_s')} s, "
              f"next {_spread(costs, 'next_s')} s and {_middle(costs, 'next_mib'):,.0f} MiB")  # fmt: skip
    return 0


def _of_columns(counts: Sequence[int], rounds: int) -> dict[int, list[Cost]]:
    """What an analysis of kept columns costs, and their making. A round makes its files anew."""
    found: dict[int, list[Cost]] = {count: [] for count in counts}
    for _ in range(rounds):
        for count, costs in found.items():
            with TemporaryDirectory(prefix="dyno-bench-") as folder:
                place = ("--place", f"{folder}/run.Columns.json")
                made = _in_a_process("--make", str(count), *place)
                costs.append(made | _in_a_process("--read", str(count), *place))
    return found


def _print_kept(found: Mapping[int, list[Cost]]) -> None:
    if not found:
        return
    print(f"{'kept':>9} {'analyse s':>24} {'us each':>8} {'growth':>7} {'MiB':>6} {'file MiB':>9}"
          f" {'first us each':>24}")  # fmt: skip
    first = min(found)
    for count, costs in found.items():
        each = _middle(costs, "analyse_s") / count
        growth = each / (_middle(found[first], "analyse_s") / first)
        print(f"{count:>9,} {_spread(costs, 'analyse_s'):>24} {1e6 * each:>8.1f} {growth:>7.2f}"
              f" {_middle(costs, 'peak_mib'):>6,.0f} {_middle(costs, 'file_mib'):>9,.1f}"
              f" {_spread(costs, 'first_us'):>24}")  # fmt: skip


def _made(place: Path, count: int) -> Cost:
    """Keeps the columns of a run: those of its different records, as often as it holds them."""
    texts = _texts()
    Keeping().add_all(_records(texts, 20))
    started_s = time.process_time()
    keeping = Keeping().add_all(_records(texts, DIFFERENT))
    first_s = time.process_time() - started_s
    head, arrays, times = keeping.head(), dict(keeping.arrays()), max(count // DIFFERENT, 1)
    tiled = cast(
        dict[str, Floats | Places], {name: np.tile(values, times) for name, values in arrays.items()}
    )
    tiled["trial/trial"] = np.arange(float(times * DIFFERENT))
    tiled["trial/block"] += np.repeat(np.arange(float(times)) * (DIFFERENT // 2), DIFFERENT)
    latencies = {
        name: one.but(trials=one.trials * times, counts=tuple(times * number for number in one.counts))
        for name, one in head.latencies.items()
    }
    head = head.but(trials=times * DIFFERENT, latencies=latencies)
    keep_at(place, FOLLOWS_FROM, head, tiled)
    size_bytes = sum(file.stat().st_size for file in place.parent.iterdir())
    return {"first_us": 1e6 * first_s / DIFFERENT, "file_mib": size_bytes / 2**20}


def _read(place: Path, count: int) -> Cost:
    texts = _texts()
    study = a_study(blocks=max(count, DIFFERENT) // 2 + 1)
    run = a_run(study)
    # The first analysis imports what the others need.
    _analyse(study, run, list(_records(texts, 20)))

    def analysed() -> None:
        found = kept_at(place, FOLLOWS_FROM)
        assert found is not None
        analysis = analyse(study, run, kept_input(*found, partial(_records_of, texts)))
        assert len(analysis.trials) == max(count, DIFFERENT)

    analyse_s = _seconds(analysed)
    return {"analyse_s": analyse_s, "peak_mib": _resident_mib("VmHWM")}


def _records_of(texts: Sequence[str], trials: Sequence[int]) -> Iterator[Record]:
    return (_record(texts, trial) for trial in trials)


def _many_runs(count: int, rounds: int) -> dict[str, list[Cost]]:
    """What the verbs over many runs cost, whose twelve trials each are those of one run under other names."""
    found: dict[str, list[Cost]] = {"museum": [], "trend": []}
    with TemporaryDirectory(prefix="dyno-bench-") as folder:
        store = f"sqlite:///{folder}/runs.sqlite"
        _fill(store, count)
        for place in range(rounds):
            for verb, costs in found.items():
                named = [_name(0), "--limit", str(count)] if verb == "trend" else []
                asked = [verb, *named, "--store", store, "--json"]
                environment = {**os.environ, "XDG_CACHE_HOME": f"{folder}/{verb}-{place}"}
                (first_s, _), (next_s, next_mib) = (_of_verb(asked, environment) for _ in range(2))
                costs.append({"first_s": first_s, "next_s": next_s, "next_mib": next_mib})
    return found


def _fill(url: str, count: int) -> None:
    """Ten runs that differ, through the store, and copies of them under other names."""
    study = parse_study(STUDY.encode(), catalogue(ask_engines=False), "study.toml").but(blocks=6)
    own = a_run(study)
    with Store(url) as store:
        for seed in range(10):
            name = _name(seed)
            store.add_run(own.but(run=name, blocks=6, created_unix_s=own.created_unix_s + 3600.0 * seed))
            for record in records_of(study, {"config.synchronous=OFF": 0.5}, seed=seed):
                store.add_record(record.model_copy(update={"run": name}))
            store.finish_run(name)
    # Each record on its own would wait for the disk.
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, database:
        database.execute("PRAGMA foreign_keys = OFF")
        for number in range(10, count):
            names = _name(number), _name(number % 10)
            later_s = 3600.0 * (number - number % 10)
            database.execute(
                "INSERT INTO dyno_runs SELECT ?1, created_unix_s + ?3, study_digest, finished,"
                " json_set(document, '$.run', ?1, '$.created_unix_s', created_unix_s + ?3)"
                " FROM dyno_runs WHERE run = ?2",
                (*names, later_s),
            )
            database.execute(
                "INSERT INTO dyno_records SELECT ?1, trial, variant, block, outcome,"
                " json_set(document, '$.run', ?1) FROM dyno_records WHERE run = ?2",
                names,
            )


def _name(number: int) -> str:
    return f"run-{number:05}"


def _of_verb(asked: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """CPU seconds and the most resident MiB of one command."""
    command = [sys.executable, "-c", "from dbdyno.cli import main; main()", *asked]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, asked
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _middle(costs: Sequence[Cost], name: str) -> float:
    return median(cost[name] for cost in costs)


def _spread(costs: Sequence[Cost], name: str) -> str:
    values = [cost[name] for cost in costs]
    return f"{median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def _in_a_process(*arguments: str) -> Cost:
    done = subprocess.run(
        [sys.executable, "-m", "benches.analyse", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: Cost = json.loads(done.stdout)
    return found


def _cost(count: int) -> Cost:
    study = a_study(blocks=max(count, DIFFERENT) // 2 + 1)
    run, texts = a_run(study), _texts()
    # The first analysis imports what the others need.
    _analyse(study, run, list(_records(texts, 20)))
    before = _resident_mib("VmRSS")
    records = list(_records(texts, count))
    held = _resident_mib("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    analyse_s = _seconds(lambda: _analyse(study, run, records))
    peak = _resident_mib("VmHWM")
    until = run.model_copy(update={"sequential": True})
    memory = SequentialMemory()
    ask(study, until, records[:-2], memory)
    until_s = _seconds(lambda: ask(study, until, records, memory))
    return {
        "analyse_s": analyse_s,
        "until_s": until_s,
        "records_mib": held - before,
        "analysis_mib": peak - held,
    }


def _analyse(study: Study, run: Run, records: Sequence[Record]) -> None:
    found = analyse(study, run, records)
    assert len(found.trials) == len(records)


def _texts() -> list[str]:
    records = records_of(a_study(blocks=DIFFERENT // 2), {CANDIDATE: 1.05})
    return [record.model_dump_json() for record in records]


def _records(texts: Sequence[str], count: int) -> Iterator[Record]:
    return (_record(texts, trial) for trial in range(count))


def _record(texts: Sequence[str], trial: int) -> Record:
    record = Record.model_validate_json(texts[trial % len(texts)])
    block = record.block + trial // len(texts) * (len(texts) // 2)
    return record.model_copy(update={"trial": trial, "block": block})


def _seconds(act: Callable[[], object]) -> float:
    started_s = time.process_time()
    act()
    return time.process_time() - started_s


def _resident_mib(name: str) -> float:
    """A line of the kernel's on this process, in MiB: `VmHWM` is the most since it was reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"the kernel does not tell {name}")


if __name__ == "__main__":
    sys.exit(main())
