"""When transactions start: the small grammars of rate schedules and think times.

A study and the command line write the same. Each reader returns the part of the driver's job that is meant,
or raises ValueFault.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from dbdyno.driver.job import (
    PERIOD_S_MIN,
    RATE_PER_S_MAX,
    SECONDS_MAX,
    Arrivals,
    Closed,
    Constant,
    Load,
    Open,
    Points,
    Ramp,
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
    rf"^(constant|ramp:{_RATE}/[^/]+|sine:{_RATE}/[^/]+|(steps|points):[^=,]+={_RATE}(,[^=,]+={_RATE})*"
    r"|file:.*\S.*)$"
)
THINK_TIME = rf"^(exponential:)?\s*{NUMBER} ?(ms|s|m|h)\s*$"
"""The patterns that editors check by. Blanks around a number mean nothing to the readers, nor to these."""
SCHEDULE_FORMS = (
    "ramp:TO/OVER, steps:AT=RATE,..., sine:AMPLITUDE/PERIOD, points:AT=RATE,..., "
    "file:CSV[,over TIME][,xFACTOR] or constant"
)
THINK_TIME_FORMS = "a time, or exponential:MEAN"


def with_unit(text: str) -> float:
    """Seconds of a time with its unit."""
    return values.duration_s(text.strip(), 0.0)


def seconds(text: str) -> float:
    """Seconds of a time; without a unit it is seconds already."""
    return with_unit(f"{text.strip()}s" if re.fullmatch(NUMBER, text.strip()) else text)


POINTS_MOST = 100_000
"""Points of a file: a day has 86,400 seconds."""
_SCALE = re.compile(rf"(?P<rest>.*),\s*(?:over\s+(?P<over>[^,]+)|x\s*(?P<factor>{NUMBER}))\s*", re.DOTALL)
_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?")
_PLAIN = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class RateFile:
    """Points in a file with a line of a time and a rate for each. Where `over_s` is given, the times from the
    first to the last take so many seconds; each rate counts `factor` times."""

    path: str
    over_s: float | None = None
    factor: float = 1.0

    def points(self, folder: Path) -> Points:
        """What it says where its path counts from a folder. Seconds count from the start of the warm-up, and
        times of day and stamps from the first of them. Raises ValueFault with the line."""
        points: list[tuple[float, float]] = []
        form, first_s = "", 0.0
        for number, (written, rate) in self._rows(folder):
            place = f"{self.path}, line {number}:"
            kind, at_s = _time(place, written)
            if not points:
                form, first_s = kind, at_s if kind != _SECONDS or self.over_s is not None else 0.0
            elif kind != form or at_s - first_s < points[-1][0]:
                raise _out_of_turn(place, written, form if kind != form else "")
            if len(points) == POINTS_MOST:
                told = f"{place} there are more than {POINTS_MOST:,} points"
                raise ValueFault(told, "give a point a second, or fewer: the rate is linear between them")
            points.append((at_s - first_s, self._rate(place, rate)))
        return Points(points=self._within(points))

    def _rows(self, folder: Path) -> Iterator[tuple[int, tuple[str, str]]]:
        """Each line that has a point, by its number from 1: its time and its rate."""
        may_be_header = True
        for number, line in self._lines(folder):
            if content := line.split("#")[0].strip():
                row = _columns(f"{self.path}, line {number}:", content)
                if not may_be_header or any(map(_is_value, row)):
                    yield number, row
                may_be_header = False

    def _lines(self, folder: Path) -> Iterator[tuple[int, str]]:
        place = folder / Path(self.path).expanduser()
        if not place.is_file():
            hint = "give a file with a time and a rate in each line"
            raise ValueFault(f"there is no file {self.path}", hint)
        try:
            with place.open(encoding="utf-8-sig") as lines:
                yield from enumerate(lines, 1)
        except UnicodeDecodeError:
            raise ValueFault(f"{self.path} is no text in UTF-8", "save it as a CSV file") from None
        except OSError as error:
            raise ValueFault(f"{self.path} cannot be read: {error.strerror}", "make it readable") from None

    def _rate(self, place: str, written: str) -> float:
        if not _PLAIN.fullmatch(written):
            raise ValueFault(f"{place} {shown(written)} is no rate", "write transactions per second: 500")
        if float(written) < 0:
            raise ValueFault(
                f"{place} the rate {written} is below 0", "write transactions per second, from 0"
            )
        try:
            return values.rate_of_schedule(float(written) * self.factor)
        except ValueFault as fault:
            raise ValueFault(f"{place} the rate {fault.message}", fault.hint) from None

    def _within(self, points: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
        """The points, over as many seconds as they are to take."""
        if not points:
            raise ValueFault(f"{self.path} has no point", "write a time and a rate in each line: 00:05,120")
        if all(rate == 0 for _, rate in points):
            raise ValueFault(f"{self.path} is never above 0", "give at least one rate above 0")
        last_s = points[-1][0]
        if self.over_s is not None:
            if last_s == 0:
                raise ValueFault(f"{self.path} takes no time", "leave out `over`, or give a second time")
            return tuple((at_s / last_s * self.over_s, rate) for at_s, rate in points)
        if last_s > SECONDS_MAX:
            hint = "write seconds from the start on, or add `,over TIME` to the schedule"
            raise ValueFault(f"{self.path} ends after {last_s:,.0f} s, beyond 30 days", hint)
        return tuple(points)


_SECONDS, _OF_DAY, _STAMP, _ZONED = "number of seconds", "time of day", "stamp", "stamp with a time zone"


def _out_of_turn(place: str, written: str, form: str) -> ValueFault:
    """A time that is not of the form of those above it, or goes back."""
    if form:
        return ValueFault(f"{place} {shown(written)} is no {form}", "write all times in the same form")
    return ValueFault(f"{place} the time {shown(written)} goes back", "write the times in rising order")


def _columns(place: str, line: str) -> tuple[str, str]:
    """The two columns of a line; blanks separate them where nothing else does."""
    cells = re.split(r"[,;\t]", line) if re.search(r"[,;\t]", line) else line.rsplit(None, 1)
    if len(cells) != 2:
        count = "one column" if len(cells) == 1 else f"{len(cells)} columns"
        raise ValueFault(f"{place} {shown(line)} has {count}", "write two: a time and a rate")
    at, rate = (cell.strip().strip('"').strip() for cell in cells)
    return at, rate


def _is_value(cell: str) -> bool:
    try:
        return bool(_PLAIN.fullmatch(cell) or _time("", cell))
    except ValueFault:
        return False


def _time(place: str, written: str) -> tuple[str, float]:
    """What kind of a time it is, and its seconds from the zero of that kind."""
    if _PLAIN.fullmatch(written):
        seconds_s = float(written)
        if not 0 <= seconds_s < math.inf:
            raise ValueFault(f"{place} the time {written} is below 0", "count from the start of the warm-up")
        return _SECONDS, seconds_s
    if clock := _CLOCK.fullmatch(written):
        return _OF_DAY, int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3] or 0)
    try:
        stamp = datetime.fromisoformat(written)
    except ValueError:
        hint = "write seconds, HH:MM, HH:MM:SS or a stamp such as 2026-05-04T18:30:00"
        raise ValueFault(f"{place} {shown(written)} is no time", hint) from None
    zero = datetime(1970, 1, 1, tzinfo=stamp.tzinfo)
    return _STAMP if stamp.tzinfo is None else _ZONED, (stamp - zero).total_seconds()


def schedule(value: Any, folder: Path, time: Seconds = with_unit) -> Schedule:
    """How the rate changes over the run: `ramp:2000/30s` is a ramp to 2,000 per second within 30 s. A file is
    read, and its path counts from the folder."""
    found = schedule_form(value, time)
    return found.points(folder) if isinstance(found, RateFile) else found


def schedule_form(value: Any, time: Seconds = with_unit) -> Schedule | RateFile:
    """The same as it is written: a file is not read."""
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
    if kind == "file":
        return _rate_file(text, rest, time)
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
    schedules: Sequence[Schedule | RateFile],
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


def _rate_file(text: str, rest: str, time: Seconds) -> RateFile:
    """A file, and after it in any order the time that it is to take and a factor."""
    scales: dict[str, float] = {}
    while scale := _SCALE.fullmatch(rest):
        rest = scale["rest"]
        key, number = ("over_s", time(scale["over"])) if scale["over"] else ("factor", float(scale["factor"]))
        if key in scales:
            raise ValueFault(f"{shown(text)} says the same twice", f"write {SCHEDULE_FORMS}")
        if number <= 0:
            raise ValueFault(f"{shown(text)} scales to nothing", "give a time and a factor above 0")
        scales[key] = number
    if not rest.strip():
        raise ValueFault(f"{shown(text)} names no file", f"write {SCHEDULE_FORMS}")
    return RateFile(rest.strip(), **scales)


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
