"""`dyno load`: the load driver on its own, against a server that runs already."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click

from dbdyno.cli.encoding import own
from dbdyno.cli.load_options import CONNECTION_OPTIONS, RUN_OPTIONS, of_recording, run_job, take_opening
from dbdyno.cli.server_url import VARIABLE, ServerUrl
from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.driver import _driver
from dbdyno.driver.job import REPLAY, Job
from dbdyno.driver.load import Invariant, Prepared
from dbdyno.driver.passwords import hint_with_source
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import DriverFailed, UserError
from dbdyno.passwords import without_passwords
from dbdyno.records.load_words import with_examples
from dbdyno.report.words.safe import json_text
from dbdyno.study import Option, WorkloadOffer, workload_offers

Carry = Callable[[Job, dict[str, Any]], None]
"""What a verb does with a job, and with its own options that are not the job's."""


class _NumberOr(click.ParamType[float | str]):
    """A number, or the one word that may stand in its place."""

    name = "NUMBER"

    def __init__(self, word: str) -> None:
        self._word = word

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if value == self._word:
            return self._word
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor {self._word}", param, ctx)


_CLICK_TYPES: dict[str, click.ParamType[Any]] = {"int": click.INT, "float": click.FLOAT, "text": click.STRING}

# A workload's name with one of these endings is a file of the user's own, see docs/guides/own-workloads.md.
_SCRIPTS = (".toml", ".sql", ".pgbench", ".lua")

_SCRIPT_OPTIONS = "script_options"

_NO_OPTION_OF_SCRIPT = re.compile(r'unknown option of the script "([^"]+)"')
"""What the driver says of an option that the script does not have."""

_NEAR = 0.75
"""How alike two options must be to be taken for each other: much, because all begin with two dashes."""

_URL = click.Option(
    ["--url"],
    type=ServerUrl(),
    envvar=VARIABLE,
    required=True,
    help="mysql://USER:PASSWORD@HOST:PORT/DATABASE, the same with postgresql: or firebird:, "
    "firebird:///PATH, or sqlite:///PATH. ?socket=PATH at its end goes over a socket; "
    "`dyno load --help` lists all that may stand there. "
    "http://HOST:PORT drives an application by a script with requests. @FILE takes the first line of a file. "
    "Default: DYNO_URL.",
)
_CLIENTS = click.Option(
    ["--clients"], type=click.IntRange(1), default=1, show_default=True, help="Connections."
)
_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print the driver's own JSON.")
_TALLY = click.Option(
    ["--tally"],
    type=click.Path(path_type=Path),
    help="What `dyno load run --json` printed: tells the invariants what was acknowledged.",
)


class _Workloads(click.Group):
    """One command per workload that the driver offers, with that workload's own options."""

    def __init__(self, verb: str, about: str, carry: Carry, options: list[click.Option]) -> None:
        super().__init__(verb, help=about, subcommand_metavar="WORKLOAD [OPTIONS]")
        self._carry = carry
        self._options = options

    def list_commands(self, context: click.Context) -> list[str]:
        return [offer.name for offer in workload_offers(_driver.workloads())]

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(context, args[0]) is None:
            names = self.list_commands(context)
            close = get_close_matches(args[0], names, n=1)
            guess = f"Did you mean {close[0]}? " if close else ""
            raise click.UsageError(
                f"There is no workload {args[0]!r}. {guess}There are: {', '.join(names)}; "
                f"and files that end with {', '.join(_SCRIPTS)}.",
                context,
            )
        return super().resolve_command(context, args)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        offers = {offer.name: offer for offer in workload_offers(_driver.workloads())}
        offer = offers.get(_offer_of(name))
        return _workload_command(name, offer, self._carry, self._options) if offer else None


def _offer_of(name: str) -> str:
    """The workload that runs what the user named: a file by its ending, any other by its name."""
    suffix = Path(name).suffix
    if suffix == ".lua":
        return "lua"
    return "script" if "/" in name or suffix in _SCRIPTS else name


def _workload_command(
    name: str, offer: WorkloadOffer, carry: Carry, options: list[click.Option]
) -> click.Command:
    """`name` is the offer's, or that of a script's file."""
    names = [option.name for option in offer.options]

    def callback(url: str, **given: Any) -> None:
        own = {option: given.pop(option) for option in names}
        opening = take_opening(given)
        set_options = {option: value for option, value in own.items() if value is not None}
        if of_script := given.pop(_SCRIPT_OPTIONS, ()):
            variables = [*_assignments(of_script), *filter(None, [set_options.get("variables")])]
            set_options["variables"] = ",".join(variables)
        if offer.name == VECTOR_SEARCH and carry is not _cleanup:
            # Here, because help needs no vectors.
            from dbdyno.datasets.vectors import with_vector_set

            defaults = {option.name: option.default for option in offer.options}
            set_options = with_vector_set(name, defaults | set_options, Path(), _tell)
        if offer.name == REPLAY and carry is _run:
            given |= of_recording(set_options.get("file", ""), given)
        if carry is not _prepare:
            _require_file(url)
        job = Job(url=url, workload=name, options=set_options, opening=opening)
        _translating(carry, job, given, [flag for option in known for flag in option.opts])

    of_workload = [_click_option(option) for option in offer.options]
    known = [_URL, *options, *CONNECTION_OPTIONS, *of_workload]
    parameters: list[click.Parameter] = [*known]
    if offer.name != "lua":
        return click.Command(name, callback=callback, params=parameters, help=offer.description)
    # The script alone knows its options: whatever Dyno does not know is taken for one of them.
    parameters.append(click.Argument([_SCRIPT_OPTIONS], nargs=-1, type=click.UNPROCESSED))
    return click.Command(
        name,
        callback=callback,
        params=parameters,
        help=offer.description,
        options_metavar="[OPTIONS] [--SCRIPT-OPTION=VALUE]...",
        context_settings={"ignore_unknown_options": True},
    )


def _assignments(words: Sequence[str]) -> Iterator[str]:
    """`name=value` of options as sysbench takes them: `--name=value`, `--name value`, or `--name` for on."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise UserError(f"{word!r} is neither an option nor the value of one", "write --NAME=VALUE")
        name, equals, value = word.removeprefix("--").partition("=")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "on"
        yield f"{name.replace('-', '_')}={value}"


def _require_file(url: str) -> None:
    """Raises UserError where a URL of SQLite names no file: SQLite would make an empty one without a word."""
    target = urlsplit(url)
    path = Path(unquote(target.path))
    if target.scheme == "sqlite" and not target.netloc and not path.is_file():
        raise UserError(
            f"there is no database {path}",
            f"correct the path, or make the database: dyno load prepare … --url {without_passwords(url)}",
        )


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _click_option(option: Option) -> click.Option:
    flag = "--" + option.name.replace("_", "-")
    about = f"{option.help} (default {json.dumps(option.default)})"
    if option.type == "bool":
        return click.Option([f"{flag}/--no-{flag[2:]}", option.name], default=None, help=about)
    if option.limits is not None and option.limits.word:
        return click.Option([flag, option.name], type=_NumberOr(option.limits.word), help=about)
    kind = click.Choice(option.choices) if option.choices else _CLICK_TYPES[option.type]
    return click.Option([flag, option.name], type=kind, help=about)


def _translating(carry: Carry, job: Job, given: dict[str, Any], flags: Sequence[str]) -> None:
    """Carries the job out. `flags` are the options that Dyno itself knows."""
    try:
        carry(job, given)
    except _driver.DriverError as error:
        hint = hint_with_source(job.url, _with_nearest_flag(error.message, error.hint, flags))
        raise DriverFailed(error.message, hint, error.kind) from None


def _with_nearest_flag(message: str, hint: str, flags: Sequence[str]) -> str:
    """The driver's hint. It knows the script's options alone, so the nearest of Dyno's own goes before."""
    unknown = _NO_OPTION_OF_SCRIPT.search(message)
    if unknown is None:
        return hint
    flag = "--" + unknown[1].replace("_", "-")
    nearest = get_close_matches(flag, flags, n=1, cutoff=_NEAR)
    return f"did you mean {nearest[0]}, which is Dyno's own? Of the script: {hint}" if nearest else hint


def _prepare(job: Job, given: dict[str, Any]) -> None:
    # Here, because help needs nothing of trials.
    from dbdyno.trial.bench import INDEXING_S

    job = job.but(clients=given["clients"], answer_timeout_s=INDEXING_S)
    prepared = Prepared.model_validate_json(_driver.prepare(json.dumps(job.model_dump())))
    if given["as_json"]:
        click.echo(json_text(prepared))
    else:
        click.echo(f"{prepared.rows:,} rows in {prepared.duration_s:.1f} s")


class _Seconds:
    """One line on standard error that each second overwrites."""

    def show(self, second: str) -> None:
        """Takes one point of the driver's series, as JSON."""
        point = json.loads(second)
        phase = "warm-up" if point["phase"] == "warmup" else "measured"
        # Seconds are numbered by their beginning, and shown when they are over.
        line = (
            f"{phase:>8} {point['second'] + 1:>5} s  {point['operations']:>9,} per s"
            f"  p99 {point['p99_us'] / 1000:>9.3f} ms  errors {point['errors']}"
        )
        click.echo(f"\r{line[: self._width()]:<{self._width()}}", file=own("stderr"), nl=False)

    def clear(self) -> None:
        click.echo("\r" + " " * self._width() + "\r", file=own("stderr"), nl=False)

    @staticmethod
    def _width() -> int:
        return shutil.get_terminal_size().columns - 1


def _run(job: Job, given: dict[str, Any]) -> None:
    as_json = given.pop("as_json")
    job = run_job(job, given)
    live = _Seconds() if sys.stderr.isatty() and not as_json else None
    try:
        tally = Tally.model_validate_json(
            _driver.run(json.dumps(job.model_dump()), live.show if live else None)
        )
    finally:
        if live:
            live.clear()
    if as_json:
        click.echo(json_text(tally))
    else:
        # Here, because help needs no words for what a load did.
        from dbdyno.report.words.tally import tally_text

        click.echo(tally_text(tally))
    if tally.interrupted:
        sys.exit(130)
    if not tally.operations and tally.errors:
        raise DriverFailed(f"no transaction succeeded: {with_examples(tally)}")
    if tally.clients_lost == tally.clients:
        raise DriverFailed(
            "every client has lost its connection, so the run ended early",
            "see the server's log; with --reconnect, clients go on when the server is back",
        )


def _check(job: Job, given: dict[str, Any]) -> None:
    acknowledged = _read_acknowledged(given["tally"]) if given["tally"] else None
    job = job.but(clients=given["clients"])
    reply = json.loads(_driver.check(json.dumps(job.model_dump()), acknowledged))
    checks = [Invariant.model_validate(each) for each in reply]
    if given["as_json"]:
        click.echo(json_text(reply))
    else:
        click.echo(_checks_text(checks))
    if not all(check.holds for check in checks):
        sys.exit(1)


def _checks_text(checks: Sequence[Invariant]) -> str:
    """One line per invariant."""
    return "\n".join(
        f"{'holds   ' if check.holds else 'VIOLATED'}  {check.name}: {check.detail}" for check in checks
    )


def _cleanup(job: Job, given: dict[str, Any]) -> None:
    _driver.cleanup(json.dumps(job.but(clients=given["clients"]).model_dump()))


def _read_acknowledged(path: Path) -> str:
    """What the tally of one run, or a list of those of several, acknowledged: as JSON."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        tallies = [Tally.model_validate(each) for each in (told if isinstance(told, list) else [told])]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path} holds no tally", "give the output of: dyno load run --json") from None
    # A file of several may have any order.
    in_time = sorted(tallies, key=lambda tally: tally.started_unix_s)
    return Acknowledged.by(in_time).model_dump_json()


class _Load(click.Group):
    """The verbs, and what URLs may have behind their `?`."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(context, formatter)
        with formatter.section("Parameters of a URL, as in ?socket=PATH&statements=text"):
            parameters = json.loads(_driver.url_parameters())
            formatter.write_dl(
                [(", ".join(names), f"{', '.join(of)}: {told}") for names, of, told in parameters]
            )


command = _Load(
    "load",
    help="Put a load on a server that runs already, without a study.\n\n"
    "\b\n  dyno load prepare tpcb --url mysql://root@localhost/test --scale 10\n"
    "  dyno load run tpcb --url mysql://root@localhost/test --scale 10 --clients 8 --time 30\n",
    commands=[
        _Workloads("prepare", "Make a workload's tables and rows.", _prepare, [_CLIENTS, _JSON]),
        _Workloads("run", "Put the load on and count.", _run, [_CLIENTS, *RUN_OPTIONS, _JSON]),
        _Workloads(
            "check",
            "Check the workload's invariants; exit code 1 if one is violated.",
            _check,
            [_CLIENTS, _TALLY, _JSON],
        ),
        _Workloads("cleanup", "Drop what prepare made.", _cleanup, [_CLIENTS]),
    ],
)
