"""`dyno profile`: one variant of a run again, under perf; with another one, what the two differ in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from dbdyno.analyse.profile import Profile, profile_of
from dbdyno.cli.deliver import deliver, page_of
from dbdyno.cli.formats import format_of, write
from dbdyno.cli.stored_run import chosen, run_to_read
from dbdyno.cli.terminal import tell
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.findings import profile as profile_report
from dbdyno.findings.counted import Named
from dbdyno.findings.profile import folded
from dbdyno.host import paths
from dbdyno.host.callgrind import Callgrind
from dbdyno.host.fingerprint import core_count
from dbdyno.host.host_lock import alone
from dbdyno.host.journal import open_journal
from dbdyno.host.perf import EVENT
from dbdyno.host.writers import Allowed
from dbdyno.layers.registry import LAYERS
from dbdyno.plan.blocks import Order, block_of, expected_duration_s
from dbdyno.prepare_run.adapted import require_timed
from dbdyno.prepare_run.estimate import COUNTED_S, overhead_s
from dbdyno.prepare_run.running import require_started
from dbdyno.prepare_run.stored_study import measured_installation, require_measured, study_of
from dbdyno.prepare_run.study_here import on_engines
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.run import run_trial
from dbdyno.study import Study
from dbdyno.study.designs import variants_of
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Bench
from dbdyno.trial.count import require_countable
from dbdyno.trial.training import sampled, with_time_to_probe


def main(
    run: str,
    variant: str | None,
    against: str | None,
    output: Path | None,
    counted: bool,
    cache_sim: bool,
    branch_sim: bool,
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    wait_s: float,
    form: str | None,
    as_json: bool,
    store: str | None,
) -> None:
    if not counted and (cache_sim or branch_sim):
        raise UserError("--cache-sim and --branch-sim simulate what is counted", "add --counted")
    if counted and form == "folded":
        raise UserError("--counted gives no stacks to fold", "leave --format folded out, or --counted")
    form = "json" if format_of(form, as_json, None) == "json" else form or "terminal"
    if counted and output:
        raise UserError("--counted draws no flame graph", "leave --output out, or --counted")
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
    require_measured(found)
    allowed = Allowed.of(devices, allowed_paths)
    study = with_time_to_probe(require_timed(study_of(found), "dyno profile"))
    require_started(study)
    trials = [_trial(study, found, name) for name in dict.fromkeys([variant or "baseline", against]) if name]
    expected_s = (
        COUNTED_S * len(trials) if counted else expected_duration_s(len(trials), study, overhead_s(study))
    )
    with alone(f"profile of {study.title}", expected_s, wait_s, tell):
        if counted:
            require_countable(study)
            simulated = {"cache_sim": cache_sim, "branch_sim": branch_sim}
            each = [_counted(trial, study, found, allowed, simulated) for trial in trials]
            deliver("profile-counted", each, form, None)
            return
        profiles = [_profiled(trial, study, found, allowed) for trial in trials]
    embedded = registry.engine(study.engine.engine).embedded
    path = output or _place(found, profiles)
    write(path, page_of(profile_report.document(profiles, study.title, embedded)))
    others = {"folded": partial(folded, profiles)}
    deliver("profile", profiles, form, None, others, title=study.title, embedded=embedded)
    click.echo(f"flame graph: {path}", err=True)


def _trial(study: Study, run: Run, name: str) -> Trial:
    variants = variants_of(study)
    name = chosen([variant.name for variant in variants], name)
    trials = block_of(study, variants, 0, Order.of(run))
    return next(trial for trial in trials if trial.variant.name == name)


def _profiled(trial: Trial, study: Study, run: Run, allowed: Allowed) -> Profile:
    click.echo(f"profiling {trial.variant.name}", err=True)
    with _bench(study, run, allowed) as bench:
        # The record is kept nowhere: sampling slowed the trial down.
        found = sampled(
            lambda beside: run_trial(trial, bench, beside=beside),
            bench.engine.embedded,
        )
    made = profile_of(found.variant, found.samples, found.cpu_us_per_op, way=found.way, event=EVENT)
    if made is None:
        raise DynoError(
            f"perf saw no sample of {found.variant} in the measured part", "let the study measure longer"
        )
    return made


@contextmanager
def _bench(study: Study, run: Run, allowed: Allowed) -> Iterator[Bench]:
    """A bench for trials that are not recorded."""
    with open_journal() as journal:
        yield Bench(
            study=study,
            run=run.but(run=f"{run.run}-profile"),
            engine=registry.engine(study.engine.engine),
            installation=measured_installation(study, run),
            layers=LAYERS,
            journal=journal,
            open_load=LoadProcess,
            cores=core_count(),
            allowed=allowed,
            engines=on_engines(study),
        )


def _counted(trial: Trial, study: Study, run: Run, allowed: Allowed, simulated: Mapping[str, bool]) -> Named:
    click.echo(f"counting {trial.variant.name}", err=True)
    with _bench(study, run, allowed) as bench, bench.journal.folder("counted-") as folder:
        counting = replace(bench, callgrind=Callgrind(folder, **simulated))
        record = run_trial(trial, counting)
    if record.outcome is not Outcome.MEASURED or record.instructions is None:
        raise DynoError(f"{record.variant} could not be counted: {record.cause}", record.remedy)
    return record.variant, record.instructions


def _place(run: Run, profiles: list[Profile]) -> Path:
    names = paths.AGAINST.join(re.sub(r"[^\w.=-]+", "_", profile.variant)[:60] for profile in profiles)
    paths.data()  # Makes the folder, or says why it cannot.
    return paths.reports_place() / f"{run.run}{paths.PROFILE}{names}.html"
