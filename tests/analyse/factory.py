"""Makes studies and records as a run would leave them. For tests only: nothing here was measured.

Trials of one block share a disturbance; each trial has its own; latencies are lognormal and stand in a real
histogram.
"""

from __future__ import annotations

import base64
import json
import math
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from dbdyno.driver.tally import OpenLoop, Second, Tally
from dbdyno.frozen import Level
from dbdyno.host.fingerprint import Host, Installed
from dbdyno.plan.blocks import Order, make_plan
from dbdyno.records.record import Check, Doubt, Evidence, Observation, Outcome, PhaseRecord, Reading, Record
from dbdyno.records.run import ComparisonRun
from dbdyno.study import SLICE_S, Design, Factor, Goal, Study, Workload
from dbdyno.study.nouns import Reference
from dbdyno.study.trials import Trial
from tests.fakes import make_tally

OPEN_LOOP = OpenLoop(offered_per_s=100.0, achieved_per_s=100.0, backlog_max=1, backlog_end=0, kept=True)
STARTED_UNIX_S = 1_760_000_000.0
WARMUP_S, DURATION_S = 5, 20
HOST = {
    "hostname": "bench-1",
    "cpu": {"model": "AMD EPYC 7313", "cores": 16, "threads": 32, "mhz_max": 3729},
    "memory_bytes": 68_719_476_736,
    "kernel": "6.1.0-25-amd64",
    "distribution": "Debian GNU/Linux 12",
    "storage": [{"device": "nvme0n1", "scheduler": "none", "size_bytes": 960_197_124_096}],
}

Change = Callable[[Record], Record]


def a_study(
    factors: Mapping[str, Sequence[Level]] | None = None,
    design: Design = Design.ONE_AT_A_TIME,
    blocks: int = 6,
    aa: bool = False,
    title: str = "Which settings help Firebird?",
    goal: Goal | None = None,
) -> Study:
    declared = factors if factors is not None else {"config.page_cache": ["2k", "64k"]}
    return Study(
        title=title,
        engine=Reference(engine="firebird", version="5"),
        design=design,
        blocks=blocks,
        seed=11,
        aa=aa,
        # A study of a run has what the run kept.
        slice_s=SLICE_S,
        workload=Workload(
            name="tpcb", clients=8, warmup_s=WARMUP_S, duration_s=DURATION_S, options={"scale": 10}
        ),
        factors=tuple(Factor(name=name, levels=tuple(levels)) for name, levels in declared.items()),
        goal=goal or Goal(),
        path="studies/example.toml",
        text='title = "..."\n',
        digest="ab" * 32,
    )


def a_run(study: Study) -> ComparisonRun:
    return ComparisonRun(
        run="20251009-085320-example",
        study_path=study.path,
        study_text=study.text,
        study_digest=study.digest,
        seed=study.seed or 0,
        blocks=study.blocks,
        created_unix_s=STARTED_UNIX_S,
        dyno_version="0.1.0",
        host=Host.model_validate(HOST),
        installation=Installed(engine="firebird", version="5.0.4", origin="wheel firebird-embedded 5.0.4.4"),
    )


def records_of(
    study: Study,
    ratios: Mapping[str, float] | None = None,
    changes: Mapping[str, Change] | None = None,
    seed: int = 1,
    block_sd: float = 0.05,
    trial_sd: float = 0.01,
    order: Order | None = None,
) -> list[Record]:
    """One record per planned trial. `ratios` is the true ratio by variant; `changes` rewrites a variant's
    records.
    """
    random = np.random.default_rng(seed)
    blocks = random.normal(0.0, block_sd, study.blocks)
    records = []
    for trial in make_plan(study, order or Order.of(a_run(study))).trials:
        true = (ratios or {}).get(trial.variant.name, 1.0)
        noise = blocks[trial.block] + random.normal(0.0, trial_sd)
        record = a_record(study, trial, 4200.0 * true * math.exp(noise), random)
        change = (changes or {}).get(trial.variant.name)
        records.append(change(record) if change else record)
    return records


def a_record(study: Study, trial: Trial, throughput: float, random: np.random.Generator) -> Record:
    started = STARTED_UNIX_S + 31.0 * trial.index
    operations = max(round(throughput * DURATION_S), 1)
    return Record(
        run="20251009-085320-example",
        trial=trial.index,
        block=trial.block,
        position=trial.position,
        variant=trial.variant.name,
        levels=trial.variant.levels,
        host="bench-1",
        started_unix_s=started,
        finished_unix_s=started + 30.0,
        outcome=Outcome.MEASURED,
        engine_version="5.0.4",
        stages_s={
            "prepare": 2.1,
            "verify": 0.2,
            "drive": 25.1,
            "check": 1.4,
            "record": 0.02,
            "restore": 0.6,
        },
        reset={"kind": "reflink", "duration_s": 0.21},
        evidence=tuple(an_evidence(name, level) for name, level in trial.variant.levels.items()),
        phases=(a_phase(study, operations, throughput, trial, random),),
    )


def a_phase(
    study: Study, operations: int, throughput: float, trial: Trial, random: np.random.Generator
) -> PhaseRecord:
    return PhaseRecord(
        name="load",
        checks=(
            Check(name="balances_equal", holds=True, detail="account 12, teller 12, branch 12, history 12"),
        ),
        observation=Observation(
            duration_s=float(DURATION_S),
            totals={
                "server_cpu_user_s": operations * 310e-6 / (throughput / 4200.0) ** 0.5,
                "server_cpu_system_s": operations * 120e-6,
                "context_switches_voluntary": operations * 4.0,
                "context_switches_involuntary": operations * 0.01,
                "run_queue_wait_s": operations * 8e-6,
                "resident_bytes_max": 3.1e8,
                "steal_s": 0.01 * (trial.index % 5),
                "frequency_hz": 2.6e9,
                "read_bytes": 0.0,
                "written_bytes": operations * 8192.0,
            },
            missing={"instructions": "perf_event_open: not permitted"},
        ),
        tally=a_tally(study, operations, throughput, random),
    )


def an_evidence(factor: str, level: Level) -> Evidence:
    return Evidence(
        factor=factor,
        requested=str(level),
        accepted=Reading(value=str(level), source="firebird.conf"),
        effective=Reading(value=str(level), source=f"SELECT * FROM RDB$CONFIG WHERE NAME = '{factor}'"),
        in_effect=True,
    )


def a_tally(study: Study, operations: int, throughput: float, random: np.random.Generator) -> Tally:
    begun = random.bit_generator.state
    drawn = (begun["state"]["state"], begun["state"]["inc"], begun["has_uint32"], begun["uinteger"])
    latency, histogram, random.bit_generator.state = _latencies(
        study.workload.clients / throughput * 1e6, *drawn
    )
    latency = {**latency, "count": operations, "sum": latency["mean"] * operations}
    tally = {
        "workload": "tpcb", "protocol": "firebird", "server_version": "5.0.4", "backend": "blocking",
        "threads": 2, "clients": study.workload.clients, "seed": study.seed or 0,
        "started_unix_s": STARTED_UNIX_S, "warmup_s": float(WARMUP_S), "duration_s": float(DURATION_S),
        "operations": operations, "throughput_per_s": operations / DURATION_S, "rows_read": operations,
        "bytes_received": 0, "bytes_sent": 0,
        "errors": {}, "retries": 0, "rollbacks": 0, "acknowledged": operations, "unknown": 0,
        "latency_us": latency, "by_transaction": {},
        "driver_cpu_us_per_op": {"user": 6.0 + random.normal(0, 0.1), "system": 2.5},
        "driver_cpu_s": {"user": operations * 6e-6, "system": operations * 2.5e-6},
        "driver_busy_share": [0.1, 0.1], "driver_run_wait_share": [], "engine_cpu_s": None,
        "system_calls_per_op": None, "saturated": None, "open_loop": None,
        "series": a_series(throughput, random), "fine_series": None, "recall": None, "phases": [],
        "replay": None,
        "histogram_unit": "ns", "histogram": histogram, "interrupted": False,
    }  # fmt: skip
    return make_tally(**tally)


@lru_cache(maxsize=2000)
def _latencies(
    mean_us: float, state: int, increment: int, has_uint32: int, uinteger: int
) -> tuple[dict[str, float], str, Mapping[str, Any]]:
    """What a sample that a generator draws in a state says, its histogram, and the generator's state
    afterwards. Tests ask for the same over and over."""
    random = np.random.default_rng()
    random.bit_generator.state = {
        "bit_generator": "PCG64", "state": {"state": state, "inc": increment},
        "has_uint32": has_uint32, "uinteger": uinteger,
    }  # fmt: skip
    sample = np.maximum(random.lognormal(math.log(mean_us * 0.9), 0.45, 20_000), 1.0).astype(int)
    points = {"p50": 50, "p90": 90, "p95": 95, "p99": 99, "p99_9": 99.9, "p99_99": 99.99}
    latency = dict(zip(points, np.percentile(sample, list(points.values())).tolist(), strict=True))
    latency |= {"mean": float(sample.mean()), "min": float(sample.min()), "max": float(sample.max())}
    return latency, encode_histogram(sample * 1000), random.bit_generator.state


def a_series(
    throughput: float,
    random: np.random.Generator,
    warmup_s: int = WARMUP_S,
    duration_s: int = DURATION_S,
    slow_seconds: int = 3,
    share: float = 0.5,
    noise: float = 0.03,
) -> list[Second]:
    """A series that starts at `share` of its level for `slow_seconds`, then stays at it."""
    points = []
    for index in range(warmup_s + duration_s):
        level = throughput * (share if index < slow_seconds else 1.0)
        operations = max(round(level * (1.0 + random.normal(0.0, noise))), 0)
        second = index - warmup_s
        points.append(a_second(second, operations))
    points.append(a_second(duration_s, 1))  # the last second, cut short
    return points


def a_second(second: int, operations: int) -> Second:
    phase: Literal["warmup", "measured"] = "warmup" if second < 0 else "measured"
    return Second(
        second=second, phase=phase, operations=operations, errors=0, p50_us=1800, p99_us=5200, max_us=11000
    )


def encode_histogram(values_us: Sequence[int] | np.ndarray) -> str:
    """HdrHistogram V2, deflated, base64; three digits, from 1 us to an hour."""
    body, next_slot = bytearray(), 0
    for slot, count in _slots(values_us):
        if slot > next_slot:
            body += _zigzag(next_slot - slot)
        body += _zigzag(count)
        next_slot = slot + 1
    payload = struct.pack(">iiiiqqd", 0x1C849313, len(body), 0, 3, 1, 3_600_000_000_000, 1.0) + bytes(body)
    compressed = zlib.compress(payload)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(compressed)) + compressed).decode()


def _slots(values: Sequence[int] | np.ndarray) -> list[tuple[int, int]]:
    """Slots and their counts, rising."""
    whole = np.maximum(np.asarray(values, dtype=np.int64), 1)
    buckets = np.frexp(np.maximum(whole, 2047).astype(float))[1] - 11
    counts = np.bincount(((buckets + 1) << 10) + (whole >> buckets) - 1024)
    slots = np.flatnonzero(counts)
    return list(zip(slots.tolist(), counts[slots].tolist(), strict=True))


@lru_cache(maxsize=4000)
def _zigzag(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def changed(record: Record, **changes: object) -> Record:
    """The record with other values, those of its one phase among them."""
    of_phase = {name: value for name, value in changes.items() if name in PhaseRecord.model_fields}
    [phase] = record.phases
    rest = {name: value for name, value in changes.items() if name not in of_phase}
    return record.but(**rest, phases=(phase.but(**of_phase),))


def counted(record: Record, **changes: object) -> Record:
    """The record of a trial in which the driver counted otherwise."""
    assert record.tally is not None
    told: dict[str, Any] = {**dict(record.tally), **changes}
    if {"operations", "duration_s"} & changes.keys() and "throughput_per_s" not in changes:
        told["throughput_per_s"] = told["operations"] / (told["duration_s"] or 1.0)
    return changed(record, tally=Tally.model_validate(told))


def ended(outcome: Outcome, cause: str, remedy: str = "") -> Change:
    """A record of a trial that ended without a speed."""
    return lambda record: changed(
        record, outcome=outcome, cause=cause, remedy=remedy, tally=None, observation=None
    )


def blocked(factor: str, asked: str, got: str) -> Change:
    """A record of a trial whose level the server changed."""

    def change(record: Record) -> Record:
        evidence = Evidence(
            factor=factor,
            requested=asked,
            accepted=Reading(value=asked, source="firebird.conf"),
            effective=Reading(value=got, source="RDB$CONFIG"),
            in_effect=False,
            reason=f"the server capped it at {got}",
            remedy="ask for less, or raise the limit",
        )
        return ended(Outcome.BLOCKED, evidence.reason, evidence.remedy)(record).but(evidence=(evidence,))

    return change


def broken(detail: str) -> Change:
    """A record of a trial that broke an invariant."""
    return lambda record: changed(
        ended(Outcome.BROKEN, f"balances_equal: {detail}")(record),
        checks=(Check(name="balances_equal", holds=False, detail=detail),),
    )


def warned(doubt: Doubt, detail: str) -> Change:
    return lambda record: changed(record, doubts={doubt: detail})


def every_verdict() -> tuple[Study, list[Record]]:
    """A study that ends with each verdict once."""
    study = a_study(
        factors={
            "config.page_cache": ["2k", "64k", "4k"],
            "config.forced_writes": ["on", "off"],
            "config.page_size": [8192, 32768],
            "config.gc_policy": ["combined", "background"],
            "memory.allocator": ["glibc", "jemalloc", "mimalloc"],
            "memory.huge_pages": ["off", "always"],
            "build.flags": ["-O2", "-O3"],
            "storage.scheduler": ["none", "bfq"],
        },
        aa=True,
    )
    ratios = {
        "config.page_cache=64k": 1.62,
        "config.page_cache=4k": 1.018,
        "config.forced_writes=off": 3.1,
        "config.page_size=32768": 0.71,
        "config.gc_policy=background": 1.001,
        "storage.scheduler=bfq": 0.982,
    }
    cap = blocked("memory.huge_pages", "always", "madvise")
    changes = {
        "config.forced_writes=off": broken("account 118, teller 118, branch 117, history 118"),
        "memory.allocator=jemalloc": ended(Outcome.FAILED, "libjemalloc.so.2: cannot open shared object file",
                                           "install libjemalloc2"),
        "memory.allocator=mimalloc": ended(Outcome.FAILED, "the server died of SIGSEGV as it started"),
        "memory.huge_pages=always": cap,
        "build.flags=-O3": ended(Outcome.FAILED, "the compiler was killed: it had no memory left"),
        "config.page_size=32768": warned(Doubt.DRIVER_SATURATED, "busiest thread 97 % on its CPU"),
        "storage.scheduler=bfq": warned(Doubt.STEAL, "3.1 % of CPU time was taken by the hypervisor"),
    }  # fmt: skip
    return study, records_of(study, ratios, changes, trial_sd=0.008)


def canonical(value: object) -> str:
    """A text that two equal values share."""
    return json.dumps(value, sort_keys=True, default=str)
