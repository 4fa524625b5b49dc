"""The defaults of a server's settings, as the server itself knows them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines.engine import Ask, Engine
from dbdyno.errors import DriverFailed, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host import paths
from dbdyno.host.journal import Journal, open_journal
from dbdyno.host.launch import Launch
from dbdyno.layers.setup import Running
from dbdyno.obtain.installation import Installation
from dbdyno.study.trials import Trial
from dbdyno.trial.bench import Bench


def has_defaults(trial: Trial, bench: Bench) -> bool:
    """Whether a trial asks its server: each variant does so once where engines are compared."""
    return bool(bench.engines) and trial.block == 0 and bench.engine.compared is not None


def defaults_of(running: Running) -> dict[str, str]:
    """The value of each setting where nobody sets it, by its name."""
    asked = running.setup.engine.compared
    rows = running.ask(asked.defaults) if asked is not None else []
    return {str(name): _text(value) for name, value in rows if value is not None}


def _text(value: str | float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def not_in_effect(
    engine: Engine, installation: Installation, settings: Mapping[str, Level]
) -> dict[str, str]:
    """Which of these settings a server does not have after a start with them, and what it has instead. Where
    it does not start, those that keep it from that. The servers run on empty data in Dyno's cache."""
    if not settings:
        return {}
    try:
        with open_journal() as journal, journal.scope():
            return _other_than_asked(engine, installation, settings, journal)
    except (ServerFailed, DriverFailed) as failed:
        if len(settings) == 1:
            [name] = settings
            return {name: f"the server does not start with it ({failed.message})"}
    names = list(settings)
    halves = (names[: len(names) // 2], names[len(names) // 2 :])
    found: dict[str, str] = {}
    for half in halves:
        found |= not_in_effect(engine, installation, {name: settings[name] for name in half})
    return _not_beside(engine, installation, settings, found)


def _not_beside(
    engine: Engine, installation: Installation, settings: Mapping[str, Level], found: Mapping[str, str]
) -> dict[str, str]:
    """Of settings that some others keep from their effect, those that all the good ones keep from it as well:
    a setting may need another one. One that no others are to blame for is the last one."""
    good = {name: level for name, level in settings.items() if name not in found}
    kept: dict[str, str] = {}
    for name in [*found, *([] if found else list(settings)[-1:])]:
        tried = {**good, name: settings[name]}
        try:
            with open_journal() as journal, journal.scope():
                wrong = _other_than_asked(engine, installation, tried, journal)
        except (ServerFailed, DriverFailed) as failed:
            wrong = {name: f"the server does not start with it beside the others ({failed.message})"}
        if name in wrong:
            kept[name] = found.get(name, wrong[name])
        else:
            good = tried
    return kept


def defaults_here(engine: Engine, installation: Installation, names: Collection[str]) -> dict[str, Level]:
    """What a server has for these settings where nobody sets them, as a study writes it: its own word for the
    default, or else what it runs with. Starts one on empty data in Dyno's cache. Those that it does not tell
    are left out. Raises ServerFailed where it does not start."""
    with open_journal() as journal, journal.scope(), _started(engine, installation, {}, journal) as ask:
        read = engine.settings.read(ask, frozenset(names))
        asked = engine.compared
        rows = ask(asked.defaults) if asked is not None else []
    found: dict[str, Level] = {name: reading.value for name, reading in read.items()}
    for name, value in rows:
        if asked is not None and name in found and value is not None:
            found[str(name)] = asked.level(_text(value))
    return found


def _other_than_asked(
    engine: Engine, installation: Installation, settings: Mapping[str, Level], journal: Journal
) -> dict[str, str]:
    with _started(engine, installation, settings, journal) as ask:
        read = engine.settings.read(ask, frozenset(settings))
    return {
        one: f"the server then has {read[one].value}" if one in read else "the server does not tell it"
        for one, level in settings.items()
        if one not in read or not engine.settings.same(one, level, read[one].value)
    }


@contextmanager
def _started(
    engine: Engine, installation: Installation, settings: Mapping[str, Level], journal: Journal
) -> Iterator[Ask]:
    """A server with these settings on empty data, to be asked; it is killed at the end."""
    name = f"defaults-{os.getpid()}"
    folder, runtime = paths.cache() / "trials" / name, paths.runtime() / name
    for path in (folder, runtime):
        journal.note_tree(path)
        path.mkdir(parents=True)
    creation = {one: settings[one] for one in settings.keys() & engine.settings.CREATION}
    engine.life.initialise(installation, folder / "data", creation)
    server = engine.life.start(installation, folder / "data", runtime, settings, Launch())
    journal.note_processes(server.process_ids)
    try:
        launch = Launch().confined_to(*server.driver_folders)
        with LoadProcess(server.driver_environment, launch) as load:
            yield lambda sql: load.query(server.url, sql)
    finally:
        server.kill()
