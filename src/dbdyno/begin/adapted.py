"""A study as a run that begins now on this host carries it out.

What asks for speeds, and so for a study that measures some.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.begin.arrangement import arranged_for
from dbdyno.begin.calibrated import taken, with_calibration
from dbdyno.begin.counted import counting_of, why_counted, with_counting
from dbdyno.calibrate.kept import Calibration, found_for, place_of
from dbdyno.host.fingerprint import identity
from dbdyno.plan.arrangement import Arranged
from dbdyno.plan.budget import fitted
from dbdyno.records.run import Calibrated, Counting
from dbdyno.study import SLICE_S, Study, excludes
from dbdyno.study.nouns import PLATFORM_FACTOR

if TYPE_CHECKING:
    from dbdyno.begin.basis import Basis
    from dbdyno.records.store import Store


def require_timed(study: Study, what: str) -> Study:
    """The study, which measures speeds. Raises UserError where it is one of platforms; `what` asks for them:
    a verb or an option."""
    excludes.require({PLATFORM_FACTOR: study.of_platforms, what: True})
    return study


DRAWN_SEEDS = 10**9
"""Enough to tell runs apart, and few digits to type again."""


@dataclass(frozen=True)
class Adapted:
    """A study as a run of it that begins now on this host carries it out. `calibrated` is what it takes from
    the host's calibration, and `told` a sentence on that; empty where there is none. `counting` is how builds
    are counted where the study leaves that open, and `basis` what the fit to a budget rests on."""

    study: Study
    arranged: Arranged
    calibrated: Calibrated | None
    told: str
    counting: Counting | None
    basis: Basis | None = None


def adapted(
    study: Study, budget_s: float | None = None, calibration: bool = True, store: Store | None = None
) -> Adapted:
    """Arranges the study's trials, fits them to a budget by what a store's runs found, and takes over the
    host's calibration. Raises UserError where the study does not go with this host or with a budget."""
    counted = bool(why_counted(study))
    excludes.require({"counted work": counted or study.goal.counted}, budget=budget_s)
    counting = counting_of(study, budget_s)
    study = with_counting(study, counting)
    found = arranged_for(study, counted)
    study = study.but(arrangement=found.arrangement)
    # A calibration binds server and driver to CPUs that they share.
    calibration = calibration and study.driver is None and study.server is None
    made, why_not = found_for(study, place_of(identity()), time.time()) if calibration else (None, "")
    basis = None
    if budget_s is not None and study.search is None:
        study, basis = _fitted(study, budget_s, made, store)
    calibrated, told = taken(study, made, why_not)
    study = with_calibration(study, calibrated)
    whole = study.but(slice_s=study.slice_s or SLICE_S)
    return Adapted(whole, found, calibrated, told, counting, basis)


def seed_of(study: Study) -> int:
    """What draws the order of a run that begins now: the study's seed, or else one of its own, because
    runs that share an order share whatever favour it does to a variant."""
    return secrets.randbelow(DRAWN_SEEDS) if study.seed is None else study.seed


def _fitted(
    study: Study, budget_s: float, made: Calibration | None, store: Store | None
) -> tuple[Study, Basis]:
    """The study with blocks and a measured part that fill a budget, in the slices that it will have, and
    what that rests on."""
    # Here, because it reads runs, which a command without a budget never does before it measures.
    from dbdyno.begin.basis import basis_of

    basis = basis_of(study, store, made)
    slice_s = study.slice_s or (made.used.slice_s if made else SLICE_S)
    fit = fitted(study.but(slice_s=slice_s), budget_s, basis.overhead_s, basis.spreads)
    return fit.but(slice_s=study.slice_s), basis
