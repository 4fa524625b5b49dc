"""The one verb that measures: `dyno run`, `soak`, `bisect` and `tune` say what begins, and the kind of run
says what differs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, NoReturn

from dbdyno.analyse import Analysis
from dbdyno.cli.deliver import deliver, page_beside, tell_page
from dbdyno.cli.exit_codes import end_code, exit_code, gate_code, gate_fails_on
from dbdyno.cli.patience import waiting
from dbdyno.cli.progress import OfReference, shown, told_of, told_to
from dbdyno.cli.report import deliver_report
from dbdyno.cli.resume import interrupted, run_to_resume, tell_stopped
from dbdyno.cli.terminal import tell
from dbdyno.errors import Stopped
from dbdyno.findings.registered import among_reports
from dbdyno.findings.results import RESULTS
from dbdyno.host.callgrind import Callgrind
from dbdyno.host.host_lock import alone
from dbdyno.host.journal import Journal, open_journal
from dbdyno.host.writers import Allowed
from dbdyno.kinds.kind import Beginning, KindOfRun
from dbdyno.kinds.registry import KINDS
from dbdyno.prepare_run.adapted import server_bytes
from dbdyno.prepare_run.begun import (
    Begun,
    began,
    bench_of,
    keep_run,
    make_builds_of,
    own_dyno,
    require_free,
    require_same_dyno,
    reruns_of,
)
from dbdyno.prepare_run.running import held
from dbdyno.prepare_run.stored_run import belongings_of
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.chain import Rerun
from dbdyno.records.readings import Readings, RunOfIndex
from dbdyno.records.record import Record
from dbdyno.records.run import BLOCKS_IN_PAIR, Run
from dbdyno.records.store import Store, writable_store
from dbdyno.report.words.answer import in_brief
from dbdyno.run import RunSide, Unwatched, carried_out, run_study
from dbdyno.trial.bench import Leased

if TYPE_CHECKING:
    from dbdyno.analyse.gate import Gate
    from dbdyno.plan import Ask
    from dbdyno.serve.address import Address
    from dbdyno.study import Study
    from dbdyno.study.trials import Trial


@dataclass(frozen=True)
class Measuring:
    """What a user says to every `verb` that measures: the `study` or the run to `resume`, where it is kept
    (`url`), and in which form its answer is shown. A verb that shows no report `ends` in its own way, with an
    exit code."""

    verb: str
    study: Path | None
    resume: str | None
    allowed: Allowed
    wait_s: float
    quiet: bool
    url: str
    form: str
    output: Path | None
    name: str | None = None
    note: str = ""
    fail_on: tuple[str, ...] = ()
    live: int | None = None
    add_blocks: int | None = None
    ends: Callable[[Analysis], int] | None = None
    otlp: str | None = None

    def tell(self, line: str) -> None:
        """Says what is done before the first trial."""
        if not self.quiet:
            tell(line)


def nowhere(_store: Store, _run: Run | None) -> None:
    """For runs that this host alone can carry out."""


def measure(
    asked: Measuring,
    begin: Callable[[Store, Run | None], Beginning],
    elsewhere: Callable[[Store, Run | None], Analysis | None] = nowhere,
) -> NoReturn:
    """Carries out the run that `begin` begins, or goes on with, shows what it found, and ends the program.
    Where other hosts carry it out, `elsewhere` returns what they found."""
    with writable_store(asked.url) as store, ExitStack() as around:
        require_free(store, asked.name)
        before = run = None
        if asked.resume is not None:
            before = run = run_to_resume(store, asked.study, asked.resume, asked.allowed, asked.verb)
        if (analysis := elsewhere(store, run)) is not None:
            sys.exit(_report_delivered(asked, analysis, reruns_of(store, analysis.run), None))
        if before is not None:
            require_same_dyno(before, own_dyno())
        pages, planned = None if asked.live is None else _listening(asked.live), None
        try:
            beginning = begin(store, run)
            begun, run = beginning.begun, beginning.begun.run
            planned = None if run.compares else beginning.trials
            kept = 0 if before is None or asked.quiet else len(store.records(run.run))
            for line in beginning.lines(kept, time.time()):
                asked.tell(line)
            with alone(begun.study.title, beginning.whole_s, asked.wait_s, tell, run.run):
                if before is None:
                    KINDS[run.kind].require(begun, tell, asked.allowed)
                keep_run(store, run, asked.name, asked.note)
                if pages is not None:
                    around.enter_context(_pages(*pages, asked.url, run))
                records = _carried_out(asked, beginning, store)
        except Stopped:
            tell_stopped(store, run, asked.allowed)
            raise
        except KeyboardInterrupt:
            # The store may not count yet what was to be added.
            counted = before is None or store.run(before.run).blocks != before.blocks
            sys.exit(interrupted(store, run, asked.allowed, None if counted else asked.add_blocks, planned))
        run, kind = store.run(run.run), KINDS[run.kind]  # Its first block may have changed blocks or slices.
        study = begun.study if run == begun.run else study_of(run)
        if kind.result != "report":
            found = kind.found(study, run, records)
            deliver(kind.result, found, asked.form, asked.output)
            page = page_beside(RESULTS[kind.result].document(found), run.run)
            tell_page(page, asked.form)
            sys.exit(end_code(*kind.ends_with(found)))
        gate, reruns = _gate_of(store, run), reruns_of(store, run)
    with waiting(f"analysing {run.run}"):
        analysis = kind.found(study, run, records)
        if gate is None:
            _keep_in_brief(asked.url, analysis)
    if asked.ends is not None:
        sys.exit(asked.ends(analysis))
    sys.exit(_report_delivered(asked, analysis, reruns, gate))


def _carried_out(asked: Measuring, beginning: Beginning, store: Store) -> list[Record]:
    """Carries out all trials that are left of a run, with a reference in turn with it. Returns the run's
    records."""
    begun, reference, allowed = beginning.begun, beginning.reference, asked.allowed
    study, run, kind = begun.study, begun.run, KINDS[begun.run.kind]
    if kind.knows_builds:
        make_builds_of(begun, reference, store, allowed, asked.tell)
    if beginning.reopens:
        store.reopen_run(run)
    with ExitStack() as stack:
        journal = stack.enter_context(open_journal())
        callgrind = _callgrind(kind, begun, journal, stack)
        switch = stack.enter_context(held(study, run, journal, store, allowed))
        bench = replace(bench_of(begun, journal, callgrind, allowed), tell=asked.tell, switch=switch)
        bench = kind.at_bench(bench)
        own = kind.progress(study, run, tell)
        progress = own or Unwatched()
        if asked.quiet:
            progress = Unwatched()
        elif own is None:
            progress = stack.enter_context(shown(beginning.trials or 0, study, beginning.trials_s))
            bench = replace(bench, tell=progress.say)
        memory = partial(server_bytes, study)
        ask = beginning.ask(memory) if beginning.ask else kind.ask(run, memory, progress.decided)
        ask = told_to(progress, ask, store) if own is None else told_of(progress, ask)
        ask = kind.before(ask, bench, asked.tell)
        if asked.otlp is not None:
            # Here, because most runs are told to no collector.
            from dbdyno.export.otlp import MetricsCollector

            ask = seen_by(MetricsCollector(asked.otlp, tell if asked.quiet else progress.say).see, ask)
        other = None
        if reference is not None:
            store.add_run(reference.run, began(reference.run))
            store.change_run(reference.run)
            # It has trials only beside this run's, so nobody goes on with it alone.
            store.finish_run(reference.run.run)
            again = bench_of(reference, journal, callgrind, allowed)
            # Here, because most runs are held against nothing.
            from dbdyno.plan import blocks as reference_plan

            other = RunSide(reference_plan.ask_of_reference, again, OfReference(progress))
        return run_study(RunSide(ask, bench, progress), store, other)


def seen_by(see: Callable[[Study, Run, Sequence[Record]], None], ask: Ask) -> Ask:
    """The same answers, after somebody has seen the records at each question."""

    def asked(study: Study, run: Run, records: Sequence[Record]) -> Sequence[Trial]:
        see(study, run, records)
        return ask(study, run, records)

    return asked


def records_of_host(store: Store, run: Run, host: str) -> list[Record]:
    """What a host of a fleet has measured of a run. Others' records are not read, because a host must cost
    the store the same in a large fleet as in a small one."""
    number = next(number for number, one in enumerate(run.fleet) if one.name == host)
    found = store.records_in_turn(run.run, BLOCKS_IN_PAIR, len(run.fleet), number)
    return [record for record in found if record.whole]


def carry_out_pair(
    begun: Begun,
    leased: Leased,
    progress: Unwatched,
    store: Store,
    allowed: Allowed,
    goes_on: Callable[[], bool],
) -> bool:
    """Carries out what is left of the next pair of blocks of a fleet's host, or what comes beside the blocks,
    as long as it `goes_on`. Returns whether there is more to do. Raises LeaseOver where another may do it."""
    run = begun.run
    # Here, because most runs are of one host.
    from dbdyno.plan import restarts

    ask = partial(restarts.ask_of_host, leased.host)
    records = records_of_host(store, run, leased.host)
    with ExitStack() as stack:
        journal = stack.enter_context(open_journal())
        callgrind = _callgrind(KINDS[run.kind], begun, journal, stack)
        bench = replace(bench_of(begun, journal, callgrind, allowed), tell=progress.say, leased=leased)
        side, pair = RunSide(ask, bench, progress), None
        while seats := side.next_seats(records):
            found = seats[0].trial.block // BLOCKS_IN_PAIR
            if pair not in (None, found) or not goes_on():
                return True
            pair = found
            for record in carried_out(seats, store):
                records.append(record)
                if not goes_on():
                    return True
    return False


def _callgrind(kind: KindOfRun, begun: Begun, journal: Journal, stack: ExitStack) -> Callgrind | None:
    """What counts instructions: of all trials where they are the response and the CPU's own counters cannot
    be read, or beside the timed ones."""
    return Callgrind(stack.enter_context(journal.folder("counted-"))) if kind.counts(begun, tell) else None


def _keep_in_brief(url: str, analysis: Analysis) -> None:
    """What lists of runs say of it, so that they need not read its records."""
    with Store(url) as store:
        Readings(store).of(store.summary(analysis.run), RunOfIndex, lambda: in_brief(analysis))


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


def _gate_of(store: Store, run: Run) -> Gate | None:
    if not run.held:
        return None
    # Here, because most runs are held against nothing.
    from dbdyno.kinds.held_against import held_gate

    return held_gate(store, run)


def _report_delivered(
    asked: Measuring, analysis: Analysis, reruns: Sequence[Rerun], gate: Gate | None
) -> int:
    """Shows what a comparison, or its gate, answered; returns the exit code."""
    form, output, fail_on = asked.form, asked.output, asked.fail_on
    with Store(asked.url) as store:
        belongings = belongings_of(store, analysis, reruns)
    if gate is None:
        deliver_report(analysis, form, output, fail_on=fail_on, reruns=reruns, belongings=belongings)
    else:
        # Here, because most runs are held against nothing.
        from dbdyno.cli.gate import deliver_gate
        from dbdyno.kinds.held_against import before

        deliver_gate(gate, form, output, gate_fails_on(fail_on), details=False)
        analysis = before(gate, analysis)
    with waiting("drawing its page"):
        known = {"reruns": reruns, "belongings": belongings, "opened_by": among_reports}
        page = page_beside(RESULTS["report"].document(analysis, **known), analysis.run.run)
    tell_page(page, form)
    return exit_code(analysis, fail_on) if gate is None else gate_code(gate, gate_fails_on(fail_on))
