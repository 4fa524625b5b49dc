"""What fitting a study to a budget rests on: how speeds spread on this host, and what a trial takes.

Earlier runs of the same load measured both. Where there are none, a calibration knows the spread within a
trial, and else a guess stands in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from statistics import median

from dbdyno.analyse.analysis import spreads_within
from dbdyno.analyse.components import TRIALS_MOST
from dbdyno.analyse.costs import Spreads
from dbdyno.analyse.found import Components
from dbdyno.begin.estimate import beside_load_s, overhead_s
from dbdyno.begin.stored_study import study_of
from dbdyno.calibrate.finding import STARTS_SD
from dbdyno.calibrate.kept import Calibration, load_of, place_of
from dbdyno.errors import DynoError
from dbdyno.frozen import Frozen
from dbdyno.host.fingerprint import identity
from dbdyno.plan.budget import guessed
from dbdyno.records.run import RunSummary
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import day_text, plural
from dbdyno.study import Study

RUNS_MOST = 5
"""The latest ones: a host changes, and each costs the reading of its records."""
BLOCKS_SUPPOSED = 6
"""What is supposed of starts weighs as much as so many measured blocks, because few blocks whose starts seem
not to vary at all would ask for very long trials."""


class Basis(Frozen):
    """How speeds are taken to spread, what a trial is taken to need beside its load, and where both are from.
    `measured` tells spreads that were seen here from a guess."""

    spreads: Spreads
    overhead_s: float
    words: str
    measured: bool = True


def basis_of(study: Study, store: Store | None, made: Calibration | None) -> Basis:
    """Of a study that is arranged and begins now on this host; `made` is the calibration that it takes over.
    A plan may have no store."""
    overhead, of_trials = _overhead(study, store)
    seen = list(islice(_seen(study, store, made), RUNS_MOST)) if store is not None else []
    if seen:
        latest = day_text(max(began for began, _ in seen))
        spreads = _pooled([one for _, one in seen])
        words = f"spreads by {plural(len(seen), 'earlier run')} of this load here, the latest of {latest}"
    elif made is not None:
        spreads = made.best.spreads
        words = f"spreads by the calibration, and starts supposed to vary by {STARTS_SD:.0%}"
    else:
        spreads = guessed(study)
        words = f"fitted to guessed spreads, {spreads.starts:.0%} from start to start and "
        words += f"{spreads.seconds:.0%} from second to second"
    measured = bool(seen) or made is not None
    return Basis(spreads=spreads, overhead_s=overhead, words=f"{words}; {of_trials}", measured=measured)


def _overhead(study: Study, store: Store | None) -> tuple[float, str]:
    """Seconds beside the load, with the words for them."""
    seen_s = beside_load_s(store, study.engine.engine) if store is not None else []
    taken_s = median(seen_s) if seen_s else overhead_s(study)
    by = f"by {plural(len(seen_s), 'earlier trial')}" if seen_s else "by a rule of thumb"
    return taken_s, f"{taken_s:.1f} s beside the load of a trial, {by}"


def _seen(study: Study, store: Store, made: Calibration | None) -> Iterator[tuple[float, Components]]:
    """When earlier runs of the study's load on this host began, and what they found, the latest first."""
    here, bound = place_of(identity()), made.used.settings if made else None
    for summary in store.runs():
        run = summary.run
        comparable = run.in_blocks and run.arrangement is study.arrangement
        if not comparable or place_of(run.host) != here:
            continue
        if (run.calibrated.settings if run.calibrated else None) != bound:
            continue
        if (found := _found(study, store, summary)) is not None:
            yield run.created_unix_s, found


def _found(study: Study, store: Store, summary: RunSummary) -> Components | None:
    """What one run found; None where it had another load or too few blocks, or cannot be read."""
    with suppress(DynoError, OSError):
        earlier = study_of(summary.run)
        if load_of(earlier) == load_of(study):
            records = list(islice(store.each_record(summary.run.run), TRIALS_MOST))
            return spreads_within(earlier, records)
    return None


def _pooled(seen: Sequence[Components]) -> Spreads:
    """Variances by the blocks that they were found in, and those of starts with what is supposed of them.
    Pieces that resemble their neighbours tell less than independent ones, so their spread counts for more."""
    blocks = sum(one.blocks for one in seen)
    starts = sum(one.blocks * one.starts**2 for one in seen) + BLOCKS_SUPPOSED * STARTS_SD**2
    seconds = sum(one.blocks * (one.pieces * one.alike) ** 2 * one.piece_s for one in seen)
    return Spreads(starts=math.sqrt(starts / (blocks + BLOCKS_SUPPOSED)), seconds=math.sqrt(seconds / blocks))
