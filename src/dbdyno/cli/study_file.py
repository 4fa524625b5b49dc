"""From a study's file to a Study: makes the catalogue from the real registries, so that a study may name
what will run."""

from __future__ import annotations

import functools
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.analyse.quantiles import BLOCKS_LEAST, blocks_least, confidence_each
from dbdyno.brought import study as brought_study
from dbdyno.calibrate.kept import Calibration, found_for, place_of
from dbdyno.cli.arrangement import arranged_for
from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.driver import _driver
from dbdyno.engines import registry
from dbdyno.engines.configuration import read_configuration
from dbdyno.errors import DynoError, Mistake, StudyError, UserError
from dbdyno.frozen import Configuration
from dbdyno.host.counters import counts
from dbdyno.host.fingerprint import identity
from dbdyno.layers.layer import Layer
from dbdyno.layers.registry import KNOBS, LAYERS
from dbdyno.obtain.installation import Installation
from dbdyno.plan.arrangement import Arranged
from dbdyno.plan.budget import Replan, fitted, precision
from dbdyno.records import metrics
from dbdyno.records.record import Calibrated, Run
from dbdyno.report.words import numbers
from dbdyno.study import (
    SLICE_S,
    Arrangement,
    Catalogue,
    Factor,
    Interval,
    Study,
    parse_study,
    read_study,
    workload_offers,
)
from dbdyno.study.designs import counted_variants, variants_of
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP
from dbdyno.study.reference import Reference
from dbdyno.trial.count import require_countable
from dbdyno.trial.pristine import worth_s

DRAWN_SEEDS = 10**9
"""Enough to tell runs apart, and few digits to type again."""

SERVER_OVERHEAD_S, EMBEDDED_OVERHEAD_S = 2.5, 0.5
COUNTED_S = 60.0
"""About what a trial takes that is counted under Valgrind."""


@dataclass(frozen=True)
class Adapted:
    """A study as a run of it that begins now on this host carries it out. `calibrated` is what it takes from
    the host's calibration, and `told` a sentence on that; empty where there is none."""

    study: Study
    arranged: Arranged
    calibrated: Calibrated | None
    told: str


def study_at(path: Path, blocks: int | None = None, seed: int | None = None) -> Study:
    """The study in a file, with what the command line changes. Raises StudyError with every mistake in it."""
    study = _changed(read_study(path, catalogue()), blocks, seed)
    _require_vectors(study)
    if study.goal.counted:
        require_countable(study)
    return study


def adapted(study: Study, budget_s: float | None = None, calibration: bool = True) -> Adapted:
    """Arranges the study's trials, fits them to a budget, and takes over the host's calibration. Raises
    UserError where the study does not go with this host or with a budget."""
    counted = bool(why_counted(study))
    if (counted or study.goal.counted) and budget_s is not None:
        raise UserError(
            "--budget does not go with counted work, which takes as long as its transactions",
            "leave --budget out, and give --blocks",
        )
    found = arranged_for(study, counted)
    study = study.model_copy(update={"arrangement": found.arrangement})
    made, why_not = found_for(study, place_of(identity()), time.time()) if calibration else (None, "")
    if budget_s is not None:
        study = _fitted(study, budget_s, made)
    calibrated, told = _taken(study, made, why_not)
    study = with_calibration(study, calibrated)
    whole = study.model_copy(update={"slice_s": study.slice_s or SLICE_S})
    return Adapted(whole, found, calibrated, told)


def _fitted(study: Study, budget_s: float, made: Calibration | None) -> Study:
    """The study with blocks and a measured part that fill a budget, in the slices that it will have."""
    slice_s = study.slice_s or (made.used.slice_s if made else SLICE_S)
    fit = fitted(study.model_copy(update={"slice_s": slice_s}), budget_s, overhead_s(study))
    return fit.model_copy(update={"slice_s": study.slice_s})


def why_counted(study: Study) -> str:
    """Why the study's trials are counted under Valgrind in place of timed; empty for other studies."""
    why = counts("instructions") if study.goal.response == INSTRUCTIONS_PER_OP else ""
    return f"trials are counted under Valgrind, with one client, and not timed: {why}" if why else ""


def counted_text(study: Study) -> str:
    """The trials whose work is counted beside the timed ones; empty where there are none."""
    counted = len(counted_variants(study))
    if not counted:
        return ""
    return (
        f"after the timed blocks, {numbers.plural(counted, 'trial')} under Valgrind, with one client: each "
        "variant's instructions are counted once"
    )


def counted_s(study: Study) -> float:
    """About what the trials take whose work is counted beside the timed ones."""
    return COUNTED_S * len(counted_variants(study))


def seed_of(study: Study) -> int:
    """What draws the order of a run that begins now: the study's seed, or else one of its own, because
    runs that share an order share whatever favour it does to a variant."""
    return secrets.randbelow(DRAWN_SEEDS) if study.seed is None else study.seed


def overhead_s(study: Study) -> float:
    """Seconds that a trial is taken to need beside its load: restoring the data, starting, checking,
    stopping. As seen on two cores; what it really takes is in every record."""
    if why_counted(study):
        return COUNTED_S
    embedded = registry.engine(study.engine.engine).embedded
    return EMBEDDED_OVERHEAD_S if embedded else SERVER_OVERHEAD_S


def _require_vectors(study: Study) -> None:
    """Raises UserError where any variant searches vectors that cannot be had, before anything is touched."""
    if study.workload.name != VECTOR_SEARCH:
        return
    # Here, because no other workload has a use for numpy.
    from dbdyno.datasets.vectors import require_vectors

    knobs = [factor.name for factor in study.factors if factor.layer == "workload"]
    variants = variants_of(study)
    for levels in {tuple(variant.levels[name] for name in knobs) for variant in variants}:
        varied = {name.removeprefix("workload."): level for name, level in zip(knobs, levels, strict=True)}
        require_vectors({**study.workload.options, **varied})


def refuse_both(option: str, value: object, **others: object) -> None:
    """Raises UserError when an option is given together with one that it contradicts."""
    given = [f"--{name}" for name, other in others.items() if other is not None]
    if value is not None and given:
        raise UserError(f"{option} and {given[0]} contradict each other", "leave one of the two out")


def images_text(study: Study, budget_s: float | None) -> str:
    """How many images of the pristine data blocks take in turn, as far as that is known before the first."""
    if study.images is not None:
        turns = ", which blocks take in turn" if study.images > 1 else ""
        return f"pristine data: {numbers.plural(study.images, 'image')}{turns}"
    limit = numbers.seconds_text(worth_s(study, budget_s))
    return f"pristine data: one image, and a second one for every second block if it takes at most {limit}"


def budget_text(study: Study) -> str:
    """What was made of a budget, and what the intervals can tell apart."""
    return (
        f"the budget gives {study.blocks} blocks of {study.workload.duration_s:g} s measured per trial, if a "
        f"trial takes {overhead_s(study):g} s beside its load; {_reached(study)}"
    )


def replan_text(study: Study, replan: Replan) -> str:
    """What the first block showed, and what the rest of the budget gives."""
    blocked = (
        f", {numbers.plural(len(replan.left_out), 'blocked variant')} left out" if replan.left_out else ""
    )
    seen = f"the first block took {replan.overhead_s:.1f} s per trial beside the load{blocked}"
    if replan.blocks == 1:
        need = f"{BLOCKS_LEAST} blocks need {replan.enough_s:.0f} s"
        return f"{seen}: no second block fits, and one gives no interval; {need}"
    settled = study.model_copy(update={"blocks": replan.blocks})
    return f"{seen}: the budget gives {replan.blocks} blocks; {_reached(settled, replan.left_out)}"


def _reached(study: Study, left_out: frozenset[str] = frozenset()) -> str:
    reached = (precision(study, spread, left_out) for spread in (0.02, 0.05, 0.10))
    told = ", ".join(f"±{each.half_width:.1%} if ratios vary by {each.spread:.0%}" for each in reached)
    return f"half of an interval's width: {told} from block to block"


def study_of(run: Run) -> Study:
    """The study of a run as it was when the run began. Looks at no engine: none need be here."""
    if run.brought is not None:
        return asked_of(run)
    study = asked_of(run)
    given = {
        "arrangement": run.arrangement or Arrangement.ONE_AFTER_THE_OTHER,
        "slice_s": run.slice_s or study.slice_s or SLICE_S,
    }
    changed = _changed(study, run.blocks, run.seed, run.duration_s).model_copy(update=given)
    return with_calibration(changed, run.calibrated)


def _taken(study: Study, found: Calibration | None, why_not: str) -> tuple[Calibrated | None, str]:
    """What a run of the study that begins now takes from a calibration of this host, and a sentence on it;
    empty where there is none. `why_not` says why one does not hold."""
    if found is None:
        again = "without it the study runs as it is; to calibrate anew: dyno calibrate STUDY"
        return None, f"the calibration is not used: {why_not}; {again}" if why_not else ""
    named = {
        "interval": _interval_for(study, found.interval),
        "slice_s": None if study.slice_s else found.used.slice_s,
    }
    used = found.used.model_copy(update=named)
    made = time.strftime("%Y-%m-%d", time.localtime(found.made_unix_s))
    beside = study.arrangement is Arrangement.SIDE_BY_SIDE
    chosen = f"; slices: {numbers.seconds_text(used.slice_s)}" if beside and used.slice_s else ""
    chosen += f"; interval: {used.interval}" if used.interval else ""
    return used, f"calibrated on {made}: {found.best.arrangement.words}{chosen} (--no-calibration: without)"


def _interval_for(study: Study, suited: Interval) -> Interval | None:
    """The interval of a study that names none. One that its blocks are too few for would give no verdict, and
    signed-rank supposes as many baselines as candidates."""
    if study.goal.interval is not None:
        return None
    if study.baselines > 1:
        return Interval.STUDENT
    candidates = sum(not variant.twin for variant in variants_of(study)[1:])
    each = confidence_each(study.goal.confidence, study.goal.comparisons(candidates))
    return suited if study.blocks >= blocks_least(each, suited) else Interval.STUDENT


def with_calibration(study: Study, used: Calibrated | None) -> Study:
    """The study with what a calibration found best, but for what it says itself."""
    if used is None:
        return study
    found = {
        "settings": {**used.settings, **study.settings},
        "slice_s": study.slice_s or used.slice_s,
        "goal": study.goal.model_copy(update={"interval": study.goal.interval or used.interval}),
    }
    return study.model_copy(update=found)


def measured_installation(study: Study, run: Run) -> Installation:
    """The engine that a run measured. Raises UserError when there is another in its place now."""
    require_measured(run)
    installation = registry.engine(study.engine.engine).obtaining.locate(study.engine)
    if installation.digest != run.installation.get("digest"):
        raise UserError(
            f"run {run.run} measured {run.installation.get('origin')}; now there is {installation.origin}",
            "restore that engine, or start a new run",
        )
    return installation


def require_measured(run: Run) -> None:
    """Raises UserError for a run that was brought: no trial of it can be repeated here."""
    if run.brought is not None:
        raise UserError(
            f"run {run.run} was made of logs of {run.brought.tool}, so Dyno has no setup to measure again",
            "`report`, `compare`, `show` and `export` read such a run",
        )


def facts_of(installation: Installation) -> dict[str, str]:
    """What a run keeps of the engine that it measures."""
    return {
        "engine": installation.engine,
        "version": installation.version,
        "origin": installation.origin,
        "digest": installation.digest,
        **installation.facts,
    }


def is_of(run: Run, study: Study) -> bool:
    """Whether a run is of this study by what it asks; its file may be spelled otherwise."""
    if run.study_digest == study.digest and run.configuration == study.configuration:
        return True
    with suppress(StudyError):
        return asked_of(run).meaning == study.meaning
    return False


def asked_of(run: Run) -> Study:
    """What a run's study asks, with the configuration file as it was; of one that was brought, what its logs
    are compared by."""
    if run.brought is not None:
        return brought_study.study_of(run, run.brought)
    kept = run.configuration
    names = replace(catalogue(ask_engines=False), configure=(lambda *_: kept) if kept else None)
    return parse_study(run.study_text.encode(), names, run.study_path)


def catalogue(ask_engines: bool = True) -> Catalogue:
    """What a study may name here. With `ask_engines`, settings are checked against the engine where it is
    installed."""
    return Catalogue(
        engines=frozenset(registry.ENGINES),
        workloads=workload_offers(_driver.workloads()),
        layers={name: _factor_check(layer, ask_engines) for name, layer in LAYERS.items()},
        metrics=frozenset(metrics.METRICS),
        knobs={name: f"{knob.effect}; levels: {knob.levels}" for name, knob in KNOBS.items()},
        configure=_configure,
    )


def _configure(name: str, folder: Path, reference: Reference) -> Configuration:
    return read_configuration(registry.engine(reference.engine), installation_of(reference), name, folder)


def _changed(study: Study, blocks: int | None, seed: int | None, duration_s: float | None = None) -> Study:
    given: dict[str, object] = {"blocks": blocks, "seed": seed}
    if duration_s is not None:
        given["workload"] = study.workload.model_copy(update={"duration_s": duration_s})
    return study.model_copy(update={name: value for name, value in given.items() if value is not None})


def _factor_check(layer: Layer, ask_engines: bool) -> Callable[[Factor, Reference], list[Mistake]]:
    def check(factor: Factor, reference: Reference) -> list[Mistake]:
        if not ask_engines:
            return []
        try:
            engine = registry.engine(reference.engine)
        except UserError:
            # The reader reports an unknown engine itself.
            return []
        return layer.mistakes(factor, engine, installation_of(reference))

    return check


def unchecked_text(study: Study) -> str:
    """What could not be checked of the study's levels, and what allows it; empty where they were."""
    names = {*study.settings, *study.baseline}
    found = located(study.engine)
    if isinstance(found, Installation) or not any(name.startswith("config.") for name in names):
        return ""
    return f"the levels of `config` were not checked, because {found.message}; {found.hint}"


def installation_of(reference: Reference) -> Installation | None:
    """The installation, where there is one: a study can be read where its engine is not."""
    found = located(reference)
    return found if isinstance(found, Installation) else None


@functools.cache
def located(reference: Reference) -> Installation | DynoError:
    """The installation, or why there is none."""
    try:
        return registry.engine(reference.engine).obtaining.locate(reference)
    except DynoError as missing:
        return missing
