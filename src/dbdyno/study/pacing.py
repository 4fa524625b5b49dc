"""When transactions start: the small grammars of rate schedules and think times.

A study and the command line write the same. Each reader returns the part of the driver's job that is meant,
or raises ValueFault.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

from dbdyno.driver.job import (
    PERIOD_S_MIN,
    RATE_PER_S_MAX,
    Arrivals,
    Closed,
    Constant,
    Load,
    Open,
    Points,
    Ramp,
    RateFile,
    RateSteps,
    Schedule,
    Sine,
    ThinkTime,
)
from dbdyno.study import values
from dbdyno.study.values import NUMBER, ValueFault, shown

Seconds = Callable[[str], float]
"""How a time is read: a study demands a unit, the command line takes plain seconds as well."""

_RATE = rf"\s*{NUMBER}\s*"
SCHEDULE = (
    rf"^(constant|ramp:{_RATE}/[^/]+|sine:{_RATE}/[^/]+|(steps|points):[^=,]+={_RATE}(,[^=,]+={_RATE})*)$"
)
THINK_TIME = rf"^(exponential:)?\s*{NUMBER} ?(ms|s|m|h)\s*$"
"""The patterns that editors check by. Blanks around a number mean nothing to the readers, nor to these."""
SCHEDULE_FORMS = "ramp:TO/OVER, steps:AT=RATE,..., sine:AMPLITUDE/PERIOD, points:AT=RATE,... or constant"
THINK_TIME_FORMS = "a time, or exponential:MEAN"


def with_unit(text: str) -> float:
    """Seconds of a time with its unit."""
    return values.duration_s(text.strip(), 0.0)


def seconds(text: str) -> float:
    """Seconds of a time; without a unit it is seconds already."""
    return with_unit(f"{text.strip()}s" if re.fullmatch(NUMBER, text.strip()) else text)


def schedule(value: Any, time: Seconds = with_unit) -> Schedule:
    """How the rate changes over the run: `ramp:2000/30s` is a ramp to 2,000 per second within 30 s."""
    text = values.text(value)
    kind, _, rest = text.partition(":")
    if text == "constant":
        return Constant()
    if kind == "ramp":
        to_per_s, over_s = _rate_and_time(text, rest, time)
        return Ramp(to_per_s=to_per_s, over_s=over_s)
    if kind == "sine":
        amplitude_per_s, period_s = _rate_and_time(text, rest, time)
        if period_s < PERIOD_S_MIN:
            raise ValueFault(
                f"{shown(text)} waves faster than the driver can follow",
                f"give a period of at least {PERIOD_S_MIN * 1000:g}ms",
            )
        return Sine(amplitude_per_s=amplitude_per_s, period_s=period_s)
    if kind == "steps":
        return RateSteps(steps=_rates_at(text, rest, time))
    if kind == "points":
        return Points(points=_rates_at(text, rest, time))
    raise ValueFault(f"{shown(text)} is no schedule", f"write {SCHEDULE_FORMS}")


def think_time(value: Any, time: Seconds = with_unit) -> float | ThinkTime:
    """What a client waits between its transactions: always the same, or drawn."""
    text = values.text(value)
    kind, separator, mean = text.rpartition(":")
    if separator and kind != "exponential":
        raise ValueFault(f"{shown(text)} is no think time", f"write {THINK_TIME_FORMS}")
    mean_s = time(mean)
    return ThinkTime(mean_s=mean_s, distribution="exponential") if separator else mean_s


def written(value: Any, read: Callable[[Any], object]) -> str:
    """The text of a schedule or think time, once it is known that it can be read."""
    read(value)
    return str(value)


def clash(
    schedules: Sequence[Schedule],
    rates: Sequence[float],
    *,
    arrivals: bool,
    think_time: bool,
    rate_key: str,
) -> tuple[str, ValueFault] | None:
    """What of all that a load may have does not go together: the key to blame, and why. `rate_key` is what
    the rate is called where it was written."""
    needs_rate = [form for form in schedules if not isinstance(form, Points | RateFile)]
    waves = [form.amplitude_per_s for form in schedules if isinstance(form, Sine)]
    if think_time and (rates or schedules):
        message = f"is of the closed loop; {rate_key} or a schedule makes it open"
        return "think_time", ValueFault(message, f"give either a think time or {rate_key}")
    if needs_rate and not rates:
        return "schedule", ValueFault(
            f"needs {rate_key}", "the rate that it begins with; only points give all rates"
        )
    if schedules and not needs_rate and rates:
        return "schedule", ValueFault("gives every rate itself", f"leave out {rate_key}")
    if waves and max(waves) > min(rates):
        return "schedule", ValueFault("has a sine that goes below 0", f"its amplitude is at most {rate_key}")
    if waves and max(waves) + max(rates) > RATE_PER_S_MAX:
        hint = f"the driver can send at most {RATE_PER_S_MAX:,.0f} per second"
        return "schedule", ValueFault("has a sine that rises too high", hint)
    if arrivals and not rates and not schedules:
        hint = "without a rate each client sends when it is answered"
        return "arrivals", ValueFault(f"needs {rate_key}", hint)
    return None


def load(
    rate_per_s: float | None,
    arrivals: Arrivals,
    schedule: Schedule | None,
    think_time: float | ThinkTime | None,
) -> Load:
    """When transactions start: in open loop where there is a rate or a schedule, else in closed loop."""
    if rate_per_s is None and schedule is None:
        return Closed(think_time=think_time)
    return Open(rate_per_s=rate_per_s or 0.0, arrivals=arrivals, schedule=schedule)


def _rate_and_time(text: str, rest: str, time: Seconds) -> tuple[float, float]:
    rate, separator, written = rest.partition("/")
    if not separator:
        raise ValueFault(f"{shown(text)} has no `/` between rate and time", f"write {SCHEDULE_FORMS}")
    span_s = time(written)
    if span_s <= 0:
        raise ValueFault(f"{shown(text)} takes no time", "give a time above 0")
    return _rate(text, rate), span_s


def _rates_at(text: str, rest: str, time: Seconds) -> tuple[tuple[float, float], ...]:
    points = []
    for part in rest.split(","):
        at, separator, rate = part.partition("=")
        if not separator:
            raise ValueFault(f"{shown(part)} in {shown(text)} is no AT=RATE", f"write {SCHEDULE_FORMS}")
        points.append((time(at), _rate(text, rate)))
    if text.startswith("points:") and all(rate == 0 for _, rate in points):
        raise ValueFault(f"{shown(text)} is never above 0", "give at least one rate above 0")
    if any(later[0] < earlier[0] for earlier, later in itertools.pairwise(points)):
        raise ValueFault(f"the times in {shown(text)} go back", "write them in rising order")
    return tuple(points)


def _rate(text: str, written: str) -> float:
    if not re.fullmatch(NUMBER, written.strip()):
        raise ValueFault(
            f"{shown(written)} in {shown(text)} is no rate", "write transactions per second: 500"
        )
    return values.rate_of_schedule(float(written))
