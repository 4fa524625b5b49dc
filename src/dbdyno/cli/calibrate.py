"""`dyno calibrate`: which binding of server and driver tells the smallest differences on this host."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno import __version__
from dbdyno.calibrate.finding import (
    OTHER_SLICES_S,
    Binding,
    BindingFinding,
    Pairs,
    TrialCosts,
    best,
    bindings,
    compared_bindings,
    finding,
    interval_for,
    measured,
    reason,
    with_slices,
)
from dbdyno.calibrate.kept import Calibration, calibrated_host, keep_calibration
from dbdyno.cli.terminal import tell, terminal
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.host.fingerprint import Host, core_count, fingerprint, usable_cpus
from dbdyno.host.host_lock import alone
from dbdyno.host.journal import open_journal
from dbdyno.host.writers import Allowed
from dbdyno.layers.registry import LAYERS
from dbdyno.layers.setup import Running
from dbdyno.prepare_run.adapted import has_pauses
from dbdyno.prepare_run.checked import require_sound
from dbdyno.prepare_run.estimate import overhead_s
from dbdyno.prepare_run.running import require_started
from dbdyno.prepare_run.study_here import catalogue, study_at
from dbdyno.records.record import Outcome
from dbdyno.records.run import ComparisonRun, Run
from dbdyno.report.words import numbers
from dbdyno.report.words.safe import json_text
from dbdyno.run import run_trial
from dbdyno.study import Study, parse_study
from dbdyno.study.designs import variants_of
from dbdyno.study.document import document, rows, table_text, toml
from dbdyno.study.tables import STUDY, WORKLOAD
from dbdyno.study.trials import Phase, Trial
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
    " minutes of a run of two variants in which such a difference is told in nine of ten comparisons: six"
    " blocks or more, each with a start of both servers, their warm-up and their slices, fitted as --budget"
    " does. They suppose that speeds differ by 1 % from start to start, and that slices do not correlate."
)
GAIN_NOTE = (
    "gain: how many times as long a difference takes in what the arrangement would replace, by s^2 times the"
    " length of a slice. needed: the F quantile at 95 %, corrected for the number of lines; above it the"
    " arrangement is shown to be better."
)


def main(
    study: Path | None,
    engine: str | None,
    workload: str | None,
    clients: int,
    time_s: float,
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    wait_s: float,
    as_json: bool,
) -> None:
    allowed = Allowed.of(devices, allowed_paths)
    asked = study_at(study, allowed=allowed) if study else _asked(engine, workload, clients)
    require_started(asked)
    require_sound(asked, tell, allowed=allowed)
    _require_server_alone(asked)
    _require_closed_loop(asked)
    with alone(f"calibration of {asked.title}", time_s + OVERHEAD_S, wait_s, tell):
        tell(f"calibrating {asked.engine.engine}, {asked.workload.name}: {time_s:g} s of slices")
        found = _calibrated(asked, time_s, allowed)
    path = keep_calibration(found)
    if as_json:
        click.echo(json_text(found))
    else:
        print_calibration(found, terminal())
    tell(f"kept: {path}")


def _asked(engine: str | None, workload: str | None, clients: int) -> Study:
    """A study of the baseline alone."""
    if not engine or not workload:
        raise UserError(
            "no study says what to calibrate",
            "dyno calibrate STUDY, or --engine mariadb@11.8 --workload point_select",
        )
    head = [STUDY.row("title", f"{engine}, {workload}"), ("engine", toml(engine), ""), STUDY.row("aa", True)]
    load = [WORKLOAD.row("name", workload), WORKLOAD.row("clients", clients)]
    text = document([[*rows(head), *table_text("workload", load)]])
    return parse_study(text.encode(), catalogue(), "the options")


def _require_server_alone(study: Study) -> None:
    if study.driver is not None:
        raise UserError(
            f"the load comes from {study.driver.hosts_text}, and a calibration binds a driver of this host",
            "such a study needs no calibration: its driver shares no CPU with the server",
        )
    if study.applications:
        raise UserError(
            f"{study.applications[0]} stands in front of the server, and a calibration is of servers alone",
            "calibrate without it: dyno calibrate --engine mariadb@11.8 --workload point_select",
        )


def _require_closed_loop(study: Study) -> None:
    load = study.workload
    if load.rate_per_s or load.schedule or load.think_time or has_pauses(study):
        raise UserError(
            "a calibration measures speeds, and this load has a pace of its own",
            "calibrate with the same workload in a closed loop without think times",
        )


def _calibrated(study: Study, time_s: float, allowed: Allowed) -> Calibration:
    made: list[_Found] = []

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
            installation=registry.locate(study.engine),
            layers=LAYERS,
            journal=journal,
            open_load=LoadProcess,
            cores=core_count(),
            allowed=allowed,
        )
        phases = (Phase(name="load", duration_s=LAST_LOAD_S),)
        trial = Trial(index=0, block=0, position=0, variant=variants_of(study)[0], phases=phases)
        # The record is kept nowhere: its load is the least of what the server was put through.
        record = run_trial(trial, bench, beside=slicing)
    if record.outcome is not Outcome.MEASURED or not made:
        raise DynoError(f"the baseline could not be measured: {record.cause}", record.remedy)
    [found] = made
    return Calibration(
        engine=study.engine.engine,
        workload=study.workload.name,
        clients=study.workload.clients,
        options=dict(study.workload.options),
        place=calibrated_host(host),
        made_unix_s=time.time(),
        best=found.best,
        interval=interval_for(list(found.pairs.values())),
        findings=found.findings,
        why=found.why,
        why_slice=found.why_slice,
    )


@dataclass(frozen=True)
class _Found:
    """The best binding, what decided for it and for its slices, and the findings and pairs of all."""

    best: BindingFinding
    why: str
    why_slice: str
    findings: tuple[BindingFinding, ...]
    pairs: Pairs


def _found(study: Study, running: Running, time_s: float) -> _Found:
    """All with slices of one length, then the best of them with others."""
    trial = TrialCosts(
        fixed_s=study.workload.ramp_s + study.workload.warmup_s + overhead_s(study),
        longest_s=study.workload.duration_s,
    )
    draw, tried = random.Random(), bindings(study, running.setup.engine.embedded, usable_cpus())
    pairs = measured(running, tried, BINDINGS_SHARE * time_s, draw)
    if tried[0] not in pairs:
        raise DynoError(
            f"no transaction ended within a slice of {tried[0].slice_s:g} s",
            "calibrate with a smaller transaction, or with more clients",
        )
    found = {binding: finding(binding, each, trial) for binding, each in pairs.items()}
    # What gathers is the study's own choice; the others are shown for comparison.
    alike = compared_bindings([found[one] for one in pairs if one.gather == tried[0].gather])
    bound = best(alike)
    others = with_slices(bound.arrangement, OTHER_SLICES_S)
    longer = measured(running, others, (1.0 - BINDINGS_SHARE) * time_s, draw)
    lengths = compared_bindings([bound, *(finding(one, each, trial) for one, each in longer.items())])
    found |= {one.arrangement: one for one in (*alike, *lengths)}
    return _Found(
        best=best(lengths),
        why=reason(alike, "binding"),
        why_slice=reason(lengths, "length"),
        findings=tuple(found.values()),
        pairs=pairs | longer,
    )


def _run(study: Study, host: Host) -> Run:
    return ComparisonRun(
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


def print_calibration(found: Calibration, console: Console) -> None:
    """Prints a table of all that was tried, what each gained, and what is kept."""
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
    _print_gains(found, console)
    kept, slices = found.best.arrangement.words, numbers.seconds_text(found.best.arrangement.slice_s)
    console.print(Text(f"Kept: {kept} ({found.why})"))
    console.print(Text(f"Slices: {slices} ({found.why_slice})"))
    console.print(Text(f"Interval: {found.interval}"))


def _print_gains(found: Calibration, console: Console) -> None:
    """Each arrangement beside the one that it would replace: the bindings first, then the lengths."""
    groups: dict[Binding, list[str]] = {}
    for each in found.findings:
        if each.against:
            line = f"  {_words(each.arrangement)}: {each.against.words}"
            groups.setdefault(each.against.arrangement, []).append(line)
    for replaced, lines in groups.items():
        console.print(Text("\n".join([f"Instead of {_words(replaced)}:", *lines])))
    if groups:
        console.print(Text(GAIN_NOTE, style="dim"))


def _words(arrangement: Binding) -> str:
    return f"{arrangement.words}, slices of {numbers.seconds_text(arrangement.slice_s)}"


def _row(each: BindingFinding) -> list[str]:
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
