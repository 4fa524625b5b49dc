"""What the tests of compare share with others."""

from __future__ import annotations

from typing import Any

from dbdyno.analyse import Analysis
from dbdyno.findings import analyse
from dbdyno.records.record import Record
from tests.analyse.factory import a_run, a_study, changed, records_of

STUDY = a_study({"config.page_cache": ["2k", "64k"], "memory.thp": ["never", "always"]}, blocks=8)


GAIN = {"config.page_cache=64k": 5.0, "memory.thp=always": 1.3}


def a_host(cores: int = 4, mhz: float = 3000.0, thp: str = "always") -> dict[str, Any]:
    return {
        "name": f"host-{cores}-{mhz}",
        "cpu": {"usable_cores": cores, "frequency_mhz": mhz},
        "memory": {"transparent_huge_pages": thp},
    }


def analysed(
    host: dict[str, Any], speed: float = 1.0, seed: int = 1, gigahertz: float | None = None, blocks: int = 8
) -> Analysis:
    """A run on a host, every trial `speed` times as fast as the others' are."""
    study = STUDY.but(blocks=blocks)
    ratios = {variant: GAIN.get(variant, 1.0) * speed for variant in ("baseline", *GAIN)}
    records = records_of(study, ratios, seed=seed, block_sd=0.01, trial_sd=0.005)
    if gigahertz is not None:
        records = [with_cycles(record, gigahertz) for record in records]
    run = a_run(study).but(run=f"run-{seed}", host=host)
    return analyse(study, run, records)


def with_cycles(record: Record, gigahertz: float) -> Record:
    assert record.observation is not None
    totals = dict(record.observation.totals)
    cpu_s = totals["server_cpu_user_s"] + totals["server_cpu_system_s"]
    totals["cycles"] = gigahertz * 1e9 * cpu_s
    return changed(record, observation=record.observation.but(totals=totals))
