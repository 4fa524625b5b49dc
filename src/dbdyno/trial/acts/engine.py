"""What is done to a server on purpose: it is stopped, or killed in the midst of its load, and started
again."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from threading import Event

from dbdyno.driver.job import Closed
from dbdyno.driver.tally import Acknowledged, Tally
from dbdyno.errors import DriverFailed, DynoError, LoadDied, ServerFailed
from dbdyno.host import paths
from dbdyno.host.clone import forget_cached
from dbdyno.host.process import family
from dbdyno.layers.setup import Running
from dbdyno.records.load_words import by_kind
from dbdyno.trial.bench import OpenLoad
from dbdyno.trial.nodes import load_on

STOP_S = 600.0
"""What a clean stop may take, where nothing slows the server: it may write back all of a large cache."""
TOLD_AFTER_S = 1.0
"""When the load says what clients have been told. It waits for that, with its connections open."""
KILLED_AFTER_S = 0.5
"""How long it then goes on before the engine is killed."""
LONGEST_S = 60.0
"""Far beyond the kill, however slow the machine is."""
UNTOLD = 1_000_000
"""More transactions than can succeed between the telling and the kill."""


def kill_under_load(running: Running, clients: int | None = None) -> Acknowledged:
    """Kills the engine while its clients, or so many, are at work. Returns what they had been told by then.

    A server of its own leaves the load process to count to the end. An embedded engine takes that with it, so
    the count is of the last wait, and of what came after it nobody knows. Raises DynoError where the kill
    would show nothing, ServerFailed or LoadDied for an engine that died by itself, and DriverFailed for one
    that let the load go no further.
    """
    job = running.setup.job.but(
        clients=clients or running.setup.job.clients,
        load=Closed(),
        ramp_s=0.0,
        warmup_s=TOLD_AFTER_S,
        duration_s=LONGEST_S,
        slices=1,
        settle_s=0.0,
    )
    given_up = running.load.begin(job)
    if given_up is not None:
        raise _stopped_early(running, given_up)
    over = Event()
    kill = partial(strike, running, over, KILLED_AFTER_S)
    ended = in_the_midst(running, running.load.go_on, kill, over)
    if isinstance(ended, DriverFailed) and not isinstance(ended, LoadDied):
        raise ended
    if isinstance(ended, Tally):
        told = Acknowledged.by([ended])
    else:
        waited = running.load.told or Acknowledged()
        told = waited.but(unknown=waited.unknown + UNTOLD)
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


def in_the_midst(
    running: Running, drive: Callable[[], Tally | None], act: Callable[[], bool], over: Event
) -> Tally | DriverFailed | None:
    """Drives a load while `act`, in a thread of its own, ends the engine and tells whether it did. `over` is
    set as soon as the load has ended. Returns what the load came to, or the failure by which it ended: an
    embedded engine takes the load process along.

    Raises what the engine did wrong where it ended before the act, and DynoError where the load did.
    """
    ended: Tally | DriverFailed | None = None
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(act)
        try:
            ended = drive()
        except DriverFailed as failure:
            ended = failure
        finally:
            over.set()
        acted = acting.result()
    if acted:
        return ended
    if isinstance(ended, DriverFailed):
        raise ended
    if not lives(running):
        raise ServerFailed("the server died under the load", log=running.server.log())
    raise DynoError("the load ended before the act", "run again on a quieter machine")


def strike(running: Running, over: Event, after_s: float, act: Callable[[], None] = lambda: None) -> bool:
    """Acts after so long and then kills the engine; False where the load or the engine has ended by
    itself."""
    if over.wait(after_s) or not lives(running):
        return False
    try:
        act()
    finally:
        # It may have ended by itself meanwhile, and must not tell clients of anything any more.
        with suppress(ProcessLookupError):
            kill_engine(running)
    return True


def stopped_s(running: Running) -> float:
    """Has the engine end cleanly, and returns the seconds that it took. Raises ServerFailed where it does
    not."""
    began_s = time.monotonic()
    if running.setup.engine.embedded:
        # It stops when its last connection closes.
        running.load.close()
    else:
        running.server.stop(STOP_S * running.setup.launch.patience)
    return time.monotonic() - began_s


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


def cold_times_ms(running: Running, open_load: OpenLoad, undo: ExitStack) -> tuple[Running, dict[str, float]]:
    """The time of each statement of the load, sent once to an engine that was just started, with none of its
    data in the page cache. Their order is drawn as it is for the load. Raises ServerFailed where the engine
    does not end, or does not come up."""
    assert running.tally is not None, "the load is over"
    names, times = [*running.tally.by_transaction], dict[str, float]()
    random.Random(running.setup.job.seed).shuffle(names)
    for name in names:
        stopped_s(running)
        forget_cached(running.setup.data, written=True)
        running = start_again(running, open_load, undo)
        job = running.setup.job
        tally = running.load.run(job.but(options={**job.options, "rounds": 1, "only": name}))
        if mean_us := tally.by_transaction[name].latency_us.mean:
            times[name] = mean_us / 1000.0
    return running, times


def start_again(running: Running, open_load: OpenLoad, undo: ExitStack) -> Running:
    """Starts the engine on the data that it left, with a load process of its own, after the end of what is
    left of it. `undo` ends both. Raises ServerFailed where it does not come up."""
    running.load.kill()
    running.server.kill()
    setup = running.setup
    if setup.nodes is not None:
        server = setup.nodes.start(setup.nodes.first)
        setup.nodes.full_s()
    else:
        runtime = paths.runtime() / setup.scratch.name
        settings, launch = setup.settings, setup.launch
        server = setup.engine.life.start(setup.installation, setup.data, runtime, settings, launch)
        setup.journal.note_processes(server.process_ids)
    undo.callback(server.kill)
    return with_load(replace(running, server=server), open_load, undo)


def with_load(running: Running, open_load: OpenLoad, undo: ExitStack) -> Running:
    """The server with a load of its own, which `undo` ends."""
    setup, server = running.setup, running.server
    load = load_on(setup, server, open_load)
    undo.callback(load.kill)
    setup.job = setup.job.but(url=server.url)
    return replace(running, load=load)
