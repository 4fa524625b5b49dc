"""`dyno import`: a run of what another tool measured, from its logs."""
# ruff: noqa: N999 - a verb's file has the verb's name

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from dbdyno.errors import UserError
from dbdyno.imported import TOOLS
from dbdyno.imported.tallies import (
    ImportQuestion,
    RepetitionLog,
    records_of,
    run_of_logs,
)
from dbdyno.prepare_run.begun import keep_run, name_of_run, require_free
from dbdyno.records import metrics
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import writable_store
from dbdyno.report.words.numbers import plural
from dbdyno.study import values
from dbdyno.study.nouns import BASELINE


def main(
    tool: str,
    logs: tuple[Path, ...],
    named: tuple[str, ...],
    paired: bool,
    response: str,
    margin: str,
    title: str | None,
    name: str | None,
    note: str,
    seventh: str | None,
    unit: str | None,
    store: str | None,
) -> None:
    metrics.find(response)
    share, by_variant = _margin(margin), _by_variant(logs, named)
    of_whom = f": {', '.join(by_variant)}" if len(by_variant) > 1 else ""
    asked = ImportQuestion(title or f"Logs of {tool}{of_whom}", response, share, paired)
    said = {"seventh": seventh, "unit": unit}.get(TOOLS[tool].asks)
    found = {variant: _read(tool, paths, said) for variant, paths in by_variant.items()}
    _require_each_file_once(found)
    run = run_of_logs(name_of_run(), tool, found, asked, time.time())
    with writable_store(store_url(store)) as opened:
        require_free(opened, name)
        keep_run(opened, run, name, note)
        for record in records_of(run, found, paired):
            opened.add_record(record)
        opened.finish_run(run.run)
    _tell(run, found)


def _by_variant(logs: Sequence[Path], named: Sequence[str]) -> dict[str, list[Path]]:
    """The paths of each variant; those without a name are the baseline's."""
    found: dict[str, list[Path]] = {BASELINE: list(logs)} if logs else {}
    for text in named:
        variant, _, path = text.partition("=")
        if not path or not re.fullmatch(values.VARIANT_NAME, variant):
            raise UserError(f"--as {text!r} does not say whose logs these are", "write --as VARIANT=FOLDER")
        found.setdefault(variant, []).append(Path(path))
    if not found:
        raise UserError("no log was named", "give files or folders, or --as VARIANT=FOLDER for each variant")
    return found


def _read(tool: str, paths: Sequence[Path], said: str | None) -> list[RepetitionLog]:
    """The repetitions of one variant, in the order in which they began where the logs tell it, else as
    given."""
    of = TOOLS[tool]
    found = [RepetitionLog(each, of.read(each, said)) for each in of.repetitions(paths)]
    return sorted(found, key=lambda log: log.counted.started_unix_s) if of.told else found


def _require_each_file_once(found: Mapping[str, Sequence[RepetitionLog]]) -> None:
    """Raises UserError where two variants have one and the same file."""
    owners: dict[Path, str] = {}
    for variant, file in (
        (variant, file) for variant, logs in found.items() for log in logs for file in log.repetition.files
    ):
        owner = owners.setdefault(file.resolve(), variant)
        if owner != variant:
            raise UserError(f"{file} is given for {owner} and for {variant}", "name each log once")


def _margin(text: str) -> float:
    try:
        return values.share(text, 0.0, 50.0)
    except values.ValueFault as fault:
        raise UserError(f"--margin: {fault.message}", fault.hint) from None


def _tell(run: Run, found: Mapping[str, Sequence[RepetitionLog]]) -> None:
    click.echo(f"run {run.run}")
    for variant, logs in found.items():
        click.echo(f"  {variant}: {plural(len(logs), 'repetition')}", err=True)
    click.echo(f"  see: dyno report {run.run}", err=True)
