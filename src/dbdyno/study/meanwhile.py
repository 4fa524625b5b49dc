"""The acts beside a load, as a study declares them: [[meanwhile]], and the factors that vary them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dbdyno.frozen import Level
from dbdyno.study.document import Place
from dbdyno.study.nouns import Factor, Goal, Workload
from dbdyno.study.section import SectionReader
from dbdyno.study.soak import NO_ACT, OF_MEANWHILE, Meanwhile
from dbdyno.study.tables import MEANWHILE
from dbdyno.study.values import nearest, shown

AT: Place = ("meanwhile",)
FORM = '[[meanwhile]] with name = "alter", at = "10s" and sql = "ALTER TABLE ..." below it'


def read_meanwhile(
    reader: SectionReader,
    workload: Workload | None,
    factors: Sequence[Factor],
    settings: Mapping[str, Level],
    goal: Goal,
) -> tuple[Meanwhile, ...]:
    """The acts in the order of their beginnings."""
    tables = reader.at(AT)
    if tables is not None and not (isinstance(tables, list) and all(isinstance(one, dict) for one in tables)):
        reader.note(AT, "`meanwhile` must be a list of tables", f"write {FORM}")
        return ()
    places: list[Place] = [(*AT, index) for index in range(len(tables or ()))]
    acts = [act for place in places if (act := _act(reader, place, workload)) is not None]
    names = [one.get("name") for one in tables or ()]
    _require_apart(reader, names)
    levels = {name: (level,) for name, level in settings.items()}
    _require_declared(reader, names, {**levels, **{factor.name: factor.levels for factor in factors}})
    _require_answered(reader, acts, factors, goal)
    return tuple(sorted(acts, key=lambda act: act.at_s))


def _act(reader: SectionReader, place: Place, workload: Workload | None) -> Meanwhile | None:
    """One act; None where there is a mistake in it."""
    before = len(reader.mistakes)
    given = reader.section(MEANWHILE, place)
    if "sql" in given and "command" in given:
        told = f"{shown(given.get('name', ''))} has both `sql` and `command`"
        reader.note((*place, "command"), told, "keep one of the two, or make two acts of it")
    elif not {"sql", "command"} & {*(reader.at(place) or ())}:
        hint = 'write sql = "ALTER TABLE ...", or command = "pg_basebackup ..."'
        reader.note(place, f"{shown(given.get('name', ''))} has neither `sql` nor `command`", hint)
    load_s = workload.duration_s if workload is not None else None
    if load_s is not None and given.get("at_s", 0.0) >= load_s:
        told = f"`at`: the load is over after {load_s:g} s, and the act begins after {given['at_s']:g} s"
        reader.note((*place, "at"), told, "let it begin earlier, or raise workload.duration")
    if "sql" in given:
        _require_sessions(reader, (*place, "sql"))
    return Meanwhile(**given) if len(reader.mistakes) == before else None


def _require_sessions(reader: SectionReader, place: Place) -> None:
    for engine in dict.fromkeys(one.engine for one in reader.engines):
        if engine in reader.catalogue.engines and engine not in reader.catalogue.sessions:
            told = f"`sql` needs a session beside the load, and {engine} lives in the load process"
            reader.note(place, told, "take an engine with a server, or give a `command`")


def _require_apart(reader: SectionReader, names: Sequence[object]) -> None:
    """Notes a name that stands twice."""
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            reader.note((*AT, index, "name"), f"{shown(name)} is the name of two acts", "names must differ")


def _require_declared(
    reader: SectionReader, names: Sequence[object], given: Mapping[str, Sequence[Level]]
) -> None:
    """Notes levels of acts that nobody declares."""
    declared = [f"meanwhile.{name}" for name in names]
    for factor in (one for one in given if one.startswith("meanwhile.") and one not in declared):
        hint = nearest(factor, declared) if declared else f"declare it: {FORM}"
        told = f"`{factor}` is a level of an act that is not declared"
        reader.note(next(_places(reader, factor), ()), told, hint)


def _places(reader: SectionReader, factor: str) -> Iterator[Place]:
    """Where a factor or a setting stands."""
    forms: tuple[Place, ...] = ((factor,), tuple(factor.split(".")))
    places = ((table, *form) for table in ("factors", "settings") for form in forms)
    return (place for place in places if reader.at(place) is not None)


def _require_answered(
    reader: SectionReader, acts: Sequence[Meanwhile], factors: Sequence[Factor], goal: Goal
) -> None:
    """Notes a response of acts where there is none, in some variant or at all."""
    place: Place = ("goal", "response")
    if goal.response not in OF_MEANWHILE:
        return
    told = f"`{goal.response}` is known where something is done beside the load"
    if not acts and reader.at(AT) is None:
        reader.note(place, f"{told}, and nothing is", f"write {FORM}")
    levels = {factor.name: factor.levels for factor in factors}
    if acts and all(NO_ACT in levels.get(act.factor, ()) for act in acts):
        hint = 'leave the empty level out, or take the response "throughput"'
        reader.note(place, f"{told}, and some variant does nothing", hint)
