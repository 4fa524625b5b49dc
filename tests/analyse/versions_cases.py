"""What the tests of versions under conditions share with others."""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.analyse.model import Analysis
from dbdyno.findings import analyse
from dbdyno.frozen import ENGINE_FACTOR, Level
from dbdyno.study import Design
from dbdyno.study.nouns import Reference
from tests.analyse.factory import Change, a_run, a_study, records_of

OLD, NEW = "mariadb@10.11", "mariadb@11.8"
MEMORY, CLIENTS = "config.pool", "workload.clients"
FACTORS: dict[str, list[Level]] = {CLIENTS: [1, 64], ENGINE_FACTOR: [OLD, NEW], MEMORY: ["64M", "1G"]}


def name_of(clients: int, engine: str, memory: str) -> str:
    """The name of a variant of the study."""
    levels = {CLIENTS: clients, ENGINE_FACTOR: engine, MEMORY: memory}
    moved = [f"{name}={level}" for name, level in levels.items() if level != FACTORS[name][0]]
    return ", ".join(moved) or "baseline"


def measured(
    ratios: Mapping[str, float], changes: Mapping[str, Change] | None = None, run: str = "r"
) -> Analysis:
    """The analysis of two versions by memory and clients, with the true ratios to the baseline by name."""
    study = a_study(FACTORS, Design.FACTORIAL, blocks=8).but(engine=Reference("mariadb", "10.11"))
    return analyse(study, a_run(study).but(run=run), records_of(study, ratios, changes, trial_sd=0.003))


def slower_with_many_clients() -> Analysis:
    """Four times the speed with 64 clients; the new version loses half of that with little memory, and wins a
    tenth with much."""
    return measured(
        {
            name_of(64, OLD, "64M"): 4.0,
            name_of(64, OLD, "1G"): 4.4,
            name_of(64, NEW, "64M"): 2.0,
            name_of(64, NEW, "1G"): 4.84,
        }
    )
