"""`dyno report`: shows a run again, from the store alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.analyse import Analysis
from dbdyno.begin.registered import reruns_of
from dbdyno.begin.stored_run import analysis_to_read, without_speeds
from dbdyno.cli.deliver import deliver, page_of_run
from dbdyno.cli.exit_codes import (
    GATE_FAILS_ON,
    exit_code,
    gate_code,
    gate_fails_on,
    soak_code,
    verdicts_of,
)
from dbdyno.cli.formats import verdict_format_of
from dbdyno.cli.patience import waiting
from dbdyno.cli.stored_run import run_to_read
from dbdyno.errors import UserError
from dbdyno.records.chain import Rerun
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.report.words.safe import argument

if TYPE_CHECKING:
    from dbdyno.analyse.gate import Gate


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
        # Here, because a report needs nothing of it.
        from dbdyno.cli import show

        show.main(run, trial, as_json or form == "json", store)
        return
    form = verdict_format_of(form, as_json, output)
    with Store(store_url(store)) as opened:
        found = run_to_read(opened, run)
        other = without_speeds(opened, found)
        if other is not None:
            kind, result = other
            deliver(kind, result, form, output)
            # Here, because few runs are soaks.
            from dbdyno.analyse.soak import SoakResult

            sys.exit(soak_code(result) if fail_on and isinstance(result, SoakResult) else 0)
        with waiting(f"reading and analysing {found.run}"):
            analysis = analysis_to_read(opened, found)
            if found.held:
                # Here, because most runs are held against nothing.
                from dbdyno.begin.gate import with_gate

                analysis = with_gate(opened, analysis)
        deliver_report(analysis, form, output, details, fail_on, reruns_of(opened, found))
        if form == "terminal" and output is None and not details:
            tell_page(found.run)
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
) -> None:
    """Prints a run's report, or writes it and prints where. `reruns` are the runs of the same study."""
    failing = fail_on or GATE_FAILS_ON if _gate_in(analysis) is None else gate_fails_on(fail_on)

    def as_junit() -> str:
        # Here, because only pipelines read it.
        from dbdyno.report import junit

        return junit.render(analysis, verdicts_of(failing))

    deliver("report", analysis, form, output, {"junit": as_junit}, details, reruns=reruns)


def tell_page(run: str) -> None:
    """Says where the page of a run is, or how it is made."""
    page = page_of_run(run)
    made = f"dyno report {argument(run)} --format html --output {argument(f'{run}.html')}"
    click.echo(f"Page: {page if page.exists() else made}")


def _gate_in(analysis: Analysis) -> Gate | None:
    if not analysis.run.held:
        return None
    # Here, because most runs are held against nothing.
    from dbdyno.report.parts.gate import gate_in

    return gate_in(analysis)
