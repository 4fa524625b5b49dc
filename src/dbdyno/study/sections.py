"""What sections of a study, and factors of a kind, must say beside their keys: one stretch for each. Last,
the rungs of [soak].

[front] comes first, then [driver], [server] and [data], the engines, clusters, machines that
are reset, platforms, and replays. `excludes.py` says what does not go together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

from dbdyno.driver.job import REPLAY
from dbdyno.errors import UserError
from dbdyno.frozen import ENGINE_FACTOR, Level, level_shown, level_text
from dbdyno.study.catalogue import NOTHING, WorkloadOffer
from dbdyno.study.document import Place, parse_document
from dbdyno.study.front import FRONT_KIND, NO_FRONT, FrontProgram
from dbdyno.study.nouns import (
    KEEPS_LEDGER,
    MACHINE_FACTOR,
    PLATFORM_FACTOR,
    STATEMENTS,
    Factor,
    GivenData,
    Reference,
    RemoteDriver,
    Restarts,
    ServerInUse,
    Study,
    Workload,
)
from dbdyno.study.phases import LoadPhase
from dbdyno.study.section import SectionReader
from dbdyno.study.soak import OF_POWER, SMOKE, Act, Soak
from dbdyno.study.tables import DATA, DRIVER, ENGINE, FRONT, PHASE, SERVER, SOAK, UPGRADED
from dbdyno.study.values import ValueFault, nearest, shown

PHASES_AT, SCRIPT = "phases", "script"
OF_REQUESTS = "script"
"""The workload whose file can hold requests."""
DATA_AT: Place = ("data",)
MOVED = (
    'describe it by [front.NAME], and write "front.kind" = "NAME" under [settings]: studies/application.toml'
    " has the sections of Keystone"
)


def require_no_application(reader: SectionReader) -> None:
    """Takes out the section of applications. A stored study may have it, because it is read for its records
    alone."""
    if reader.at(("application",)) is not None:
        if reader.catalogue.beside is not None:
            reader.note(("application",), "Dyno knows no application by its name", MOVED)
        del reader.document.values["application"]


def read_fronts(
    reader: SectionReader,
    workload: Workload | None,
    factors: Sequence[Factor],
    settings: Mapping[str, Level],
) -> dict[str, FrontProgram]:
    """The programs of the user's that levels can put in front of the server, by name."""
    fronts = dict(filter(None, (_own_front(reader, name) for name in reader.table(("front",)))))
    given: dict[str, Sequence[Level]] = {name: (level,) for name, level in settings.items()}
    given |= {factor.name: factor.levels for factor in factors}
    kinds = list(map(level_text, given.get(FRONT_KIND, ())))
    _require_known(reader, kinds)
    own = sorted(name for name in given if name.startswith("front.") and name != FRONT_KIND)
    _require_settings(reader, {kind: fronts[kind] for kind in kinds if kind in fronts}, own)
    for name in own if not kinds and not _place_in(reader, FRONT_KIND) else ():
        told = f"`{name}` is a setting of what stands in front, and nothing does"
        hint = f'"{FRONT_KIND}" = ["none", "pgbouncer"] puts something there'
        reader.note(_place_in(reader, name), told, hint)
    requests = [kind for kind in kinds if kind in fronts and fronts[kind].ready]
    if requests:
        _require_requests(reader, workload, requests[0], [kind for kind in kinds if kind not in requests])
    return fronts


def _require_known(reader: SectionReader, kinds: Sequence[str]) -> None:
    known = [NO_FRONT, *sorted({*reader.catalogue.fronts, *reader.table(("front",))})]
    for kind in (kind for kind in kinds if kind not in known):
        told = f"nothing called {shown(kind)} can stand in front of a server"
        hint = f"{nearest(kind, known)}; or describe it: [front.{kind}]"
        reader.note(_place_in(reader, FRONT_KIND), told, hint)


def _require_settings(
    reader: SectionReader, fronts: Mapping[str, FrontProgram], names: Sequence[str]
) -> None:
    """Notes settings that their program does not read back, or whose section nobody knows."""
    for kind, program in fronts.items() if names else ():
        if not program.show and not program.workers:
            hint = (
                'say what it is asked for its settings: show = "SHOW CONFIG"; or how many workers tell them'
            )
            reader.note(("front", kind), f"nothing reads `{names[0]}` back from {kind}", hint)
        for name in (name for name in names if program.in_sections and name.count(".") < 2):
            told = f"`{name}` has no section, and the file of {kind} has its settings in sections"
            reader.note(_place_in(reader, name), told, f'write "front.SECTION.{name.partition(".")[2]}"')


def _require_requests(
    reader: SectionReader, workload: Workload | None, kind: str, others: Sequence[str]
) -> None:
    """Notes what cannot stand beside an application, which takes requests and makes its own tables."""
    if workload is not None and workload.name != OF_REQUESTS:
        hint = f'write name = "{OF_REQUESTS}", and give a file with requests'
        reader.note(("workload", "name"), f"{kind} takes requests, and no SQL", hint)
    if others:
        told = f"{kind} takes requests, and `{FRONT_KIND}` = {others[0]} takes SQL: no load suits both"
        reader.note(_place_in(reader, FRONT_KIND), told, "name applications alone, or none of them")
    for place, told, hint in (
        (DATA_AT, f"`data` brings tables, and {kind} makes its own", "leave [data] out"),
        ((PHASES_AT,), f"phases send SQL, and {kind} takes requests", "leave [[phases]] out"),
    ):
        if reader.at(place) is not None:
            reader.note(place, told, hint)


def _place_in(reader: SectionReader, factor: str) -> Place:
    """Where a factor or a setting stands; the top of the study for a level of [[variants]]."""
    forms: tuple[Place, ...] = ((factor,), tuple(factor.split(".")))
    places = ((table, *form) for table in ("factors", "settings") for form in forms)
    return next((place for place in places if reader.at(place) is not None), ())


def _own_front(reader: SectionReader, name: str) -> tuple[str, FrontProgram] | None:
    place: Place = ("front", name)
    if name in (NO_FRONT, *reader.catalogue.fronts):
        reader.note(place, f"{shown(name)} is a front that Dyno knows", "take another name for your own")
        return None
    given = reader.section(FRONT, place)
    if "command" not in given:
        return None
    program = FrontProgram(**given)
    for key, told, hint in program.faults(name):
        reader.note((*place, key), told, hint)
    return name, program


def read_phases(reader: SectionReader, workload: Workload | None) -> tuple[LoadPhase, ...]:
    """The loads that follow one another; none where there is one load."""
    listed = reader.at((PHASES_AT,))
    if listed is None:
        return ()
    if not isinstance(listed, list) or not listed:
        reader.note((PHASES_AT,), "`phases` is no list of tables", 'write [[phases]] and name = "l.i0"')
        return ()
    if workload is not None and workload.name != SCRIPT:
        told = f"phases send transactions of scripts, and the workload is `{workload.name}`"
        reader.note((PHASES_AT, 0), told, 'write name = "script" under [workload], and its file')
    given = [reader.section(PHASE, (PHASES_AT, index)) for index in range(len(listed))]
    phases = [LoadPhase(**one) for one in given if "name" in one]
    for index, one in enumerate(given):
        _require_phase(reader, (PHASES_AT, index), one, {each.get("name") for each in given[:index]})
    return tuple(phases)


def _require_phase(
    reader: SectionReader, place: Place, given: Mapping[str, Any], names: Collection[str | None]
) -> None:
    if given.get("name") in names:
        reader.note((*place, "name"), f"there is another phase {shown(given['name'])}", "name each once")
    if ("beside" in given) != ("beside_rate_per_s" in given):
        lacking = "beside" if "beside" not in given else "beside_rate_per_s"
        hint = 'write beside = "writes.toml" and beside_rate_per_s = 100, or neither'
        reader.note(place, f"`{lacking}` is missing beside the other one", hint)
    if "beside" in given and "operations" in given:
        told = "what is sent beside a phase lasts as long as it, and one with `operations` has no known end"
        reader.note((*place, "operations"), told, "give it a duration alone")


DRIVER_AT: Place = ("driver",)


def read_driver(
    reader: SectionReader,
    workload: Workload | None,
    factors: Sequence[Factor],
) -> RemoteDriver | None:
    """The hosts that the load comes from; None where it comes from this one."""
    if reader.at(DRIVER_AT) is None:
        return None
    given = reader.section(DRIVER)
    if "hosts" not in given or "address" not in given:
        return None
    driver = RemoteDriver(**given)
    if not driver.tls and driver.network is None:
        hint = 'write tls = true, or network = "private" where nobody else is on it'
        reader.note(DRIVER_AT, "nothing says whether others can read what load and server send", hint)
    _require_clients(reader, driver, workload, factors)
    _require_networked(reader)
    _require_no_files(reader, workload, factors)
    return driver


def _require_clients(
    reader: SectionReader, driver: RemoteDriver, workload: Workload | None, factors: Sequence[Factor]
) -> None:
    """Notes fewer clients than hosts that share them."""
    levels = [level for factor in factors if factor.name == "workload.clients" for level in factor.levels]
    given = [level for level in levels if isinstance(level, int)] or ([workload.clients] if workload else [])
    if given and min(given) < len(driver.hosts):
        told = f"{len(driver.hosts)} hosts are to share {min(given)} clients"
        reader.note(DRIVER_AT, told, "give each host one client at least, or name fewer hosts")


def _require_networked(reader: SectionReader) -> None:
    for engine in reader.engines:
        if engine.engine not in reader.catalogue.networked and engine.engine in reader.catalogue.engines:
            known = ", ".join(sorted(reader.catalogue.networked))
            told = f"{engine.engine} cannot be loaded from another host"
            reader.note(DRIVER_AT, told, f"these can: {known}")


def _require_no_files(reader: SectionReader, workload: Workload | None, factors: Sequence[Factor]) -> None:
    """Notes what the driver would read from a disk, because the load host has another one."""
    if workload is None:
        return
    told = "lies on this host, and the driver on another one reads no files of it"
    hint = "take a workload that needs no file, or leave [driver] out"
    options = {name for name in ("file", "folder", "dataset") if workload.options.get(name)}
    options |= {factor.knob for factor in factors if factor.name in ("workload.file", "workload.dataset")}
    for name in sorted(options):
        reader.note(("workload", name), f"what `{name}` names {told}", hint)


SERVER_AT: Place = ("server",)


def read_server(
    reader: SectionReader, factors: Sequence[Factor], settings: Mapping[str, Level]
) -> ServerInUse | None:
    """How the server is treated; None for an engine that the study starts."""
    engine = reader.engine
    if engine is None or not engine.url:
        _require_none_runs(reader)
        return None
    server = ServerInUse(**reader.section(SERVER))
    _require_kept_promises(reader, server, factors, settings)
    return server


def _require_none_runs(reader: SectionReader) -> None:
    """Notes what only a server that runs already may have."""
    if reader.at(SERVER_AT) is not None:
        told = "[server] is of a server that runs already, and the engine is none"
        reader.note(
            SERVER_AT, told, 'write engine = "postgresql://USER@HOST/DATABASE", or leave [server] out'
        )
    if any(engine.url for engine in reader.engines):
        told = f"a level of `{ENGINE_FACTOR}` is a server that runs already"
        reader.note(
            ("factors", ENGINE_FACTOR), told, "name such a server as the engine of a study of its own"
        )


def _require_kept_promises(
    reader: SectionReader, server: ServerInUse, factors: Sequence[Factor], settings: Mapping[str, Level]
) -> None:
    """Notes levels that give up what the study does not allow, because others rely on this server."""
    gives_up = reader.catalogue.gives_up
    if gives_up is None or reader.engine is None:
        return
    each = [(factor.name, level, reader.place_of(factor)) for factor in factors for level in factor.levels]
    each += [(name, level, ("settings",)) for name, level in settings.items()]
    for name, level, place in each:
        promise = gives_up(name, level, reader.engine)
        if promise is not None and promise not in server.allow:
            told = f"`{name}` = {level_shown(level)} gives up {promise} on a server that others use"
            reader.note(place, told, f'leave it out, or write allow = ["{promise}"] under [server]')


WITH_SETUP = "script"
"""The workload whose own statements can follow a dump, because they can be written for it."""


def read_data(
    reader: SectionReader,
    folder: Path,
    workload: Workload | None,
    factors: tuple[Factor, ...],
) -> GivenData | None:
    """The data that a study brings; None where its workload makes them. Relative paths count from
    `folder`."""
    if not isinstance(reader.at(DATA_AT), dict):
        return None
    data = GivenData(**reader.section(DATA))
    _require_source(reader)
    if data.setup and workload is not None and workload.name != WITH_SETUP:
        told = f"`setup` runs the statements of a file, and `{workload.name}` has none"
        reader.note(
            (*DATA_AT, "setup"), told, f"leave it out; the data must hold the tables of {workload.name}"
        )
    place: Place = (*DATA_AT, "dump") if data.dump else (*DATA_AT, "folder")
    if reader.engine is not None and reader.at(place) is not None and reader.catalogue.given is not None:
        given = reader.catalogue.given
        # What is taken over needs to suit the first alone.
        takers = reader.engines[:1] if reader.at((*DATA_AT, "upgraded")) is True else reader.engines
        wrong = (given(data, folder, engine, factors) for engine in takers)
        for mistake in dict.fromkeys(chain.from_iterable(wrong)):
            reader.note(place, mistake.message, mistake.hint)
    return data


def _require_source(reader: SectionReader) -> None:
    if all(reader.at((*DATA_AT, key)) is None for key in ("dump", "folder")):
        hint = (
            'write dump = "dump.sql.gz", or folder = "/path/of/a/stopped/server"; for rows that the workload'
            f' makes and later versions take over, write data = "{UPGRADED}" at the top'
        )
        reader.note(DATA_AT, "[data] names no data", hint)


def read_upgraded(reader: SectionReader, factors: tuple[Factor, ...]) -> bool:
    """Whether every engine but the baseline's takes over the data that the baseline's has."""
    found = reader.at(DATA_AT)
    if found is not None and not isinstance(found, dict) and found != UPGRADED:
        hint = f'write data = "{UPGRADED}", or [data] with a `dump` or a `folder` below it'
        reader.note(DATA_AT, f"`data` must be a table or `{UPGRADED}`, not {shown(found)}", hint)
        return False
    place: Place = (*DATA_AT, "upgraded") if isinstance(found, dict) else DATA_AT
    if isinstance(found, dict) and not reader.value(DATA.key("upgraded"), place):
        return False
    if found is None:
        return False
    if all(factor.name != ENGINE_FACTOR for factor in factors):
        hint = f'write {ENGINE_FACTOR} = ["mariadb@10.11", "mariadb@11.8"] under [factors], or leave it out'
        reader.note(place, f"`{UPGRADED}` needs `{ENGINE_FACTOR}` as a factor", hint)
    return True


NAME = ENGINE.key("name")


def read_engines(reader: SectionReader) -> None:
    """Reads the engine of the baseline and those of all variants. A study whose engines are a factor may
    leave its own out; one that it names is the baseline's, and so the first level."""
    place: Place = ("engine", "name") if isinstance(reader.at(("engine",)), dict) else ("engine",)
    varied = tuple(each.within(reader.folder) for each in _varied(reader))
    if varied and reader.at(("engine",)) is None:
        reader.engine = varied[0]
    else:
        own_engine = reader.value(NAME, place)
        reader.engine = own_engine and own_engine.within(reader.folder)
    if varied and reader.engine is not None and reader.engine != varied[0]:
        reader.note(
            place,
            f"the study's engine is {reader.engine.written}, and the first level of the factor"
            f" `{ENGINE_FACTOR}` is {varied[0].written}",
            "the study's engine is the baseline's: name it first among the levels, or leave it out here",
        )
    own = (reader.engine,) if reader.engine is not None else ()
    reader.engines = tuple(dict.fromkeys((*own, *varied)))


def _varied(reader: SectionReader) -> Iterator[Reference]:
    """The levels of the factor, in their order. Those that are none are noted where the factor is read."""
    levels = reader.at(("factors", ENGINE_FACTOR))
    found = levels if isinstance(levels, list) else []
    variants = reader.at(("variants",))
    for index in range(len(variants) if isinstance(variants, list) else 0):
        found = [*found, reader.at(("variants", index, "levels", ENGINE_FACTOR))]
    for level in found:
        try:
            if level is not None:
                yield NAME.grammar.read(level, reader.catalogue)
        except ValueFault:
            continue


MACHINES = ("ppc64el",)
"""Architectures of which a whole machine is emulated here."""
ONE_MACHINE = f'write "{PLATFORM_FACTOR}" = "{MACHINES[0]}" under [settings]'
MACHINE_PLACES = (
    ("factors", MACHINE_FACTOR),
    ("factors", *MACHINE_FACTOR.split(".")),
    ("settings", MACHINE_FACTOR),
)


def require_machine(
    reader: SectionReader,
    restarts: Restarts | None,
    factors: Iterable[Factor],
    settings: dict[str, Any],
) -> None:
    """Notes resets without a machine, and a machine without resets."""
    levels = {factor.name: factor.levels for factor in factors}
    levels.update({name: (level,) for name, level in settings.items()})
    if MACHINE_FACTOR not in levels:
        # A factor whose levels are wrong is told already.
        named = any(reader.at(place) is not None for place in MACHINE_PLACES)
        if restarts is not None and restarts.resets and not named:
            hint = f'write "{MACHINE_FACTOR}" = ["full", "kexec"] under [factors]'
            reader.note(("restarts", "resets"), "`resets` resets a machine, and there is none", hint)
        return
    _require_architecture(reader, [level_text(level) for level in levels.get(PLATFORM_FACTOR, ())])
    if restarts is not None and not restarts.resets:
        reader.note(("restarts",), f"without `resets`, `{MACHINE_FACTOR}` does nothing", "write resets = 5")


def _require_architecture(reader: SectionReader, asked: Collection[str]) -> None:
    if not asked:
        reader.note((), f"`{MACHINE_FACTOR}` resets a machine, and the study names none", ONE_MACHINE)
    elif not set(asked) <= set(MACHINES):
        reader.note(
            ("settings", PLATFORM_FACTOR),
            f"only a machine of {', '.join(MACHINES)} is emulated whole here",
            ONE_MACHINE,
        )


def is_of_platforms(names: Iterable[str]) -> bool:
    """Whether factors or settings of these names make a study one of platforms."""
    return PLATFORM_FACTOR in names


def read_platforms(
    reader: SectionReader, head: dict[str, Any], factors: tuple[Factor, ...], settings: Iterable[str]
) -> dict[str, Any]:
    """The study's head, without blocks where it is one of platforms. Notes one that asks nothing."""
    names = [*(factor.name for factor in factors), *settings]
    if not (is_of_platforms(names) or _names_one(reader)):
        return head
    _require_restarts(reader, names)
    return {**head, "blocks": 0}


def _names_one(reader: SectionReader) -> bool:
    """Whether the document has the factor, whose levels may be wrong, so that all mistakes are told at
    once."""
    places = (("factors", PLATFORM_FACTOR), ("factors", *PLATFORM_FACTOR.split(".")))
    return any(reader.at(place) is not None for place in places)


def _require_restarts(reader: SectionReader, names: Iterable[str]) -> None:
    if reader.at(("restarts",)) is None:
        acts = "resets = 5" if MACHINE_FACTOR in names else "kills = 2 and stops = 1"
        hint = f"write [restarts] with {acts}"
        reader.note((), f"without [restarts] a study with `{PLATFORM_FACTOR}` asks nothing", hint)


ROUNDS_MOST_S = 600.0
"""How long all rounds of a trial may take unless the study says it."""


def read_statements(reader: SectionReader, workload: Workload) -> Workload:
    """The workload `statements` with times of its own: its rounds end it, and the first one warms up. Other
    workloads stay as they are."""
    if workload.timeout_s is not None:
        for engine in dict.fromkeys(one.engine for one in reader.engines):
            if engine in reader.catalogue.engines and engine not in reader.catalogue.ends_statements:
                told = f"{engine} ends no statement for its time"
                reader.note(("workload", "timeout"), told, "leave `timeout` out")
    if workload.name != STATEMENTS:
        return workload
    named = [name for name in ("folder", "file") if workload.options.get(name)]
    if len(named) != 1:
        hint = 'write folder = "queries", with a .sql file for each, or file = "log.toml" of dyno init study'
        reader.note(("workload", "name"), "`statements` needs a `folder` or a `file`, one of the two", hint)
    given = reader.at(("workload", "duration")) is not None
    return workload.but(warmup_s=0.0, duration_s=workload.duration_s if given else ROUNDS_MOST_S)


RECORDING_AT: Place = ("workload", "file")
RECORDING_LEAST_S = 0.1


def read_replay(
    reader: SectionReader, folder: Path, workload: Workload, factors: tuple[Factor, ...]
) -> Workload:
    """The workload with the times of its recording, whose path counts from `folder`. Unless told otherwise it
    has no warm-up, and lasts as long as the recording. Other workloads stay as they are."""
    if workload.name != REPLAY:
        return workload
    if any(factor.name == "workload.file" for factor in factors):
        reader.note(RECORDING_AT, "`file` cannot vary within a study", "make a study of each recording")
        return workload
    file = workload.options.get("file")
    if not file:
        hint = 'make one from a log with dyno init replay, and write file = "NAME.replay"'
        reader.note(("workload", "name"), "the replay has no recording", hint)
        return workload
    return _lasting(reader, folder / str(file), workload)


def _lasting(reader: SectionReader, path: Path, workload: Workload) -> Workload:
    """The workload with the recording's sessions as its clients, and with its own times."""
    if reader.catalogue.recorded is None:
        return workload
    try:
        recorded = reader.catalogue.recorded(path)
    except UserError as error:
        reader.note(RECORDING_AT, error.message, error.hint)
        return workload
    warmup_s = workload.warmup_s if reader.at(("workload", "warmup")) is not None else 0.0
    rest_s = recorded.length_s - warmup_s
    if rest_s < RECORDING_LEAST_S and warmup_s:
        told = f"a warm-up of {warmup_s:g} s leaves nothing of a recording of {recorded.length_s:.1f} s"
        reader.note(("workload", "warmup"), told, "give a shorter one, or leave it out")
        return workload
    given = reader.at(("workload", "duration")) is not None
    duration_s = min(workload.duration_s, rest_s) if given else rest_s
    return workload.but(
        clients=recorded.open_most, warmup_s=warmup_s, duration_s=max(RECORDING_LEAST_S, duration_s)
    )


OF_SBTEST = frozenset(("tables", "table_size"))


def read_soak(reader: SectionReader, workload: Workload | None) -> Soak | None:
    """How the study is soaked; None where it does not say."""
    if reader.at((SOAK.name,)) is None:
        return None
    soak = Soak(**reader.section(SOAK))
    _require_other_tables(reader, soak.beside)
    _require_ledger(reader, workload, soak.ends)
    return soak


def rungs(value: Any) -> tuple[int, ...]:
    """A ladder: numbers of clients, each more than the one before. Raises ValueFault."""
    return cast("tuple[int, ...]", SOAK.key("clients").grammar.read(value, NOTHING))


def soak_of(study: Study, smoke: bool) -> Soak:
    """How a study is soaked, or with `smoke` a short one. The clients are those that the study names: its
    ladder, else the number under [workload]. A short one climbs the first rung alone.
    """
    soak, named = SMOKE if smoke else study.soak or Soak(), parse_document(study.text.encode()).values
    ladder = _named_clients(named, SOAK.name, lambda: study.soak.clients if study.soak else ())
    clients = ladder or _named_clients(named, "workload", lambda: (study.workload.clients,)) or soak.clients
    return soak.but(clients=clients[:1] if smoke else clients)


def _named_clients(
    named: Mapping[str, Any], section: str, read: Callable[[], tuple[int, ...]]
) -> tuple[int, ...]:
    """The clients as `read` where a section of the file names them; a default is nobody's wish."""
    table = named.get(section)
    return read() if isinstance(table, dict) and "clients" in table else ()


def _require_other_tables(reader: SectionReader, beside: tuple[str, ...]) -> None:
    """Notes a workload whose tables are those of the study's own: it would make them anew."""
    own = reader.offer
    for name in beside if own is not None else ():
        other = reader.catalogue.workload(name)
        if own is not None and other is not None and _tables(own) == _tables(other):
            hint = f"{own.name} and {name} have the same tables: take a workload with others"
            reader.note((SOAK.name, "beside"), f"`beside`: {name} would drop the tables of the load", hint)


def _require_ledger(reader: SectionReader, workload: Workload | None, ends: tuple[Act, ...]) -> None:
    """Notes a power cut under a load of which nobody could tell what the cut took along."""
    cut = any(act in OF_POWER for act in ends)
    if not cut or workload is None or workload.keeps_ledger:
        return
    told = f"`ends`: what a power cut takes along is not known under {workload.name}"
    hint = f"take a workload that keeps a ledger: {', '.join(KEEPS_LEDGER)}"
    if workload.name in KEEPS_LEDGER:
        told, hint = f"{told} that only reads", "leave select_only out"
    reader.note((SOAK.name, "ends"), told, hint)


def _tables(offer: WorkloadOffer) -> str:
    """Whose tables a workload has. Those of sysbench share theirs, and are known by their options."""
    return "sbtest" if {option.name for option in offer.options} & OF_SBTEST else offer.name
