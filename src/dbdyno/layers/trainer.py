"""Levels of a build's trainings: a workload with its options, as a study writes them in one text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dbdyno.driver import _driver
from dbdyno.errors import Mistake, UserError
from dbdyno.frozen import Level
from dbdyno.obtain.source.wish import OFF, BuildWish, Trainer
from dbdyno.study import Option, Study, WorkloadOffer, workload_offers
from dbdyno.study.section import CLIENTS_MAX
from dbdyno.study.values import Fault, nearest, option_value, shown

PGO, BOLT = "build.pgo", "build.bolt"
TRANSACTIONS = 5_000
"""By how many a build is trained. An instrumented server can be 300 times slower, so no time is set."""
OWN = (
    Option.model_validate({"name": "clients", "type": "int", "allowed": {"min": 1, "max": CLIENTS_MAX}}),
    Option.model_validate({"name": "transactions", "type": "int", "allowed": {"min": 1, "max": 10**9}}),
)
"""The options that a trainer has beside those of its workload."""
FORM = 'write "read_write tables=4 table_size=10000": a workload, then options with spaces between'


@cache
def offers() -> tuple[WorkloadOffer, ...]:
    return workload_offers(_driver.workloads())


def parsed(text: str) -> tuple[WorkloadOffer, dict[str, Level]]:
    """The workload that a level names, and the options that it gives. Raises Fault."""
    name, *words = text.split() or [""]
    offer = next((offer for offer in offers() if offer.name == name), None)
    if offer is None:
        known = nearest(name, [OFF, *(offer.name for offer in offers())])
        raise Fault(f"{shown(name)} is no workload that could train a build", known)
    options = {option.name: option for option in (*offer.options, *OWN)}
    given: dict[str, Level] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise Fault(f"{shown(word)} is no option of the trainer {name}", FORM)
        if key not in options:
            raise Fault(f"the workload {name} has no option {shown(key)}", nearest(key, options))
        if key in given:
            raise Fault(f"the trainer {name} has the option `{key}` twice", "keep one of the two")
        given[key] = _value(value, options[key])
    return offer, given


def refused(factor: str, text: str) -> Mistake | None:
    """What is wrong with a level that is neither off nor a trainer."""
    try:
        if text != OFF:
            parsed(text)
    except Fault as fault:
        return Mistake(0, f"{factor}: {fault.message}", fault.hint)
    return None


def trainer_of(factor: str, text: str, study: Study) -> Trainer:
    """What a level of a factor means in a study. Options that the level leaves out are those of the study's
    own workload where that has them, and the server has the configuration of the study's baseline: so builds
    do not differ where variants differ in configuration alone. Raises UserError for what is no trainer."""
    try:
        offer, given = parsed(text)
        options = [(one.name, _level(one, given, study.workload.options)) for one in offer.options]
    except Fault as fault:
        raise UserError(f"{factor}: {fault.message}", fault.hint) from None
    levels = {**study.settings, **study.baseline}
    return Trainer(
        workload=offer.name,
        options=tuple((name, level) for name, level in options if level is not None),
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
    return wish.model_copy(update=trainers)


def run_options(trainer: Trainer) -> frozenset[str]:
    """The options that only the run looks at, so that they do not shape the data."""
    offered = next((offer.options for offer in offers() if offer.name == trainer.workload), ())
    return frozenset(option.name for option in offered if not option.shapes_data)


def _level(option: Option, given: Mapping[str, Level], of_study: Mapping[str, Level]) -> Level | None:
    """An option's level: the trainer's own, else the study's, else the workload's. Raises Fault where the
    study's is none of this workload."""
    if option.name in given:
        return given[option.name]
    return _checked(of_study[option.name], option) if option.name in of_study else option.default


def _value(text: str, option: Option) -> Level:
    """An option's value in a text, which has no types. Raises Fault."""
    value: Level = text
    if option.type == "bool":
        value = {"true": True, "false": False}.get(text, text)
    elif option.type in ("int", "float"):
        try:
            value = int(text) if option.type == "int" else float(text)
        except ValueError:
            raise Fault(f"`{option.name}`: {shown(text)} is no number", FORM) from None
    return _checked(value, option)


def _checked(value: Level, option: Option) -> Level:
    """A value that an option can have. Raises Fault, which names the option."""
    try:
        return option_value(value, option)
    except Fault as fault:
        raise Fault(f"`{option.name}`: {fault.message}", fault.hint) from None
