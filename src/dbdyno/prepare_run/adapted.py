"""A study as a run that begins now on this host carries it out: how the trials of a block share the host,
what a budget gives, and what is taken over from the host's calibration. Beside these, the words for each."""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dbdyno.analyse.quantiles import BLOCKS_LEAST
from dbdyno.applications.registry import WORKER_BYTES
from dbdyno.calibrate.kept import Calibration, calibrated_host, found_for
from dbdyno.driver import _driver
from dbdyno.errors import UserError
from dbdyno.frozen import Level, level_text
from dbdyno.host.fingerprint import host_identity
from dbdyno.host.room import available_memory_bytes, memory_limit
from dbdyno.layers.knob import Scope
from dbdyno.layers.layer import by_layer
from dbdyno.layers.registry import foresee
from dbdyno.plan.arrangement import MEMORY_SHARE, Arranged, Circumstances, arranged, obstacle
from dbdyno.plan.budget import Replan, baselines_worth, costs_of, fitted_to_budget, precision
from dbdyno.prepare_run.building import counting_of, why_counted, with_counting
from dbdyno.prepare_run.running import needs_restarts, settable
from dbdyno.prepare_run.stored_study import taken, with_calibration
from dbdyno.prepare_run.study_here import engine_of
from dbdyno.records.run import Calibrated, Counting
from dbdyno.report.words import numbers
from dbdyno.study import SLICE_S, Arrangement, Interval, Study, excludes
from dbdyno.study.designs import extremes_of, variants_of
from dbdyno.study.front import FRONT_KIND, NO_FRONT
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.trials import Variant, phases_of

if TYPE_CHECKING:
    from dbdyno.prepare_run.stored_run import EstimateBasis
    from dbdyno.records.store import Store


def arranged_for(study: Study, counted: bool) -> Arranged:
    """How a run of the study that begins now arranges its trials. Raises UserError where the study asks for
    what cannot be."""
    found = arranged(study, _circumstances(study, extremes_of(study), counted))
    if study.arrangement is Arrangement.SIDE_BY_SIDE and found.why:
        raise UserError(
            f"trials cannot be arranged side by side: {found.why}",
            f'write arrangement = "{Arrangement.ONE_AFTER_THE_OTHER}", or leave it out',
        )
    return found


def arranged_in_turn(study: Study, reference: Study) -> Arranged:
    """How the trials of a study that is arranged share the host with those of a reference's baseline."""
    if study.arrangement is not Arrangement.SIDE_BY_SIDE:
        after = Arrangement.ONE_AFTER_THE_OTHER
        return Arranged(arrangement=after, why="trials follow one another in this run")
    own = _circumstances(study, variants_of(study))
    other = _circumstances(reference, variants_of(reference)[:1])
    return arranged(study, own.with_other(other))


def _circumstances(study: Study, variants: Sequence[Variant], counted: bool = False) -> Circumstances:
    levels = {variant.name: {**study.settings, **variant.levels} for variant in variants}
    asked = {name: settable(study, one) for name, one in levels.items()}
    changes = foresee(asked, partial(engine_of, study)).host
    of_host = [one.factor for one in changes if one.scope is Scope.HOST or one.factor.startswith("storage.")]
    # A server that runs already takes what it takes.
    each_bytes = [0 if study.server else server_bytes(study, one) for one in levels.values()]
    return Circumstances(
        host_factors=tuple(of_host),
        counted=counted,
        pauses=has_pauses(study),
        restarted_for=needs_restarts(study),
        # A search puts into a block what has room, and compares with the baseline at the least.
        needed_bytes=sum(each_bytes) if study.search is None else 2 * each_bytes[0],
        available_bytes=available_memory_bytes(),
    )


def room_bytes() -> int:
    """What the servers of a block may take together here."""
    return int(MEMORY_SHARE * available_memory_bytes())


def server_bytes(study: Study, levels: Mapping[str, Level]) -> int:
    """About what a server takes of memory with these levels, the application in front of it included."""
    settings = engine_of(study, levels).settings
    front = study.fronts.get(level_text(levels.get(FRONT_KIND, NO_FRONT)))
    front_bytes = (front.workers or 0) * WORKER_BYTES if front else 0
    return front_bytes + settings.memory_bytes(by_layer(levels).get("config", {}))


def has_pauses(study: Study) -> bool:
    """Whether clients of any variant wait by themselves between transactions, as TPC-C's terminals can."""
    given = study.workload.options
    varied = [by_layer(variant.levels).get("workload", {}) for variant in extremes_of(study)]
    each = [{name: levels.get(name, level) for name, level in given.items()} for levels in varied]
    folder = str(study.folder)
    try:
        return any(_driver.pauses(study.workload.name, json.dumps(options), folder) for options in each)
    except _driver.DriverError:
        # Options that the driver refuses end the run where they are used.
        return False


def arranged_text(study: Study, found: Arranged) -> str:
    """The arrangement in a line."""
    if found.why:
        return f"trials run one after the other: {found.why}"
    phases = phases_of(study)
    phase, length_s = phases[0], phases[0].duration_s
    if study.goal.promise:
        return (
            f"the servers of a block run side by side: each has a load in closed loop and {study.goal.rates}"
            f" rates of {numbers.seconds_text(length_s)}, a turn each"
        )
    if study.phases:
        named = ", ".join(one.name for one in study.phases)
        return f"the servers of a block run side by side: each has the phases {named}, a turn each"
    length = numbers.seconds_text(phase.duration_s / (phase.slices or 1))
    if study.server is not None:
        return (
            f"variants take turns on the one server: the load goes round in {phase.slices} slices of {length}"
        )
    return (
        f"the servers of a block run side by side: the load goes round in {phase.slices} slices of {length}"
    )


def memory_text(study: Study, found: Arranged) -> str:
    """What the settings of servers that are up together allow them; empty where each is up by itself."""
    if found.why or study.search is not None or study.server is not None:
        return ""
    each_bytes = [server_bytes(study, {**study.settings, **one.levels}) for one in variants_of(study)]
    limit_bytes, who = memory_limit()
    together = (
        f"the {len(each_bytes)} servers of a block may take about {sum(each_bytes) >> 20:,} MiB together"
    )
    return f"memory: {together}, and {who} {limit_bytes >> 20:,} MiB"


def require_timed(study: Study, what: str) -> Study:
    """The study, which measures speeds. Raises UserError where it is one of platforms; `what` asks for them:
    a verb or an option."""
    excludes.require({PLATFORM_FACTOR: study.untimed, "[[meanwhile]]": bool(study.meanwhile), what: True})
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
    basis: EstimateBasis | None = None


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
    made, why_not = (
        found_for(study, calibrated_host(host_identity()), time.time()) if calibration else (None, "")
    )
    basis = None
    if budget_s is not None and study.search is None:
        most = _baselines_most(study, made)
        study, basis = _fitted(study, budget_s, made, store, most)
    calibrated, told = taken(study, made, why_not)
    study = with_calibration(study, calibrated)
    whole = study.but(slice_s=study.slice_s or SLICE_S)
    return Adapted(whole, found, calibrated, told, counting, basis)


def seed_of(study: Study) -> int:
    """What draws the order of a run that begins now: the study's seed, or else one of its own, because
    runs that share an order share whatever favour it does to a variant."""
    return secrets.randbelow(DRAWN_SEEDS) if study.seed is None else study.seed


def _baselines_most(study: Study, made: Calibration | None) -> int:
    """How many baselines a block of an arranged study may have where the study leaves that open: as many as
    are worth their trials, and fit beside the other servers."""
    if made is not None and made.interval is Interval.SIGNED_RANK:
        return study.baselines_each
    most = baselines_worth(study)
    beside = study.arrangement is Arrangement.SIDE_BY_SIDE
    while most > 1 and beside and obstacle(more := study.but(baselines=most), _of_all(more)):
        most -= 1
    return most


def _of_all(study: Study) -> Circumstances:
    return _circumstances(study, variants_of(study))


def _fitted(
    study: Study, budget_s: float, made: Calibration | None, store: Store | None, baselines_most: int
) -> tuple[Study, EstimateBasis]:
    """The study with blocks, a measured part and up to so many baselines that fill a budget, in the slices
    that it will have, and what that rests on."""
    # Here, because it reads runs, which a command without a budget never does before it measures.
    from dbdyno.prepare_run.stored_run import estimate_basis

    basis = estimate_basis(study, store, made)
    slice_s = study.slice_s or (made.used.slice_s if made else SLICE_S)
    whole = study.but(slice_s=slice_s)
    fit = fitted_to_budget(whole, budget_s, basis.overhead_s, basis.spreads, baselines_most)
    return fit.but(slice_s=study.slice_s), basis


def budget_text(study: Study, basis: EstimateBasis) -> str:
    """What was made of a budget, what the intervals can tell apart, and what that rests on."""
    given = f"the budget gives {study.blocks} blocks of {study.workload.duration_s:g} s measured per trial"
    given += f" and {study.baselines} baselines" if study.baselines_each > 1 else ""
    if not basis.measured:
        return f"{given}; {_reached(study)} ({basis.words})"
    half = costs_of(study, basis.overhead_s).half_width(
        study.blocks, study.workload.duration_s, basis.spreads
    )
    return f"{given}; half of an interval's width: about ±{math.expm1(half):.1%} ({basis.words})"


def replan_text(study: Study, replan: Replan) -> str:
    """What the first block showed, and what the rest of the budget gives."""
    blocked = (
        f", {numbers.plural(len(replan.left_out), 'blocked variant')} left out" if replan.left_out else ""
    )
    seen = f"the first block took {replan.overhead_s:.1f} s per trial beside the load{blocked}"
    if replan.blocks == 1:
        need = f"{BLOCKS_LEAST} blocks need {replan.enough_s:.0f} s"
        return f"{seen}: no second block fits, and one gives no interval; {need}"
    settled = study.but(blocks=replan.blocks)
    return f"{seen}: the budget gives {replan.blocks} blocks; {_reached(settled, replan.left_out)}"


def _reached(study: Study, left_out: frozenset[str] = frozenset()) -> str:
    reached = (precision(study, spread, left_out) for spread in (0.02, 0.05, 0.10))
    told = ", ".join(f"±{each.half_width:.1%} if ratios vary by {each.spread:.0%}" for each in reached)
    return f"half of an interval's width: {told} from block to block"
