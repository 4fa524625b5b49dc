"""The winner of a search on a workload for which it was not tuned: a study of its own, written beside the
reports."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from dbdyno.analyse.model import Analysis
from dbdyno.begin.catalogue import catalogue
from dbdyno.begin.stored_run import analysis_of
from dbdyno.begin.stored_study import is_of
from dbdyno.driver.job import REPLAY
from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.host import paths
from dbdyno.host.cache import Tell
from dbdyno.layers.workload import files_named
from dbdyno.records import metrics
from dbdyno.records.place import store_url
from dbdyno.records.store import Store
from dbdyno.study import Goal, Study, Workload, WorkloadOffer
from dbdyno.study.nouns import GivenData
from dbdyno.study.phases import ACT_OF_METRIC
from dbdyno.study.sections import WITH_SETUP
from dbdyno.study.tables import KNOBS
from dbdyno.study.values import Fault
from dbdyno.study.workload_text import CLIENTS, filled, parse_workload
from dbdyno.study.written import winner_on

WITH_OWN_STATEMENTS = frozenset(("script", "lua", REPLAY))
"""Workloads whose statements are the user's, on tables of the user's."""
NAME_LENGTH_MAX = 100
"""Of what names the load in the name of its study's file."""


def study_on(path: Path, study: Study, text: str, store: str | None, tell: Tell) -> Path:
    """Writes the study of a search's baseline and winner on another workload, and returns its path. `text`
    names that workload, and gives options of it. Raises UserError for a workload or an option that does not
    exist, and where no search of the study ended with a winner."""
    offer, load = load_on(study, text)
    found = _latest(path, study, store)
    name = found.search.winner if found.search is not None else None
    winner = next(one for one in found.variants if one.name == name)
    require_options(winner.changed, offer)
    goal = goal_on(study.goal, load, offer, tell)
    target = paths.data() / "studies" / f"{found.run.run}-on-{_file_name(text)}.toml"
    target.parent.mkdir(parents=True, exist_ok=True)
    data = data_on(study, load, tell)
    target.write_text(winner_on(study, winner.name, winner.changed, load, goal, data), encoding="utf-8")
    return target


def _file_name(text: str) -> str:
    """A name for each load, so that the study of another one stays."""
    return re.sub(r"[^\w.=]+", "-", text.strip())[:NAME_LENGTH_MAX]


def load_on(study: Study, text: str) -> tuple[WorkloadOffer, Workload]:
    """The other load: with the options given, those that the study's own load has as well, and defaults,
    which are left out. It has the study's clients and times. Raises UserError."""
    try:
        offer, given = parse_workload(text, catalogue(ask_engines=False).workloads, (CLIENTS,))
        # The study that is written lies elsewhere, so its paths count from nothing.
        given = _placed(offer.name, given, Path.cwd())
        of_study = _placed(study.workload.name, study.workload.options, study.folder)
        options = filled(offer, given, of_study)
    except Fault as fault:
        raise UserError(f"--on: {fault.message}", fault.hint) from None
    defaults = {option.name: option.default for option in offer.options}
    return offer, Workload(
        name=offer.name,
        clients=int(given.get("clients", study.workload.clients)),
        warmup_s=study.workload.warmup_s,
        duration_s=study.workload.duration_s,
        options={name: level for name, level in options.items() if level != defaults[name]},
    )


def _placed(workload: str, options: Mapping[str, Level], folder: Path) -> dict[str, Level]:
    """The options of a workload, with the paths of its files whole, which count from a folder."""
    own = {name: level for name, level in options.items() if name != CLIENTS.name}
    files = {named.option for named in files_named(workload, own, folder) if not named.named_at}
    return {
        name: str(folder.absolute() / Path(str(level)).expanduser()) if name in files else level
        for name, level in options.items()
    }


def require_options(changed: Collection[str], offer: WorkloadOffer) -> None:
    """Raises UserError where a winner changes an option that the other workload does not have."""
    known = {*KNOBS, *(option.name for option in offer.options)}
    strange = [name for name in changed if name.startswith("workload.")]
    strange = [name for name in strange if name.removeprefix("workload.") not in known]
    if strange:
        raise UserError(
            f"the winner changes {', '.join(strange)}, which the workload {offer.name} does not have",
            "name a workload that has it",
        )


def goal_on(goal: Goal, load: Workload, offer: WorkloadOffer, tell: Tell) -> Goal:
    """The study's goal as far as the other load has its metrics. What goes is told."""
    kept = tuple(guard for guard in goal.guards if _has(guard.metric, load, offer))
    for guard in goal.guards:
        if guard not in kept:
            told = f"the guard {guard.text} is left out, because {load.name} has no {guard.metric}"
            tell(told)
    response = goal.response
    if not _has(response, load, offer):
        response = Goal().response
        told = f"{response} is compared and not {goal.response}, which {load.name} does not have"
        tell(told)
    return goal.but(guards=kept, response=response)


def data_on(study: Study, load: Workload, tell: Tell) -> GivenData | None:
    """The data of the study that the other load uses as well. A built-in workload makes its own in the place
    of data that were brought for statements of the user's, because these lack its tables."""
    data = study.data
    if data is None:
        return None
    if study.workload.name in WITH_OWN_STATEMENTS and load.name not in WITH_OWN_STATEMENTS:
        tell(f"[data] is left out, because {load.name} makes its own tables")
        return None
    return data.but(setup=data.setup and load.name == WITH_SETUP)


def _has(metric: str, load: Workload, offer: WorkloadOffer) -> bool:
    """Whether trials of a load can have a metric. Those of restarts need a ledger."""
    if metric in ACT_OF_METRIC:
        return load.keeps_ledger
    kind = metrics.METRICS[metric].transaction if metric in metrics.METRICS else ""
    return not kind or kind in offer.transactions


def _latest(path: Path, study: Study, store: str | None) -> Analysis:
    """The latest search of the study that ended with a winner."""
    with Store(store_url(store)) as opened:
        for summary in opened.runs():
            if summary.finished and is_of(summary.run, study):
                found = analysis_of(opened, summary.run)
                if found.search is not None and found.search.winner is not None:
                    return found
    raise UserError(f"no search of {path} ended with a winner yet", f"dyno tune {path}")
