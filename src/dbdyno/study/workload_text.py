"""A workload and its options in one text, as a level or an option of a command names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.frozen import Level
from dbdyno.study.catalogue import WORKLOADS, Option, WorkloadOffer
from dbdyno.study.tables import CLIENTS_MAX
from dbdyno.study.values import Fault, nearest, option_value, shown

CLIENTS = Option.model_validate({"name": "clients", "type": "int", "allowed": {"min": 1, "max": CLIENTS_MAX}})
"""How many clients a workload has, which may be given beside its options."""
FORM = 'write "read_write tables=4 table_size=10000": a workload, then options with spaces between'


def parse_workload(
    text: str,
    offers: Sequence[WorkloadOffer],
    own: Sequence[Option] = (),
    others: Sequence[str] = (),
    purpose: str = "",
) -> tuple[WorkloadOffer, dict[str, Level]]:
    """The workload that a text names, and the options that it gives: the workload's, and those that are the
    asker's `own`. `others` are words that could stand in the place of a workload, and `purpose` is what it
    would do, as the end of a sentence. Raises Fault."""
    name, *words = text.split() or [""]
    offer = next((offer for offer in offers if offer.name == name), None)
    if offer is None:
        hint = nearest(name, [*others, *(offer.name for offer in offers)], elsewhere=WORKLOADS)
        raise Fault(f"{shown(name)} is no workload{purpose}", hint)
    options = {option.name: option for option in (*offer.options, *own)}
    given: dict[str, Level] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise Fault(f"{shown(word)} is no option of the workload {name}", FORM)
        if key not in options:
            raise Fault(f"the workload {name} has no option {shown(key)}", nearest(key, options))
        if key in given:
            raise Fault(f"the workload {name} has the option `{key}` twice", "keep one of the two")
        given[key] = _value(value, options[key])
    return offer, given


def filled(
    offer: WorkloadOffer, given: Mapping[str, Level], of_study: Mapping[str, Level]
) -> dict[str, Level]:
    """Every option of a workload: as given, else as a study's own workload has it, else by default. Raises
    Fault where the study's is none of this workload."""
    levels = {option.name: _level(option, given, of_study) for option in offer.options}
    return {name: level for name, level in levels.items() if level is not None}


def _level(option: Option, given: Mapping[str, Level], of_study: Mapping[str, Level]) -> Level | None:
    if option.name in given:
        return given[option.name]
    return _checked(of_study[option.name], option) if option.name in of_study else option.default


def _value(text: str, option: Option) -> Level:
    """An option's value in a text, which has no types. Raises Fault."""
    value: Level = text
    if option.type == "bool":
        value = {"true": True, "false": False}.get(text, text)
    elif option.limits is not None and text == option.limits.word:
        value = text
    elif option.type in ("int", "float", "number_or"):
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
