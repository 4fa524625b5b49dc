"""`dyno init`: a first study, from five answers or from two configuration files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.table import Table
from rich.text import Text

from dbdyno.begin import first_study
from dbdyno.begin.catalogue import catalogue, installation_of
from dbdyno.begin.examples import examples, files
from dbdyno.begin.first_study import (
    CLIENTS_EACH_CPU,
    CLIENTS_LEAST,
    GOALS,
    Answers,
    Host,
    Question,
    host_here,
)
from dbdyno.cli.formats import write
from dbdyno.cli.options import DurationText
from dbdyno.cli.production import command as study_of_production
from dbdyno.cli.recording import command as recording
from dbdyno.cli.terminal import terminal
from dbdyno.cli.traffic import command as workload_file
from dbdyno.engines import registry
from dbdyno.engines.configuration import read_configuration
from dbdyno.engines.engine import Engine, Proposal
from dbdyno.errors import UserError
from dbdyno.frozen import Configuration, Level, level_text
from dbdyno.study.catalogue import WorkloadOffer
from dbdyno.study.fraction import FACTORS_LEAST, FACTORS_MOST
from dbdyno.study.other_names import WORKLOADS
from dbdyno.study.reference import Reference
from dbdyno.study.tables import ENGINE
from dbdyno.study.toml import inline, toml
from dbdyno.study.values import nearest

WORKLOAD, OF_PRODUCTION, REPLAY = "workload", "study", "replay"
MADE_OF_LOGS = {REPLAY: recording, OF_PRODUCTION: study_of_production, WORKLOAD: workload_file}
SIZES = {"scale": 10, "warehouses": 2, "table_size": 100_000, "vectors": 10_000}
"""Options of workloads that say how large the data are, with a size that is made within a minute or two."""
COUNTED = (
    "hundreds of thousands of accounts (tpcb), warehouses (tpcc), rows of a table (read_write and its like)"
    " or vectors (vector_search)"
)
Answer = TypeVar("Answer", str, int)


class Size(click.IntRange):
    """How much of what a workload counts; a size in bytes is told what that is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str) and not value.strip().lstrip("-").isdigit():
            self.fail(
                f"{value!r} is no whole number; a size counts what the workload counts, not bytes: {COUNTED}",
                param,
                ctx,
            )
        return int(super().convert(value, param, ctx))


GOAL, COUNT, TIME = click.Choice(list(GOALS)), click.IntRange(1), DurationText()
"""What an answer may be, on the command line and on a terminal."""


class _Kinds(click.Group):
    """A study of an engine, by its name; a study, a workload or a recording of logs."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [*sorted(registry.ENGINES), *MADE_OF_LOGS]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return MADE_OF_LOGS.get(name, study if name in registry.ENGINES else None)


@click.group(cls=_Kinds, invoke_without_command=True)
@click.option(
    "--example",
    metavar="[NAME]",
    is_flag=False,
    flag_value="",
    help="Write the study NAME that comes with Dyno into this folder, with the files that it refers to. "
    "Without NAME: list them.",
)
@click.pass_context
def command(context: click.Context, example: str | None) -> None:
    """Write a first study of an engine, with comments; or make a study, a workload or a recording from a log
    of your server; or write a study that comes with Dyno."""
    if example is None:
        if context.invoked_subcommand is None:
            click.echo(context.get_help())
            context.exit(2)
    elif context.invoked_subcommand is not None:
        raise UserError(
            f"--example takes no {context.invoked_subcommand}",
            f"leave one of the two out: dyno init --example, or dyno init {context.invoked_subcommand}",
        )
    elif example:
        _write_example(example)
    else:
        _list_examples()


@click.command()
@click.option("--goal", type=GOAL, help="What should become better.")
@click.option("--workload", help="The workload that is closest to your load.")
@click.option("--clients", type=COUNT, help="How many clients work at a time.")
@click.option("--size", type=Size(1), help="The size of the data, in the unit of the workload.")
@click.option("--time", "time_", type=TIME, help="How long a run may take, such as 30m.")
@click.option(
    "--from",
    "base",
    type=click.Path(path_type=Path),
    help="Your configuration file, whose settings are the baseline.",
)
@click.option(
    "--and",
    "--to",
    "other",
    type=click.Path(path_type=Path),
    help="Another configuration file: vary what differs in it.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("study.toml"),
    show_default=True,
    help="The study.",
)
@click.pass_context
def study(
    context: click.Context,
    goal: str | None,
    workload: str | None,
    clients: int | None,
    size: int | None,
    time_: str | None,
    base: Path | None,
    other: Path | None,
    output: Path,
) -> None:
    """Write a first study of this engine, with comments. On a terminal the command asks five questions, and
    each option answers one of them. With --from and --and, the study varies what differs between two
    configuration files.

    The proposed levels and clients suit the memory and the CPUs of this host.
    """
    engine = str(context.info_name)
    if output.exists():
        raise UserError(f"{output} is there already", "give another name with --output")
    if other is not None and base is None:
        raise UserError("--and needs the file that it is held against", "add --from FILE")
    host = host_here()
    question = _question(registry.engine(engine), base, other, output.parent, host)
    answers = _answers(goal, workload, clients, size, time_, host)
    write(output, first_study.text(question, answers, host, str(output)))
    click.echo(
        f"{output}\n  see what it does: dyno plan {output}\n  then: dyno run {output} --budget {answers.time}"
    )


def _list_examples() -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("study", no_wrap=True)
    for heading in ("engine", "asks"):
        table.add_column(heading, overflow="fold")
    for one in examples():
        table.add_row(Text(one.name), Text(one.engine), Text(one.title))
    terminal().print(table)
    click.echo("write one: dyno init --example NAME", err=True)


def _write_example(name: str) -> None:
    """Into the current folder. Raises UserError where a file of another text is there already."""
    texts = files(name)
    for path, text in texts.items():
        if Path(path).exists() and not _holds(Path(path), text):
            raise UserError(
                f"{path} is there already, and is another one", "write the study in another folder"
            )
    for path, text in texts.items():
        write(Path(path), text)
        click.echo(path)
    click.echo(f"  see what it does: dyno plan {next(iter(texts))}", err=True)


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _answers(
    goal: str | None,
    workload: str | None,
    clients: int | None,
    size: int | None,
    time_: str | None,
    host: Host,
) -> Answers:
    """Asks what no option answered."""
    goal = goal or _asked("What hurts", "throughput", GOAL)
    offer = _offer(workload)
    sized = next((name for name in SIZES if offer.option(name)), "")
    proposed = max(CLIENTS_LEAST, CLIENTS_EACH_CPU * host.cpus)
    clients = clients or _asked("How many clients", proposed, COUNT)
    return Answers(
        response=GOALS[goal],
        workload=offer,
        sized=sized,
        size=_size(offer, sized, size),
        clients=clients,
        time=time_ or _asked("How long may a run take", "30m", TIME),
    )


def _offer(workload: str | None) -> WorkloadOffer:
    known = {offer.name: offer for offer in catalogue(ask_engines=False).workloads}
    name = workload or _asked("Which workload", "tpcb", click.Choice(list(known)))
    if name not in known:
        raise UserError(f"there is no workload {name!r}", nearest(name, known, elsewhere=WORKLOADS))
    return known[name]


def _size(offer: WorkloadOffer, sized: str, size: int | None) -> int:
    """The size in the workload's own measure; 0 where it has none. Raises UserError beyond its limits."""
    option = offer.option(sized) if sized else None
    if option is None:
        return 0
    size = size or _asked(f"How large are the data, as {sized} ({option.help})", SIZES[sized], Size(1))
    limits = option.limits
    if limits is not None and not limits.min <= size <= limits.max:
        raise UserError(
            f"{offer.name} cannot have {sized} = {size}", f"it takes {limits.min} to {limits.max:,}"
        )
    return size


def _asked(question: str, default: Answer, kind: click.ParamType[Answer]) -> Answer:
    """The answer of whoever sits at the terminal; the default where nobody does."""
    return click.prompt(question, default=default, type=kind) if sys.stdin.isatty() else default


def _question(engine: Engine, base: Path | None, other: Path | None, folder: Path, host: Host) -> Question:
    """What the study is about: what is often varied, or what differs between two files."""
    proposals = engine.settings.proposals(host.memory_bytes)
    if base is None:
        title = f"What helps {engine.title}?"
        return Question(title, toml(engine.name), "one-at-a-time", proposals)
    left = _read(engine, base)
    named = ENGINE.row("name", Reference(engine.name))
    table = inline([named, ENGINE.row("configuration", _from(base, folder))])
    if other is None:
        title = f"What helps {engine.title} beyond {base.name}?"
        own = [_beyond(one, left.settings, engine) for one in proposals]
        return Question(title, table, "one-at-a-time", [one for one in own if len(one.levels) > 1])
    right = _read(engine, other)
    varied = [
        Proposal(name, (level, right.settings[name]), "")
        for name, level in left.settings.items()
        if name in right.settings and right.settings[name] != level
    ]
    if not varied:
        raise UserError(f"{base} and {other} set nothing differently", "see what they give: dyno plan STUDY")
    title = f"What makes the difference between {base.name} and {other.name}?"
    return Question(title, table, _design(len(varied)), varied, _alone({base: left, other: right}))


def _beyond(proposal: Proposal, settings: dict[str, Level], engine: Engine) -> Proposal:
    """A proposal whose baseline is the level that a configuration file sets."""
    if proposal.name not in settings:
        return proposal
    own = settings[proposal.name]
    name = proposal.name.removeprefix("config.")
    others = [level for level in proposal.levels if not engine.settings.same(name, level, level_text(own))]
    return Proposal(proposal.name, (own, *others), proposal.why)


def _alone(files: dict[Path, Configuration]) -> list[str]:
    """A sentence for each setting that one of two files sets, and the other does not."""
    (left, one), (right, another) = files.items()
    sentences = {
        name: f"{name} is set in one file alone, {path.name}, to {toml(level)}. To vary it, give both levels."
        for path, mine, theirs in ((left, one, another), (right, another, one))
        for name, level in mine.settings.items()
        if name not in theirs.settings
    }
    return [sentences[name] for name in sorted(sentences)]


def _design(factors: int) -> str:
    """All combinations explain a gap exactly, a fraction nearly; of many factors neither is in reach."""
    if factors < FACTORS_LEAST:
        return "factorial"
    return "fractional-factorial" if factors <= FACTORS_MOST else "one-at-a-time"


def _read(engine: Engine, path: Path) -> Configuration:
    installation = installation_of(Reference(engine=engine.name))
    try:
        return read_configuration(engine, installation, str(path), Path())
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}", "give the path of a configuration file") from None


def _from(path: Path, folder: Path) -> str:
    """The path as the study names it: from its own folder where the file lies in there."""
    whole, within = path.resolve(), folder.resolve()
    return str(whole.relative_to(within) if whole.is_relative_to(within) else whole)
