"""`dyno evaluate`: answers a searcher of others, line by line, or hands Dyno's own search out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dbdyno.analyse import Analysis
from dbdyno.cli.measuring import Measuring, measure
from dbdyno.cli.options import refuse_both
from dbdyno.cli.resume import study_and_run
from dbdyno.cli.terminal import tell
from dbdyno.errors import UserError
from dbdyno.frozen import Frozen
from dbdyno.host.writers import Allowed
from dbdyno.kinds.comparison import RunOptions
from dbdyno.kinds.evaluation import (
    EVALUATION,
    begin_evaluation,
    beginning_of_evaluation,
    end_line,
    hand_out,
)
from dbdyno.kinds.kind import Beginning
from dbdyno.prepare_run.adapted import seed_of
from dbdyno.prepare_run.study_here import study_at
from dbdyno.records.place import store_url
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study import Design


def main(
    study: Path | None,
    resume: str | None,
    asks: bool,
    told: Path | None,
    own: bool,
    seed: int | None,
    name: str | None,
    note: str,
    devices: tuple[Path, ...],
    allowed_paths: tuple[Path, ...],
    wait_s: float,
    quiet: bool,
    store: str | None,
    **options: Any,
) -> None:
    study, resume = study_and_run(study, resume)
    refuse_both("--ask", asks or None, resume=resume, budget=options["budget_s"], own=own or None)
    refuse_both("--resume", resume, budget=options["budget_s"], own=own or None, seed=seed)
    if told is not None and not asks:
        raise UserError("--tell has results for Dyno's own search", "add --ask")
    if asks:
        _hand_out(study, told, seed)
        return
    allowed = Allowed.of(devices, allowed_paths)

    def begin(opened: Store, run: Run | None) -> Beginning:
        if run is not None:
            begun = EVALUATION.goes_on(run)
        elif study is None:
            raise UserError("no study was named", "dyno evaluate STUDY, or dyno evaluate --resume RUN")
        else:
            _require_search(study)
            asked = RunOptions(path=study, seed=seed, allowed=allowed, **options)
            begun = begin_evaluation(opened, asked, own, tell)
        return beginning_of_evaluation(begun, _lines(), _say)

    measure(
        Measuring(
            "dyno evaluate", study, resume, allowed, wait_s, quiet, store_url(store), "json", None,
            name, note, ends=_end,
        ),
        begin,
    )  # fmt: skip


def _end(analysis: Analysis) -> int:
    """Says the last line, and how to see the rest."""
    last = end_line(analysis)
    _say(last)
    tell(f"{last.why}; {last.report} shows it")
    return 0


def _hand_out(path: Path | None, told: Path | None, seed: int | None) -> None:
    """Dyno's own search as a searcher, whose candidates somebody else measures."""
    if path is None:
        raise UserError("no study was named", "dyno evaluate STUDY --ask")
    study = _require_search(path)
    if seed is not None:
        study = study.but(seed=seed)
    try:
        before = told.read_text(encoding="utf-8", errors="replace").splitlines() if told is not None else []
    except OSError as error:
        raise UserError(
            f"cannot read {told}: {error.strerror}", "name a file of results, a line each"
        ) from None
    hand_out(study, seed_of(study), before, _lines(), _say)


def _require_search(path: Path) -> Any:
    """The study in a file. Raises UserError for one that searches nothing."""
    study = study_at(path)
    if study.design is not Design.SEARCH:
        raise UserError(
            f"{path} has the design `{study.design}`, which has no space of levels",
            'write design = "search"; see: dyno tune',
        )
    return study


def _lines() -> Iterator[str]:
    """What is said to Dyno, a line as soon as it is there."""
    for line in iter(sys.stdin.buffer.readline, b""):
        yield line.decode(errors="replace")


def _say(line: Frozen) -> None:
    """A searcher waits for each line, so none stays in a buffer."""
    print(line.model_dump_json(), flush=True)
