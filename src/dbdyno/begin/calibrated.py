"""What a study takes over from a calibration of its host, and what is told of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.analyse.family import claims
from dbdyno.analyse.quantiles import blocks_least, confidence_each
from dbdyno.report.words import numbers
from dbdyno.report.words.numbers import day_text
from dbdyno.study import Arrangement, Interval
from dbdyno.study.designs import variants_of

if TYPE_CHECKING:
    from dbdyno.calibrate.kept import Calibration
    from dbdyno.records.run import Calibrated
    from dbdyno.study import Study


def taken(study: Study, found: Calibration | None, why_not: str) -> tuple[Calibrated | None, str]:
    """What a run of the study that begins now takes from a calibration of this host, and a sentence on it;
    empty where there is none. `why_not` says why one does not hold."""
    if found is None:
        again = "without it the study runs as it is; to calibrate anew: dyno calibrate STUDY"
        return None, f"the calibration is not used: {why_not}; {again}" if why_not else ""
    named = {
        "interval": _interval_for(study, found.interval),
        "slice_s": None if study.slice_s else found.used.slice_s,
    }
    used = found.used.but(**named)
    made = day_text(found.made_unix_s)
    beside = study.arrangement is Arrangement.SIDE_BY_SIDE
    chosen = f"; slices: {numbers.seconds_text(used.slice_s)}" if beside and used.slice_s else ""
    chosen += f"; interval: {used.interval}" if used.interval else ""
    return used, f"calibrated on {made}: {found.best.arrangement.words}{chosen} (--no-calibration: without)"


def with_calibration(study: Study, used: Calibrated | None) -> Study:
    """The study with what a calibration found best, but for what it says itself."""
    if used is None:
        return study
    found = {
        "settings": {**used.settings, **study.settings},
        "slice_s": study.slice_s or used.slice_s,
        "goal": study.goal.but(interval=study.goal.interval or used.interval),
    }
    return study.but(**found)


def _interval_for(study: Study, suited: Interval) -> Interval | None:
    """The interval of a study that names none. One that its blocks are too few for would give no verdict, and
    signed-rank supposes as many baselines as candidates; a search has few blocks for each question."""
    if study.goal.interval is not None:
        return None
    if study.baselines > 1 or study.search is not None:
        return Interval.STUDENT
    candidates = sum(variant.candidate for variant in variants_of(study)[1:])
    each = confidence_each(study.goal.confidence, claims(study, candidates))
    return suited if study.blocks >= blocks_least(each, suited) else Interval.STUDENT
