"""`dyno init`: a first study, from five answers or from two configuration files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.table import Table
from rich.text import Text

from dbdyno.cli.formats import write
from dbdyno.cli.options import DurationText, target_option
from dbdyno.cli.server_url import ServerUrl
from dbdyno.cli.terminal import tell, terminal
from dbdyno.cli.verbs.logs import replay, study_of_production, workload_file
from dbdyno.engines import registry
from dbdyno.errors import UserError
from dbdyno.prepare_run import first_study
from dbdyno.prepare_run.first_study import (
    CLIENTS_EACH_CPU,
    CLIENTS_LEAST,
    GOALS,
    Answers,
    StudyOutline,
    examples,
    files,
    host_here,
)
from dbdyno.study import excludes
from dbdyno.study.catalogue import WORKLOADS
from dbdyno.study.document import toml
from dbdyno.study.nouns import Reference
from dbdyno.study.values import nearest

if TYPE_CHECKING:
    from dbdyno.prepare_run import own_files
    from dbdyno.prepare_run.first_study import (
        HostCapacity,
    )
    from dbdyno.study.catalogue import WorkloadOffer

WORKLOAD, OF_PRODUCTION, REPLAY = "workload", "study", "replay"
MADE_OF_LOGS = {REPLAY: replay, OF_PRODUCTION: study_of_production, WORKLOAD: workload_file}
SIZES = {"scale": 10, "warehouses": 2, "table_size": 100_000, "vectors": 10_000}
"""Options of workloads that say how large the data are, with a size that is made within a minute or two."""
COUNTED = (
    "hundreds of thousands of accounts (tpcb), warehouses (tpcc), rows of a table (read_write and its like)"
    " or vectors (vector_search)"
)
Answer = TypeVar("Answer", str, int)


class SizeOption(click.IntRange):
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
        return MADE_OF_LOGS.get(name, study if Reference.of(name).engine in registry.ENGINES else None)


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
@click.option("--size", type=SizeOption(1), help="The size of the data, in the unit of the workload.")
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
    "--url",
    type=ServerUrl(),
    help="A running server, whose settings are the baseline: they are written beside the study.",
)
@click.option(
    "--engine",
    "version_of",
    metavar="ENGINE@VERSION",
    help="The version that the file is for, as in mariadb@10.11. The name before may have it as well.",
)
@target_option(default=Path("study.toml"), help="The study.")
@click.pass_context
def study(
    context: click.Context,
    version_of: str | None,
    goal: str | None,
    workload: str | None,
    clients: int | None,
    size: int | None,
    time_: str | None,
    base: Path | None,
    other: Path | None,
    url: str | None,
    output: Path,
) -> None:
    """Write a first study of this engine, with comments. On a terminal the command asks five questions, and
    each option answers one of them. With --from and --and, the study varies what differs between two
    configuration files: what one file has alone is the engine's default in the other. A server says that, and
    starts with all that each of them gives. With --url, what is set on a running server is the baseline.

    The engine may have a version: dyno init mariadb@10.11.

    The proposed levels and clients suit the memory and the CPUs of this host.
    """
    reference = _in_version(Reference.of(str(context.info_name)), version_of)
    if output.exists():
        raise UserError(f"{output} is there already", "give another name with --output")
    excludes.require({"--url": url, "--from": base})
    if other is not None and base is None and url is None:
        raise UserError("--and needs the file that it is held against", "add --from FILE")
    host = host_here()
    if url is not None:
        # Here and below, because help reads no server and no file.
        from dbdyno.prepare_run import own_files

        base = own_files.place_of(reference, output)
        if base.exists():
            raise UserError(f"{base} is there already", "give another name with --output")
        reference = own_files.written_by(url, reference, base)
        click.echo(f"{base}: what is set on the server")
    elif base is not None:
        reference = _versioned(reference)
    asked = _asked_of(reference, base, other, output.parent, host)
    answers = _answers(goal, workload, clients, size, time_, host)
    write(output, first_study.text(asked.question, answers, host, str(output)))
    for line in asked.told:
        click.echo(line)
    click.echo(
        f"{output}\n  see what it does: dyno plan {output}\n  then: dyno run {output} --budget {answers.time}"
    )
    if asked.then:
        click.echo(f"  which of them it is: dyno bisect {output} {asked.then}")


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
    host: HostCapacity,
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
    from dbdyno.prepare_run.study_here import catalogue

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
    size = size or _asked(f"How large are the data, as {sized} ({option.help})", SIZES[sized], SizeOption(1))
    limits = option.limits
    if limits is not None and not limits.min <= size <= limits.max:
        raise UserError(
            f"{offer.name} cannot have {sized} = {size}", f"it takes {limits.min} to {limits.max:,}"
        )
    return size


def _asked(question: str, default: Answer, kind: click.ParamType[Answer]) -> Answer:
    """The answer of whoever sits at the terminal; the default where nobody does."""
    return click.prompt(question, default=default, type=kind) if sys.stdin.isatty() else default


def _asked_of(
    reference: Reference, base: Path | None, other: Path | None, folder: Path, host: HostCapacity
) -> own_files.AskedStudy:
    """What the study is about: what is often varied, or what differs between two files."""
    from dbdyno.prepare_run import own_files

    engine = registry.engine(reference.engine)
    if base is None:
        title, proposals = f"What helps {engine.title}?", engine.settings.proposals(host.memory_bytes)
        return own_files.AskedStudy(StudyOutline(title, toml(reference.written), "one-at-a-time", proposals))
    if other is None:
        return own_files.of_file(reference, base, folder, host.memory_bytes)
    return own_files.between(reference, base, other, folder, tell)


def _in_version(named: Reference, version_of: str | None) -> Reference:
    """The engine that is named, in the version that --engine gives it."""
    if version_of is None:
        return named
    asked = Reference.of(version_of)
    if asked.engine != named.engine or (named.version and named.version != asked.version):
        raise UserError(
            f"{named.written} and --engine {version_of} are not the same",
            f"give one of them: dyno init {version_of}",
        )
    return asked


def _versioned(reference: Reference) -> Reference:
    """The engine in the version that a configuration file is for: what one version takes, another refuses."""
    if reference.version or reference.path:
        return reference
    from dbdyno.prepare_run.study_here import installation_of

    here = [one.version for one in registry.engine(reference.engine).obtaining.offers() if one.present]
    found = installation_of(reference)
    if found is None or len(set(here)) < 2:
        return reference
    version = _asked("Which version is the file for", found.version, click.STRING)
    if version != found.version:
        return Reference(reference.engine, version)
    tell(
        f"taken for a file of {reference.engine} {version}, the newest here: name yours as"
        f" {reference.engine}@VERSION"
    )
    return reference
