"""`dyno import`: a run of what another tool measured, from its logs."""
# ruff: noqa: N999 - a verb's file has the verb's name

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.imported import TOOLS
from dbdyno.imported.files import tests_in
from dbdyno.imported.tallies import (
    ImportQuestion,
    RepetitionLog,
    records_of,
    run_of_logs,
)
from dbdyno.prepare_run.begun import keep_run, name_of_run, require_free
from dbdyno.records import metrics
from dbdyno.records.place import store_url
from dbdyno.records.run import ImportedRun, Run
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
    # Nothing is kept before all is read.
    made = [
        (test, _made(tool, paths_of, replace(asked, title=f"{asked.title}: {test}") if test else asked, said))
        for test, paths_of in _by_test(tool, by_variant).items()
    ]
    with writable_store(store_url(store)) as opened:
        for test, (run, found) in made:
            require_free(opened, named_so := f"{name}-{test}" if name and test else name)
            keep_run(opened, run, named_so, note)
            for record in records_of(run, found, paired):
                opened.add_record(record)
            opened.finish_run(run.run)
            _tell(run, found)


def _made(
    tool: str, paths_of: Mapping[str, Sequence[Path]], asked: ImportQuestion, said: str | None
) -> tuple[ImportedRun, dict[str, list[RepetitionLog]]]:
    """A run, and the repetitions of each variant."""
    found = {variant: _read(tool, paths, said) for variant, paths in paths_of.items()}
    _require_each_file_once(found)
    return run_of_logs(name_of_run(), tool, found, asked, time.time()), found


def _by_test(tool: str, by_variant: dict[str, list[Path]]) -> dict[str, dict[str, list[Path]]]:
    """The paths of each variant, by test where folders hold the outputs of several; one that a variant lacks
    is told and left out. Raises UserError where they have none in common."""
    of_folders = {variant: list(map(tests_in, paths)) for variant, paths in by_variant.items()}
    if tool != "sysbench" or not all(all(tests) for tests in of_folders.values()):
        return {"": by_variant}
    every = [tests for each in of_folders.values() for tests in each]
    known = dict.fromkeys(test for tests in every for test in tests)
    common = [test for test in known if all(test in tests for tests in every)]
    if not common:
        raise UserError("these folders have no test in common", "give folders of the same tests")
    if left := [test for test in known if test not in common]:
        tell(f"left out, because not all folders have them: {', '.join(left)}")
    return {
        test: {variant: [tests[test] for tests in each] for variant, each in of_folders.items()}
        for test in common
    }


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
    owners: dict[tuple[Path, str], str] = {}
    for variant, file, part in (
        (variant, file, log.repetition.part)
        for variant, logs in found.items()
        for log in logs
        for file in log.repetition.files
    ):
        owner = owners.setdefault((file.resolve(), part), variant)
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
