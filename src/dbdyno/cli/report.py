"""`dyno report`: shows a run again, from the store alone, or as it was recorded, or one of its trials."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.analyse import Analysis
from dbdyno.cli.deliver import deliver, tell_page
from dbdyno.cli.exit_codes import (
    GATE_FAILS_ON,
    end_code,
    exit_code,
    gate_code,
    gate_fails_on,
    verdicts_of,
)
from dbdyno.cli.formats import verdict_format_of
from dbdyno.cli.patience import waiting
from dbdyno.cli.stored_run import run_to_read
from dbdyno.cli.terminal import terminal
from dbdyno.errors import UserError
from dbdyno.findings import trial as trial_part
from dbdyno.host import paths
from dbdyno.kinds.registry import KINDS, without_speeds
from dbdyno.prepare_run.begun import reruns_of
from dbdyno.prepare_run.stored_run import analysed, analysis_to_read, belongings_of
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.chain import Rerun
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.report.renderers.terminal import render
from dbdyno.report.words import safe
from dbdyno.report.words.safe import argument

if TYPE_CHECKING:
    from dbdyno.analyse.gate import Gate
    from dbdyno.findings.registered import Belonging


def main(
    run: str,
    trial: int | None,
    trials: bool,
    form: str | None,
    as_json: bool,
    output: Path | None,
    details: bool,
    fail_on: tuple[str, ...],
    store: str | None,
) -> None:
    if trial is not None or trials:
        if form not in (None, "json") or output or details or fail_on:
            raise UserError("trials are shown on the terminal or as JSON", "leave out all but --json")
        show(run, trial, as_json or form == "json", store)
        return
    form = verdict_format_of(form, as_json, output)
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
        other = without_speeds(opened, found)
        if other is not None:
            kind, result = other
            deliver(kind, result, form, output)
            sys.exit(end_code(*KINDS[found.kind].ends_with(result)) if fail_on else 0)
        with waiting(f"reading and analysing {found.run}"):
            analysis = analysis_to_read(opened, found)
            if found.held:
                # Here, because most runs are held against nothing.
                from dbdyno.kinds.held_against import with_gate

                analysis = with_gate(opened, analysis)
        reruns = reruns_of(opened, found)
        belongings = belongings_of(opened, analysis, reruns)
        deliver_report(analysis, form, output, details, fail_on, reruns, belongings)
        if form == "terminal" and output is None and not details:
            page = paths.page_of_run(found.run)
            made = f"dyno report {argument(found.run)} --format html --output {argument(f'{found.run}.html')}"
            tell_page(page if page.exists() else made, form)
    if fail_on:
        held = _gate_in(analysis)
        sys.exit(exit_code(analysis, fail_on) if held is None else gate_code(held, fail_on))


def deliver_report(
    analysis: Analysis,
    form: str,
    output: Path | None,
    details: bool = False,
    fail_on: tuple[str, ...] = (),
    reruns: Sequence[Rerun] | None = None,
    belongings: Sequence[Belonging] = (),
) -> None:
    """Prints a run's report, or writes it and prints where. `reruns` are the runs of the same study, and
    `belongings` what belongs to this one."""
    failing = fail_on or GATE_FAILS_ON if _gate_in(analysis) is None else gate_fails_on(fail_on)

    def as_junit() -> str:
        # Here, because only pipelines read it.
        from dbdyno.findings import junit

        return junit.render(analysis, verdicts_of(failing))

    given = {"reruns": reruns, "belongings": belongings}
    deliver("report", analysis, form, output, {"junit": as_junit}, details, **given)


def _gate_in(analysis: Analysis) -> Gate | None:
    if not analysis.run.held:
        return None
    # Here, because most runs are held against nothing.
    from dbdyno.findings.gate import gate_in

    return gate_in(analysis)


def show(run: str, trial: int | None, as_json: bool, store: str | None) -> None:
    """A run as it was recorded, or one of its trials with all evidence."""
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
        records = opened.records(found.run)
    if trial is not None:
        _show_trial(_named(records, found.run, trial), found, as_json)
        return
    analysis = analysed(study_of(found), found, records)
    if as_json:
        trials = [_facts(record) for record in records]
        _print_json({"run": found.model_dump(mode="json"), "trials": trials})
    else:
        render(trial_part.run_document(analysis), terminal())


def _named(records: list[Record], run: str, trial: int) -> Record:
    record = next((record for record in records if record.trial == trial), None)
    if record is None:
        told = (
            f"it has those from {records[0].trial} to {records[-1].trial}" if records else "it has none yet"
        )
        raise UserError(f"run {run} has no trial {trial}", f"{told}; dyno report {run} --trials lists them")
    return record


def _show_trial(record: Record, run: Run, as_json: bool) -> None:
    if as_json:
        _print_json(_facts(record))
    else:
        render(trial_part.document(record, run), terminal())


def _facts(record: Record) -> dict[str, object]:
    """A record without what its load left: `dyno export` writes metrics and series, `dyno report` what they
    say."""
    checks = [check.model_dump(mode="json") for check in record.checks]
    facts = record.model_dump(mode="json", exclude={"phases", "trial_doubts"})
    if record.recoveries:
        facts["recoveries"] = [recovery.model_dump(mode="json") for recovery in record.recoveries]
    return {**facts, "checks": checks, "doubts": {doubt.value: text for doubt, text in record.doubts.items()}}


def _print_json(document: dict[str, object]) -> None:
    click.echo(safe.json_text(document))
