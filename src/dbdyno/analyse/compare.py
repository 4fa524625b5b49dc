"""Two runs of one study, on two hosts or two days: what differs, and what the gap between them is made of.

Their blocks have nothing in common, so nothing can be paired: intervals are Welch's on the logs of single
trials (B. L. Welch, Biometrika 34, 1947, 28-35). A gap right / left is split exactly, in logs, into

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

from dbdyno.analyse.blocks import log_ratios
from dbdyno.analyse.intervals import confidence_each, ratio_of, usable
from dbdyno.analyse.model import Analysis, Ratio, VariantResult
from dbdyno.analyse.split import HARDWARE
from dbdyno.frozen import Frozen, level_text
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record, Run

SCALES: Mapping[str, tuple[int, int]] = {"per s": (1, 1), "per min": (1, 1), "ms": (-1, -1), "us/op": (0, -1)}
"""Powers of cores and of frequency with which a response goes in closed loop, by its unit. There a latency is
the number of clients over the throughput. Counts and bytes per operation go with neither."""

BY_THE_LOAD = ("per s", "per min", "ms")
"""Units of what the hardware does not set in open loop: the load sets the throughput, and a latency without a
queue goes with neither cores nor clients."""

Related = Mapping[str, Sequence[str]]
"""Which factors of a study tell whether a difference of hosts matters, by the fingerprint's key."""

ONE_RUN = (
    "the runs differ, and one run a side cannot tell the hosts from their days; alternate at least three runs"
    " a side"
)
"""Blocks of one run share its day and its data, so the run is the unit of what differs between runs."""

IGNORED = ("name", "data.free_bytes", "disks.size_bytes", "privileges")


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
    """What the residual's interval allows to be said."""

    NO_GAP = "no gap"
    OPEN = "open"


class VariantGap(Frozen):
    """The gap right / left of the response, and its parts; each part multiplies, and their product is the
    total.

    `per_unit` is each side's response with its own hardware taken out, as `SCALES` says: a throughput per
    core and GHz, a latency times both; `powers` are those of cores and of frequency. `why_open` says why
    nothing can be concluded.
    """

    left: str
    right: str
    left_mean: float
    right_mean: float
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
    """Two runs of one study beside each other. `doubtful`: each side's measured trials with warnings."""

    left: Run
    right: Run
    metric: str
    margin: float
    confidence: float
    differences: tuple[Difference, ...]
    gaps: tuple[VariantGap, ...]
    not_in_both: tuple[str, ...] = ()
    doubtful: tuple[int, int] = (0, 0)
    sequential: bool = False


def compare(
    left: Analysis, right: Analysis, ends: tuple[str, str] | None = None, related: Related | None = None
) -> Comparison:
    """Compares every variant with itself, or with `ends` one of the left run with one of the right.

    Without `related` only a factor of the difference's own name is taken to tell whether it matters.
    """
    names = [variant.name for variant in left.variants if variant.response is not None]
    theirs = {variant.name for variant in right.variants if variant.response is not None}
    pairs = [ends] if ends else [(name, name) for name in names if name in theirs]
    each = confidence_each(left.study.goal.confidence, len(pairs))
    return Comparison(
        left=left.run,
        right=right.run,
        metric=left.method.response,
        margin=left.method.margin,
        confidence=left.study.goal.confidence,
        differences=tuple(_differences(left, right, related or {})),
        gaps=tuple(gap for pair in pairs if (gap := _gap(left, right, pair, each)) is not None),
        not_in_both=tuple(sorted({variant.name for variant in left.variants} - (set(names) & theirs))),
        doubtful=(_doubtful(left), _doubtful(right)),
        sequential=left.run.sequential or right.run.sequential,
    )


def _doubtful(analysis: Analysis) -> int:
    return sum(bool(trial.warnings) for trial in analysis.trials if trial.response is not None)


def _gap(left: Analysis, right: Analysis, ends: tuple[str, str], confidence: float) -> VariantGap | None:
    ours, theirs = _measured(left, ends[0]), _measured(right, ends[1])
    response = left.method.response
    logs = _logs(ours, response), _logs(theirs, response)
    if not all(logs):
        return None
    total = welch(response, logs[1], logs[0], confidence)
    sides = _hardware(ours, left), _hardware(theirs, right)
    same = ends[0] == ends[1]
    # The right run's variant on the left host: from the left variant to it goes by factors, from it by hosts.
    bridge = ours if same else _measured(left, ends[1])
    hardware = _hardware_ratio(response, sides, bridge or ours, theirs)
    factors = None if same else _paired(left, ends)
    residual = None
    if hardware is not None and bridge:
        scaled = _per_unit(bridge, sides[0], left), _per_unit(theirs, sides[1], right)
        residual = welch(response, scaled[1], scaled[0], confidence) if all(scaled) else None
    conclusion, why = _conclusion(residual, factors, same, left.method.margin, hardware)
    return VariantGap(
        left=ends[0],
        right=ends[1],
        left_mean=math.exp(float(np.mean(logs[0]))),
        right_mean=math.exp(float(np.mean(logs[1]))),
        trials=(len(logs[0]), len(logs[1])),
        hardware_sides=sides,
        powers=powers(response, [*ours, *theirs]),
        per_unit=(_mean_per_unit(ours, sides[0], left), _mean_per_unit(theirs, sides[1], right)),
        total=total,
        factors=factors,
        hardware=hardware,
        residual=residual,
        conclusion=conclusion,
        why_open=why,
    )


def welch(metric: str, over: Sequence[float], under: Sequence[float], confidence: float) -> Ratio:
    """The ratio of two geometric means from logs of independent trials, with Welch's interval.

    Without two trials on both sides there is no interval. `pairs` is the smaller count.
    """
    above, below = np.sort(np.asarray(over, float)), np.sort(np.asarray(under, float))
    difference = float(above.mean() - below.mean())
    count = min(len(above), len(below))
    if count < 2:
        return Ratio(metric=metric, pairs=count, ratio=math.exp(difference), confidence=confidence)
    parts = [float(side.var(ddof=1)) / len(side) for side in (above, below)]
    variance = sum(parts)
    half = 0.0
    if variance > 0.0:
        freedom = 1.0 / sum(
            (part / variance) ** 2 / (len(side) - 1) for part, side in zip(parts, (above, below), strict=True)
        )
        # Here, because it takes longer to import than most commands run.
        from scipy import stats

        half = float(stats.t.ppf(0.5 + confidence / 2.0, freedom)) * math.sqrt(variance)
    return Ratio(
        metric=metric,
        pairs=count,
        ratio=math.exp(difference),
        low=math.exp(max(difference - half, -700.0)),
        high=math.exp(min(difference + half, 700.0)),
        log_sd=math.sqrt(variance),
        confidence=confidence,
    )


def _conclusion(
    residual: Ratio | None, factors: Ratio | None, same: bool, margin: float, hardware: float | None
) -> tuple[Conclusion, str]:
    if hardware is None:
        return Conclusion.OPEN, "cores or frequency of a host are not known"
    if residual is None or (not same and factors is None):
        return (
            Conclusion.OPEN,
            "the left run did not measure both variants, so the host cannot be told from the variant",
        )
    if residual.low is None or residual.high is None:
        return Conclusion.OPEN, "each run needs two measured trials at least"
    if residual.low >= 1.0 / (1.0 + margin) and residual.high <= 1.0 + margin:
        return Conclusion.NO_GAP, ""
    if residual.low > 1.0 or residual.high < 1.0:
        return Conclusion.OPEN, ONE_RUN
    return (
        Conclusion.OPEN,
        "the residual's interval holds 1 and reaches beyond the margin: more blocks are needed",
    )


def _measured(analysis: Analysis, variant: str) -> list[Record]:
    return [
        trial.record
        for trial in analysis.trials
        if trial.record.variant == variant and trial.record.outcome is Outcome.MEASURED
    ]


def _logs(records: Sequence[Record], metric: str) -> list[float]:
    values = [metrics.find(metric).read(record) for record in records]
    return [math.log(value) for value in values if value is not None and usable(value)]


def _paired(analysis: Analysis, ends: tuple[str, str]) -> Ratio | None:
    """The second variant over the first within one run, paired by block."""
    read = metrics.find(analysis.method.response).read
    under, over = (
        {
            (record.host, record.block): value
            for record in _measured(analysis, name)
            if (value := read(record)) is not None
        }
        for name in ends
    )
    logs = list(log_ratios(over, under).values())
    return ratio_of(analysis.method.response, logs, analysis.study.goal.confidence)


def _hardware(records: Sequence[Record], analysis: Analysis) -> Hardware:
    counted = [ghz for record in records if (ghz := _gigahertz(record)) is not None]
    cpu = analysis.run.host.get("cpu") or {}
    cores, named = cpu.get("usable_cores"), cpu.get("frequency_mhz")
    measured = bool(records) and len(counted) == len(records)
    gigahertz = sum(counted) / len(counted) if measured else named / 1000.0 if named else None
    known = cores if isinstance(cores, int) else None
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


def _per_unit(records: Sequence[Record], side: Hardware, analysis: Analysis) -> list[float]:
    """Log responses with cores and frequency taken out, trial by trial."""
    response = analysis.method.response
    read = metrics.find(response).read
    return [
        math.log(value) - _hardware_log(record, side, response)
        for record in records
        if (value := read(record)) is not None and usable(value)
    ]


def _mean_per_unit(records: Sequence[Record], side: Hardware, analysis: Analysis) -> float | None:
    """The geometric mean of a side's responses without its hardware; None where that is not known, or where
    the response goes with none of it.
    """
    response = analysis.method.response
    logs = _per_unit(records, side, analysis)
    if powers(response, records) == (0, 0) or side.cores is None or side.gigahertz is None or not logs:
        return None
    return math.exp(math.fsum(logs) / len(logs))


def _hardware_ratio(
    response: str, sides: tuple[Hardware, Hardware], under: Sequence[Record], over: Sequence[Record]
) -> float | None:
    """Over / under of cores x frequency, as far as the response goes with them; geometric means over the
    trials that have a response, so that with the residual it multiplies out.
    """
    if any(side.cores is None or side.gigahertz is None for side in sides):
        return None
    means = []
    for side, records in zip(sides, (under, over), strict=True):
        logs = [_hardware_log(record, side, response) for record in records if _logs([record], response)]
        if not logs:
            return None
        means.append(math.fsum(logs) / len(logs))
    return math.exp(means[1] - means[0])


def _differences(left: Analysis, right: Analysis, related: Related) -> list[Difference]:
    """What differs, each with what both runs know of factors that it is related to."""
    facts = _facts(left), _facts(right)
    found = []
    for name in dict.fromkeys([*facts[0], *facts[1]]):
        values = [side.get(name, "not known") for side in facts]
        if values[0] != values[1]:
            factors = next((factors for key, factors in related.items() if name.startswith(key)), (name,))
            known = (*_known("left", left, factors), *_known("right", right, factors))
            found.append(Difference(name=name, left=values[0], right=values[1], known=known))
    return found


def _facts(analysis: Analysis) -> dict[str, str]:
    """All that should be the same for apples to be compared with apples, by name."""
    run = analysis.run
    facts = {name: text for name, text in _flat(run.host) if not name.startswith(IGNORED)}
    facts |= {f"installation.{name}": value for name, value in run.installation.items()}
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
