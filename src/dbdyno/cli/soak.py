"""`dyno soak`: whether a setup stands, rung by rung, and what of it drifts."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dbdyno.analyse.soak import soaked
from dbdyno.begin.begun import make_builds_of
from dbdyno.begin.registered import began
from dbdyno.begin.soak import BegunSoak, begin_soak, expected_soak_s, soak_gone_on_with
from dbdyno.cli.carried_out import Here, carry_out
from dbdyno.cli.deliver import deliver, page_beside
from dbdyno.cli.exit_codes import soak_code
from dbdyno.cli.formats import verdict_format_of
from dbdyno.cli.options import refuse_both
from dbdyno.cli.resume import interrupted, run_to_resume, study_and_run
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.findings.soak import document
from dbdyno.host.allowed import Allowed
from dbdyno.host.host_lock import alone
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.store import writable_store
from dbdyno.report.words.numbers import about_text, plural
from dbdyno.study.size import size_of_study


def main(
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
    click.echo(f"Page: {page_beside(document(found), found.run.run)}", err=form != "terminal")
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
