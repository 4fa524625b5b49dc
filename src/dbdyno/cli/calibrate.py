"""`dyno calibrate`: which binding of server and driver tells the smallest differences on this host."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno import __version__
from dbdyno.calibrate.binding import OTHER_SLICES_S, bindings
from dbdyno.calibrate.finding import Finding, best, finding, interval_for, with_slices
from dbdyno.calibrate.kept import Calibration, keep, place_of
from dbdyno.calibrate.slices import Pairs, measured
from dbdyno.cli.arrangement import has_pauses
from dbdyno.cli.catalogue import catalogue
from dbdyno.cli.options import Duration, WaitingCommand, json_option, wait_option
from dbdyno.cli.progress import Quiet
from dbdyno.cli.study_file import study_at
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.host.alone import alone
from dbdyno.host.fingerprint import core_count, fingerprint, usable_cpus
from dbdyno.host.journal import open_journal
from dbdyno.layers.registry import LAYERS
from dbdyno.layers.setup import Running
from dbdyno.records.record import Outcome, Run
from dbdyno.report.words import numbers
from dbdyno.run import run_trial
from dbdyno.study import Study, parse_study
from dbdyno.study.designs import variants_of
from dbdyno.study.phases import Phase
from dbdyno.study.trials import Trial
from dbdyno.study.written import toml
from dbdyno.trial.bench import Bench

BINDINGS_SHARE = 0.7
"""Of the time; the rest goes to slices of other lengths under the best binding."""
LAST_LOAD_S = 1.0
"""The trial's own load, after the slices: what is checked follows it."""
OVERHEAD_S = 20.0
"""About what the data, the server and the checks take beside the slices."""

HEADS = ("server", "driver", "slice", "n", "per s", "sd of log (95 %)", "corr.", "1 %", "2 %", "5 %")
NOTE = (
    "server, driver: their CPUs. n: slices. corr.: of two slices that follow one another. 1 %, 2 %, 5 %:"
    " minutes of two variants' slices in which such a difference is told in nine of ten comparisons,"
    " (t + 1.28) s / sqrt(n) <= log(1 + d), with t as in verdicts and s the spread of the log ratios of n"
    " pairs of slices. The luck of a server's start is not in them."
)


@click.command(cls=WaitingCommand)
@click.argument("study", required=False, type=click.Path(path_type=Path))
@click.option("--engine", help="Without a study: an engine as a study names it, such as mariadb@11.8.")
@click.option("--workload", help="Without a study: a workload, with its default options.")
@click.option("--clients", type=click.IntRange(1), default=1, show_default=True, help="Without a study.")
@click.option("--time", "time_s", type=Duration(), default=90.0, help="For slices (default 90s).")
@wait_option
@json_option
def command(
    study: Path | None,
    engine: str | None,
    workload: str | None,
    clients: int,
    time_s: float,
    wait_s: float,
    as_json: bool,
) -> None:
    """Measure how far one setup differs from itself here, under several bindings, and keep the best.

    One server runs the study's baseline. Pairs of short slices follow one another under each binding of
    server and driver, in random order. Studies of this engine, workload with its options, and number of
    clients use the best binding until they say otherwise: `cpu` levels of their own, or --no-calibration.
    """
    asked = study_at(study) if study else _asked(engine, workload, clients)
    _require_server_alone(asked)
    _require_closed_loop(asked)
    tell = partial(click.echo, err=True)
    with alone(f"calibration of {asked.title}", time_s + OVERHEAD_S, wait_s, tell):
        tell(f"calibrating {asked.engine.engine}, {asked.workload.name}: {time_s:g} s of slices")
        found = _calibrated(asked, time_s)
    path = keep(found)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        _print(found, Console(highlight=False))
    tell(f"kept: {path}")


def _asked(engine: str | None, workload: str | None, clients: int) -> Study:
    """A study of the baseline alone."""
    if not engine or not workload:
        raise UserError(
            "no study says what to calibrate",
            "dyno calibrate STUDY, or --engine mariadb@11.8 --workload point_select",
        )
    text = (
        f"title = {toml(f'{engine}, {workload}')}\nengine = {toml(engine)}\naa = true\n"
        f"[workload]\nname = {toml(workload)}\nclients = {clients}\n"
    )
    return parse_study(text.encode(), catalogue(), "the options")


def _require_server_alone(study: Study) -> None:
    if study.application is not None:
        raise UserError(
            f"{study.application.name} stands in front of the server, and a calibration is of servers alone",
            "calibrate without it: dyno calibrate --engine mariadb@11.8 --workload point_select",
        )


def _require_closed_loop(study: Study) -> None:
    load = study.workload
    if load.rate_per_s or load.schedule or load.think_time or has_pauses(study):
        raise UserError(
            "a calibration measures speeds, and this load has a pace of its own",
            "calibrate with the same workload in a closed loop without think times",
        )


def _calibrated(study: Study, time_s: float) -> Calibration:
    made: list[tuple[Finding, Pairs]] = []

    @contextmanager
    def slicing(running: Running) -> Iterator[None]:
        made.append(_found(study, running, time_s))
        yield

    host = fingerprint()
    with open_journal() as journal:
        bench = Bench(
            study=study,
            run=_run(study, host),
            engine=registry.engine(study.engine.engine),
            installation=registry.engine(study.engine.engine).obtaining.locate(study.engine),
            layers=LAYERS,
            journal=journal,
            open_load=LoadProcess,
            cores=core_count(),
        )
        phases = (Phase(name="load", duration_s=LAST_LOAD_S),)
        trial = Trial(index=0, block=0, position=0, variant=variants_of(study)[0], phases=phases)
        # The record is kept nowhere: its load is the least of what the server was put through.
        record = run_trial(trial, bench, lambda _: None, Quiet(), slicing)
    if record.outcome is not Outcome.MEASURED or not made:
        raise DynoError(f"the baseline could not be measured: {record.cause}", record.remedy)
    [(kept, pairs)] = made
    return Calibration(
        engine=study.engine.engine,
        workload=study.workload.name,
        clients=study.workload.clients,
        options=dict(study.workload.options),
        place=place_of(host),
        made_unix_s=time.time(),
        best=kept,
        interval=interval_for(list(pairs.values())),
        findings=tuple(finding(binding, each) for binding, each in pairs.items()),
    )


def _found(study: Study, running: Running, time_s: float) -> tuple[Finding, Pairs]:
    """The best binding and the pairs of all: all with slices of one length, then the best of them with
    others."""
    draw, tried = random.Random(), bindings(study, running.setup.engine.embedded, usable_cpus())
    pairs = measured(running, tried, BINDINGS_SHARE * time_s, draw)
    # What gathers is the study's own choice; the others are shown for comparison.
    alike = [one for one in pairs if one.gather == tried[0].gather]
    if tried[0] not in pairs:
        raise DynoError(
            f"no transaction ended within a slice of {tried[0].slice_s:g} s",
            "calibrate with a smaller transaction, or with more clients",
        )
    bound = best([finding(one, pairs[one]) for one in alike])
    others = with_slices(bound.arrangement, OTHER_SLICES_S)
    longer = measured(running, others, (1.0 - BINDINGS_SHARE) * time_s, draw)
    return best([bound, *(finding(one, each) for one, each in longer.items())]), pairs | longer


def _run(study: Study, host: dict[str, object]) -> Run:
    return Run(
        run=f"calibration-{secrets.token_hex(4)}",
        study_path=study.path,
        study_text=study.text,
        study_digest=study.digest,
        seed=secrets.randbelow(10**9),
        blocks=1,
        created_unix_s=time.time(),
        dyno_version=__version__,
        host=host,
    )


def _print(found: Calibration, console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    gathering = len({each.arrangement.gather for each in found.findings}) > 1
    for head in (*HEADS, *(["gather"] if gathering else [])):
        table.add_column(head, justify="right", no_wrap=True)
    for each in found.findings:
        gather = ["on" if each.arrangement.gather else "off"] if gathering else []
        table.add_row(*_row(each), *gather, style="bold" if each == found.best else "")
    console.print(table)
    console.print(Text(NOTE, style="dim"))
    saturated = [each.arrangement.words for each in found.findings if not each.usable]
    if saturated:
        console.print(Text(f"The driver was the limit: {'; '.join(saturated)}.", style="dim"))
    told = "" if found.best.arrangement.settings else " (no binding is told from it)"
    slices = numbers.seconds_text(found.best.arrangement.slice_s)
    kept = f"{found.best.arrangement.words}{told}; slices: {slices}; interval: {found.interval}"
    console.print(Text(f"Kept: {kept}"))


def _row(each: Finding) -> list[str]:
    return [
        each.arrangement.server,
        each.arrangement.driver,
        f"{each.arrangement.slice_s:g} s",
        str(each.slices),
        f"{each.speed_per_s:,.0f}",
        f"{each.sd:.3f} ({each.sd_low:.2f}–{each.sd_high:.2f})",
        f"{each.autocorrelation:+.2f}",
        *(_minutes_text(one.minutes) for one in each.told),
    ]


def _minutes_text(minutes: float | None) -> str:
    if minutes is None:
        return "> day"
    return f"{minutes:.0f}" if minutes >= 10.0 else f"{minutes:.1f}"
