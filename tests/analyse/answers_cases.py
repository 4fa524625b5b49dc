"""Analyses whose every digit is kept (`answers.json.gz`), so that any way of reckoning must agree with them.

`python -m tests.analyse.answers_cases` writes them anew.
"""

from __future__ import annotations

import gzip
import json
import math
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbdyno.analyse.analysis import AnalysisInput
from dbdyno.findings import analyse
from dbdyno.frozen import Level
from dbdyno.records.record import Doubt, Outcome, Record
from dbdyno.records.run import Brought, ImportedRun, Run, of_kind
from dbdyno.study import Arrangement, Design, Goal, Guard, Interval, Study
from tests.analyse import counted_cases, restarts_cases
from tests.analyse.builds import FASTEST, builds
from tests.analyse.factory import (
    a_run,
    a_study,
    blocked,
    broken,
    changed,
    counted,
    ended,
    every_verdict,
    records_of,
    warned,
)
from tests.analyse.frontier_cases import EFFORTS, RECALL, scored
from tests.analyse.plans_cases import BY_INDEX, BY_SCAN, asked
from tests.analyse.replays_cases import played
from tests.analyse.statements_cases import a_statement, timed
from tests.fakes import a_slice
from tests.searches import a_search, carried_out

STORED = Path(__file__).with_name("answers.json.gz")
FAST = "config.page_cache=64k"
Case = tuple[Study, Run, Sequence[Record]]


def of(study: Study, records: Sequence[Record], **changes: object) -> Case:
    return study, a_run(study).but(**changes), records


def verdicts() -> Case:
    return of(*every_verdict())


def factors() -> Case:
    levels: dict[str, list[Level]] = {"config.page_cache": ["2k", "64k"], "workload.clients": [1, 8, 32]}
    study = a_study(levels, design=Design.FACTORIAL)
    ratios = {FAST: 1.4, "workload.clients=8": 3.2, "workload.clients=32": 3.4}
    return of(study, records_of(study, ratios))


def a_fraction() -> Case:
    names = [f"config.factor_{letter}" for letter in "abcdefg"]
    study = a_study({name: ["off", "on"] for name in names}, Design.FRACTIONAL, blocks=8)
    return of(study, records_of(study, {names[0]: 1.2}))


def placebos() -> Case:
    return of(*builds({FASTEST: 1.02}))


def copies() -> Case:
    study = a_study({"config.a": [1, 2, 3, 4, 5]}, blocks=7).but(baselines=3)
    lost = ended(Outcome.FAILED, "it died")
    records = records_of(study, {"config.a=2": 1.1})
    return of(study, [lost(one) if one.trial == 5 else one for one in records])


def guards() -> Case:
    own = (
        Guard(text="p99", metric="p99_ms", bound=0.8, relative=True),
        Guard(text="CPU", metric="server_cpu_us_per_op", bound=430.0),
        Guard(text="reads", metric="read_bytes_per_op", bound=1.0, relative=True),
        Guard(text="ready", metric="ready_s", bound=3.0),
    )
    goal = Goal(guards=own, margin=0.01)
    study = a_study(goal=goal, blocks=8)
    return of(study, records_of(study, {FAST: 1.3}))


def unfinished() -> Case:
    study = a_study(blocks=9, aa=True)
    return of(study, records_of(study, {FAST: 1.05})[:-7])


def looked_at() -> Case:
    study = a_study(blocks=12)
    return of(study, records_of(study, {FAST: 1.3})[:-4], sequential=True, looks_planned=True)


def ranks() -> Case:
    study = a_study(blocks=20, goal=Goal(interval=Interval.SIGNED_RANK))
    return of(study, records_of(study, {FAST: 1.04}, trial_sd=0.04))


def hosts_and_repeats() -> Case:
    """Two hosts, in the order of neither, and trials that were recorded twice, or not to their end."""
    study = a_study(blocks=8)
    records = [one.but(host="zeta" if one.block % 3 else "alpha") for one in records_of(study, {FAST: 0.97})]
    again = [one.but(finished_unix_s=one.finished_unix_s + 9e3) for one in records_of(study, seed=7)[3:6]]
    partial = records[0].but(whole=False, finished_unix_s=9e12)
    twice = records[4].but(trial=99, finished_unix_s=records[4].finished_unix_s + 1.0)
    return of(study, [*reversed(records), *again, partial, twice])


def doubts() -> Case:
    study = a_study(blocks=8)
    records = records_of(study, {FAST: 1.2}, {FAST: warned(Doubt.STEAL, "3 % was taken")})
    capped = blocked("config.page_cache", "64k", "2k")
    for place in (2, 9):
        records[place] = ended(Outcome.FAILED, "it was slow")(warned(Doubt.DRIVER_WAITED, "")(records[place]))
    ways = {3: "copy"}
    records = [one.but(reset={"way": ways.get(one.trial, "reflink"), "image": 1}) for one in records]
    return of(study, [capped(one) if one.trial == 7 else one for one in records])


def idle() -> Case:
    study = a_study(blocks=6)
    return of(
        study,
        [
            one.but(
                evidence=tuple(each.but(idle=f"no page was read {one.block % 2}") for each in one.evidence)
            )
            for one in records_of(study)
        ],
    )


def broken_baseline() -> Case:
    study = a_study()
    return of(study, records_of(study, changes={"baseline": broken("account 1, teller 2")}))


def open_loop_and_counters() -> Case:
    """An open loop, the CPU's counters in some trials, and the engine's own view."""
    study = a_study(blocks=6)

    def seen(one: Record) -> Record:
        assert one.observation is not None
        more = {"cycles": 2e11 + one.trial, "instructions": 3e11, "stalled_cycles_backend": 1e10}
        totals = {**one.observation.totals, **(more if one.trial % 3 else {}), "other_cpu_s": 0.1 * one.block}
        view = {"waited us": 10.0 * one.trial, **({"locks": 5.0} if one.block % 2 else {})}
        missing = {"cycles": f"not permitted {one.block}", "other": "nobody knows"}
        observation = one.observation.but(totals=totals, engine_view=view, missing=missing)
        return changed(one, observation=observation).but(ready_s=0.3 + 0.01 * one.trial)

    return of(study, [counted(seen(one), driver_run_wait_share=(0.01, 0.02)) for one in records_of(study)])


def slices() -> Case:
    study = a_study(blocks=8, aa=True).but(arrangement=Arrangement.SIDE_BY_SIDE)

    def sliced(one: Record) -> Record:
        assert one.tally is not None
        each = [
            a_slice(
                started_unix_s=one.started_unix_s + 2.0 * place,
                duration_s=1.0,
                operations=round(4000 + 100 * math.sin(one.trial + place)),
            )
            for place in range(20)
        ]
        return counted(one, slices=tuple(each))

    return of(study, [sliced(one) for one in records_of(study, {FAST: 1.1})])


def odd_histograms() -> Case:
    study = a_study(blocks=6)
    records = records_of(study)
    broken_text = {1: "no histogram", 2: ""}
    return of(study, [counted(one, histogram=broken_text[one.trial]) if one.trial in broken_text else one
                      for one in records])  # fmt: skip


def two_units() -> Case:
    study = a_study(blocks=6)
    return of(
        study, [counted(one, histogram_unit="us" if one.trial == 3 else "ns") for one in records_of(study)]
    )


def frontier() -> Case:
    levels: dict[str, list[Level]] = {"workload.ef": [*EFFORTS], "config.cache": ["16M", "4G"]}
    study = a_study(levels, design=Design.FACTORIAL, blocks=6)
    found = []
    for one in records_of(study):
        effort = int(one.levels["workload.ef"])
        found.append(scored(one, RECALL[effort] + 0.001 * (one.block % 2), 4e4 / effort + one.trial))
    return of(study, found)


def texts() -> Case:
    """Plans and times of statements, and a recording that was played."""
    study = a_study(blocks=6)
    records = [
        played(
            timed(
                asked(one, BY_SCAN if one.trial % 5 == 1 else BY_INDEX), a=a_statement(200, 5e4 + one.trial)
            )
        )
        for one in records_of(study)
    ]
    return of(study, records)


def requests() -> Case:
    study = a_study(blocks=6)

    def told(one: Record) -> Record:
        assert one.observation is not None
        own = {"application_requests": 1.5e5, "application_busy_s": 90.0, "application_database_s": 40.0}
        totals = {**one.observation.totals, **own, "application_cpu_user_s": 11.0 + one.trial}
        return changed(one, observation=one.observation.but(totals=totals))

    return of(study, [told(one) for one in records_of(study)])


def restarts() -> Case:
    kept, lost = restarts_cases.kept(), restarts_cases.LOST
    beside = [
        restarts_cases.record_of(0, "baseline", kept),
        restarts_cases.record_of(1, FAST, kept, lost),
        restarts_cases.CONTROLLED,
    ]
    study = restarts_cases.STUDY
    return study, a_run(study), [*restarts_cases.TIMED, *beside]


def counted_beside() -> Case:
    pairs = [("baseline", counted_cases.SLOW_WORK), (FAST, counted_cases.FAST_WORK)]
    return of(counted_cases.STUDY, counted_cases.beside(*pairs))


def imported(paired: bool) -> Case:
    study = a_study(blocks=6)
    logs = Brought(
        tool="pgbench", title="Logs", variants=("a", "b"), response="throughput", margin=0.02, paired=paired
    )
    return study, of_kind(ImportedRun, a_run(study), brought=logs, host={}), records_of(study, {FAST: 1.1})


def a_whole_search() -> Case:
    study, run = a_search()
    return study, run, carried_out(study, run, lambda levels: 0.2 if levels.get("config.pool") else 0.0)


def nothing_run() -> Case:
    return of(a_study(), [])


CASES: dict[str, Callable[[], Case]] = {
    each.__name__: each
    for each in (
        verdicts, factors, a_fraction, placebos, copies, guards, unfinished, looked_at, ranks,
        hosts_and_repeats, doubts, idle, broken_baseline, open_loop_and_counters, slices, odd_histograms,
        two_units, frontier, texts, requests, restarts, counted_beside, a_whole_search, nothing_run,
    )
} | {"imported": lambda: imported(False), "imported_pairs": lambda: imported(True)}  # fmt: skip


def answer(case: tuple[Study, Run, Sequence[Record] | AnalysisInput]) -> dict[str, Any]:
    """All that an analysis says, its trials too, without the records that were given to it."""
    found = analyse(*case)
    document: dict[str, Any] = found.model_dump(mode="json", exclude={"trials", "study", "run"})
    document["trials"] = [
        {**trial.model_dump(mode="json", exclude={"record"}), "trial": trial.record.trial}
        for trial in found.trials
    ]
    return document


BY_NUMPY = ("floor", "components")
"""Made of logs that numpy takes several at a time: their last digit depends on the CPU."""
SUMS_ARE_OTHERS = sys.version_info >= (3, 12)
"""What rounding loses in a sum is added since: the last digits are those of Python's version."""


def differing(found: Mapping[str, Any], stored: Mapping[str, Any]) -> set[str]:
    """Which parts of an answer, as JSON has it, are not those that are stored, digit by digit."""
    both = found.keys() & stored.keys()
    close = both if SUMS_ARE_OTHERS else both.intersection(BY_NUMPY)
    return (found.keys() ^ stored.keys()) | {
        key for key in both if not (_is_close if key in close else operator.eq)(found[key], stored[key])
    }


def _is_close(found: Any, stored: Any) -> bool:
    if isinstance(stored, dict):
        return found.keys() == stored.keys() and all(_is_close(found[key], stored[key]) for key in stored)
    if isinstance(stored, list):
        return len(found) == len(stored) and all(map(_is_close, found, stored))
    if isinstance(stored, float):
        return math.isclose(found, stored, rel_tol=1e-9, abs_tol=1e-12)
    return bool(found == stored)


def write() -> None:
    answers = {name: answer(case()) for name, case in CASES.items()}
    STORED.write_bytes(gzip.compress(json.dumps(answers).encode(), mtime=0))


if __name__ == "__main__":
    write()
