"""What a study's engine is put through beside the timed blocks: how often, under which load, and the control
that must lose."""

from __future__ import annotations

from dbdyno.study.nouns import Restarts, Study, Workload
from dbdyno.study.soak import Act
from dbdyno.study.trials import Variant

CONTROL = "control"
"""The name of the variant that must lose commits: where it loses none, no cut proves anything."""
CONTROL_CUTS = 5
ROUNDS_MOST = 10
"""Rounds of one trial."""
WRITING = Workload(
    name="tpcb",
    clients=4,
    options={"scale": 1, "simple_update": False, "select_only": False},
    run_options=frozenset({"simple_update", "select_only"}),
)
"""A load in which each transaction writes, and whose invariants show what is missing."""


def restarted(study: Study) -> Study:
    """The study under the load of its restarts: its own where that keeps a ledger and writes, else TPC-B."""
    return study if study.workload.keeps_ledger else study.but(workload=WRITING)


def restarted_variant(study: Study, variant: Variant) -> Variant:
    """The variant without levels of a workload that is not driven."""
    if study.workload.keeps_ledger:
        return variant
    levels = {name: level for name, level in variant.levels.items() if not name.startswith("workload.")}
    return variant.but(levels=levels)


def acts_of(restarts: Restarts) -> tuple[Act, ...]:
    """All acts that each variant meets, in no particular order."""
    counts = {
        Act.CUT: restarts.power_cuts,
        Act.TEAR: restarts.torn_pages,
        Act.KILL: restarts.kills,
        Act.STOP: restarts.stops,
        Act.FLIP: restarts.flipped_bits,
        Act.NODE_KILL: restarts.nodes_killed,
        Act.NODE_PAUSE: restarts.nodes_paused,
        Act.NODE_CUT: restarts.nodes_cut_off,
        Act.NODE_EMPTY: restarts.nodes_emptied,
        Act.FIRST_LOST: restarts.first_nodes_lost,
        Act.RESET: restarts.resets,
    }
    return tuple(act for act, count in counts.items() for _ in range(count))


def turns(study: Study) -> int:
    """How many trials of restarts each variant has."""
    return -(-len(acts_of(study.restarts)) // ROUNDS_MOST) if study.restarts else 0


def control_of(study: Study) -> Variant | None:
    """The baseline under settings with which a power cut must take commits along; None where no power is
    cut."""
    restarts = study.restarts
    if restarts is None or not restarts.control or not (restarts.power_cuts or restarts.torn_pages):
        return None
    return restarted_variant(study, Variant(name=CONTROL, levels={**study.baseline, **restarts.control}))
