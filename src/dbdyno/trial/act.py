"""What is done to a server on purpose: it is killed in the midst of its load, and started again."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress
from dataclasses import replace
from threading import Event, Timer

from dbdyno.driver.job import Closed
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import DynoError, LoadDied, ServerFailed
from dbdyno.host import paths
from dbdyno.layers.setup import Running
from dbdyno.trial.bench import OpenLoad

TOLD_AFTER_S = 1.0
"""When the load says what clients have been told. It waits for that, with its connections open."""
KILLED_AFTER_S = 0.5
"""How long it then goes on before the engine is killed."""
LONGEST_S = 60.0
"""Far beyond the kill, however slow the machine is."""
UNTOLD = 1_000_000
"""More transactions than can succeed between the telling and the kill."""


def kill_under_load(running: Running) -> Acknowledged:
    """Kills the engine while clients are at work. Returns what they had been told by then.

    A server of its own leaves the load process to count to the end. An embedded engine takes that with it, so
    the count is of the last wait, and of what came after it nobody knows. Raises DynoError where the kill
    would show nothing, and ServerFailed or LoadDied for an engine that died by itself.
    """
    job = running.setup.job.but(
        load=Closed(), ramp_s=0.0, warmup_s=TOLD_AFTER_S, duration_s=LONGEST_S, slices=1, settle_s=0.0
    )
    tally = running.load.begin(job)
    assert tally is None, "a load with a slice waits before it"
    tally = _killed_while_it_goes_on(running)
    if tally is not None:
        told = Acknowledged.by([tally])
    else:
        waited = running.load.told or Acknowledged()
        told = waited.model_copy(update={"unknown": waited.unknown + UNTOLD})
    if not told.acknowledged:
        raise DynoError("no transaction succeeded before the engine was killed", "look at the server's log")
    return told


def _killed_while_it_goes_on(running: Running) -> Tally | None:
    """The load's slice, in which the engine is killed; None where that took the load process along."""
    killed = Event()
    killer = Timer(KILLED_AFTER_S, _kill, [running, killed])
    killer.start()
    try:
        tally = running.load.go_on()
    except LoadDied:
        if not killed.is_set():
            raise
        return None
    finally:
        killer.cancel()
        killer.join()
    if not running.server.alive() and not killed.is_set():
        raise ServerFailed("the server died under the load", log=running.server.log())
    if not killed.is_set():
        raise DynoError("the load ended before the engine was killed", "run again on a quieter machine")
    return tally


def _kill(running: Running, killed: Event) -> None:
    killed.set()
    if running.setup.engine.embedded:
        with suppress(ProcessLookupError):
            os.kill(running.load.process_id, signal.SIGKILL)
    else:
        running.server.kill()


def start_again(running: Running, open_load: OpenLoad, undo: ExitStack) -> Running:
    """Starts the engine on what the kill left, with a load process of its own. `undo` ends both. Raises
    ServerFailed where it does not come up."""
    running.load.kill()
    running.server.kill()
    setup = running.setup
    runtime = paths.runtime() / setup.scratch.name
    server = setup.engine.life.start(setup.installation, setup.data, runtime, setup.settings, setup.launch)
    undo.callback(server.kill)
    launch = setup.launch if setup.engine.embedded else setup.load_launch
    load = open_load(server.driver_environment, launch)
    undo.callback(load.kill)
    setup.job = setup.job.but(url=server.url)
    return replace(running, server=server, load=load)
