"""The options of `dyno load run`, and the driver's job that they make."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import click
from click.core import ParameterSource

from dbdyno.driver.job import Isolation, Job, Opening, Schedule, ThinkTime
from dbdyno.errors import UserError
from dbdyno.sql_logs.recording import about
from dbdyno.study import pacing
from dbdyno.study.values import ValueFault, rate


class _Read(click.ParamType[Any]):
    """A value that one of the readers of a study's values understands; a fault becomes the option's."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueFault as fault:
            self.fail("; ".join(filter(None, (fault.message, fault.hint))), param, ctx)


def _schedule(text: str) -> Schedule:
    return pacing.schedule(text, Path(), pacing.seconds)


def _think_time(text: str) -> float | ThinkTime:
    return pacing.think_time(text, pacing.seconds)


def _rate(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueFault(f"{text!r} is no number", "give transactions per second") from None
    return rate(number)


def _above_zero(text: str) -> float:
    seconds = pacing.seconds(text)
    if seconds < 0.001:
        raise ValueFault("no time at all", "give at least 1ms")
    return seconds


def _cpus(text: str) -> list[int]:
    """The CPUs of a list such as `0,2-3`, in the order written."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isdecimal() and (last.isdecimal() if dash else True)):
            raise ValueFault(f"{part!r} in {text!r} is not a CPU", "write numbers and ranges: 0,2-3")
        numbers.extend(range(int(first), min(int(last or first), 1 << 16) + 1))
    allowed = os.sched_getaffinity(0)
    beyond = [number for number in numbers if number not in allowed]
    if beyond or not numbers:
        here = ", ".join(map(str, sorted(allowed)))
        raise ValueFault(f"CPU {beyond[0] if beyond else text} is not available", f"available: {here}")
    return numbers


_SECONDS = _Read("SECONDS", pacing.seconds)
_SOME_SECONDS = _Read("SECONDS", _above_zero)

CONNECTION_OPTIONS = [
    click.Option(
        ["--isolation"],
        type=click.Choice(get_args(Isolation)),
        help="The isolation level of all transactions, on MariaDB, MySQL and PostgreSQL.",
    ),
    click.Option(
        ["--storage-engine"],
        metavar="NAME",
        help="Of the tables that are made: a storage engine of MariaDB or MySQL, a table access method of "
        "PostgreSQL.",
    ),
    click.Option(
        ["--connect-sql"],
        multiple=True,
        metavar="SQL",
        help="A statement that each connection begins with. Can be given several times.",
    ),
]

RUN_OPTIONS = [
    click.Option(
        ["--threads"],
        type=click.IntRange(0, 1024),
        default=0,
        help="Driver threads; 0, the default, lets it choose.",
    ),
    click.Option(
        ["--time", "duration_s"],
        type=_SOME_SECONDS,
        default="20",
        show_default=True,
        help="The measured part. All times are seconds, or have a unit: 500ms, 10m, 1.5h.",
    ),
    click.Option(
        ["--warmup", "warmup_s"], type=_SECONDS, default="5", show_default=True, help="Load before it."
    ),
    click.Option(["--operations"], type=click.IntRange(1), help="Stop after this many transactions."),
    click.Option(
        ["--rate", "rate_per_s"],
        type=_Read("PER_SECOND", _rate),
        help="Open loop: transactions per second offered by all clients together, whatever comes back.",
    ),
    click.Option(
        ["--arrivals"],
        type=click.Choice(["poisson", "uniform"]),
        help="Open loop: how their starts are spread (default poisson).",
    ),
    click.Option(
        ["--schedule"],
        type=_Read("SCHEDULE", _schedule),
        help="Open loop: how the rate changes, counted from the start of the warm-up. "
        "From --rate on: ramp:TO/OVER, steps:AT=RATE,AT=RATE,... or sine:AMPLITUDE/PERIOD. Without --rate: "
        "points:AT=RATE,... or file:PATH with lines of TIME,RATE, interpolated between; after it ,over TIME "
        "is how long it takes in all, and ,xFACTOR multiplies its rates.",
    ),
    click.Option(
        ["--think-time"],
        type=_Read("TIME", _think_time),
        help="Closed loop: what a client waits between transactions; exponential:MEAN draws it.",
    ),
    click.Option(
        ["--ramp", "ramp_s"], type=_SECONDS, help="Open the connections over this time, not all at once."
    ),
    click.Option(["--seed"], type=click.IntRange(0), default=42, help="Where the random numbers begin."),
    click.Option(
        ["--backend"],
        type=click.Choice(["auto", "io_uring", "epoll"]),
        default="auto",
        show_default=True,
        help="How the driver waits.",
    ),
    click.Option(["--cpus"], type=_Read("LIST", _cpus), help="Bind the driver's threads to these: 0,2-3."),
    click.Option(
        ["--gather/--no-gather"],
        default=True,
        help="In a closed loop without think times, take no CPU from the server, and while none is "
        "idle let the answers of many clients lie for less than a fifth of the mean latency, so as to handle "
        "several at once. Cheaper for the machine; --no-gather looks at each answer as soon as it can.",
    ),
    click.Option(
        ["--reconnect/--no-reconnect"],
        help="Open a lost connection again. Without it, a client that lost its connection stops.",
    ),
    click.Option(
        ["--connect-timeout", "connect_timeout_s"],
        type=_SOME_SECONDS,
        default="10",
        show_default=True,
        help="The longest time to open a connection.",
    ),
    click.Option(
        ["--answer-timeout", "answer_timeout_s"],
        type=_SOME_SECONDS,
        default="300",
        show_default=True,
        help="The longest wait for an answer of the server.",
    ),
    click.Option(
        ["--by-statement"],
        is_flag=True,
        help="Count how long each kind of statement took. Costs the driver a little for each statement.",
    ),
    click.Option(
        ["--hdr-log", "hdr_log"],
        type=click.Path(dir_okay=False),
        help="Write each second's latencies to this file, as HdrHistogram's interval log.",
    ),
    click.Option(
        ["--metrics-port"],
        type=click.IntRange(1, 65535),
        help="Serve OpenMetrics on this port of 127.0.0.1 while it runs.",
    ),
]


def take_opening(given: dict[str, Any]) -> Opening:
    """What connections begin with. Takes the options that say so out of those given."""
    isolation, storage_engine = given.pop("isolation"), given.pop("storage_engine")
    return Opening(isolation=isolation, storage_engine=storage_engine, sql=given.pop("connect_sql"))


def of_recording(file: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The times of a replay: unless told otherwise it has no warm-up, and plays the whole recording. Raises
    UserError for what a recording says by itself."""
    context = click.get_current_context()

    def is_given(name: str) -> bool:
        return context.get_parameter_source(name) is not ParameterSource.DEFAULT

    if is_given("clients"):
        raise UserError("a replay has as many clients as its recording", "leave out --clients")
    if not file:
        raise UserError("no recording is named", "--file NAME.replay, as dyno init replay makes it")
    whole_s = about(Path(file)).length_s
    warmup_s = given["warmup_s"] if is_given("warmup_s") else 0.0
    duration_s = given["duration_s"] if is_given("duration_s") else max(0.1, whole_s - warmup_s)
    return {"warmup_s": warmup_s, "duration_s": duration_s}


def run_job(job: Job, given: Mapping[str, Any]) -> Job:
    """The job with what the options say. Raises UserError for options that do not go together."""
    rest = dict(given)
    rate_per_s, arrivals, schedule, think_time = (
        rest.pop(name) for name in ("rate_per_s", "arrivals", "schedule", "think_time")
    )
    found = pacing.clash(
        [schedule] if schedule is not None else [],
        [rate_per_s] if rate_per_s is not None else [],
        arrivals=arrivals is not None,
        think_time=think_time is not None,
        rate_key="--rate",
    )
    if found:
        key, fault = found
        raise UserError(f"--{key.replace('_', '-')} {fault.message}", fault.hint)
    rest["gather"] = "when_crowded" if rest["gather"] else "off"
    load = pacing.load(rate_per_s, arrivals or "poisson", schedule, think_time)
    return job.but(load=load, **{name: value for name, value in rest.items() if value is not None})
