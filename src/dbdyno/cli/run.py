"""`dyno run`: carries out a study and shows what it answered."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any

import click

from dbdyno.analyse import Analysis
from dbdyno.begin.begun import make_builds_of
from dbdyno.begin.building import builds_lines
from dbdyno.begin.checked import require_statements
from dbdyno.begin.estimate import header
from dbdyno.begin.naming import keep, require_free
from dbdyno.begin.registered import reruns_of
from dbdyno.begin.run import Beginning, RunOptions, begin
from dbdyno.begin.stored_run import analysed
from dbdyno.begin.stored_study import study_of
from dbdyno.cli.carried_out import Here, carry_out
from dbdyno.cli.cleanup import put_back_on
from dbdyno.cli.deliver import page_beside
from dbdyno.cli.exit_codes import exit_code, gate_code, gate_fails_on
from dbdyno.cli.formats import verdict_format_of
from dbdyno.cli.options import refuse_both
from dbdyno.cli.patience import waiting
from dbdyno.cli.report import deliver_report
from dbdyno.cli.resume import interrupted, run_to_resume, study_and_run, tell_stopped
from dbdyno.cli.terminal import tell
from dbdyno.errors import Stopped, UserError
from dbdyno.findings.run import document
from dbdyno.host.allowed import Allowed
from dbdyno.host.host_lock import alone
from dbdyno.records.chain import Rerun
from dbdyno.records.place import store_url
from dbdyno.records.readings import Readings, RunOfIndex
from dbdyno.records.record import Record
from dbdyno.records.run import Run, SearchRun
from dbdyno.records.store import Store, writable_store
from dbdyno.report.words.answer import in_brief

if TYPE_CHECKING:
    from dbdyno.analyse.gate import Gate
    from dbdyno.serve.address import Address


def main(
    study: Path | None,
    resume: str | None,
    name: str | None,
    note: str,
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    servers: tuple[str, ...],
    writes: bool,
    live: int | None,
    wait_s: float,
    quiet: bool,
    store: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    fail_on: tuple[str, ...],
    **asked: Any,
) -> None:
    form = verdict_format_of(form, as_json, output)
    study, resume = _meant(study, resume, asked["add_blocks"])
    _make_ready(servers, study if asked.pop("fetch") else None)
    options = RunOptions(path=study, allowed=Allowed.of(devices, allowed_paths, servers, writes), **asked)
    with writable_store(store_url(store)) as opened, ExitStack() as around:
        require_free(opened, name)
        _require_agreement(options, resume, live)
        if resume is not None:
            options = replace(options, resume=run_to_resume(opened, study, resume, options.allowed))
        run = options.resume
        if options.fleet is not None or (run is not None and run.fleet):
            analysis = _on_fleet(opened, store_url(store), options, name, note, quiet)
            sys.exit(_delivered(analysis, reruns_of(opened, analysis.run), None, form, output, fail_on))
        pages = None if live is None else _listening(live)
        try:
            beginning = begin(opened, options, tell)
            begun = beginning.begun
            run, here = begun.run, Here(opened, beginning.expected.trials_s, quiet, options.allowed)
            _tell_beginning(beginning, options, here)
            with alone(begun.study.title, beginning.expected.whole_s, wait_s, tell, begun.run.run):
                if options.resume is None:
                    require_statements(begun.study, tell, options.allowed)
                keep(opened, begun.run, name, note)
                if pages is not None:
                    around.enter_context(_pages(*pages, store_url(store), begun.run))
                records = _carried_out(beginning, options, here)
        except Stopped as stopped:
            tell_stopped(opened, run, options.allowed)
            raise stopped
        except KeyboardInterrupt:
            sys.exit(interrupted(opened, run, options.allowed, _still_to_add(opened, options)))
        run = opened.run(begun.run.run)  # Its first block may have changed its blocks or its slices.
        gate = _gate_of(opened, run)
        reruns = reruns_of(opened, run)
    with waiting(f"analysing {run.run}"):
        analysis = analysed(begun.study if run == begun.run else study_of(run), run, records)
        if gate is None:
            _keep_in_brief(store_url(store), analysis)
    sys.exit(_delivered(analysis, reruns, gate, form, output, fail_on))


def _keep_in_brief(url: str, analysis: Analysis) -> None:
    """What lists of runs say of it, so that they need not read its records."""
    with Store(url) as store:
        Readings(store).of(store.summary(analysis.run), RunOfIndex, lambda: in_brief(analysis))


def _make_ready(servers: tuple[str, ...], needing: Path | None) -> None:
    """Puts back what another Dyno left on servers, and fetches what a study needs."""
    put_back_on(servers)
    if needing is not None:
        # Here, because most runs fetch nothing.
        from dbdyno.begin.needed import fetched_for
        from dbdyno.begin.study_file import study_at

        fetched_for(study_at(needing), "", tell)


def _on_fleet(
    store: Store, url: str, options: RunOptions, name: str | None, note: str, quiet: bool
) -> Analysis:
    """A run on a fleet that begins or goes on, to its end. After Ctrl-C hosts stop at the end of a trial."""
    # Here, because most runs need no server for their store.
    from dbdyno.cli.fleet import Controller, hosts_named, withdrawn
    from dbdyno.fleet.session import Session

    with Session(url) as session:
        controller, run = Controller(store, session, quiet), options.resume
        try:
            if run is not None and (options.add_blocks or options.against):
                raise UserError(
                    f"run {run.run} is on a fleet, which takes no --add-blocks and no --against",
                    "leave it out; a new run takes --blocks N",
                )
            if run is None:
                run = controller.begin(options, hosts_named(options.fleet or ""), name, note)
            else:
                controller.go_on(run)
            run, records = controller.follow(run)
        except KeyboardInterrupt:
            withdrawn(session, run)
            sys.exit(interrupted(store, run, options.allowed))
    with waiting(f"analysing {run.run}"):
        return analysed(study_of(run), run, records)


def _listening(port: int) -> tuple[socket, Address]:
    # Here and below, because most runs serve no pages.
    from dbdyno.serve.address import listening

    return listening(port)


def _pages(listener: socket, address: Address, store_url: str, run: Run) -> AbstractContextManager[None]:
    """The pages beside the run, whose address is told."""
    from dbdyno.serve.beside import pages_beside

    path = f"/run/{run.run}"
    tell(f"pages: {address.url(path)}")
    return pages_beside(listener, address, store_url, path, tell)


def _still_to_add(store: Store, options: RunOptions) -> int | None:
    """The blocks that were to be added to a run, where the store does not count them yet."""
    before = options.resume
    return options.add_blocks if before and store.run(before.run).blocks == before.blocks else None


def _carried_out(beginning: Beginning, options: RunOptions, here: Here) -> list[Record]:
    begun, reference = beginning.begun, beginning.reference
    make_builds_of(begun, reference, here.store, options.allowed, here.tell)
    if options.add_blocks is not None:
        here.store.reopen_run(begun.run)
    return carry_out(begun, reference, here)


def _gate_of(store: Store, run: Run) -> Gate | None:
    if not run.held:
        return None
    # Here, because most runs are held against nothing.
    from dbdyno.begin.gate import held_gate

    return held_gate(store, run)


def _delivered(
    analysis: Analysis,
    reruns: Sequence[Rerun],
    gate: Gate | None,
    form: str,
    output: Path | None,
    fail_on: tuple[str, ...],
) -> int:
    """Shows what the run, or its gate, answered; returns the exit code."""
    if gate is None:
        deliver_report(analysis, form, output, fail_on=fail_on, reruns=reruns)
    else:
        # Here, because most runs are held against nothing.
        from dbdyno.begin.gate import before
        from dbdyno.cli.gate import deliver_gate

        deliver_gate(gate, form, output, gate_fails_on(fail_on), details=False)
        analysis = before(gate, analysis)
    with waiting("drawing its page"):
        page = page_beside(document(analysis, reruns), analysis.run.run)
    click.echo(f"Page: {page}", err=form != "terminal")
    return exit_code(analysis, fail_on) if gate is None else gate_code(gate, gate_fails_on(fail_on))


def _tell_beginning(beginning: Beginning, options: RunOptions, here: Here) -> None:
    """What begins, how large it is, and when it will be over."""
    study, run = beginning.begun.study, beginning.begun.run
    kept = 0 if options.resume is None or here.quiet else len(here.store.records(run.run))
    if isinstance(run, SearchRun):
        # Here, because most runs search nothing.
        from dbdyno.begin import space

        here.tell(space.header(study, run, kept, time.time()))
        return
    for line in builds_lines(beginning.builds):
        here.tell(line)
    here.tell(header(study, run, beginning.expected, kept, time.time()))


def _require_agreement(options: RunOptions, resume: str | None, live: int | None) -> None:
    """Raises UserError for options that contradict each other."""
    refuse_both("--again", options.again, resume=resume)
    refuse_both("--budget", options.budget_s, blocks=options.blocks, until=options.until, resume=resume)
    refuse_both("--against", options.against, budget=options.budget_s, until=options.until, resume=resume)
    others = {"budget": options.budget_s, "until": options.until, "against": options.against}
    refuse_both("--fleet", options.fleet, resume=resume, live=live, **others)
    if options.fleet is not None and options.allowed.options:
        raise UserError(
            f"{options.allowed.options.split()[0]} allows something on this host, and a fleet has others",
            "give the option to each worker: dyno fleet worker",
        )
    if resume is not None and (options.blocks is not None or options.seed is not None):
        raise UserError(
            "a run goes on with the blocks and the seed that it began with",
            "leave --blocks and --seed out; --add-blocks adds some",
        )


def _meant(study: Path | None, resume: str | None, add_blocks: int | None) -> tuple[Path | None, str | None]:
    """The study and the run that were meant. Raises UserError for blocks that no run is to have."""
    study, resume = study_and_run(study, resume)
    if add_blocks is not None and not resume:
        raise UserError("--add-blocks needs the run that it extends", "dyno run --resume RUN --add-blocks N")
    return study, resume
