"""`dyno soak`: whether a setup stands, rung by rung, and what of it drifts."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from dbdyno.analyse.soak import soaked
from dbdyno.cli.arrangement import server_bytes
from dbdyno.cli.checked import require_sound
from dbdyno.cli.estimate import overhead_s
from dbdyno.cli.exit_codes import soak_code
from dbdyno.cli.formats import verdict_format_of, verdict_format_options
from dbdyno.cli.measured import Here, Measured, carry_out, make_builds_of, new_run
from dbdyno.cli.options import (
    Duration,
    WaitingCommand,
    devices_option,
    paths_option,
    quiet_option,
    refuse_both,
    store_option,
    wait_option,
)
from dbdyno.cli.resume import interrupted, resume_option, run_to_resume, study_and_run
from dbdyno.cli.soak_report import deliver_soak, page_beside
from dbdyno.cli.stored_study import measured_installation, study_of
from dbdyno.cli.study_file import study_at
from dbdyno.cli.wording import duration
from dbdyno.engines import registry
from dbdyno.engines.engine import Engine
from dbdyno.errors import UserError
from dbdyno.host.allowed import Allowed
from dbdyno.host.alone import alone
from dbdyno.host.room import available_memory_bytes, require_descriptors
from dbdyno.plan.soak import expected_s
from dbdyno.records.place import store_url
from dbdyno.records.record import Record, Run
from dbdyno.records.store import writable_store
from dbdyno.report.words.numbers import plural
from dbdyno.study import Arrangement, Goal, Study
from dbdyno.study.phases import GUESTS_SHARE
from dbdyno.study.rungs import rungs, soak_of
from dbdyno.study.soak import Soak
from dbdyno.study.values import Fault

CLIENT_LEAST_BYTES = 64 << 10
"""Less than any server takes for a session: where not even that is there, the rung is not tried."""
DESCRIPTORS_BESIDE = 1_000
"""What a server opens beside its connections: tables, logs, libraries."""


class Ladder(click.ParamType[tuple[int, ...]]):
    """Numbers of clients with commas between: `100,500,1000`."""

    name = "CLIENTS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return rungs([int(part) for part in str(value).split(",")])
        except ValueError:
            self.fail(f"{value!r} is no list of numbers; write them with commas: 100,500", param, ctx)
        except Fault as fault:
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
def command(
    study: Path | None,
    resume: str | None,
    smoke: bool,
    clients: tuple[int, ...] | None,
    duration_s: float | None,
    seed: int | None,
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    wait_s: float,
    quiet: bool,
    store: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Soak a study's variants: with how many clients does each stay up, and does anything grow?

    Each rung of the ladder opens all connections in a storm and gradually, has clients misbehave, keeps the
    load up, and ends with a clean stop and a start that must find everything. Rungs that are over are kept
    whatever happens: --resume goes on with the next one.

    Exit code 4: it broke; 5: it failed; 6: something outgrew what it may gain.
    """
    form = verdict_format_of(form, as_json, output)
    study, resume = study_and_run(study, resume)
    allowed = Allowed.of(devices, allowed_paths)
    refuse_both("--resume", resume, smoke=smoke or None, clients=clients, duration=duration_s, seed=seed)
    with writable_store(store_url(store)) as opened:
        if resume is not None:
            measured = _gone_on_with(run_to_resume(opened, study, resume, allowed, soak=True))
        else:
            measured = _begin(study, smoke, clients, duration_s, seed, allowed)
        here = Here(opened, _expected_s(measured), quiet, allowed)
        records = _soak(measured, here, wait_s)
    found = soaked(measured.study, measured.run, records)
    deliver_soak(found, form, output)
    click.echo(f"report: {page_beside(found)}", err=form != "terminal")
    sys.exit(soak_code(found))


def _begin(
    path: Path | None,
    smoke: bool,
    clients: tuple[int, ...] | None,
    duration_s: float | None,
    seed: int | None,
    allowed: Allowed,
) -> Measured:
    """A soak that begins; nothing has been touched until all that it needs was found."""
    if path is None:
        raise UserError("no study was named", "dyno soak STUDY, or dyno soak --resume")
    read = study_at(path, seed=seed, allowed=allowed)
    for line in require_sound(read, allowed=allowed):
        click.echo(line, err=True)
    engine = registry.engine(read.engine.engine)
    soak = _wanted(read, smoke, clients, duration_s, engine)
    read = rung_by_rung(read, soak)
    installation = engine.obtaining.locate(read.engine)
    require_clients(soak, read, engine)
    run = new_run(read, path, installation).model_copy(update={"soak": soak})
    return Measured(read, run, installation)


def _wanted(
    study: Study, smoke: bool, clients: tuple[int, ...] | None, duration_s: float | None, engine: Engine
) -> Soak:
    """How a study is soaked, with what the command line changes."""
    soak = soak_of(study, smoke)
    given = {"clients": clients, "duration_s": duration_s}
    soak = soak.model_copy(update={name: value for name, value in given.items() if value is not None})
    if engine.embedded:
        click.echo(f"{engine.title} lives in the load process, so no other clients disturb it", err=True)
        return soak.within_process()
    return soak


def rung_by_rung(study: Study, soak: Soak) -> Study:
    """The study as a soak carries it out: a block for each rung, one trial after the other, and no other
    trials. Raises UserError where it varies what the rungs give, or has an application that would not follow
    the server when that is started again."""
    if study.application is not None:
        raise UserError(
            f"{study.application.name} stands in front of the server, and a soak asks the server alone",
            "leave [application] out and take a workload of the server's",
        )
    if any(factor.name == "workload.clients" for factor in study.factors):
        raise UserError(
            "workload.clients is a factor, and the rungs of a soak give the clients",
            "write one number under [workload], and the ladder as `clients` under [soak]",
        )
    return study.model_copy(
        update={
            "blocks": len(soak.clients),
            "arrangement": Arrangement.ONE_AFTER_THE_OTHER,
            "images": study.images or 1,
            "restarts": None,
            # How sure a drift must be. What else the goal asks is for runs, as is what is counted, not timed.
            "goal": Goal(margin=study.goal.margin, confidence=study.goal.confidence, counted=False),
        }
    )


def _gone_on_with(run: Run) -> Measured:
    """A soak that goes on, as it was begun."""
    assert run.soak is not None, "the run is a soak"
    study = rung_by_rung(study_of(run), run.soak)
    return Measured(study, run, measured_installation(study, run))


def _expected_s(measured: Measured) -> float:
    assert measured.run.soak is not None, "the run is a soak"
    return expected_s(measured.run.soak, measured.study, overhead_s(measured.study))


def require_clients(soak: Soak, study: Study, engine: Engine) -> None:
    """Raises UserError where this host cannot hold the clients of the highest rung, before anything runs."""
    clients = max(soak.clients)
    what = plural(clients, "client")
    if not engine.embedded:
        require_descriptors(round(clients * (1.0 + GUESTS_SHARE)) + DESCRIPTORS_BESIDE, what)
    needed_bytes = server_bytes(study, {**study.settings, **study.baseline}) + clients * CLIENT_LEAST_BYTES
    available_bytes = available_memory_bytes()
    if needed_bytes > available_bytes:
        raise UserError(
            f"{what} and the server's caches need at least {needed_bytes >> 20:,} MiB of memory, and"
            f" {available_bytes >> 20:,} MiB are available",
            "take fewer clients (--clients), or smaller caches",
        )


def _soak(measured: Measured, here: Here, wait_s: float) -> list[Record]:
    """Carries out what is left of a soak. Where it is interrupted it tells how to go on, and ends the
    program."""
    study, run = measured.study, measured.run
    trials = study.size.trials
    try:
        with alone(study.title, here.trials_s, wait_s, partial(click.echo, err=True), run.run):
            here.store.add_run(run)
            here.tell(
                f"{study.title}\nrun {run.run}: {plural(trials, 'rung')}, about {duration(here.trials_s)}"
            )
            make_builds_of(measured, None, here)
            return carry_out(measured, None, here)
    except KeyboardInterrupt:
        sys.exit(interrupted(here.store, run, here.allowed, planned=trials))
