"""Where time goes: that of one operation on a CPU, waiting for one, in the driver, and the rest; and that of
a whole trial, stage by stage.

The whole is the time of one client per operation. In closed loop that is clients x duration / operations
(Little's law; J. D. C. Little, Operations Research 9, 1961), in open loop the mean latency from the intended
start. The parts are the seconds of the application, where one stands in front of the server, of the server,
and of the driver, over the operations. What they leave is the remainder: nothing measured it, so it is named
as what is left, not as what it is.

It is assumed that an operation is served by one thread at a time. Threads that work beside it (purge,
checkpoint, parallel workers) are in the CPU time as well; where the parts come to more than the whole, that
is said, and there is no remainder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat

import numpy as np

from dbdyno.analyse.columns import OUTCOME, VARIANT, Columns, Fact, Figures, Floats, Places, or_zero
from dbdyno.analyse.found import Estimate, HostCondition, Overhead, StageTime, TimeSplit
from dbdyno.analyse.quantiles import t_quantile
from dbdyno.driver.tally import Tally
from dbdyno.records import metrics
from dbdyno.records.record import Observation, Outcome, Record, Stage

WHOLE, PAUSE, REMAINDER = "whole", "pause", "remainder"
APPLICATION = ("application_user", "application_system", "application_wait")
"""The parts of an application in front of the server, where there is one."""
PARTS = (
    *APPLICATION, "server_user", "server_system", "server_wait", "driver", "driver_wait", PAUSE, REMAINDER,
)  # fmt: skip
"""The parts in their order. Of each the `_wait`: ready to run, and waiting for a CPU."""

NEEDED = ("server_user", "server_system", "driver")
"""Without one of these there is no split: the remainder would hold what it must not."""

Reader = Callable[[Record, Observation], float | None]


def time_splits(columns: Columns, places: Places, confidence: float) -> tuple[TimeSplit, ...]:
    """One split per variant that has measured trials with all that is needed, in the order of the places."""
    measured = columns.having(OUTCOME, places, Outcome.MEASURED.value)
    splits = (
        time_split(variant, columns, columns.having(VARIANT, measured, variant), confidence)
        for variant in columns.seen(VARIANT, measured)
    )
    return tuple(split for split in splits if split is not None)


def time_split(variant: str, columns: Columns, places: Places, confidence: float) -> TimeSplit | None:
    """The split of one variant: arithmetic means over its trials, so that the parts add up to the whole."""
    figures = columns.figures(MICROSECONDS)
    if WHOLE not in figures:
        return None
    told = places[~np.isnan(figures[WHOLE][places])]
    if not len(told):
        return None
    found = {name: values[told] for name, values in figures.items()}
    # A part that some trials lack belongs to the remainder in all of them.
    rows = {name: values for name, values in found.items() if not np.isnan(values).any()}
    parts = [values.tolist() for name, values in rows.items() if name not in (WHOLE, REMAINDER)]
    rows[REMAINDER] = rows[WHOLE] - np.array(list(map(math.fsum, zip(*parts, strict=True))))
    # What does not stand in front of a server is not missing.
    absent = () if rows.keys() & set(APPLICATION) else APPLICATION
    means = {name: estimated_mean(name, rows[name], confidence) for name in (WHOLE, *PARTS) if name in rows}
    beyond = -means[REMAINDER].mean
    return TimeSplit(
        variant=variant,
        trials=len(told),
        whole=means[WHOLE],
        parts=tuple(means[name] for name in PARTS if name in means and _told(means[name], beyond)),
        beyond_us=max(0.0, beyond),
        missing=tuple(name for name in PARTS if name not in rows and name not in absent),
        hardware=_hardware(columns, places, confidence),
        engine=_engine(columns, places, confidence),
        uncounted=_uncounted(columns, places),
    )


def _uncounted(columns: Columns, places: Places) -> dict[str, str]:
    """Why a counter of the CPU has no figure, as the last trial tells it that lacks it."""
    found = dict.fromkeys(name for told in columns.seen(UNCOUNTED, places) for name, _ in told)
    latest = {
        name: reason for told in reversed(columns.seen(UNCOUNTED, places[::-1])) for name, reason in told
    }
    return {name: latest[name] for name in found}


def _told(part: Estimate, beyond_us: float) -> bool:
    """Parts beyond the whole leave no remainder, and most loads have no pauses."""
    return beyond_us <= 0.0 if part.name == REMAINDER else part.name != PAUSE or part.mean > 0.0


def microseconds(record: Record) -> dict[str, float] | None:
    """One trial's whole and parts, in microseconds per operation; None where what is needed was not read."""
    observation, tally = record.observation, record.tally
    if observation is None or tally is None or tally.work <= 0:
        return None
    whole, seconds = _whole_us(tally), _seconds(observation, tally)
    if whole is None or any(name not in seconds for name in NEEDED):
        return None
    parts = {name: 1e6 * value / tally.work for name, value in seconds.items()}
    parts[PAUSE] = _pause_us(tally, whole, parts)
    return {WHOLE: whole, **parts, REMAINDER: whole - sum(parts.values())}


PAUSE_SHARE_LEAST = 0.1
"""Between two transactions the driver takes far less, so more than this is a pause of the load."""


def _pause_us(tally: Tally, whole: float, parts: Mapping[str, float]) -> float:
    """What a client of a closed loop waited between two transactions (think and keying times): its cycle
    without the mean latency and the driver's own time; 0 where that is too little to be a pause.
    """
    latency = tally.latency_us.mean
    if tally.open_loop is not None or latency is None:
        return 0.0
    between = whole - latency - parts["driver"] - parts.get("driver_wait", 0.0)
    return between if between > PAUSE_SHARE_LEAST * whole else 0.0


def embedded(observation: Observation) -> bool:
    """Whether engine and driver shared one process: then its second-by-second CPU has that name."""
    return "process_cpu_s" in observation.series


def estimated_mean(name: str, values: Sequence[float] | Floats, confidence: float) -> Estimate:
    """The arithmetic mean over trials and its t interval; none with one trial."""
    numbers = np.asarray(values, dtype=np.float64)
    mean = math.fsum(numbers.tolist()) / len(numbers)
    if len(numbers) < 2:
        return Estimate(name=name, mean=mean, trials=1)
    squares = map(pow, (numbers - mean).tolist(), repeat(2))
    spread = math.sqrt(math.fsum(squares) / (len(numbers) - 1))
    half = t_quantile(confidence, len(numbers)) * spread / math.sqrt(len(numbers))
    return Estimate(name=name, mean=mean, low=mean - half, high=mean + half, trials=len(numbers))


def _whole_us(tally: Tally) -> float | None:
    if tally.open_loop is not None:
        return tally.latency_us.mean
    return 1e6 * tally.clients / tally.throughput_per_s


def _seconds(observation: Observation, tally: Tally) -> dict[str, float]:
    """Thread seconds of each part in the measured part of the load, where they were read."""
    totals = observation.totals
    found = {
        "application_user": totals.get("application_cpu_user_s"),
        "application_system": totals.get("application_cpu_system_s"),
        "application_wait": totals.get("application_run_queue_wait_s"),
        "server_user": totals.get("server_cpu_user_s"),
        "server_system": totals.get("server_cpu_system_s"),
        "server_wait": totals.get("run_queue_wait_s"),
        "driver": _driver_s(tally),
        # An embedded engine's threads are the driver's: their wait is counted once, as the server's.
        "driver_wait": None if embedded(observation) else _driver_wait_s(observation, tally),
    }
    return {name: value for name, value in found.items() if value is not None}


def _driver_s(tally: Tally) -> float:
    return tally.driver_cpu_s.user + tally.driver_cpu_s.system


def _driver_wait_s(observation: Observation, tally: Tally) -> float | None:
    shares = tally.driver_run_wait_share
    return observation.duration_s * sum(shares) if shares else None


def _cpu_s(record: Record, observation: Observation) -> float | None:
    """CPU seconds of the threads that the hardware counters were on."""
    totals = observation.totals
    if "server_cpu_user_s" not in totals or "server_cpu_system_s" not in totals:
        return None
    own = _driver_s(record.tally) if record.tally and embedded(observation) else 0.0
    return totals["server_cpu_user_s"] + totals["server_cpu_system_s"] + own


def _of_cycles(name: str) -> Reader:
    return lambda _, observation: _ratio(observation.totals.get(name), observation.totals.get("cycles"))


def _per_operation(name: str) -> Reader:
    return lambda record, _: metrics.find(name).read(record)


def _gigahertz(record: Record, observation: Observation) -> float | None:
    per_s = _ratio(observation.totals.get("cycles"), _cpu_s(record, observation))
    return None if per_s is None else per_s / 1e9


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole is not None and whole > 0 else None


HARDWARE: dict[str, Reader] = {
    "instructions_per_cycle": _of_cycles("instructions"),
    "stalled_frontend_share": _of_cycles("stalled_cycles_frontend"),
    "stalled_backend_share": _of_cycles("stalled_cycles_backend"),
    "cycles_per_op": _per_operation("cycles_per_op"),
    "instructions_per_op": _per_operation("instructions_per_op"),
    "cache_misses_per_op": _per_operation("cache_misses_per_op"),
    "dtlb_load_misses_per_op": _per_operation("dtlb_load_misses_per_op"),
    "gigahertz": _gigahertz,
}
"""What the CPU's counters tell beside the split. Shares are of all cycles; how many cycles an operation would
have taken without stalls no counter tells."""


def _hardware_of(record: Record) -> dict[str, float]:
    seen = record.observation
    values = {} if seen is None else {name: read(record, seen) for name, read in HARDWARE.items()}
    return {name: value for name, value in values.items() if value is not None}


def _hardware(columns: Columns, places: Places, confidence: float) -> tuple[Estimate, ...]:
    found = {name: values[places] for name, values in columns.figures(OF_HARDWARE).items()}
    known = {name: values[~np.isnan(values)] for name, values in found.items()}
    return tuple(
        estimated_mean(name, known[name], confidence) for name in HARDWARE if len(known.get(name, ()))
    )


def _engine_of(record: Record) -> dict[str, float]:
    """The engine's own view per operation. Its counters were read around the whole load: with the warm-up,
    and with what comes before and after each slice. So they are divided by all operations of it."""
    operations = _operations_of_the_load(record)
    if record.observation is None or operations <= 0:
        return {}
    return {title: change / operations for title, change in record.observation.engine_view.items()}


def _has_view(record: Record) -> bool:
    return record.observation is not None and _operations_of_the_load(record) > 0


def _engine(columns: Columns, places: Places, confidence: float) -> tuple[Estimate, ...]:
    viewed, views = columns.having(HAS_VIEW, places, True), columns.figures(OF_ENGINE)
    titles = dict.fromkeys(title for told in columns.seen(TITLES, viewed) for title in told)
    # A counter that stood still in one trial is absent there, and was zero.
    return tuple(estimated_mean(title, or_zero(views[title][viewed]), confidence) for title in titles)


def _operations_of_the_load(record: Record) -> float:
    tally = record.tally
    return float(tally.acknowledged) if tally else 0.0


def _uncounted_of(record: Record) -> tuple[tuple[str, str], ...]:
    missing = record.observation.missing if record.observation else {}
    return tuple((name, reason) for name, reason in missing.items() if name in metrics.COUNTERS)


MICROSECONDS = Figures("microseconds", microseconds)
OF_HARDWARE = Figures("hardware", _hardware_of)
OF_ENGINE = Figures("engine", _engine_of)
HAS_VIEW = Fact("has_view", _has_view)
TITLES = Fact("titles", lambda record: tuple(_engine_of(record)))
UNCOUNTED = Fact("uncounted", _uncounted_of)


LOAD = "load"
"""The load is part of the stage that drives it; what else that stage took is Dyno's."""

CONDITIONS = (
    *("frequency_ghz", "steal_s", "other_cpu_s", "throttled_s", "throttled_share"),
    *("round_trip_us", "round_trip_us_max", "load_host_busy_share", "load_host_steal_share"),
    "load_host_resent_share",
)


def overhead(columns: Columns, places: Places) -> Overhead | None:
    """The wall time of the measured ones of these trials; None where there is none."""
    measured = columns.having(OUTCOME, places, Outcome.MEASURED.value)
    if not len(measured):
        return None
    seconds, walls = columns.figures(SECONDS), columns.figures(WALL)["wall_s"][measured]
    beside = walls - seconds[LOAD][measured]
    total_s = sum(walls.tolist())
    return Overhead(
        trials=len(measured),
        stages=tuple(
            _stage(name, or_zero(seconds[name][measured]), total_s)
            for name in dict.fromkeys(name for names in columns.seen(STAGES, measured) for name in names)
        ),
        trial_s=_median(walls),
        overhead_s=_median(beside),
        overhead_share=sum(beside.tolist()) / total_s,
    )


def conditions(columns: Columns, places: Places) -> tuple[HostCondition, ...]:
    """Each condition that any measured one of these trials has a value of."""
    found = []
    for name in CONDITIONS:
        values = columns.metric(name)[places]
        known = values[~np.isnan(values)]
        if len(known):
            lowest, highest = float(known.min()), float(known.max())
            found.append(
                HostCondition(
                    metric=name, trials=len(known), median=_median(known), lowest=lowest, highest=highest
                )
            )
    return tuple(found)


def _median(values: Floats) -> float:
    """As `statistics.median` gives it, whose middle two are added before they are halved."""
    rising, middle = np.sort(values), len(values) // 2
    if len(values) % 2:
        return float(rising[middle])
    return float((rising[middle - 1] + rising[middle]) / 2)


def _stage_seconds(record: Record) -> dict[str, float]:
    """Seconds of each stage in its order, the load apart from the stage that drove it."""
    load_s = record.load_s
    parts: dict[str, float] = {}
    for stage, seconds in record.stages_s.items():
        if stage == Stage.DRIVE:
            parts[LOAD] = min(load_s, seconds)
            seconds -= parts[LOAD]
        parts[stage] = seconds
    return {LOAD: load_s, **parts} if LOAD not in parts else parts


SECONDS = Figures("stages", _stage_seconds)
WALL = Figures("wall", lambda record: {"wall_s": sum(_stage_seconds(record).values())})
STAGES = Fact("stages", lambda record: tuple(_stage_seconds(record)))


def _stage(name: str, seconds: Floats, total_s: float) -> StageTime:
    return StageTime(
        name=name,
        median_s=_median(seconds),
        longest_s=float(seconds.max()),
        share=sum(seconds.tolist()) / total_s,
    )
