"""`dyno report --trials` and `dyno report RUN TRIAL`: a run as it was recorded, or one of its trials."""

from __future__ import annotations

import click

from dbdyno.begin.stored_run import analysed
from dbdyno.begin.stored_study import study_of
from dbdyno.cli.stored_run import run_to_read
from dbdyno.cli.terminal import terminal
from dbdyno.errors import UserError
from dbdyno.records.place import store_url
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.report.parts import trial as trial_part
from dbdyno.report.renderers.terminal import render
from dbdyno.report.words import safe


def main(run: str, trial: int | None, as_json: bool, store: str | None) -> None:
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
