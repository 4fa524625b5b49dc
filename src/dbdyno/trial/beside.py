"""A server outside of any trial, and a load on it: while data are made, taken over or looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dbdyno.driver.load import Load
from dbdyno.engines.engine import Server, ending
from dbdyno.frozen import Level
from dbdyno.host import paths
from dbdyno.host.launch import Launch
from dbdyno.layers.setup import Setup
from dbdyno.trial.bench import Bench


def runtime_of(setup: Setup, bench: Bench, part: str) -> Path:
    """A short folder for servers of one purpose, one after the other."""
    runtime = paths.runtime() / f"{setup.scratch.name}{part}"
    bench.journal.note_tree(runtime)
    runtime.mkdir(exist_ok=True)
    return runtime


def launch_of(setup: Setup) -> Launch:
    """Of the trial's own launch its patience alone: an instrumented build may make the data."""
    return Launch(patience=setup.launch.patience, writable=setup.launch.writable)


@contextmanager
def serving(
    setup: Setup, data: Path, runtime: Path, settings: Mapping[str, Level], stop_s: float | None
) -> Iterator[Server]:
    """The setup's server on the data, with what speeds up loading. It ends cleanly within so many seconds, or
    at once where nobody keeps what it wrote."""
    launch = launch_of(setup)
    settings = {**setup.engine.settings.LOADING, **settings}
    server = setup.engine.life.start(setup.data_maker, data, runtime, settings, launch)
    with ending(server, None if stop_s is None else stop_s * launch.patience):
        yield server


@contextmanager
def loading(bench: Bench, server: Server, launch: Launch) -> Iterator[Load]:
    """A load process for the server."""
    load = bench.open_load(server.driver_environment, launch.confined_to(*server.driver_folders))
    try:
        yield load
    except BaseException:
        load.kill()
        raise
    load.close()


def stop_or_kill(stop: Callable[[], None], kill: Callable[[], None]) -> Callable[..., None]:
    """Ends cleanly after a trial, at once after an interruption: the data are thrown away anyway."""

    def end(failure: type[BaseException] | None, *_: object) -> None:
        if failure is None:
            stop()
        else:
            kill()

    return end
