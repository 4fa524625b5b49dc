"""Studies that Dyno writes itself; and a workload with its options in one text, as a level or an option of a
command names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dbdyno.driver.job import Opening
from dbdyno.frozen import ENGINE_FACTOR, Level
from dbdyno.study.catalogue import WORKLOADS, Option, WorkloadOffer
from dbdyno.study.document import Row, document, inline, levels_of, rows, table_text, toml
from dbdyno.study.nouns import BASELINE, Design, GivenData, Goal, Study, Workload
from dbdyno.study.tables import CLIENTS_MAX, DATA, DRIVER, ENGINE, GOAL, STUDY, UPGRADED, VARIANT, WORKLOAD
from dbdyno.study.trials import Variant
from dbdyno.study.values import ValueFault, nearest, option_value, shown

OF_LOAD = "workload."
"""How names of factors begin that stand under [workload]."""
OLD_DEFAULTS, OWN_DEFAULTS = "with old defaults", "with its own defaults"
"""Variants of the new version."""


def winner_on(
    study: Study,
    name: str,
    changed: Mapping[str, Level],
    load: Workload,
    goal: Goal,
    data: GivenData | None = None,
) -> str:
    """A study of a search's baseline and its winner, by the levels that it changes, on another load. Of that
    load are taken its name, its clients, its times, and its options but for those that the winner changes.
    The `data` are those that it brings."""
    baseline = {factor: study.baseline[factor] for factor in changed}
    options = {key: level for key, level in load.options.items() if f"workload.{key}" not in changed}
    of_file = study.configuration.settings if study.configuration is not None else {}
    own = {factor: level for factor, level in study.settings.items() if of_file.get(factor) != level}
    fixed = {factor: level for factor, level in own.items() if factor not in changed}
    head = [
        STUDY.row("title", f"{name} of {study.title} on {load.name}"),
        ("engine", _engine(study), ""),
        STUDY.row("design", Design.LIST),
        STUDY.row("blocks", study.blocks),
    ]
    asked = [
        WORKLOAD.row("name", load.name),
        *WORKLOAD.rows(load, ("clients", "warmup", "duration")),
        *((key, toml(level), "") for key, level in options.items()),
    ]
    parts = [
        rows(head),
        *_driver(study),
        *([table_text("data", _data(data, study.folder))] if data is not None else []),
        table_text("workload", asked),
        _variant(BASELINE, baseline),
        _variant(name, changed),
        *([table_text("settings", levels_of(fixed))] if fixed else []),
        table_text("goal", _asked(goal)),
    ]
    return document(parts)


def with_old_defaults(
    study: Study, ends: tuple[Variant, Variant], old: Mapping[str, Level], new: Mapping[str, Level]
) -> str:
    """A study of the same load whose variants lead from one version to the other: the old one, the new one
    with the `old` defaults, and the new one with its own. All are set in words, so that each is proved."""
    first, last = (each.levels for each in ends)
    of_file = study.configuration.settings if study.configuration is not None else {}
    own = {factor: level for factor, level in study.settings.items() if of_file.get(factor) != level}
    own |= {factor: level for factor, level in first.items() if factor != ENGINE_FACTOR}
    fixed = {factor: level for factor, level in own.items() if not factor.startswith(OF_LOAD)}
    apart = f"{study.title}{'' if study.title.endswith('?') else ':'} the version and its defaults apart"
    head = [
        STUDY.row("title", apart),
        *([("engine", _engine(study), "")] if study.configuration is not None else []),
        STUDY.row("design", Design.LIST),
        STUDY.row("blocks", study.blocks),
        *([("data", toml(UPGRADED), "")] if study.upgraded and study.data is None else []),
    ]
    brought = [] if study.data is None else _data(study.data, study.folder)
    if brought and study.upgraded:
        brought.append(DATA.row("upgraded", True))
    chosen = {name.removeprefix(OF_LOAD): own[name] for name in own.keys() - fixed.keys()}
    parts = [
        rows(head),
        *_driver(study),
        *([table_text("data", brought)] if brought else []),
        table_text("workload", _load(study, chosen)),
        _variant(BASELINE, {ENGINE_FACTOR: first[ENGINE_FACTOR], **old}),
        _variant(OLD_DEFAULTS, {ENGINE_FACTOR: last[ENGINE_FACTOR]}),
        _variant(OWN_DEFAULTS, {ENGINE_FACTOR: last[ENGINE_FACTOR], **new}),
        *([table_text("settings", levels_of(fixed))] if fixed else []),
        table_text("goal", _asked(study.goal)),
    ]
    return document(parts)


def _load(study: Study, chosen: Mapping[str, Level]) -> list[Row]:
    """The study's load, with the levels of it that a variant has."""
    load = study.workload
    asked = [
        WORKLOAD.row("name", load.name),
        *WORKLOAD.rows(load, [*_given(load), "duration"]),
        *WORKLOAD.rows(load.opening, _given(load.opening)),
        *((key, toml(_whole(study, level)), "") for key, level in load.options.items() if level != ""),
    ]
    return [
        *(row for row in asked if row[0] not in chosen),
        *((key, toml(level), "") for key, level in chosen.items()),
    ]


def _given(found: Workload | Opening) -> list[str]:
    """The keys of [workload] with which a noun has another value than its default."""
    fields = type(found).model_fields
    return [
        key.name
        for key in WORKLOAD.keys
        if key.field in fields and getattr(found, key.field) != fields[key.field].default
    ]


def _whole(study: Study, level: Level) -> Level:
    """A path of the study's folder as a whole one, because the study that is written lies elsewhere."""
    path = study.folder / str(level)
    return str(path.absolute()) if isinstance(level, str) and path.is_file() else level


def _data(data: GivenData, folder: Path) -> list[Row]:
    """The section [data], with whole paths, because the study that is written lies elsewhere."""
    paths = tuple(str(path.absolute()) for path in data.paths(folder))
    placed = {"dump": paths} if data.dump else {"folder": paths[0]}
    return DATA.rows(data.but(**placed), DATA.names)


def _driver(study: Study) -> list[list[str]]:
    """The section [driver], where the load comes from another host."""
    return [table_text("driver", DRIVER.rows(study.driver, DRIVER.names))] if study.driver is not None else []


def _asked(goal: Goal) -> list[Row]:
    """What a goal asks, but that work is counted. Only a promise has rates."""
    return GOAL.rows(goal, GOAL.names - {"counted"} - (set() if goal.promise else {"rates"}))


def _variant(name: str, levels: Mapping[str, Level]) -> list[str]:
    return ["[[variants]]", *rows([VARIANT.row("name", name), ("levels", inline(levels_of(levels)), "")])]


def _engine(study: Study) -> str:
    named = ENGINE.row("name", study.engine)
    if study.configuration is None:
        return named[1]
    file = study.folder / study.configuration.path
    return inline([named, ENGINE.row("configuration", str(file.absolute()))])


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
    would do, as the end of a sentence. Raises ValueFault."""
    name, *words = text.split() or [""]
    offer = next((offer for offer in offers if offer.name == name), None)
    if offer is None:
        hint = nearest(name, [*others, *(offer.name for offer in offers)], elsewhere=WORKLOADS)
        raise ValueFault(f"{shown(name)} is no workload{purpose}", hint)
    options = {option.name: option for option in (*offer.options, *own)}
    given: dict[str, Level] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueFault(f"{shown(word)} is no option of the workload {name}", FORM)
        if key not in options:
            raise ValueFault(f"the workload {name} has no option {shown(key)}", nearest(key, options))
        if key in given:
            raise ValueFault(f"the workload {name} has the option `{key}` twice", "keep one of the two")
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
    """An option's value in a text, which has no types. Raises ValueFault."""
    value: Level = text
    if option.type == "bool":
        value = {"true": True, "false": False}.get(text, text)
    elif option.limits is not None and text == option.limits.word:
        value = text
    elif option.type in ("int", "float", "number_or"):
        try:
            value = int(text) if option.type == "int" else float(text)
        except ValueError:
            raise ValueFault(f"`{option.name}`: {shown(text)} is no number", FORM) from None
    return _checked(value, option)


def _checked(value: Level, option: Option) -> Level:
    """A value that an option can have. Raises ValueFault, which names the option."""
    try:
        return option_value(value, option)
    except ValueFault as fault:
        raise ValueFault(f"`{option.name}`: {fault.message}", fault.hint) from None
