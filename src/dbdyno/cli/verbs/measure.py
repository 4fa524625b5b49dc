"""The options of the verbs that measure; `body` imports what carries them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbdyno.cli.formats import format_options, verdict_format_options
from dbdyno.cli.options import (
    Duration,
    OneOf,
    WaitingCommand,
    budget_option,
    calibration_option,
    devices_option,
    fail_on_option,
    json_option,
    live_option,
    name_option,
    note_option,
    otlp_option,
    paths_option,
    quiet_option,
    resume_option,
    servers_option,
    store_option,
    wait_option,
    writes_option,
)
from dbdyno.cli.verbs import body

hosts_option = click.option(
    "--hosts", type=click.IntRange(1), metavar="N", help="With --fleet slurm: or kubernetes: take N nodes."
)


@click.command(cls=WaitingCommand)
@click.argument("study", required=False, type=click.Path(path_type=Path))
@resume_option(
    help="Go on with a run that was cut short: RUN, or the study's latest unfinished one. Without both, "
    "the latest unfinished run of all, after asking.",
)
@click.option(
    "--again",
    metavar="RUN",
    help="Carry out the study of RUN again, from its text and files as the store kept them.",
)
@click.option(
    "--add-blocks",
    type=click.IntRange(1),
    help="With --resume RUN: add N blocks. The time goes to the variants that are not decided, "
    "and the intervals hold at every look, as with --until.",
)
@click.option("--blocks", type=click.IntRange(1), help="Take this many blocks instead of the study's.")
@click.option(
    "--until",
    type=click.Choice(["margin"]),
    help="Measure each variant until its verdict stands against the study's margin, 50 blocks at most "
    "(or --blocks); the time goes to those that are not decided.",
)
@budget_option
@click.option(
    "--seed",
    type=int,
    help="Draw the order from this seed, not the study's or a random one.",
)
@click.option(
    "--against",
    metavar="NAME|FILE|git:REVISION",
    help="Hold the run against a baseline, or any run: its baseline variant is measured again, side by side, "
    "where its engine is still here; or against the baseline of another study's file, or of this file in a "
    "commit. The exit code is that of the verdict.",
)
@click.option(
    "--fleet",
    metavar="HOSTS|tag:TAG|slurm:PARTITION|kubernetes:NAMESPACE|ssh:HOSTS",
    help="Carry the study out on these hosts of the store's fleet, separated by commas: all its blocks on "
    "each. See: dyno fleet hosts, dyno fleet worker. With slurm: or kubernetes:, that starts the workers, "
    "each alone on a node that has the features or labels of all tag:TAG. With ssh:, SSH starts them.",
)
@hosts_option
@otlp_option
@click.option(
    "--fetch", is_flag=True, help="First fetch what the study needs and is not here, as dyno engines does."
)
@name_option
@note_option
@calibration_option
@devices_option
@paths_option
@servers_option
@writes_option
@live_option
@wait_option
@quiet_option
@store_option
@verdict_format_options
@fail_on_option
def run(**asked: Any) -> None:
    """Carry out a study: every trial is prepared, proved, driven, checked, recorded, and the host restored.

    Finished trials are kept whatever happens: after Ctrl-C or a crash, --resume goes on where it stopped.
    """
    body("run:main")(**asked)


@click.command(cls=WaitingCommand)
@click.argument("study", type=click.Path(path_type=Path))
@budget_option
@click.option(
    "--suggest",
    is_flag=True,
    help="Run the baseline once and print the [factors] that this load depends on, for the study.",
)
@click.option(
    "--on",
    "other",
    metavar="WORKLOAD",
    help="Measure the winner of the study's latest search on another workload, for which it was not tuned. "
    'Options of it follow its name: --on "point_select table_size=100000 clients=16".',
)
@click.option(
    "--fleet",
    metavar="HOSTS|tag:TAG|slurm:PARTITION|kubernetes:NAMESPACE|ssh:HOSTS",
    help="Confirm the winner of the study's latest search on these hosts of the store's fleet: it and the "
    "baseline in all blocks on each. With --on, on that workload.",
)
@hosts_option
@click.option("--seed", type=int, help="Draw the candidates from this seed, not the study's or a random one.")
@name_option
@note_option
@calibration_option
@devices_option
@paths_option
@wait_option
@quiet_option
@store_option
@verdict_format_options
@fail_on_option
@click.pass_context
def tune(context: click.Context, /, **asked: Any) -> None:
    """Search for the best variant of STUDY, whose design is `search`, in the time that it gives.

    The best candidates are confirmed in blocks of their own, and only that gives a verdict. Then each change
    of the winner is taken back in turn, so that it keeps the changes that carry its gain and no others.
    Finished trials are kept whatever happens: `dyno run --resume` goes on where it stopped.
    """
    body("tune:main")(context, **asked)


@click.command(cls=WaitingCommand)
@click.argument("study", required=False, type=click.Path(path_type=Path))
@resume_option(
    help="Go on with an evaluation that was cut short. What it answered is answered again at once, in the "
    "order in which the same levels are asked, and not measured again.",
)
@click.option(
    "--own",
    is_flag=True,
    help="Let Dyno's own search have as much time as yours took, and measure the best of both again.",
)
@click.option(
    "--ask",
    "asks",
    is_flag=True,
    help="Measure nothing: hand out what Dyno's own search would try, and read a result for each.",
)
@click.option(
    "--tell",
    "told",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --ask: a file of results that are known already, a line of JSON each.",
)
@budget_option
@click.option("--seed", type=int, help="Draw orders and candidates from this seed, not the study's.")
@name_option
@note_option
@calibration_option
@devices_option
@paths_option
@wait_option
@quiet_option
@store_option
def evaluate(**asked: Any) -> None:
    """Measure what a searcher of others asks for, a line of JSON each, and judge the best that it found.

    The study has the design `search`. Levels are read from standard input, such as {"levels":
    {"config.cache_size": "4M"}}. Each line is answered on standard output: response, ratio to the baseline
    beside it, interval, guards, cost in seconds, and why something was not measured. When the input ends, the
    best are measured again in fresh blocks. See docs/guides/searchers.py, and: dyno schema evaluate.
    """
    body("evaluate:main")(**asked)


@click.command(cls=WaitingCommand)
@click.argument("study", required=False, type=click.Path(path_type=Path))
@click.option("--good", metavar="REV", help="The commit, version or variant that is fast enough.")
@click.option("--bad", metavar="REV", help="The commit, version or variant that is slower.")
@click.option(
    "--settings",
    is_flag=True,
    help="Ask which setting did it: of each factor the first level is good, the last bad.",
)
@click.option(
    "--versions",
    is_flag=True,
    help="Ask which level of the factor `engine` did it: the first is good, the last bad.",
)
@click.option(
    "--engines",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Like --versions, over the tarballs, images and servers in FOLDER, in the order of their versions.",
)
@click.option(
    "--statements",
    is_flag=True,
    help="Say where each statement of the workload `statements` became slower, or is answered otherwise.",
)
@resume_option(help="Go on with a bisection that was cut short: RUN, or the study's latest unfinished one.")
@click.option(
    "--blocks",
    type=click.IntRange(6),
    help="Take at most this many blocks for each question (default: 30; with --statements 12).",
)
@click.option("--seed", type=int, help="Draw the order from this seed, not the study's or a random one.")
@name_option
@note_option
@devices_option
@paths_option
@wait_option
@quiet_option
@store_option
@format_options
def bisect(**asked: Any) -> None:
    """Find the commit, the version or the setting between a good one and a bad one that made the study's
    baseline slower.

    The study names a git repository as source.origin. Each commit that is asked about is built once and
    measured side by side with both ends, until it is clear to which of them it belongs. Commits that do not
    build are skipped. Where the ends differ in the instructions that they execute, counting places a commit.

    With --versions the study has the versions of one engine as levels of the factor `engine`, the oldest
    first. Each version that is asked about has data of its own, and time places it. --good and --bad name two
    of them, where only those between are to be asked.

    It ends in one of them, in a range, or in none. Finished trials are kept whatever happens: --resume
    goes on where it stopped.
    """
    body("bisect:main")(**asked)


class Ladder(click.ParamType[tuple[int, ...]]):
    """Numbers of clients with commas between: `100,500,1000`."""

    name = "CLIENTS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        # Here, because verbs that take no ladder need nothing of studies.
        from dbdyno.study.sections import rungs
        from dbdyno.study.values import ValueFault

        try:
            return rungs([int(part) for part in str(value).split(",")])
        except ValueError:
            self.fail(f"{value!r} is no list of numbers; write them with commas: 100,500", param, ctx)
        except ValueFault as fault:
            self.fail(f"{fault.message}; {fault.hint}", param, ctx)


@click.command(cls=WaitingCommand)
@click.argument("study", required=False, type=click.Path(path_type=Path))
@resume_option(help="Go on with a soak that was cut short: RUN, or the study's latest unfinished one.")
@click.option(
    "--smoke",
    is_flag=True,
    help="A short one: one rung, 20 s of load, a kill, a power cut, a torn page and a clean stop.",
)
@click.option("--clients", type=Ladder(), help="The ladder, in the place of the study's: 100,500,1000.")
@click.option("--duration", "duration_s", type=Duration(), help="The sustained load of each rung: 30m.")
@click.option("--seed", type=int, help="Draw the order of variants from this seed.")
@devices_option
@paths_option
@wait_option
@quiet_option
@store_option
@verdict_format_options
def soak(**asked: Any) -> None:
    """Soak a study's variants: with how many clients does each stay up, and does anything grow?

    Each rung of the ladder opens all connections in a storm and gradually, has clients misbehave, keeps the
    load up, and ends with a clean stop and a start that must find everything. Rungs that are over are kept
    whatever happens: --resume goes on with the next one.

    Exit code 4: it broke; 5: it failed; 6: something outgrew what it may gain.
    """
    body("soak:main")(**asked)


@click.command(cls=WaitingCommand)
@click.argument("run", default="last")
@click.option(
    "--variant", metavar="VARIANT", help="The variant to profile, or its number; the baseline if left out."
)
@click.option(
    "--against",
    metavar="VARIANT",
    help="A second variant, or its number: what the first spends beyond this one.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the flame graph's page here.")
@click.option("--counted", is_flag=True, help="Count instructions under Valgrind, in place of sampling time.")
@click.option("--cache-sim", is_flag=True, help="With --counted: simulate the CPU's caches as well.")
@click.option("--branch-sim", is_flag=True, help="With --counted: simulate branch prediction as well.")
@devices_option
@paths_option
@wait_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "json", "folded"]),
    help="What is printed; folded: stacks as flame graph tools read them, in nanoseconds per operation.",
)
@json_option
@store_option
def profile(**asked: Any) -> None:
    """Run one variant of RUN (the last one if left out) again under perf, and draw its flame graph.

    The trial is prepared, proved, driven and checked as it was measured, but not recorded as measured:
    sampling slows it down. With --counted it runs under Valgrind: what the server's own code executes is
    counted, which no other load on this machine can disturb.
    """
    body("profile:main")(**asked)


@click.command()
@click.argument("tool", type=OneOf("dbdyno.imported:TOOLS"))
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
    "began, those of others in the order given, and those of a folder by name.",
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
    type=OneOf("dbdyno.imported.pgbench:SEVENTH"),
    help="What the seventh column of pgbench's logs is, if they have seven.",
)
@click.option(
    "--unit",
    type=OneOf("dbdyno.imported.hdrhistogram:US"),
    help="What the values of a log of HdrHistogram are in, if it does not say so.",
)
@store_option
def import_logs(**asked: Any) -> None:
    """Make a run from what another tool left, for `dyno report` and `dyno compare`.

    A LOG is a file, or a folder that contains only such files: those of `pgbench --log`, or one for each time
    that the tool ran: the output of sysbench, go-tpc, YCSB, go-ycsb (ycsb) or wrk, a log or a job's JSON of
    HammerDB, a `summary.json` of BenchBase, a summary of k6, fio's JSON, or a log of HdrHistogram. Of
    phoronix, a test of a system: `composite.xml#TEST#SYSTEM`. Folders of Callaghan's scripts, with many tests
    of sysbench (`sb.o.*`), make a run for each test. Dyno did
    not measure such a run, and its report says so: nothing proves what ran, and the order was not random.
    """
    body("import:main")(**asked)
