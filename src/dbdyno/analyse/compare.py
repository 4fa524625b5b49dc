"""Runs of one study, on two hosts or two days: what differs, and what the gap between them is made of.

Their blocks have nothing in common, so nothing can be paired: intervals are Welch's (B. L. Welch, Biometrika
34, 1947, 28-35). All blocks of a run share its day and its data, so the run is the unit of what differs
between runs: a gap is told from runs that alternate between the sides, at least `RUNS_LEAST` a side, by the
means of their logs. Of fewer runs the interval is on the logs of single trials, and says how far these very
runs differ, not why. A gap right / left is split exactly, in logs, into

    factors    the ratio of the two variants as the left run measured it, paired by block (1 for one variant)
    hardware   cores x frequency, to the powers with which the response goes by `SCALES`
    residual   what is left: host, kernel, memory, disks, neighbours, and whatever else was not measured

Hardware is a normalisation, not a measurement: it takes it that speed goes with cores (no more of them than
clients) and with frequency. The frequency is measured where cycles were counted (cycles over CPU seconds, per
trial, so that its spread is in the interval); else it is the one that the host's fingerprint names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np

from dbdyno.analyse.columns import Block
from dbdyno.analyse.estimate import log_ratios
from dbdyno.analyse.intervals import as_told, ratio_of, usable, welch, within
from dbdyno.analyse.model import Analysis, Ratio, VariantResult
from dbdyno.analyse.quantiles import confidence_each
from dbdyno.analyse.split import HARDWARE
from dbdyno.frozen import Frozen, absent, level_text
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import Run
from dbdyno.study.nouns import Promise

SCALES: Mapping[str, tuple[int, int]] = {"per s": (1, 1), "per min": (1, 1), "ms": (-1, -1), "us/op": (0, -1)}
"""Powers of cores and of frequency with which a response goes in closed loop, by its unit. There a latency is
the number of clients over the throughput. Counts and bytes per operation go with neither."""

BY_THE_LOAD = ("per s", "per min", "ms")
"""Units of what the hardware does not set in open loop: the load sets the throughput, and a latency without a
queue goes with neither cores nor clients."""

Related = Mapping[str, Sequence[str]]
"""Which factors of a study tell whether a difference of hosts matters, by the fingerprint's key."""

RUNS_LEAST = 3
"""Fewer runs a side give no spread that an interval can rest on."""
IN_A_ROW_MOST = 2
"""More runs of one side after each other, and a drift of the host looks like a gap."""

TOO_FEW_RUNS = (
    f"the runs differ, and fewer than {RUNS_LEAST} runs a side cannot tell the hosts from their days"
)
NOT_IN_TURN = "the runs of the two sides did not alternate, so the hosts cannot be told from their days"

IGNORED = ("name", "data.free_bytes", "disks.size_bytes", "privileges", "servers")


class Known(Frozen):
    """What a study measured of a factor: the ratio of one of its levels to the baseline, in one run."""

    side: str
    factor: str
    level: str
    effect: Ratio


class Difference(Frozen):
    """One thing in which the runs differ, and what the study knows of how much such things matter."""

    name: str
    left: str
    right: str
    known: tuple[Known, ...] = ()


class Hardware(Frozen):
    """One side's cores and frequency. `measured` says that the frequency was counted, not read off.

    `cores_used` is how many the load could keep busy: no more than it has clients.
    """

    cores: int | None
    cores_used: int | None
    gigahertz: float | None
    measured: bool


class Conclusion(StrEnum):
    """What the residual's interval allows to be said: of the hosts, or of these very runs alone."""

    NO_GAP = "no gap"
    NO_GAP_OF_RUNS = "no gap between these runs"
    GAP = "gap"
    OPEN = "open"


NO_GAPS = (Conclusion.NO_GAP, Conclusion.NO_GAP_OF_RUNS)


class VariantGap(Frozen):
    """The gap right / left of the response, and its parts; each part multiplies, and their product is the
    total.

    `per_unit` is each side's response with its own hardware taken out, as `SCALES` says: a throughput per
    core and GHz, a latency times both; `powers` are those of cores and of frequency. `why_open` says why
    nothing can be concluded. `runs` are those of each side, and the unit of the intervals where there are
    `RUNS_LEAST`; else `trials` are.
    """

    left: str
    right: str
    gives_up: tuple[Promise, ...] = absent(())
    left_mean: float
    right_mean: float
    runs: tuple[int, int]
    trials: tuple[int, int]
    hardware_sides: tuple[Hardware, Hardware]
    powers: tuple[int, int]
    per_unit: tuple[float | None, float | None]
    total: Ratio
    factors: Ratio | None
    hardware: float | None
    residual: Ratio | None
    conclusion: Conclusion
    why_open: str = ""


class Comparison(Frozen):
    """Runs of one study beside each other: the first of each side, and the names of all of them.

    `doubtful`: each side's measured trials with warnings.
    """

    left: Run
    right: Run
    runs: tuple[tuple[str, ...], tuple[str, ...]]
    metric: str
    margin: float
    confidence: float
    differences: tuple[Difference, ...]
    gaps: tuple[VariantGap, ...]
    not_in_both: tuple[str, ...] = ()
    doubtful: tuple[int, int] = (0, 0)
    sequential: bool = False


Side = Sequence[Analysis]
"""The runs of one side, all of one host."""


def compare(
    left: Side, right: Side, ends: tuple[str, str] | None = None, related: Related | None = None
) -> Comparison:
    """Compares every variant with itself, or with `ends` one of the left runs with one of the right.

    Without `related` only a factor of the difference's own name is taken to tell whether it matters.
    """
    first = left[0]
    names, theirs = _in_every_run(left), _in_every_run(right)
    pairs = [ends] if ends else [(name, name) for name in names if name in theirs]
    each = confidence_each(first.study.goal.confidence, len(pairs))
    return Comparison(
        left=first.run,
        right=right[0].run,
        runs=(tuple(one.run.run for one in left), tuple(one.run.run for one in right)),
        metric=first.method.response,
        margin=first.method.margin,
        confidence=first.study.goal.confidence,
        differences=tuple(_differences(left, right, related or {})),
        gaps=tuple(gap for pair in pairs if (gap := _gap(left, right, pair, each)) is not None),
        not_in_both=tuple(sorted({variant.name for variant in first.variants} - (set(names) & set(theirs)))),
        doubtful=(_doubtful(left), _doubtful(right)),
        sequential=any(one.run.sequential for one in (*left, *right)),
    )


def in_turn(left: Side, right: Side) -> bool:
    """Whether the runs of the two sides alternated, so that no drift of a host looks like a gap."""
    began = sorted(
        [(one.run.created_unix_s, 0) for one in left] + [(one.run.created_unix_s, 1) for one in right]
    )
    sides = [side for _, side in began]
    return all(len(set(sides[at : at + IN_A_ROW_MOST + 1])) > 1 for at in range(len(sides) - IN_A_ROW_MOST))


def _in_every_run(side: Side) -> list[str]:
    """The variants that each run of a side measured, in the first one's order."""
    measured = [{one.name for one in run.variants if one.response is not None} for run in side]
    return [one.name for one in side[0].variants if all(one.name in names for names in measured)]


def _doubtful(side: Side) -> int:
    return sum(bool(trial.warnings) for one in side for trial in one.trials if trial.response is not None)


Trials = Sequence[Sequence[Record]]
"""The measured trials of one variant, by run."""
Logs = Sequence[Sequence[float]]
"""Log responses by run."""


def _given_up(left: Analysis, right: Analysis, ends: tuple[str, str]) -> tuple[Promise, ...]:
    """What either of two variants gives up that its run's baseline keeps."""
    sides = zip((left, right), ends, strict=True)
    found = {one for side, name in sides for one in _variant(side, name).gives_up}
    return tuple(sorted(found))


def _variant(analysis: Analysis, name: str) -> VariantResult:
    return next(variant for variant in analysis.variants if variant.name == name)


def _gap(left: Side, right: Side, ends: tuple[str, str], confidence: float) -> VariantGap | None:
    ours, theirs = _measured(left, ends[0]), _measured(right, ends[1])
    response = left[0].method.response
    logs = [_logs(trials, response) for trials in (ours, theirs)]
    if not all(logs):
        return None
    runs = len(logs[0]), len(logs[1])
    by_run = min(runs) >= RUNS_LEAST
    total = welch(response, units(logs[1], by_run), units(logs[0], by_run), confidence)
    sides = _hardware(ours, left[0]), _hardware(theirs, right[0])
    same = ends[0] == ends[1]
    # The right runs' variant on the left host: from the left variant to it goes by factors, from it by hosts.
    bridge = ours if same else _measured(left, ends[1])
    hardware = _hardware_ratio(response, sides, bridge or ours, theirs, by_run)
    factors = None if same else _paired(left, ends)
    residual = None
    if hardware is not None and bridge:
        scaled = [
            units(_per_unit(trials, side, response), by_run)
            for trials, side in zip((bridge, theirs), sides, strict=True)
        ]
        residual = welch(response, scaled[1], scaled[0], confidence, judged=True) if all(scaled) else None
    open_still = _why_open(residual, factors, same, hardware)
    conclusion, why = (
        (Conclusion.OPEN, open_still)
        if open_still or residual is None
        else judged(residual, left[0].method.margin, min(*runs, len(bridge)), in_turn(left, right))
    )
    return VariantGap(
        left=ends[0],
        right=ends[1],
        gives_up=_given_up(left[0], right[0], ends),
        left_mean=math.exp(_mean(logs[0], by_run)),
        right_mean=math.exp(_mean(logs[1], by_run)),
        runs=runs,
        trials=(sum(map(len, logs[0])), sum(map(len, logs[1]))),
        hardware_sides=sides,
        powers=powers(response, [record for run in (*ours, *theirs) for record in run]),
        per_unit=(
            _mean_per_unit(ours, sides[0], response, by_run),
            _mean_per_unit(theirs, sides[1], response, by_run),
        ),
        total=total,
        factors=factors,
        hardware=hardware,
        residual=residual and as_told(residual, conclusion in NO_GAPS, left[0].method.margin),
        conclusion=conclusion,
        why_open=why,
    )


def units(logs: Logs, by_run: bool) -> list[float]:
    """What an interval is made of: the means of runs, or single trials."""
    return [float(np.mean(run)) for run in logs] if by_run else [log for run in logs for log in run]


def _mean(logs: Logs, by_run: bool) -> float:
    return float(np.mean(units(logs, by_run)))


def _why_open(residual: Ratio | None, factors: Ratio | None, same: bool, hardware: float | None) -> str:
    """What is missing for any conclusion; empty where nothing is."""
    if hardware is None:
        return "cores or frequency of a host are not known"
    if residual is None or (not same and factors is None):
        return "the left run did not measure both variants, so the host cannot be told from the variant"
    if residual.low is None or residual.high is None:
        return "each run needs two measured trials at least"
    return ""


def judged(residual: Ratio, margin: float, runs: int, alternating: bool) -> tuple[Conclusion, str]:
    """What the residual's interval allows to be said, from so many runs of the side with fewer."""
    if within(residual, margin):
        # The day of a run is in all its trials, so a few runs can agree by luck where the hosts differ.
        return (Conclusion.NO_GAP if runs >= RUNS_LEAST else Conclusion.NO_GAP_OF_RUNS), ""
    if not excludes_one(residual):
        more = "runs" if runs >= RUNS_LEAST else "blocks"
        reason = f"what is left may be 1: more {more} are needed"
        return Conclusion.OPEN, reason
    if runs < RUNS_LEAST:
        return Conclusion.OPEN, TOO_FEW_RUNS
    return (Conclusion.GAP, "") if alternating else (Conclusion.OPEN, NOT_IN_TURN)


def excludes_one(ratio: Ratio) -> bool:
    """Whether the whole interval lies on one side of 1."""
    return ratio.low is not None and ratio.high is not None and (ratio.low > 1.0 or ratio.high < 1.0)


def _measured(side: Side, variant: str) -> list[list[Record]]:
    """The measured trials of a variant, by run; runs without one are left out."""
    found = [
        [
            trial.record
            for trial in one.trials
            if trial.record.variant == variant and trial.record.outcome is Outcome.MEASURED
        ]
        for one in side
    ]
    return [run for run in found if run]


def _logs(trials: Trials, metric: str) -> list[list[float]]:
    read = metrics.find(metric).read
    found = [
        [math.log(value) for record in run if (value := read(record)) is not None and usable(value)]
        for run in trials
    ]
    return [run for run in found if run]


def _paired(side: Side, ends: tuple[str, str]) -> Ratio | None:
    """The second variant over the first within each run, paired by block."""
    response = side[0].method.response
    logs = [log for one in side for log in _paired_logs(one, ends, response).values()]
    return ratio_of(response, logs, side[0].study.goal.confidence)


def _paired_logs(run: Analysis, ends: tuple[str, str], response: str) -> dict[Block, float]:
    read = metrics.find(response).read
    under, over = (
        {
            (record.host, record.block): value
            for trials in _measured([run], name)
            for record in trials
            if (value := read(record)) is not None
        }
        for name in ends
    )
    return log_ratios(over, under)


def _hardware(trials: Trials, analysis: Analysis) -> Hardware:
    records = [record for run in trials for record in run]
    counted = [ghz for record in records if (ghz := _gigahertz(record)) is not None]
    known, named = analysis.run.host.cpu.usable_cores, analysis.run.host.cpu.frequency_mhz
    measured = bool(records) and len(counted) == len(records)
    gigahertz = sum(counted) / len(counted) if measured else named / 1000.0 if named else None
    used = {min(known, clients) for record in records if known and (clients := _clients(record)) is not None}
    return Hardware(
        cores=known,
        cores_used=used.pop() if len(used) == 1 else known,
        gigahertz=gigahertz,
        measured=measured,
    )


def _gigahertz(record: Record) -> float | None:
    return HARDWARE["gigahertz"](record, record.observation) if record.observation is not None else None


def _clients(record: Record) -> int | None:
    return record.tally.clients if record.tally else None


def _cores(side: Hardware, record: Record) -> int:
    """The cores that the load could use: a client keeps one busy at a time."""
    return min(side.cores or 1, _clients(record) or side.cores or 1)


def _hardware_log(record: Record, side: Hardware, response: str) -> float:
    """The log of what cores and frequency alone would make of the response, up to a constant."""
    cores_power, frequency_power = powers(response, [record])
    frequency = (_gigahertz(record) if side.measured else None) or side.gigahertz or 1.0
    return cores_power * math.log(_cores(side, record)) + frequency_power * math.log(frequency)


def powers(response: str, records: Sequence[Record]) -> tuple[int, int]:
    """With which powers of cores and of frequency the response of these trials goes."""
    unit = metrics.find(response).unit
    open_loop = any(record.tally.open_loop for record in records if record.tally)
    return (0, 0) if open_loop and unit in BY_THE_LOAD else SCALES.get(unit, (0, 0))


def _per_unit(trials: Trials, side: Hardware, response: str) -> list[list[float]]:
    """Log responses with cores and frequency taken out, trial by trial."""
    read = metrics.find(response).read
    found = [
        [
            math.log(value) - _hardware_log(record, side, response)
            for record in run
            if (value := read(record)) is not None and usable(value)
        ]
        for run in trials
    ]
    return [run for run in found if run]


def _mean_per_unit(trials: Trials, side: Hardware, response: str, by_run: bool) -> float | None:
    """The geometric mean of a side's responses without its hardware; None where that is not known, or where
    the response goes with none of it.
    """
    logs = _per_unit(trials, side, response)
    goes_with_none = powers(response, [record for run in trials for record in run]) == (0, 0)
    if goes_with_none or side.cores is None or side.gigahertz is None or not logs:
        return None
    return math.exp(_mean(logs, by_run))


def _hardware_ratio(
    response: str, sides: tuple[Hardware, Hardware], under: Trials, over: Trials, by_run: bool
) -> float | None:
    """Over / under of cores x frequency, as far as the response goes with them; geometric means over the
    trials that have a response, so that with the residual it multiplies out.
    """
    if any(side.cores is None or side.gigahertz is None for side in sides):
        return None
    means = []
    for side, trials in zip(sides, (under, over), strict=True):
        logs = [
            [_hardware_log(record, side, response) for record in run if _logs([[record]], response)]
            for run in trials
        ]
        if not (logs := [run for run in logs if run]):
            return None
        means.append(_mean(logs, by_run))
    return math.exp(means[1] - means[0])


def _differences(left: Side, right: Side, related: Related) -> list[Difference]:
    """What differs, each with what both sides' first runs know of factors that it is related to."""
    facts = _facts(left), _facts(right)
    found = []
    for name in dict.fromkeys([*facts[0], *facts[1]]):
        values = [side.get(name, "not known") for side in facts]
        if values[0] != values[1]:
            factors = next((factors for key, factors in related.items() if name.startswith(key)), (name,))
            known = (*_known("left", left[0], factors), *_known("right", right[0], factors))
            found.append(Difference(name=name, left=values[0], right=values[1], known=known))
    return found


def _facts(side: Side) -> dict[str, str]:
    """The facts of all runs of a side; where they differ among themselves, each value once."""
    each = [_facts_of(one) for one in side]
    names = dict.fromkeys(name for facts in each for name in facts)
    return {name: ", ".join(sorted({facts.get(name, "not known") for facts in each})) for name in names}


def _facts_of(analysis: Analysis) -> dict[str, str]:
    """All that should be the same for apples to be compared with apples, by name."""
    run = analysis.run
    facts = {name: text for name, text in _flat(run.host.model_dump()) if not name.startswith(IGNORED)}
    facts |= {f"installation.{name}": value for name, value in run.installation.model_dump().items()}
    facts |= {"dyno": run.dyno_version, "blocks": str(run.blocks)}
    versions = {trial.record.engine_version for trial in analysis.trials if trial.record.engine_version}
    facts["engine.version"] = ", ".join(sorted(versions))
    for trial in analysis.trials:
        if (tally := trial.record.tally) is not None:
            facts |= {"driver.backend": tally.backend, "driver.threads": str(tally.threads)}
        for evidence in trial.record.evidence:
            if evidence.effective is not None:
                facts[f"{evidence.factor} = {evidence.requested}, read back"] = evidence.effective.value
    return facts


def _flat(value: object, path: str = "") -> list[tuple[str, str]]:
    """Nested facts as rows. Disks are put in one row each, by name."""
    if isinstance(value, Mapping):
        return [
            row for key, inner in value.items() for row in _flat(inner, f"{path}.{key}" if path else str(key))
        ]
    if isinstance(value, list | tuple):
        return [row for index, inner in enumerate(value) for row in _flat(inner, f"{path}.{index}")]
    return [(path, "not known" if value is None else str(value))]


def _known(side: str, analysis: Analysis, factors: Sequence[str]) -> list[Known]:
    """What a run measured of some factors alone, all others as in the baseline."""
    return [
        Known(side=side, factor=factor, level=level_text(variant.changed[factor]), effect=variant.effect)
        for factor in factors
        for variant in analysis.candidates
        if _alone(variant, factor) and variant.effect is not None
    ]


def _alone(variant: VariantResult, factor: str) -> bool:
    return set(variant.changed) == {factor}
