"""`dyno run`: carries out a study and shows what it answered."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from dbdyno.analyse import Analysis
from dbdyno.analyse.gate import Gate
from dbdyno.cli import space
from dbdyno.cli.adapted import adapted, seed_of
from dbdyno.cli.again import study_again
from dbdyno.cli.analysed import analysed
from dbdyno.cli.arrangement import arranged_in_turn, room_bytes
from dbdyno.cli.beginning import keep, name_of_run, require_free
from dbdyno.cli.budget import budget_text
from dbdyno.cli.building import builds_lines, builds_of, require_baseline_build
from dbdyno.cli.catalogue import catalogue
from dbdyno.cli.checked import require_sound, require_statements
from dbdyno.cli.counted import counting_text
from dbdyno.cli.estimate import Estimate, counted_s, estimate, header
from dbdyno.cli.exit_codes import exit_code, fail_on_option, gate_code, gate_fails_on
from dbdyno.cli.formats import verdict_format_of, verdict_format_options
from dbdyno.cli.gate import deliver_gate, gate_of, measured_again, require_one_load
from dbdyno.cli.measured import Here, Measured, carry_out, make_builds_of, new_run
from dbdyno.cli.options import (
    WaitingCommand,
    budget_option,
    calibration_option,
    devices_option,
    name_option,
    note_option,
    paths_option,
    quiet_option,
    refuse_both,
    store_option,
    wait_option,
)
from dbdyno.cli.report import deliver_report, html_beside
from dbdyno.cli.resume import extended, interrupted, resume_option, run_to_resume, study_and_run
from dbdyno.cli.stored_study import measured_installation, study_of
from dbdyno.cli.study_file import study_at
from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.host.allowed import Allowed
from dbdyno.host.alone import alone
from dbdyno.host.once import silently
from dbdyno.obtain.installation import Installation
from dbdyno.plan.blocks import require_few_enough
from dbdyno.records.place import store_url
from dbdyno.records.record import Run
from dbdyno.records.store import Store, writable_store
from dbdyno.report.words.numbers import plural
from dbdyno.study import BASELINE, Study

SEQUENTIAL_BLOCKS = 50
"""How far a run goes on that stops by itself, when a variant cannot be decided."""


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
    metavar="NAME",
    help="Hold the run against a baseline, or any run: its baseline variant is measured again, side by side, "
    "where its engine is still here. The exit code is that of the verdict.",
)
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
def command(
    study: Path | None,
    resume: str | None,
    again: str | None,
    add_blocks: int | None,
    blocks: int | None,
    until: str | None,
    budget_s: float | None,
    seed: int | None,
    against: str | None,
    name: str | None,
    note: str,
    calibration: bool,
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    wait_s: float,
    quiet: bool,
    store: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    fail_on: tuple[str, ...],
) -> None:
    """Carry out a study: every trial is prepared, proved, driven, checked, recorded, and the host restored.

    Finished trials are kept whatever happens: after Ctrl-C or a crash, --resume goes on where it stopped.
    """
    form = verdict_format_of(form, as_json, output)
    study, resume = _meant(study, resume, add_blocks)
    allowed = Allowed.of(devices, allowed_paths)
    with writable_store(store_url(store)) as opened:
        require_free(opened, name)
        _require_agreement(again, budget_s, against, blocks=blocks, until=until, resume=resume)
        if resume is not None:
            read, run, installation = _go_on(opened, study, resume, allowed, add_blocks, blocks, seed)
        else:
            most = blocks or (SEQUENTIAL_BLOCKS if until else None)
            asked = _asked(opened, study, again, against, most, seed, allowed)
            read, run, installation = _begin(asked, budget_s, calibration, allowed)
        _require_sound_search(read, run, until=until, against=against, add_blocks=add_blocks)
        run = run.model_copy(update={"sequential": run.sequential or until is not None})
        reference, read, run = _reference(opened, against, read, run)
        try:
            measured = Measured(read, run, installation)
            expected = _expected(opened, measured, reference, resume, quiet)
            with alone(read.title, expected.whole_s, wait_s, partial(click.echo, err=True), run.run):
                if resume is None:
                    require_statements(read, allowed)
                keep(opened, run, name, note)
                here = Here(opened, expected.trials_s, quiet, allowed)
                make_builds_of(measured, reference, here)
                if add_blocks is not None:
                    opened.reopen_run(run)
                records = carry_out(measured, reference, here)
        except KeyboardInterrupt:
            sys.exit(interrupted(opened, run, allowed, add_blocks))
        run = opened.run(run.run)  # A budget may have changed its blocks.
        gate = _gate(opened, run, against or (run.reference if reference else None))
    analysis = analysed(read.model_copy(update={"blocks": run.blocks}), run, records)
    sys.exit(_delivered(analysis, gate, form, output, fail_on))


def _gate(store: Store, run: Run, against: str | None) -> Gate | None:
    return None if against is None else gate_of(store, run, against)


def _delivered(
    analysis: Analysis, gate: Gate | None, form: str, output: Path | None, fail_on: tuple[str, ...]
) -> int:
    """Shows what the run, or its gate, answered; returns the exit code."""
    if gate is None:
        deliver_report(analysis, form, output, fail_on=fail_on)
    else:
        deliver_gate(gate, form, output, gate_fails_on(fail_on))
    click.echo(f"report: {html_beside(analysis)}", err=form != "terminal")
    return exit_code(analysis, fail_on) if gate is None else gate_code(gate, gate_fails_on(fail_on))


def _expected(
    store: Store, measured: Measured, reference: Measured | None, resume: str | None, quiet: bool
) -> Estimate:
    """What the run will take, with its reference, which is told with its header."""
    study, run = measured.study, measured.run
    kept = 0 if resume is None or quiet else len(store.records(run.run))
    if study.search is not None:
        if not quiet:
            click.echo(space.header(study, run, kept, time.time()), err=True)
        return Estimate(run.budget_s or 0.0, 0)
    builds = builds_of(study, reference.study if reference else None)
    found = estimate(store, study, study.blocks if reference else 0, sum(one.whole_s for one in builds))
    if not quiet:
        if run.budget_s is not None and resume is None:
            click.echo(budget_text(study), err=True)
        for line in builds_lines(builds):
            click.echo(line, err=True)
        click.echo(header(study, run, found, kept, time.time()), err=True)
    return found


def _reference(
    store: Store, against: str | None, study: Study, run: Run
) -> tuple[Measured | None, Study, Run]:
    """The run that is held against, as it is measured again in turn with this one, which then names it; None
    where its engine or its build is no longer here. In the same slices where all servers can be up at once,
    else trials of both follow one another. Raises UserError where the two cannot be compared."""
    if against is None:
        return _reference_still(store, run), study, run
    stored = store.run(against)
    asked = study_of(stored)
    require_one_load(study, asked, against)
    try:
        installation = measured_installation(asked, stored)
        require_baseline_build(asked, store.records(stored.run), silently)
    except DynoError as error:
        click.echo(f"{against} is not measured again: {error.message}", err=True)
        return None, study, run
    found = arranged_in_turn(study, asked)
    how = f"in turn with this run's: {found.why}" if found.why else "in the same slices as this run's"
    click.echo(f"{against} is measured again: {plural(run.blocks, 'trial')}, {how}", err=True)
    shared = {"arrangement": found.arrangement}
    again = measured_again(stored, run.model_copy(update=shared))
    run = run.model_copy(update={"reference": again.run, **shared})
    return Measured(study_of(again), again, installation), study.model_copy(update=shared), run


def _reference_still(store: Store, run: Run) -> Measured | None:
    """The reference that took turns with a run that goes on, with as many blocks as that has now; None where
    there is none, or where the two were cut short in different blocks. Raises UserError where its engine is
    gone."""
    if run.reference is None:
        return None
    stored = store.run(run.reference)
    ours, theirs = (
        {record.block for record in store.records(one.run) if record.whole and record.variant == BASELINE}
        for one in (run, stored)
    )
    if ours != theirs:
        return None
    again = stored.model_copy(update={"blocks": run.blocks, "sequential": run.sequential})
    asked = study_of(again)
    return Measured(asked, again, measured_installation(asked, again))


def _require_sound_search(study: Study, run: Run, **given: object) -> None:
    """Raises UserError for an option that a search has no use for, because it has its own end and its own
    verdict, and for a search that cannot come to one."""
    if study.search is None:
        return
    named = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None]
    if named:
        raise UserError(f"a search does not go with {named[0]}", "leave it out; --budget gives it more time")
    space.require_space(study, run.budget_s or 0.0)


def _require_agreement(
    again: str | None, budget_s: float | None, against: str | None, **others: object
) -> None:
    """Raises UserError for options that contradict each other."""
    refuse_both("--again", again, resume=others["resume"])
    refuse_both("--budget", budget_s, **others)
    refuse_both("--against", against, budget=budget_s, until=others["until"], resume=others["resume"])


def _meant(study: Path | None, resume: str | None, add_blocks: int | None) -> tuple[Path | None, str | None]:
    """The study and the run that were meant. Raises UserError for blocks that no run is to have."""
    study, resume = study_and_run(study, resume)
    if add_blocks is not None and not resume:
        raise UserError("--add-blocks needs the run that it extends", "dyno run --resume RUN --add-blocks N")
    return study, resume


@dataclass(frozen=True)
class Asked:
    """A study that is to be carried out, and the name of its run where that is known already."""

    study: Study
    run: str = ""


def _asked(
    store: Store,
    path: Path | None,
    again: str | None,
    against: str | None,
    blocks: int | None,
    seed: int | None,
    allowed: Allowed,
) -> Asked:
    """The study in a file or of a stored run, with what the command line changes. A stored run is carried
    out with as many blocks as it had. Raises UserError where there is nothing to compare: without factors a
    study can be held against another run alone."""
    if again is not None and path is not None:
        raise UserError("--again takes the study that the run kept, and not a file", f"leave {path} out")
    if again is not None:
        kept, name = store.run(again), name_of_run()
        asked = Asked(study_again(kept, name, blocks or kept.blocks, seed, allowed), name)
        click.echo(f"run {kept.run} again, from its files in {asked.study.folder}", err=True)
    elif path is not None:
        names = replace(catalogue(allowed=allowed), lone=against is not None)
        asked = Asked(study_at(path, blocks, seed, names=names))
    else:
        raise UserError("no study was named", "dyno run studies/quickstart.toml, or dyno run --resume")
    compares = asked.study.factors or asked.study.aa or asked.study.search is not None
    if not compares and against is None:
        raise UserError(
            f"{asked.study.path} compares nothing: it has no factors",
            f"dyno soak {asked.study.path} soaks it",
        )
    return asked


def _begin(
    asked: Asked, budget_s: float | None, calibration: bool, allowed: Allowed
) -> tuple[Study, Run, Installation]:
    """A new run; nothing has been touched until the engine was found."""
    read = asked.study
    for line in require_sound(read, allowed=allowed):
        click.echo(line, err=True)
    here = adapted(read, budget_s, calibration)
    study = here.study.model_copy(update={"seed": seed_of(here.study)})
    require_few_enough(study)
    if study.search is not None:
        budget_s = budget_s or study.search.time_s
    installation = registry.engine(study.engine.engine).obtaining.locate(study.engine)
    for line in filter(None, (here.told, counting_text(here.counting, counted_s(study)))):
        click.echo(line, err=True)
    searched = study.search is not None
    run = new_run(study, Path(read.path), installation, asked.run).model_copy(
        update={
            "duration_s": study.workload.duration_s if budget_s is not None and not searched else None,
            "budget_s": budget_s,
            "calibrated": here.calibrated,
            "counting": here.counting,
            "room_bytes": room_bytes() if searched else None,
        }
    )
    return study, run, installation


def _go_on(
    store: Store,
    path: Path | None,
    name: str,
    allowed: Allowed,
    add_blocks: int | None,
    blocks: int | None,
    seed: int | None,
) -> tuple[Study, Run, Installation]:
    if blocks is not None or seed is not None:
        raise UserError(
            "a run goes on with the blocks and the seed that it began with",
            "leave --blocks and --seed out; --add-blocks adds some",
        )
    run = run_to_resume(store, path, name, allowed)
    installation = measured_installation(study_of(run), run)
    if add_blocks is not None:
        run = extended(run, add_blocks)
    return study_of(run), run, installation
