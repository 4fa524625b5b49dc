"""`dyno profile`: one variant of a run again, under perf; with another one, what the two differ in."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
import time
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from dbdyno.analyse.model import Profile
from dbdyno.analyse.profile import changes, functions, profile_of
from dbdyno.cli.options import (
    WaitingCommand,
    devices_option,
    json_option,
    store_option,
    wait_option,
)
from dbdyno.cli.progress import Quiet
from dbdyno.cli.report import write
from dbdyno.cli.run import measured_installation
from dbdyno.cli.study_file import overhead_s, study_of
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.host import paths
from dbdyno.host.alone import alone
from dbdyno.host.fingerprint import core_count
from dbdyno.host.journal import open_journal
from dbdyno.host.perf import EVENT, PROBES_MOST_S, Sample, Sampler
from dbdyno.layers.registry import LAYERS
from dbdyno.plan.blocks import block_of, expected_duration_s
from dbdyno.records import metrics
from dbdyno.records.record import Outcome, Record, Run
from dbdyno.records.store import Store, store_url
from dbdyno.report.figures import flame
from dbdyno.report.parts import profile as profile_report
from dbdyno.report.words import safe
from dbdyno.run import run_trial
from dbdyno.study import Study
from dbdyno.study.designs import variants_of
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Bench

FUNCTIONS_IN_JSON = 200


@click.command(cls=WaitingCommand)
@click.argument("run", default="last")
@click.option("--variant", metavar="NAME", help="The variant to profile; the baseline if left out.")
@click.option("--against", metavar="NAME", help="A second variant: what the first spends beyond this one.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the flame graph's page here.")
@devices_option
@wait_option
@json_option
@store_option
def command(
    run: str,
    variant: str | None,
    against: str | None,
    output: Path | None,
    devices: tuple[Path, ...],
    wait_s: float,
    as_json: bool,
    store: str | None,
) -> None:
    """Run one variant of RUN (the last one if left out) again under perf, and draw its flame graph.

    The trial is prepared, proved, driven and checked as it was measured, but not recorded as measured:
    sampling slows it down.
    """
    with Store(store_url(store)) as opened:
        found = opened.run(run)
    study = study_of(found)
    trials = [_trial(study, name) for name in dict.fromkeys([variant or "baseline", against]) if name]
    expected_s = expected_duration_s(len(trials), study, overhead_s(study))
    with alone(f"profile of {study.title}", expected_s, wait_s, partial(click.echo, err=True)):
        profiles = [_profiled(trial, study, found, frozenset(devices)) for trial in trials]
    embedded = registry.engine(study.engine.engine).embedded
    path = output or _place(found, profiles)
    write(path, _page(study, profiles, embedded))
    if as_json:
        click.echo(json.dumps(_document(profiles), indent=2))
    else:
        profile_report.render(profiles, embedded, Console(highlight=False))
    click.echo(f"flame graph: {path}", err=True)


def _trial(study: Study, name: str) -> Trial:
    variants = variants_of(study)
    found = next((trial for trial in block_of(variants, study.seed, 0) if trial.variant.name == name), None)
    if found is None:
        names = ", ".join(variant.name for variant in variants)
        raise UserError(f"the run has no variant {name!r}", f"it has: {names}")
    return found


def _profiled(trial: Trial, study: Study, run: Run, devices: frozenset[Path]) -> Profile:
    """Carries the trial out, and keeps its record nowhere."""
    # The ways to find callers are tried while the load warms up.
    warmup_s = max(study.workload.warmup_s, PROBES_MOST_S + 1.0)
    longer = study.model_copy(update={"workload": study.workload.model_copy(update={"warmup_s": warmup_s})})
    own = run.model_copy(update={"run": f"{run.run}-profile"})
    click.echo(f"profiling {trial.variant.name}", err=True)
    with contextlib.ExitStack() as stack:
        sampler = Sampler(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dyno-profile-"))))
        bench = Bench(
            study=longer,
            run=own,
            engine=registry.engine(study.engine.engine),
            installation=measured_installation(study, run),
            layers=LAYERS,
            journal=stack.enter_context(open_journal()),
            open_load=LoadProcess,
            cores=core_count(),
            allowed_devices=devices,
        )
        record = run_trial(
            trial, bench, lambda record: None, Quiet(), lambda running: sampler.on(running.process_ids)
        )
        return _evaluated(record, sampler, bench.engine.embedded)


def _evaluated(record: Record, sampler: Sampler, embedded: bool) -> Profile:
    if record.outcome is not Outcome.MEASURED or record.tally is None:
        raise DynoError(f"{record.variant} could not be profiled: {record.cause}", record.remedy)
    own = "driver_cpu_us_per_op" if embedded else ""
    spent = [metrics.find(name).read(record) for name in ("server_cpu_us_per_op", own) if name]
    samples = _measured_part(list(sampler.samples()), record)
    made = profile_of(
        record.variant,
        [(sample.weight, sample.frames) for sample in samples],
        sum(value or 0.0 for value in spent),
        way=sampler.way.name,
        event=EVENT,
    )
    if made is None:
        raise DynoError(
            f"perf saw no sample of {record.variant} in the measured part", "let the study measure longer"
        )
    return made


def _measured_part(samples: list[Sample], record: Record) -> list[Sample]:
    """Without the warm-up. perf's clock is the monotonic one, the tally's is unix time."""
    tally = record.tally or {}
    start_s = float(tally["started_unix_s"]) + float(tally["warmup_s"]) - (time.time() - time.monotonic())
    return [one for one in samples if start_s <= one.time_s <= start_s + float(tally["duration_s"])]


def _page(study: Study, profiles: list[Profile], embedded: bool) -> str:
    notes = [*profile_report.sentences(profiles), *profile_report.notes(profiles, embedded)]
    return flame.page(safe.clean(study.title), profiles, notes)


def _document(profiles: list[Profile]) -> dict[str, object]:
    first = [
        {
            **each.model_dump(mode="json", exclude={"stacks"}),
            "functions": [one.model_dump() for one in functions(each)[:FUNCTIONS_IN_JSON]],
        }
        for each in profiles
    ]
    if len(profiles) < 2:
        return {"profiles": first}
    return {
        "profiles": first,
        "changes": [one.model_dump() for one in changes(*profiles)[:FUNCTIONS_IN_JSON]],
    }


def _place(run: Run, profiles: list[Profile]) -> Path:
    names = "-against-".join(re.sub(r"[^\w.=-]+", "_", profile.variant)[:60] for profile in profiles)
    return paths.data() / "reports" / f"{run.run}-profile-{names}.html"
