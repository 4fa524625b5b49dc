"""Levels of a build's trainings: a workload with its options, as a study writes them in one text."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dbdyno.driver import _driver
from dbdyno.errors import Mistake, UserError
from dbdyno.frozen import Level
from dbdyno.layers.workload import files_named as of_workload
from dbdyno.obtain.source.wish import OFF, BuildWish, Trainer
from dbdyno.study import Option, Study, WorkloadOffer, workload_offers
from dbdyno.study.files import NamedFile
from dbdyno.study.values import Fault
from dbdyno.study.workload_text import CLIENTS, filled, parse_workload

PGO, BOLT = "build.pgo", "build.bolt"
TRANSACTIONS = 5_000
"""By how many a build is trained. An instrumented server can be 300 times slower, so no time is set."""
OWN = (
    CLIENTS,
    Option.model_validate({"name": "transactions", "type": "int", "allowed": {"min": 1, "max": 10**9}}),
)
"""The options that a trainer has beside those of its workload."""


@cache
def offers() -> tuple[WorkloadOffer, ...]:
    return workload_offers(_driver.workloads())


def parsed(text: str) -> tuple[WorkloadOffer, dict[str, Level]]:
    """The workload that a level names, and the options that it gives. Raises Fault."""
    return parse_workload(text, offers(), OWN, (OFF,), " that could train a build")


def refused(factor: str, text: str) -> Mistake | None:
    """What is wrong with a level that is neither off nor a trainer."""
    try:
        if text != OFF:
            parsed(text)
    except Fault as fault:
        return Mistake(0, f"{factor}: {fault.message}", fault.hint)
    return None


def files_named(text: str, folder: Path) -> tuple[NamedFile, ...]:
    """The files that a trainer's workload reads."""
    try:
        offer, given = parsed(text) if text != OFF else (None, {})
    except Fault:
        return ()
    return of_workload(offer.name, given, folder) if offer is not None else ()


def trainer_of(factor: str, text: str, study: Study) -> Trainer:
    """What a level of a factor means in a study. Options that the level leaves out are those of the study's
    own workload where that has them, and the server has the configuration of the study's baseline: so builds
    do not differ where variants differ in configuration alone. Raises UserError for what is no trainer."""
    try:
        offer, given = parsed(text)
        options = filled(offer, given, study.workload.options)
    except Fault as fault:
        raise UserError(f"{factor}: {fault.message}", fault.hint) from None
    levels = {**study.settings, **study.baseline}
    return Trainer(
        workload=offer.name,
        options=tuple(options.items()),
        settings=tuple(sorted((name, levels[name]) for name in levels if name.startswith("config."))),
        clients=int(given.get("clients", study.workload.clients)),
        transactions=int(given.get("transactions", TRANSACTIONS)),
    )


def with_trainer(wish: BuildWish, study: Study) -> BuildWish:
    """A wish with what its trainers mean in a study. Raises UserError like `trainer_of`."""
    asked = {"trainer": (PGO, wish.pgo), "bolt_trainer": (BOLT, wish.bolt)}
    trainers = {
        name: trainer_of(factor, level, study) for name, (factor, level) in asked.items() if level != OFF
    }
    return wish.but(**trainers)


def run_options(trainer: Trainer) -> frozenset[str]:
    """The options that only the run looks at, so that they do not shape the data."""
    offered = next((offer.options for offer in offers() if offer.name == trainer.workload), ())
    return frozenset(option.name for option in offered if not option.shapes_data)
