"""The options of the verbs that read a log of your server: `dyno init replay`, `study` and `workload`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.options import DurationText, json_option, target_option
from dbdyno.cli.verbs import body
from dbdyno.frozen import Level
from dbdyno.prepare_run.first_study import GOALS
from dbdyno.sql_logs import KNOWN
from dbdyno.sql_logs.seen import LogReading
from dbdyno.study import values

if TYPE_CHECKING:
    from dbdyno.engines.engine import Proposal

KEY_BYTES = 32
DIGESTS_MOST = 50
"""Digests that are taken unless more are asked for."""


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what a log does not. The verb is given them as one `reading`."""

    @wraps(function)
    def with_reading(prefix: str | None, zone: str, whole: bool, anonymise: bool, **asked: Any) -> Any:
        key = os.urandom(KEY_BYTES) if anonymise else b""
        return function(reading=LogReading(prefix, zone, whole, key=key), **asked)

    for option in reversed(
        (
            click.option(
                "--prefix",
                help="PostgreSQL's log_line_prefix of the log, such as '%m [%p] %q%u@%d '. Default: the one"
                " that its lines tell.",
            ),
            click.option("--zone", default="", help="The time zone of times without one: Europe/Berlin."),
            click.option(
                "--whole",
                is_flag=True,
                help="No file was cut, so that its last entry counts. Without it, one that may go on is left"
                " out.",
            ),
            click.option(
                "--anonymise",
                is_flag=True,
                help="Replace each value, comment and database by a hash whose key is kept nowhere. Types,"
                " lengths, orders of magnitude and what is equal stay.",
            ),
        )
    ):
        option(with_reading)
    return with_reading


def log_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what is taken of which logs."""
    for option in reversed(
        (
            click.option(
                "--from",
                "sources",
                type=click.Path(path_type=Path),
                required=True,
                multiple=True,
                help=f"{KNOWN[0].upper()}{KNOWN[1:]}; compressed or not. Repeat the option for each"
                " further file.",
            ),
            click.option("--database", default="", help="Take only the statements of this database."),
            click.option(
                "--limit",
                type=click.IntRange(1),
                default=DIGESTS_MOST,
                show_default=True,
                help="How many digests to take, those that took longest first.",
            ),
        )
    ):
        function = option(function)
    return reading_options(function)


class FactorText(click.ParamType["Proposal"]):
    """A factor with its levels, the baseline's first."""

    name = "NAME=LEVEL,LEVEL"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Proposal:
        # Here, because help needs no engine.
        from dbdyno.engines.engine import Proposal

        name, _, levels = str(value).partition("=")
        found = tuple(_level(level.strip()) for level in levels.split(",") if level.strip())
        if not re.fullmatch(r"[a-z_]+\.[^\s=]+", name) or len(found) < 2:
            self.fail(
                f"{value!r} is no factor; write config.NAME=LEVEL,LEVEL with the baseline's level first"
            )
        return Proposal(name, found, "")


def _level(text: str) -> Level:
    """A level as a study would write it: true and false, a number, else a text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return values.level(kind(text))
        except (ValueError, values.ValueFault):
            continue
    return text


@click.command()
@click.option(
    "--from",
    "sources",
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    help="A slow log or general log of MariaDB or MySQL, or a log of PostgreSQL (text, CSV or JSON). "
    "Repeat the option for each further file, in the order of their times.",
)
@click.option("--database", default="", help="Keep only the statements of this database.")
@target_option(default=Path("log.replay"), help="The recording.")
@reading_options
@json_option
def replay(**asked: Any) -> None:
    """Make a recording of a log: each session with its statements, its transactions and the original times.
    `dyno load run replay --file FILE` plays it, and so does the workload `replay` of a study."""
    body("recording:main")(**asked)


@click.command()
@log_options
@click.option(
    "--dump",
    "dumps",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    help="A dump by mariadb-dump, mysqldump or pg_dump. Repeat the option for each further file.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True),
    help="Instead of a dump: the data folder of a server that was stopped cleanly.",
)
@click.option(
    "--engine", help="The server to measure, as NAME@VERSION. Default: the engine that wrote the log."
)
@click.option(
    "--factor",
    "factors",
    type=FactorText(),
    multiple=True,
    help="What to vary, such as config.innodb_buffer_pool_size=128M,1G. Default: what people often vary.",
)
@click.option(
    "--goal",
    type=click.Choice(list(GOALS)),
    default="throughput",
    show_default=True,
    help="What should become better.",
)
@click.option(
    "--clients", type=click.IntRange(1), help="How many clients work at a time. Default: 4 a CPU, at least 8."
)
@click.option(
    "--time",
    "time_",
    type=DurationText(),
    default="30m",
    show_default=True,
    help="How long the run may take.",
)
@click.option(
    "--copy/--no-copy",
    default=None,
    help="Whether to load the data once and to hold the rows of each statement on a copy against those of the"
    " log. Default: where the engine is here and the data are below 256 MiB.",
)
@target_option(default=Path("production"), help="The folder.")
@json_option
def study_of_production(**asked: Any) -> None:
    """Make a study from a log of your server and a dump of its data. The folder holds the study and its
    workload, which `dyno run` can carry out as they are."""
    body("production:main")(**asked)


@click.command()
@log_options
@target_option(default=Path("workload.toml"), help="The file.")
@json_option
def workload_file(**asked: Any) -> None:
    """Make a workload file from a log of your server: the same statements with the same shares, and values
    like those in the log. `dyno load run FILE` then drives it."""
    body("traffic:main")(**asked)
