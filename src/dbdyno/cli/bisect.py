"""`dyno bisect`: which commit, which version, or which of many settings, made a server slower."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from dbdyno.analyse.bisect import Evidence, bisected, course_of
from dbdyno.begin.begun import bench_of
from dbdyno.begin.bisect import (
    BegunBisection,
    BisectOptions,
    begin_bisection,
    bisection_gone_on_with,
    built_before,
)
from dbdyno.begin.naming import keep, require_free
from dbdyno.cli.carried_out import Here
from dbdyno.cli.deliver import deliver, page_beside
from dbdyno.cli.formats import format_of
from dbdyno.cli.options import refuse_both
from dbdyno.cli.progress import Quiet
from dbdyno.cli.resume import interrupted, run_to_resume, study_and_run
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.findings.bisect import document, way_text
from dbdyno.host.allowed import Allowed
from dbdyno.host.callgrind import Callgrind
from dbdyno.host.host_lock import alone
from dbdyno.host.journal import open_journal
from dbdyno.plan import Ask, ask_for
from dbdyno.records.place import store_url
from dbdyno.records.record import Outcome, Record
from dbdyno.records.run import BisectionRun, Run
from dbdyno.records.store import writable_store
from dbdyno.report.words.numbers import plural
from dbdyno.run import Side, run_study
from dbdyno.study import Study
from dbdyno.study.line import Along
from dbdyno.study.trials import Trial

ABOUT_S = 1200.0
"""About how long a bisection takes, for those who wait for this host meanwhile."""


def main(
    study: Path | None,
    good: str | None,
    bad: str | None,
    settings: bool,
    versions: bool,
    resume: str | None,
    blocks: int | None,
    seed: int | None,
    name: str | None,
    note: str,
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    wait_s: float,
    quiet: bool,
    store: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    form = format_of(form, as_json, output)
    study, resume = study_and_run(study, resume)
    allowed = Allowed.of(devices, allowed_paths)
    along = _along(settings, versions)
    asked = {"settings": settings or None, "versions": versions or None}
    refuse_both("--resume", resume, good=good, bad=bad, **asked, blocks=blocks, seed=seed)
    with writable_store(store_url(store)) as opened:
        require_free(opened, name)
        if resume is not None:
            begun = bisection_gone_on_with(run_to_resume(opened, study, resume, allowed, "dyno bisect"))
        elif study is not None:
            begun = begin_bisection(BisectOptions(study, good, bad, along, blocks, seed, allowed), tell)
        else:
            raise UserError("no study was named", "dyno bisect STUDY --good REV --bad REV")
        here = Here(opened, ABOUT_S, quiet, allowed)
        try:
            with alone(begun.study.title, ABOUT_S, wait_s, tell, begun.run.run):
                keep(opened, begun.run, name, note)
                records = _carried_out(begun, here)
        except KeyboardInterrupt:
            sys.exit(interrupted(opened, begun.run, allowed))
    found = bisected(begun.study, begun.run, records)
    deliver("bisect", found, form, output)
    click.echo(f"Page: {page_beside(document(found), found.run.run)}", err=form != "terminal")


def _along(settings: bool, versions: bool) -> Along:
    """What the line goes over. Raises UserError where both options are given."""
    refuse_both("--versions", versions or None, settings=settings or None)
    if versions:
        return Along.VERSIONS
    return Along.SETTINGS if settings else Along.COMMITS


def _carried_out(begun: BegunBisection, here: Here) -> list[Record]:
    """Carries out what is left of a bisection; returns all its records."""
    run, line = begun.run, begun.run.line
    here.tell(f"{begun.study.title}\nrun {run.run}: {plural(line.last, 'step')} between the ends")
    if run.counting.why_not:
        here.tell(f"instructions are not counted: {run.counting.why_not}")
    with ExitStack() as stack:
        journal = stack.enter_context(open_journal())
        folder = stack.enter_context(journal.folder("counted-"))
        callgrind = Callgrind(folder) if run.counting.by == "valgrind" else None
        progress = Quiet() if here.quiet else Bisecting(begun.study, run)
        bench = replace(bench_of(begun, journal, callgrind, here.allowed), tell=here.tell)
        ask = built_before(_told(progress, ask_for(run)), bench, here.tell)
        return run_study(Side(ask, bench, progress), here.store)


def _told(progress: Quiet, ask: Ask) -> Ask:
    """The same answers; the progress sees the records on which they rest."""

    def asked(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
        progress.seen(records)
        return ask(study, run, records)

    return asked


class Bisecting(Quiet):
    """A line when the bisection asks another question, with how far it is, and one for what is skipped."""

    def __init__(self, study: Study, run: BisectionRun) -> None:
        self._study = study
        self._run = run
        self._said = ""

    def seen(self, records: Sequence[Record]) -> None:
        """The bisection looks for what it needs next, with these records."""
        told = way_text(self._run.line, course_of(Evidence(self._study, self._run, records)))
        if told != self._said:
            self.say(told)
            self._said = told

    def trial_ended(self, record: Record) -> None:
        if record.outcome is not Outcome.MEASURED:
            self.say(f"  {record.variant}: {record.outcome.value}: {record.cause}")

    def say(self, line: str) -> None:
        click.echo(line, err=True)
