"""`dyno import`: a run of what another tool measured, from its logs."""
# ruff: noqa: N999 - a verb's file has the verb's name

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from dbdyno.begin.naming import keep, name_of_run, require_free
from dbdyno.brought import pgbench, sysbench
from dbdyno.brought.counted import Counted
from dbdyno.brought.files import Repetition, of_threads, one_each
from dbdyno.brought.run import Log, Question, records_of, run_of
from dbdyno.cli.options import store_option
from dbdyno.errors import UserError
from dbdyno.records import metrics
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import writable_store
from dbdyno.report.words.numbers import plural
from dbdyno.study import values
from dbdyno.study.nouns import BASELINE


@dataclass(frozen=True)
class Tool:
    """How a tool's logs lie in folders, and how one repetition is read."""

    repetitions: Callable[[Sequence[Path]], list[Repetition]]
    read: Callable[[Repetition, str | None], Counted]


TOOLS: Mapping[str, Tool] = {
    "pgbench": Tool(of_threads, lambda each, seventh: pgbench.read(each.files, seventh)),
    "sysbench": Tool(one_each, lambda each, _: sysbench.read(each.files[0])),
}


@click.command()
@click.argument("tool", type=click.Choice(list(TOOLS)))
@click.argument("logs", nargs=-1, type=click.Path(path_type=Path), metavar="[LOG]...")
@click.option(
    "--as",
    "named",
    multiple=True,
    metavar="VARIANT=LOG",
    help="Logs of VARIANT. Repeat the option for each further log. The first variant is the baseline.",
)
@click.option(
    "--paired",
    is_flag=True,
    help="State that the i-th repetitions of all variants belong together: those of pgbench by when they "
    "began, those of sysbench in the order given, and those of a folder by name.",
)
@click.option("--response", default="throughput", show_default=True, help="The metric to compare by.")
@click.option(
    "--margin", default="2%", show_default=True, help="A difference below this counts as no effect."
)
@click.option("--title", help="The title of the report.")
@click.option("--name", help="Give the run a name.")
@click.option("--note", default="", help="Keep a note beside the run.")
@click.option(
    "--seventh",
    type=click.Choice([pgbench.LAG, pgbench.RETRIES]),
    help="What the seventh column of pgbench's logs is, if they have seven.",
)
@store_option
def command(
    tool: str,
    logs: tuple[Path, ...],
    named: tuple[str, ...],
    paired: bool,
    response: str,
    margin: str,
    title: str | None,
    name: str | None,
    note: str,
    seventh: str | None,
    store: str | None,
) -> None:
    """Make a run from the logs of a tool, for `dyno report` and `dyno compare`.

    A LOG is a file, or a folder that contains only logs: files of `pgbench --log`, or the output of
    `sysbench ... run`, one file for each time that it ran. Dyno did not measure such a run, and its report
    says so: nothing proves what ran, and the order was not random.
    """
    metrics.find(response)
    share, by_variant = _margin(margin), _by_variant(logs, named)
    of_whom = f": {', '.join(by_variant)}" if len(by_variant) > 1 else ""
    asked = Question(title or f"Logs of {tool}{of_whom}", response, share, paired)
    found = {variant: _read(tool, paths, seventh) for variant, paths in by_variant.items()}
    _require_each_file_once(found)
    run = run_of(name_of_run(), tool, found, asked, time.time())
    with writable_store(store_url(store)) as opened:
        require_free(opened, name)
        keep(opened, run, name, note)
        for record in records_of(run, found, paired):
            opened.add_record(record)
        opened.finish_run(run.run)
    _tell(run, found)


def _by_variant(logs: Sequence[Path], named: Sequence[str]) -> dict[str, list[Path]]:
    """The paths of each variant; those without a name are the baseline's."""
    found: dict[str, list[Path]] = {BASELINE: list(logs)} if logs else {}
    for text in named:
        variant, _, path = text.partition("=")
        if not path or not re.fullmatch(values.VARIANT_NAME, variant):
            raise UserError(f"--as {text!r} does not say whose logs these are", "write --as VARIANT=FOLDER")
        found.setdefault(variant, []).append(Path(path))
    if not found:
        raise UserError("no log was named", "give files or folders, or --as VARIANT=FOLDER for each variant")
    return found


def _read(tool: str, paths: Sequence[Path], seventh: str | None) -> list[Log]:
    """The repetitions of one variant: pgbench's in the order in which they began, which its logs tell, others
    in the order given."""
    each = TOOLS[tool].repetitions(paths)
    found = [Log(repetition, TOOLS[tool].read(repetition, seventh)) for repetition in each]
    return sorted(found, key=lambda log: log.counted.started_unix_s) if tool == "pgbench" else found


def _require_each_file_once(found: Mapping[str, Sequence[Log]]) -> None:
    """Raises UserError where two variants have one and the same file."""
    owners: dict[Path, str] = {}
    for variant, file in (
        (variant, file) for variant, logs in found.items() for log in logs for file in log.repetition.files
    ):
        owner = owners.setdefault(file.resolve(), variant)
        if owner != variant:
            raise UserError(f"{file} is given for {owner} and for {variant}", "name each log once")


def _margin(text: str) -> float:
    try:
        return values.share(text, 0.0, 50.0)
    except values.Fault as fault:
        raise UserError(f"--margin: {fault.message}", fault.hint) from None


def _tell(run: Run, found: Mapping[str, Sequence[Log]]) -> None:
    click.echo(f"run {run.run}")
    for variant, logs in found.items():
        click.echo(f"  {variant}: {plural(len(logs), 'repetition')}", err=True)
    click.echo(f"  see: dyno report {run.run}", err=True)
