"""What is done to a server on purpose: it is killed in the midst of its load, and started again."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress
from dataclasses import replace
from threading import Event, Timer

from dbdyno.driver.job import Closed
from dbdyno.driver.tally import Acknowledged, Tally, by_kind
from dbdyno.errors import DriverFailed, DynoError, LoadDied, ServerFailed
from dbdyno.host import paths
from dbdyno.host.process import family
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
    would show nothing, ServerFailed or LoadDied for an engine that died by itself, and DriverFailed for one
    that let the load go no further.
    """
    job = running.setup.job.but(
        load=Closed(), ramp_s=0.0, warmup_s=TOLD_AFTER_S, duration_s=LONGEST_S, slices=1, settle_s=0.0
    )
    given_up = running.load.begin(job)
    if given_up is not None:
        raise _stopped_early(running, given_up)
    tally = _killed_while_it_goes_on(running)
    if tally is not None:
        told = Acknowledged.by([tally])
    else:
        waited = running.load.told or Acknowledged()
        told = waited.model_copy(update={"unknown": waited.unknown + UNTOLD})
    if not told.acknowledged:
        raise DynoError("no transaction succeeded before the engine was killed", "look at the server's log")
    return told


def _stopped_early(running: Running, tally: Tally) -> DynoError:
    """Why a load was over before its slice: all clients were lost, or a transaction hangs."""
    if not running.server.alive():
        return ServerFailed("the server died under the load", log=running.server.log())
    errors = f"; errors: {by_kind(tally.errors)}" if tally.errors else ""
    return DriverFailed(
        f"the load came to a standstill: {tally.clients_lost} of {tally.clients} clients were lost{errors}",
        "look at the server's log",
        kind="server",
    )


def _killed_while_it_goes_on(running: Running) -> Tally | None:
    """The load's slice, in which the engine is killed; None where that took the load process along."""
    killed = Event()
    killer = Timer(KILLED_AFTER_S, _kill, [running, killed])
    killer.start()
    tally, death = None, None
    try:
        tally = running.load.go_on()
    except LoadDied as failure:
        death = failure
    finally:
        killer.cancel()
        killer.join()
    # Asked only now, because a kill is noted when it is done.
    if killed.is_set():
        return tally
    if death is not None:
        raise death
    if not running.server.alive():
        raise ServerFailed("the server died under the load", log=running.server.log())
    raise DynoError("the load ended before the engine was killed", "run again on a quieter machine")


def _kill(running: Running, killed: Event) -> None:
    """Kills the engine and notes that. One that died by itself is not killed."""
    if lives(running):
        with suppress(OSError):
            kill_engine(running)
            killed.set()


def lives(running: Running) -> bool:
    """Whether the engine's processes are there. An embedded one lives in the load process."""
    if running.setup.engine.embedded:
        return bool(family(running.load.process_id))
    return running.server.alive()


def kill_engine(running: Running) -> None:
    """Ends the engine's processes at once."""
    if running.setup.engine.embedded:
        os.kill(running.load.process_id, signal.SIGKILL)
    else:
        running.server.kill()


def start_again(running: Running, open_load: OpenLoad, undo: ExitStack) -> Running:
    """Starts the engine on what a kill left. Raises ServerFailed where it does not come up."""
    running.load.kill()
    running.server.kill()
    return started(running, open_load, undo)


def started(running: Running, open_load: OpenLoad, undo: ExitStack) -> Running:
    """Starts an engine that has ended, on the data that it left, with a load process of its own. `undo` ends
    both. Raises ServerFailed where it does not come up."""
    setup = running.setup
    runtime = paths.runtime() / setup.scratch.name
    server = setup.engine.life.start(setup.installation, setup.data, runtime, setup.settings, setup.launch)
    undo.callback(server.kill)
    setup.journal.note_processes(server.process_ids)
    launch = setup.launch if setup.engine.embedded else setup.load_launch
    load = open_load(server.driver_environment, launch)
    undo.callback(load.kill)
    setup.job = setup.job.but(url=server.url)
    return replace(running, server=server, load=load)
