"""The options of the verbs that read and compare runs; `body` imports what carries them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from dbdyno.analyse import Axis, Ending
from dbdyno.cli.formats import format_options, table_format_options, verdict_format_options
from dbdyno.cli.options import Age, OneOf, fail_on_option, json_option, store_option
from dbdyno.cli.verbs import body
from dbdyno.publish import MAKE_A_KEY


@click.command()
@click.argument("run", default="last")
@click.argument("trial", required=False, type=click.IntRange(0))
@verdict_format_options
@click.option("--trials", is_flag=True, help="Show RUN as it was recorded: study, host, engine and trials.")
@click.option(
    "--details",
    is_flag=True,
    help="On the terminal, where the time of operations and of trials goes as well.",
)
@fail_on_option
@store_option
def report(**asked: Any) -> None:
    """Show RUN again: its name, the start of its name, or `last` (the default).

    With TRIAL, a number that --trials lists, show that trial: settings read back, checks, the cause of a
    failure, the end of the server's log.
    """
    body("report:main")(**asked)


@click.command()
@click.argument("run", default="last")
@click.argument("trial", required=False, type=click.IntRange(0))
@json_option
@store_option
def show(**asked: Any) -> None:
    """The old name of `dyno report RUN --trials` and `dyno report RUN TRIAL`."""
    body("report:show")(**asked)


@click.command()
@click.argument("run", default="last")
@click.option(
    "--from", "slow", metavar="VARIANT", help="The slow variant, or its number; the baseline if left out."
)
@click.option(
    "--to",
    "fast",
    metavar="VARIANT",
    help="The fast variant, or its number; every factor's last level if left out.",
)
@click.option(
    "--write",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Of two versions: write the study that tells changed defaults from the rest, with the new version"
    " under the old defaults between the two.",
)
@format_options
@store_option
def explain(**asked: Any) -> None:
    """Explain the gap between two variants of RUN (the last one if left out) as a product of factors.

    The run's study must be a factorial one, so that every variant between the two was measured; or, for more
    factors, a fraction of one, which names what it cannot tell apart. A list whose variants go on from each
    other is explained step by step: --write makes one for two versions.
    """
    body("explain:main")(**asked)


@click.command()
@click.option("--engine", metavar="ENGINE", help="Only levels of this engine: mariadb, sqlite, ...")
@click.option(
    "--layer",
    type=OneOf("dbdyno.layers.registry:LAYERS"),
    help="Only variants that change a level of this layer.",
)
@click.option(
    "--outcome",
    type=click.Choice([str(ending) for ending in Ending]),
    help="Only variants that ended like this.",
)
@click.option("--study", metavar="TEXT", help="Only runs of studies that have TEXT in their path.")
@table_format_options
@store_option
def museum(**asked: Any) -> None:
    """Show what did not help in any run of the store: how it ended, why, and what the evidence is.

    Each level of an engine is listed once, with all runs that tried it. The latest comes first.
    """
    body("museum:main")(**asked)


@click.command()
@click.argument("run", default="last")
@click.option(
    "--csv", type=click.Path(path_type=Path, file_okay=False), help="Write CSV files into this folder."
)
@click.option("--parquet", type=click.Path(path_type=Path, file_okay=False), help="Write Parquet files.")
@click.option(
    "--for",
    "tool",
    type=OneOf("dbdyno.export.exchange:Form"),
    help="Print the means with their intervals as Bencher, github-action-benchmark (smaller-is-better, "
    "bigger-is-better), Nyrkiö, Otava or Conbench read them, or the last trial's metrics as OpenMetrics.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="With --for: the file.")
@store_option
def export(**asked: Any) -> None:
    """Write RUN as tables: `trials`, one row per trial with every metric, and `series`, one row per second.
    Or print what one of the field's tools keeps of a run.

    Nyrkiö and Otava are told the commit, the branch and the repository that a pipeline's variables name. A
    file for Otava that is there already gets one row more.
    """
    body("export:main")(**asked)


@click.command()
@click.argument("run")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    help=f"Sign with this private key (PEM; Ed25519, or ECDSA with P-256). Make one: {MAKE_A_KEY}",
)
@click.option("--unsigned", is_flag=True, help="Sign nothing: digests alone show that the folder is whole.")
@store_option
def publish(**asked: Any) -> None:
    """Write RUN into FOLDER, so that others can check it without a database: records, study and scripts,
    evidence, the report, the chain of the store, and signed in-toto statements on all of that.

    The folder tells everything that the run kept, such as the name of this host and the paths of files.
    Studies that ask another thing are not shown. The store notes that the run was published.
    """
    body("publish:main")(**asked)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    help="The publisher's public key (PEM), as you got it from the publisher. Without it, the key in the "
    "folder shows no more than that the folder is whole.",
)
@json_option
def verify(**asked: Any) -> None:
    """Check FOLDER, which `dyno publish` wrote: signatures, the digest of every file, the chain, and the
    report, which is made again from the records and compared digit by digit. It also names the runs of the
    same study that were not registered or not published.

    Exit code 9: a file was changed, added or removed; 10: the signature does not hold; 11: the files do not
    follow from each other, such as a figure from its records; 12: not all was checked, because nobody signed
    the folder or another Dyno made it, and what was checked holds. 0: all was checked, and holds.
    """
    body("verify:main")(**asked)


def _builds(*asked: Any) -> list[CompletionItem]:
    found: list[CompletionItem] = body("diff:complete_build")(*asked)
    return found


@click.command()
@click.argument("left")
@click.argument("right")
@click.option(
    "--from",
    "left_variant",
    metavar="VARIANT",
    help="The variant of the LEFT run, or its number. Default: every variant, each with itself.",
)
@click.option("--to", "right_variant", metavar="VARIANT", help="The variant of the RIGHT run, or its number.")
@click.option("--right-store", metavar="URL", help="Where RIGHT is kept, if elsewhere than LEFT.")
@format_options
@store_option
def compare(**asked: Any) -> None:
    """Compare runs of one study: what differs between the hosts, and what the gap is made of.

    Ratios are RIGHT / LEFT. Each side is a run, or several with commas between them: three alternating runs a
    side or more tell the hosts from their days.
    """
    body("compare:main")(**asked)


@click.command()
@click.argument("run", default="last")
@click.option(
    "--against",
    metavar="NAME",
    help="The run to compare RUN with: a baseline or any run. Default: the one measured beside it.",
)
@verdict_format_options
@fail_on_option
@store_option
def gate(**asked: Any) -> None:
    """Compare RUN (the last one if left out) with another run, and end with the verdict's exit code.

    `dyno run STUDY --against NAME` measures both side by side and ends in the same way. Without --fail-on the
    exit code is 4 for a broken, 5 for a failed and 6 for a slower run.
    """
    body("gate:main")(**asked)


@click.command()
@click.argument("runs", nargs=-1, required=True)
@format_options
@store_option
def matrix(**asked: Any) -> None:
    """Put runs of the same variants under different loads beside each other: what does each gain where?

    Each of the RUNS has a baseline of its own, and ratios are variant / baseline of the same run. The report
    has a column for each load, and says which cell is the best and which is the worst.
    """
    body("matrix:main")(**asked)


@click.command()
@click.argument("named", nargs=-1, required=True, metavar="STUDY|RUN...")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Take only the latest N runs."
)
@click.option(
    "--since", "age_s", type=Age(), help="Take only runs that are no older than this: 12h, 30d, 4w."
)
@click.option(
    "--by",
    type=click.Choice([axis.value for axis in Axis]),
    default=Axis.TIME.value,
    show_default=True,
    help="The order of the runs: when they began, when the commit of their source was made, or the version"
    " of their engine.",
)
@format_options
@store_option
def trend(**asked: Any) -> None:
    """Follow one study over its finished runs: the ratio of each variant in every run, and whether it moved.

    Give the study's file or one of its runs. If you give several runs, only these are taken. A file that is
    written differently but asks the same is the same study.
    """
    body("trend:main")(**asked)


@click.command()
@click.argument("left", metavar="BUILD", shell_complete=_builds)
@click.argument("right", metavar="BUILD", shell_complete=_builds)
@format_options
def diff(**asked: Any) -> None:
    """Compare two builds function by function: is the code the same, and where is it not?

    A BUILD is the name of a kept one as `dyno cache builds` lists it, or the beginning of that name; or
    the path of a program or a shared library. Both must be for x86-64, on whatever machine Dyno runs.
    Addresses do not count, so code that only moved is the same. Neither build is run.
    """
    body("diff:main")(**asked)
