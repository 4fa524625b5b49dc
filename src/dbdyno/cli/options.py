"""Options that several verbs share."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click

from dbdyno.cli.preferences import FOREVER, PreferredOption
from dbdyno.cli.server_url import StoreUrl
from dbdyno.passwords import without_passwords

ANY_PORT, PORT_MOST = 0, 65535
CODES = {"broken": 4, "failed": 5, "slower": 6, "inconclusive": 7, "inert": 8}
"""Exit codes by what `--fail-on` names, the worst first."""
NONE = "none"
"""What `--fail-on` takes in the place of verdicts, where a preference is not wanted."""
UNNAMED = ""
"""What `--resume` without a name stands for."""
HOURS_OF = {"h": 1.0, "d": 24.0, "w": 168.0}


class Duration(click.ParamType[float]):
    """Seconds of a duration with its unit, as a study writes it: `90s`, `10m`, `1.5h`."""

    name = "TIME"
    least_s = 1.0

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        # Here, because verbs that take no duration need nothing of studies.
        from dbdyno.study.values import ValueFault, duration_s

        try:
            return duration_s(value, self.least_s)
        except ValueFault as fault:
            self.fail(f"{fault.message}; {fault.hint}", param, ctx)


class DurationText(click.ParamType[str]):
    """A duration as it was written, because the command that runs the study is shown with it."""

    name = Duration.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        Duration().convert(value, param, ctx)
        return str(value)


class Age(click.ParamType[float]):
    """Seconds of an age with its unit: `12h`, `30d`, `4w`."""

    name = "AGE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value)
        try:
            return float(text[:-1]) * HOURS_OF[text[-1:]] * 3600.0
        except (KeyError, ValueError):
            self.fail(f"{text!r} is no age; write a number and its unit: 12h, 30d, 4w", param, ctx)


class Wait(Duration):
    """A duration, or infinity for `--wait` without one."""

    least_s = 0.0

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        return math.inf if value == FOREVER else super().convert(value, param, ctx)


class OneOf(click.Choice[str]):
    """The names of what stands at `module:attribute`, which is imported when they are asked for."""

    def __init__(self, place: str) -> None:
        super().__init__(())
        self.place = place

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(map(str, resolve_name(self.place)))

    @choices.setter
    def choices(self, none: Sequence[str]) -> None:
        """click sets those that it is made with, which are none."""


class FailOn(click.ParamType[tuple[str, ...]]):
    """Names of `CODES`, with commas between: `slower,broken`."""

    name = "VERDICTS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        if value == NONE:
            return ()
        names = tuple(name.strip() for name in str(value).split(","))
        for name in names:
            if name not in CODES:
                self.fail(f"{name!r} is none of {', '.join(CODES)}", param, ctx)
        return names


class RunningServerUrl(click.ParamType[str]):
    """The URL of a server that runs already, which needs no password."""

    name = "URL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if without_passwords(str(value)) != str(value):
            self.fail(
                "the URL holds a password, which is not taken from here: give it by PGPASSWORD or ~/.pgpass,"
                " or by MYSQL_PWD or ~/.my.cnf"
            )
        return str(value)


class WaitingCommand(click.Command):
    """A command with `wait_option`, and maybe `live_option`: what follows `--wait` and is no duration is the
    next argument, and so is what follows `--live` and is no port."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from dbdyno.study.values import DURATION

        alone = {"--wait": (FOREVER, DURATION), "--live": (str(ANY_PORT), r"\d+$")}
        args = [
            f"{arg}={alone[arg][0]}" if arg in alone and not re.match(alone[arg][1], after) else arg
            for arg, after in pairwise([*args, ""])
        ]
        return super().parse_args(ctx, args)


class ListingGroup(click.Group):
    """A group whose `list` stands where no subcommand is named: `dyno runs --limit 3` is `dyno runs list
    --limit 3`."""

    LIST = "list"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # A shell that completes a command asks with what stands before it, which names none yet.
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        place = self._behind_own_options(args)
        named = args[place : place + 1]
        if not named or not (named[0] in self.list_commands(ctx) or named[0] in ctx.help_option_names):
            args = [*args[:place], self.LIST, *args[place:]]
        return super().parse_args(ctx, args)

    def _behind_own_options(self, args: list[str]) -> int:
        """Where the arguments begin that are not the group's own options, each of which has a value."""
        own = {name for param in self.params for name in param.opts}
        place = 0
        while place < len(args) and args[place].partition("=")[0] in own:
            place += 1 if "=" in args[place] else 2
        return min(place, len(args))


_STORE_TEXTS: Any = {
    "type": StoreUrl(),
    "metavar": "URL",
    "help": "Where runs are kept: sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/DATABASE. "
    "@FILE takes the first line of a file. "
    "Default: DYNO_STORE, else that of `dyno config`, else a SQLite file under the XDG data folder.",
}
store_option = click.option("--store", cls=PreferredOption, key="store", **_STORE_TEXTS)
own_store_option = click.option("--store", **_STORE_TEXTS)
"""Of a command whose group has the option as well."""
budget_option = click.option(
    "--budget",
    "budget_s",
    type=Duration(),
    help="Fit blocks and durations to this time (10m, 1.5h), and say what precision that can reach.",
)
wait_option = click.option(
    "--wait",
    "wait_s",
    cls=PreferredOption,
    key="wait",
    type=Wait(),
    metavar="[TIME]",
    help="Where another dyno measures on this machine, wait for its end, or at most TIME (10m, 1.5h).",
)
otlp_option = click.option(
    "--otlp",
    metavar="URL",
    help="Send each trial's metrics to this OpenTelemetry collector (OTLP over HTTP) between blocks, with "
    "the headers of OTEL_EXPORTER_OTLP_HEADERS. One that does not answer ends no run.",
)
live_option = click.option(
    "--live",
    type=click.IntRange(0, PORT_MOST),
    metavar="[PORT]",
    help="Serve pages of the run and its store on this machine while it goes on, on PORT or on a free one. "
    "They are drawn between blocks.",
)
quiet_option = click.option(
    "--quiet/--no-quiet", cls=PreferredOption, key="quiet", help="No progress; the answer alone."
)
mirror_option = click.option(
    "--mirror",
    cls=PreferredOption,
    key="mirror",
    default="",
    metavar="URL",
    help="Take packages from here instead of the machine's mirror.",
)
devices_option = click.option(
    "--allow-device",
    "devices",
    multiple=True,
    type=click.Path(path_type=Path, readable=False),
    help="A block device that levels of storage.device may overwrite. It must be empty.",
)
paths_option = click.option(
    "--allow-path",
    "allowed_paths",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file or folder that levels of config may lead to. The server writes there, and nothing puts it "
    "back.",
)
servers_option = click.option(
    "--allow-server",
    "servers",
    multiple=True,
    type=RunningServerUrl(),
    help="The URL of a server that runs already, whose settings may be moved. `dyno plan` says what is done.",
)
writes_option = click.option(
    "--allow-writes",
    "writes",
    is_flag=True,
    help="On a server that runs already, let the load change tables that are not Dyno's. Nothing puts them "
    "back.",
)
calibration_option = click.option(
    "--calibration/--no-calibration",
    default=True,
    help="Use this host's calibration (`dyno calibrate`) where there is one that holds.",
)
name_option = click.option(
    "--name", metavar="NAME", help="Give the run a name, which then stands for it everywhere."
)
note_option = click.option("--note", default="", metavar="TEXT", help="Keep a note beside the run.")
resume_option = partial(click.option, "--resume", is_flag=False, flag_value=UNNAMED, metavar="[RUN]")
"""Of a verb whose runs go on where they were cut short; its `help` says which these are."""
fail_on_option = click.option(
    "--fail-on",
    cls=PreferredOption,
    key="fail-on",
    type=FailOn(),
    metavar="VERDICTS",
    help=f"Exit with a code other than 0 where a variant has one of these verdicts, with commas between: "
    f"{', '.join(f'{name} ({code})' for name, code in CODES.items())}. {NONE}: as without the option.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
target_option = partial(click.option, "-o", "--output", type=click.Path(path_type=Path), show_default=True)
"""Where a verb writes what it makes, with its own `default` and `help`."""


def refuse_both(option: str, value: object, **others: object) -> None:
    """Raises UserError where two of the options exclude each other."""
    # Here, because verbs without such options need nothing of studies.
    from dbdyno.study import excludes

    excludes.require({option: value}, **others)
