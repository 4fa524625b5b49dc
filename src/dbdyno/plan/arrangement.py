"""Whether the servers of a block can run side by side, so that the load goes round them in short slices.

A host's speed wanders within seconds. Trials that follow one another differ by that; slices that take turns
share it, and a server is started once for all its slices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.frozen import Frozen
from dbdyno.records.amplification import WRITE, rows_named
from dbdyno.study import Arrangement, Study
from dbdyno.study.nouns import STATEMENTS
from dbdyno.study.trials import EACH_LEAST, phases_of, timed_acts

MEMORY_SHARE = 0.8
"""Of the memory that is available, what servers may take together: the rest caches their files."""
PACED = ("rate_per_s", "schedule", "think_time")
"""Knobs of the workload that start transactions by the clock."""

EACH_AIM = 5.0
"""How many transactions of a client longer slices are to hold: more than the least, as a warm-up is short."""
SLICE_MOST_S = 60.0


class Circumstances(Frozen):
    """What an arrangement depends on beside the study. `host_factors` change the host, or give each variant a
    volume; `pauses` are the workload's own, such as keying and think times; `restarted_for` is a setting that
    only a restart of a server which runs already puts into force; `needed_bytes` is the memory that all
    servers take together."""

    host_factors: tuple[str, ...] = ()
    counted: bool = False
    pauses: bool = False
    restarted_for: str = ""
    needed_bytes: int = 0
    available_bytes: int = 1

    def with_other(self, other: Circumstances) -> Circumstances:
        """Those of two studies whose servers would all be up at once, on one host."""
        both = {
            "host_factors": (*self.host_factors, *other.host_factors),
            "counted": self.counted or other.counted,
            "pauses": self.pauses or other.pauses,
            "needed_bytes": self.needed_bytes + other.needed_bytes,
        }
        return self.but(**both)


class Arranged(Frozen):
    """The arrangement that a run has, and why it is not side by side; empty where it is."""

    arrangement: Arrangement
    why: str = ""


def arranged(study: Study, circumstances: Circumstances) -> Arranged:
    """Side by side where that can be, unless the study wants it otherwise."""
    if study.arrangement is Arrangement.ONE_AFTER_THE_OTHER:
        return Arranged(arrangement=study.arrangement, why="the study asks for it")
    why = obstacle(study, circumstances)
    beside = Arrangement.ONE_AFTER_THE_OTHER if why else Arrangement.SIDE_BY_SIDE
    return Arranged(arrangement=beside, why=why)


def obstacle(study: Study, circumstances: Circumstances) -> str:
    """Why the servers of a block cannot run side by side; empty where they can."""
    paced = [knob for knob in PACED if getattr(study.workload, knob)]
    paced += [factor.knob for factor in study.factors if factor.layer == "workload" and factor.knob in PACED]
    if circumstances.counted:
        return "work is counted, and no time is measured"
    if study.meanwhile:
        return "acts go on beside a load, so a load is one whole"
    if WRITE in rows_named(study.goal):
        return f"{WRITE} counts what the disk writes, so a load is one whole"
    if timed_acts(study):
        return "engines are restarted within trials, so a load is one whole"
    if circumstances.host_factors:
        return f"{circumstances.host_factors[0]} concerns the host, not one server"
    if circumstances.restarted_for:
        return f"config.{circumstances.restarted_for} needs a restart of the server, so a load is one whole"
    if paced:
        return f"workload.{paced[0]} starts transactions by the clock, so a load is one whole"
    if circumstances.pauses:
        return f"{study.workload.name} has pauses of its own between transactions, so a load is one whole"
    if study.workload.name == STATEMENTS:
        return "each statement is sent by itself, so a load is one whole"
    if circumstances.needed_bytes > MEMORY_SHARE * circumstances.available_bytes:
        needed_mib, available_mib = circumstances.needed_bytes >> 20, circumstances.available_bytes >> 20
        return f"all servers together take about {needed_mib} MiB of the {available_mib} MiB available"
    return ""


class WarmUp(Frozen):
    """What the `clients` of a variant had been told of when its warm-up was over."""

    variant: str
    clients: int
    told: int


class LongerSlices(Frozen):
    """How long the slices of all variants become, the load that holds two of them at least, and why."""

    slice_s: float
    duration_s: float
    why: str

    def of(self, study: Study) -> Study:
        """The study with these slices."""
        duration_s = max(study.workload.duration_s, self.duration_s)
        return study.but(slice_s=self.slice_s, workload=study.workload.but(duration_s=duration_s))


def longer_slices(study: Study, warm_ups: Sequence[WarmUp]) -> LongerSlices | None:
    """Slices that hold enough transactions of each client of the slowest variant, for all variants alike;
    None where they do by now, or where nothing is known.

    After t a client has begun t / mean + 1/2 transactions on average where their times are alike, and those
    that it has begun are ended before it waits (the renewal theorem; W. Feller, An Introduction to
    Probability Theory II, XI.3). So half a transaction is taken from each client's.
    """
    phase = phases_of(study)[0]
    # Clients come one after the other within the ramp.
    warm_s = phase.ramp_s / 2.0 + phase.warmup_s
    if not phase.slices or not warm_s or not warm_ups:
        return None
    each, slowest = min((one.told / one.clients, one.variant) for one in warm_ups)
    each_per_s, slice_s = max(0.5, each - 0.5) / warm_s, phase.duration_s / phase.slices
    if each_per_s * slice_s >= EACH_LEAST or slice_s >= SLICE_MOST_S:
        return None
    longer_s = min(SLICE_MOST_S, math.ceil(2.0 * EACH_AIM / each_per_s) / 2.0)
    why = f"in {warm_s:g} s of warm-up a client of {slowest} ended {each:.2g} transactions"
    return LongerSlices(slice_s=longer_s, duration_s=2.0 * longer_s, why=why)
