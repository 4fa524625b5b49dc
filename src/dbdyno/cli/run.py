"""`dyno run`: carries out a study and shows what it answered."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbdyno.analyse import Analysis
from dbdyno.cli.cleanup import put_back_on
from dbdyno.cli.formats import verdict_format_of
from dbdyno.cli.measuring import Measuring, measure
from dbdyno.cli.options import refuse_both
from dbdyno.cli.patience import waiting
from dbdyno.cli.resume import interrupted, study_and_run
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.host.writers import Allowed
from dbdyno.kinds.comparison import RunOptions, begin
from dbdyno.prepare_run.stored_run import analysed
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store


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
    otlp: str | None,
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
    if otlp is not None:
        # Here, because most runs are told to no collector.
        from dbdyno.export.otlp import endpoint_of

        otlp = endpoint_of(otlp)
    study, resume = _meant(study, resume, asked["add_blocks"])
    _make_ready(servers, study if asked.pop("fetch") else None)
    allowed, url = Allowed.of(devices, allowed_paths, servers, writes), store_url(store)
    options = RunOptions(path=study, allowed=allowed, **asked)
    _require_agreement(options, resume, live, otlp)

    def on_fleet(opened: Store, run: Run | None) -> Analysis | None:
        if options.fleet is None and (run is None or not run.fleet):
            return None
        refuse_both("--fleet", options.fleet or True, otlp=otlp)
        return _on_fleet(opened, url, replace(options, resume=run), name, note, quiet)

    measure(
        Measuring(
            "dyno run", study, resume, allowed, wait_s, quiet, url, form, output,
            name, note, fail_on, live, options.add_blocks, otlp=otlp,
        ),
        lambda opened, run: begin(opened, replace(options, resume=run), tell),
        on_fleet,
    )  # fmt: skip


def _make_ready(servers: tuple[str, ...], needing: Path | None) -> None:
    """Puts back what another Dyno left on servers, and fetches what a study needs."""
    put_back_on(servers)
    if needing is not None:
        # Here, because most runs fetch nothing.
        from dbdyno.prepare_run.study_here import fetched_for, study_at

        fetched_for(study_at(needing), "", tell)


def _on_fleet(
    store: Store, url: str, options: RunOptions, name: str | None, note: str, quiet: bool
) -> Analysis:
    """A run on a fleet that begins or goes on, to its end. After Ctrl-C hosts stop at the end of a trial."""
    # Here, because most runs need no server for their store.
    from dbdyno.cli.fleet import Controller
    from dbdyno.cli.jobs import launcher_of, require_for_all
    from dbdyno.fleet.session import Session

    with Session(url) as session:
        named = options.fleet or "" if options.resume is None else options.resume.launcher
        controller = Controller(store, session, url, launcher_of(named), options.allowed, quiet)
        run = options.resume
        require_for_all(options.allowed, named)
        try:
            if run is not None and (options.add_blocks or options.against):
                raise UserError(
                    f"run {run.run} is on a fleet, which takes no --add-blocks and no --against",
                    "leave it out; a new run takes --blocks N",
                )
            if run is None:
                run = controller.begin(options, name, note)
            else:
                controller.go_on(run)
            run, records = controller.follow(run)
        except KeyboardInterrupt:
            controller.withdraw(run)
            sys.exit(interrupted(store, run, options.allowed))
    with waiting(f"analysing {run.run}"):
        return analysed(study_of(run), run, records)


def _require_agreement(options: RunOptions, resume: str | None, live: int | None, otlp: str | None) -> None:
    """Raises UserError for options that contradict each other."""
    refuse_both("--again", options.again, resume=resume)
    refuse_both("--budget", options.budget_s, blocks=options.blocks, until=options.until, resume=resume)
    refuse_both("--against", options.against, budget=options.budget_s, until=options.until, resume=resume)
    others = {"budget": options.budget_s, "until": options.until, "against": options.against}
    refuse_both("--fleet", options.fleet, resume=resume, live=live, otlp=otlp, **others)
    if options.hosts is not None and options.fleet is None:
        raise UserError("--hosts says how many, and no --fleet says of what", "--fleet slurm:PARTITION")
    if options.fleet is not None:
        # Here, because most runs have no fleet.
        from dbdyno.cli.jobs import require_for_all

        require_for_all(options.allowed, options.fleet)
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
