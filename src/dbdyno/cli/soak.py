"""`dyno soak`: whether a setup stands, rung by rung, and what of it drifts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dbdyno.analyse.soak import soaked
from dbdyno.begin.begun import make_builds_of
from dbdyno.begin.registered import began
from dbdyno.begin.soak import BegunSoak, begin_soak, expected_soak_s, soak_gone_on_with
from dbdyno.cli.carried_out import Here, carry_out
from dbdyno.cli.deliver import deliver, page_beside
from dbdyno.cli.exit_codes import soak_code
from dbdyno.cli.formats import verdict_format_of, verdict_format_options
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
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.host.allowed import Allowed
from dbdyno.host.alone import alone
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.store import writable_store
from dbdyno.report.parts.soak import document
from dbdyno.report.words.numbers import about_text, plural
from dbdyno.study.rungs import rungs
from dbdyno.study.size import size_of_study
from dbdyno.study.values import Fault


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
            begun = soak_gone_on_with(run_to_resume(opened, study, resume, allowed, "dyno soak"))
        elif study is not None:
            begun = begin_soak(study, smoke, clients, duration_s, seed, allowed, tell)
        else:
            raise UserError("no study was named", "dyno soak STUDY, or dyno soak --resume")
        here = Here(opened, expected_soak_s(begun), quiet, allowed)
        records = _soak(begun, here, wait_s)
    found = soaked(begun.study, begun.run, records)
    deliver("soak", found, form, output)
    click.echo(f"report: {page_beside(document(found), found.run.run)}", err=form != "terminal")
    sys.exit(soak_code(found))


def _soak(begun: BegunSoak, here: Here, wait_s: float) -> list[Record]:
    """Carries out what is left of a soak. Where it is interrupted it tells how to go on, and ends the
    program."""
    study, run = begun.study, begun.run
    trials = size_of_study(study).trials
    try:
        with alone(study.title, here.trials_s, wait_s, tell, run.run):
            here.store.add_run(run, began(run))
            here.tell(
                f"{study.title}\nrun {run.run}: {plural(trials, 'rung')}, about {about_text(here.trials_s)}"
            )
            make_builds_of(begun, None, here.store, here.allowed, here.tell)
            return carry_out(begun, None, here)
    except KeyboardInterrupt:
        sys.exit(interrupted(here.store, run, here.allowed, planned=trials))
