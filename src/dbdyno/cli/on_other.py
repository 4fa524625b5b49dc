"""The winner of a search on a workload for which it was not tuned: a study of its own, written beside the
reports."""

from __future__ import annotations

from pathlib import Path

from dbdyno.analyse.model import Analysis
from dbdyno.cli.catalogue import catalogue
from dbdyno.cli.report import analysis_of
from dbdyno.cli.stored_study import is_of
from dbdyno.errors import UserError
from dbdyno.host import paths
from dbdyno.records.store import Store, store_url
from dbdyno.study import Study
from dbdyno.study.written import winner_on


def study_on(path: Path, study: Study, workload: str, store: str | None) -> Path:
    """Writes the study of a search's baseline and winner on another workload, and returns its path. Raises
    UserError for a workload that does not exist, and where no search of the study ended with a winner."""
    offers = [offer.name for offer in catalogue(ask_engines=False).workloads]
    if workload not in offers:
        raise UserError(f"there is no workload {workload!r}", f"there are: {', '.join(offers)}")
    found = _latest(path, study, store)
    name = found.search.winner if found.search is not None else None
    winner = next(one for one in found.variants if one.name == name)
    target = paths.data() / "studies" / f"{found.run.run}-on-{workload}.toml"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(winner_on(study, winner.name, winner.changed, workload), encoding="utf-8")
    return target


def _latest(path: Path, study: Study, store: str | None) -> Analysis:
    """The latest search of the study that ended with a winner."""
    with Store(store_url(store)) as opened:
        for summary in opened.runs():
            if summary.finished and is_of(summary.run, study):
                found = analysis_of(opened, summary.run)
                if found.search is not None and found.search.winner is not None:
                    return found
    raise UserError(f"no search of {path} ended with a winner yet", f"dyno tune {path}")
