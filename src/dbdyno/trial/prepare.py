"""The first stage: from a trial to a running server that holds pristine data.

Part of it is the placement: pristine data restored for one trial, in a folder or on a volume, and verified
once a run.
"""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.driver.job import ANSWER_TIMEOUT_S
from dbdyno.errors import Blocked, DynoError, ServerFailed
from dbdyno.frozen import Level
from dbdyno.host import paths
from dbdyno.host.callgrind import FACTOR as VALGRIND
from dbdyno.host.callgrind import PATIENCE
from dbdyno.host.clone import Cloned, differing_file, forget_cached, tree_size_bytes
from dbdyno.host.room import require_disk
from dbdyno.layers.config import untaken
from dbdyno.layers.layer import ask
from dbdyno.layers.setup import MORE_MEMORY, Before, Running, Setup, apply
from dbdyno.trial.bench import Bench, front_of, setup_of
from dbdyno.trial.beside import stop_or_kill
from dbdyno.trial.nodes import load_on
from dbdyno.trial.pristine import FRONT, SERVER_STOP_S, Pristine, pristine_data

if TYPE_CHECKING:
    from dbdyno.applications.front import Front
    from dbdyno.engines.built import Built, Instrumented
    from dbdyno.engines.engine import Server
    from dbdyno.host.callgrind import Callgrind
    from dbdyno.host.volumes.volume import VolumeSpecification
    from dbdyno.obtain.installation import Installation
    from dbdyno.obtain.source.build import BuildSpecification
    from dbdyno.obtain.source.recipe import Recipe
    from dbdyno.study.trials import Trial


def place(setup: Setup, pristine: Pristine, bench: Bench) -> dict[str, Level]:
    """Puts the data where the levels ask for them; returns the image, and how it came there.

    Raises Blocked when a volume cannot be made here, DynoError when the clone differs from its source.
    """
    cloned = _put_on_volume(setup, pristine, bench) if setup.wish else pristine.clone(setup.data)
    began = time.monotonic()
    verified = _verify_folder(setup, pristine, bench)
    verify_s = time.monotonic() - began
    if verified and cloned.way != "copy":
        # A copy leaves its bytes in the page cache, every other way does not; nor must the comparison.
        forget_cached(setup.data)
    apply(setup, Before.START)
    return {
        "image": pristine.image,
        "way": cloned.way,
        "seconds": round(cloned.seconds, 3),
        "files": cloned.files,
        "bytes": cloned.size_bytes,
        "verified": verified,
        "verify_seconds": round(verify_s, 3),
    }


def _put_on_volume(setup: Setup, pristine: Pristine, bench: Bench) -> Cloned:
    # Here and below, because most data lie in a folder.
    from dbdyno.host.volumes import volume

    wish = setup.wish
    assert wish is not None
    data_bytes = tree_size_bytes(pristine.data)
    require_disk(setup.scratch, 2 * volume.size_for(data_bytes, wish), "a trial")
    if wish.filesystem == "tmpfs":
        setup.volume = volume.attach_tmpfs(setup.journal, pristine.folder, wish, setup.scratch)
    else:
        raw_file = setup.engine.raw_file
        image = volume.image_of(setup.journal, pristine.folder, raw_file, wish)
        setup.volume = volume.attach(setup.journal, image, pristine.folder, raw_file, wish, setup.scratch)
    return setup.volume.cloned


def _verify_folder(setup: Setup, pristine: Pristine, bench: Bench) -> bool:
    """Compares the first clone of each source with it, byte for byte; later ones come by the same way."""
    source = _source(setup, pristine)
    if source in bench.verified:
        return False
    differing = differing_file(pristine.data, setup.data)
    if differing:
        raise DynoError(
            f"the clone of the pristine data differs from the original in {differing}",
            f"the disk is faulty, or the data were changed; remove {pristine.folder}: they are made again",
        )
    bench.verified.add(source)
    return True


def _source(setup: Setup, pristine: Pristine) -> Path:
    """One name for each combination of data, image and device."""
    wish = setup.wish
    if wish is None:
        return pristine.folder / f"folder-of-{setup.scratch.parent.as_posix().replace('/', '_')}"
    from dbdyno.host.volumes import volume

    name = volume.image_name(wish, volume.size_for(tree_size_bytes(pristine.data), wish))
    return pristine.folder / f"{name}-{wish.device.replace('/', '_')}"


TRAINING_PATIENCE = 20.0
"""How many times longer an instrumented engine may take to answer, and to end: it counts all that it does."""

REQUEST_PATIENCE_S = 45.0
"""How long a client waits for an application's answer. It gives up before the load process is given up for
hanging, so that what is told is that the application did not answer."""


def prepare(trial: Trial, bench: Bench, undo: ExitStack) -> tuple[Running, dict[str, Level]]:
    """Puts the levels in, the data back, and the server up; returns it and how the data came back.

    What it opens is closed by `undo`.
    Raises Blocked when a layer cannot put a level in, ServerFailed when the server does not come up.
    """
    setup = _setup(trial, bench)
    # Before the volume is there: a level may be refused once it is.
    undo.callback(_release_volume, setup)
    undo.callback(_end_beside, setup)
    undo.callback(_end_nodes, setup)
    pristine = pristine_data(setup, bench, trial)
    baseline = next((check.value for check in pristine.checks if check.value), None)
    reset = _placed(setup, pristine, bench)
    runtime = paths.runtime() / setup.scratch.name
    bench.journal.note_tree(runtime)
    runtime.mkdir()
    if bench.callgrind:
        _put_under(bench.callgrind, setup)
    if bench.instrumented:
        bench.instrumented.forget()
    network = None
    if bench.study.driver is not None:
        # Here, because most loads come from this host.
        from dbdyno.trial.bench import network_of

        network = network_of(setup, bench, runtime)
    server = _start(setup, runtime, network.settings if network else {})
    # Under Valgrind a clean end takes minutes, and says nothing.
    stop = server.kill if bench.callgrind else partial(server.stop, SERVER_STOP_S * setup.launch.patience)
    undo.push(stop_or_kill(stop, server.kill))
    bench.journal.note_processes(server.process_ids)
    if setup.nodes is not None:
        setup.nodes.start_others()
    front = _in_front(server, setup, runtime, bench, undo)
    url = front.process.url if front is not None else server.url
    if bench.study.front_kinds:
        # Here and below, because most loads go to their server.
        from dbdyno.applications.front import load_url

        production = setup.engine.production
        url = load_url(url, bench.study, production.pooled_statements if production else "")
    setup.job = setup.job.but(url=url, baseline=baseline)
    if front is not None and not front.passes_sql:
        patience_s = min(ANSWER_TIMEOUT_S, REQUEST_PATIENCE_S * setup.launch.patience)
        setup.job = setup.job.but(answer_timeout_s=patience_s)
    load = load_on(setup, server, bench.open_load)
    undo.push(stop_or_kill(load.close, load.kill))
    afar = network.load(server, load, undo) if network else None
    if pristine.rows:
        reset = {**reset, "rows": pristine.rows}
    if pristine.upgrade is not None:
        reset = {**reset, "upgraded_by": pristine.upgrade.by, "upgrade_s": pristine.upgrade.seconds}
    if dataset := setup.job.options.get("dataset"):
        # A set's folder is named by its content: the record tells what was searched.
        reset = {**reset, "dataset": Path(str(dataset)).name}
    running = Running(setup, server, afar or load, front=front, afar=afar)
    for request in setup.asked:
        reset = {**reset, **request.put_on(running)}
    return running, reset


def _put_under(callgrind: Callgrind, setup: Setup) -> None:
    """Has the server's process, or an embedded engine's load process, start under Valgrind."""
    setup.settings |= setup.engine.under_valgrind.settings
    setup.launch.wrapper += callgrind.wrapper
    setup.launch.writable += (callgrind.folder,)
    setup.launch.patience = PATIENCE


def _start(setup: Setup, runtime: Path, network: Mapping[str, Level]) -> Server:
    settings = {**setup.settings, **network}
    try:
        if setup.nodes is not None:
            # Here, because most servers are no cluster.
            from dbdyno.engines.nodes import Ground

            launch, journal = setup.launch, setup.journal
            ground = Ground(setup.installation, setup.data, runtime, settings, launch, journal)
            setup.nodes.place(ground)
            return setup.nodes.start_first()
        return setup.engine.life.start(setup.installation, setup.data, runtime, settings, setup.launch)
    except ServerFailed as failure:
        if killed := setup.killed_for_memory:
            raise ServerFailed(f"{failure.message}: {killed}", MORE_MEMORY, failure.log) from None
        if setup.launch.wrapper and signal.SIGILL.name in failure.message:
            raise Blocked(
                VALGRIND,
                f"{failure.message}: Valgrind does not know an instruction of this build",
                "count a build without AVX-512: compile it with -mno-avx512f, or with an older -march",
            ) from None
        raise


def _in_front(server: Server, setup: Setup, runtime: Path, bench: Bench, undo: ExitStack) -> Front | None:
    """The application that takes the load, or the program that passes it on, which ends before its server;
    None where the server takes it."""
    plan = front_of(setup, bench)
    if plan is None:
        return None
    # Here, because most loads go to their server.
    from dbdyno.applications.front import start_front

    front = start_front(plan, server, setup.data / FRONT, runtime / FRONT)
    stop = partial(front.process.stop, SERVER_STOP_S * setup.launch.patience)
    undo.push(stop_or_kill(stop, front.process.kill))
    bench.journal.note_processes(front.process.process_ids)
    return front


def _end_nodes(setup: Setup) -> None:
    if setup.nodes is not None:
        setup.nodes.end()


def _end_beside(setup: Setup) -> None:
    """Ends what runs beside the server, once that has ended."""
    for child in itertools.chain.from_iterable(setup.beside.values()):
        child.kill()
        child.wait()


def _release_volume(setup: Setup) -> None:
    if setup.volume is not None:
        setup.volume.close()


def _setup(trial: Trial, bench: Bench) -> Setup:
    """The trial's own folder, and what its levels ask for before the data are in place."""
    setup = setup_of(trial, bench)
    setup.launch.writable = tuple(sorted(bench.allowed.paths))
    _require_taken(trial, bench)
    setup.asked = ask(bench.levels_by_layer(trial), bench.layers, bench.engine)
    apply(setup, Before.ENGINE)
    _build(setup, bench)
    apply(setup, Before.DATA)
    # Before the pristine data, which are made from the set and named by its content.
    if setup.job.workload == VECTOR_SEARCH:
        # Here, because other workloads need no vectors.
        from dbdyno.datasets.vectors import with_vector_set

        options = with_vector_set(setup.job.workload, setup.job.options, bench.study.folder)
        setup.job = setup.job.but(options=options)
    if cuts := [phase for phase in trial.phases if phase.cuts_power]:
        levels = bench.levels_by_layer(trial).get("storage", {})
        _have_switch(setup, levels, optional=all(phase.optional for phase in cuts))
    return setup


def _require_taken(trial: Trial, bench: Bench) -> None:
    """Raises Blocked for a level that this variant's engine does not take. Where there is but one engine, the
    study's reader has asked it."""
    if bench.engines:
        levels = {**bench.study.settings, **trial.variant.levels}
        refusals = untaken(levels, bench.layers, bench.engine, bench.installation, bench.allowed)
        refusal = next(refusals, None)
        if refusal is None and (first := bench.taken_from) is not None:
            # Here, because few studies compare versions.
            from dbdyno.engines.upgrade import not_taken_over

            refusal = not_taken_over(first.engine, first.installation, bench.engine, bench.installation)
        if refusal is not None:
            raise refusal


def _have_switch(setup: Setup, levels: Mapping[str, Level], optional: bool) -> None:
    """Asks for a volume whose power can be cut. Where there can be none it raises Blocked, or notes why if
    the cuts are `optional`."""
    try:
        wish = _with_switch(setup.wish, levels)
    except Blocked as refused:
        if not optional:
            raise
        setup.powerless = refused
    else:
        setup.spared = optional and setup.wish is None
        setup.wish = wish


def _with_switch(wish: VolumeSpecification | None, levels: Mapping[str, Level]) -> VolumeSpecification:
    """The volume that the levels of the storage layer ask for, or one of Dyno's choice. Raises Blocked where
    they ask for a folder of the host's, which has no switch, or for a volume that cannot be cut."""
    # Here, because few studies cut the power.
    from dbdyno.host.volumes.power import FACTOR as SWITCH
    from dbdyno.host.volumes.power import HAVE_SWITCH, require_switch
    from dbdyno.host.volumes.volume import VolumeSpecification, require_maker

    if wish is None and levels.keys() & {"filesystem", "device"}:
        reason = "the study keeps the data on the host's file system, which is not cut"
        raise Blocked(SWITCH, reason, HAVE_SWITCH)
    wish = wish or VolumeSpecification()
    require_switch(wish)
    require_maker(wish.filesystem)
    return wish


def _placed(setup: Setup, pristine: Pristine, bench: Bench) -> dict[str, Level]:
    """Puts the data in place: in a folder where a volume that is to be spared cannot be made."""
    mark = bench.journal.mark()
    try:
        return place(setup, pristine, bench)
    except DynoError as refused:
        # Once the volume is in place, it is something else that fails.
        if not setup.spared or setup.volume is not None:
            raise
        bench.journal.undo_to(mark)
        setup.wish, setup.powerless = None, refused
    return place(setup, pristine, bench)


def _build(setup: Setup, bench: Bench) -> None:
    """Puts the build that the levels ask for in the place of the study's own installation."""
    if bench.instrumented:
        from dbdyno.engines.built import shares_data

        recipe = _put_in(bench.instrumented, setup)
        if not shares_data(recipe, setup.installation, setup.data_maker):
            setup.data_maker = setup.installation
        return
    setup.built = bench.built
    if setup.built is None and setup.build is not None:
        from dbdyno.layers.build import with_trainer

        setup.built = _built(with_trainer(setup.build, bench.study), bench)
    if setup.built is not None:
        setup.installation = setup.built.installation
        if setup.built.wish.architecture:
            from dbdyno.layers.platform import on_its_own

            on_its_own(setup)
        else:
            setup.data_maker = data_maker(setup.built, bench)


def data_maker(build: Built, bench: Bench) -> Installation:
    """Who makes a build's data: the study's own installation where the build can read them, else the
    baseline's build, else itself. So builds differ by their code alone, and not by the layout of data."""
    from dbdyno.engines.built import recipe_of, shares_data

    recipe = recipe_of(bench.engine, build.wish, bench.study.folder)
    if shares_data(recipe, build.installation, bench.installation):
        return bench.installation
    baseline = _baseline(bench)
    if (
        baseline is not None
        and baseline.account.recipe == build.account.recipe
        and shares_data(recipe, build.installation, baseline.installation)
    ):
        return baseline.installation
    return build.installation


def _baseline(bench: Bench) -> Built | None:
    """The build of the study's baseline; None where it has none, or where that cannot be made."""
    from dbdyno.layers.build import wish_of

    try:
        return _built(wish_of(bench.study, bench.study.baseline, bench.layers, bench.engine), bench)
    except DynoError:
        return None


def _built(wish: BuildSpecification | None, bench: Bench) -> Built | None:
    if not wish:
        return None
    # Here and above, because most trials run no build.
    from dbdyno.engines.built import built

    return built(bench.engine, wish, bench.study.folder)


def _put_in(instrumented: Instrumented, setup: Setup) -> Recipe:
    """Has an instrumented engine start, do the transactions that train it, and end by its own exit."""
    setup.installation = instrumented.installation
    setup.launch.environment |= instrumented.environment
    setup.launch.patience = TRAINING_PATIENCE
    setup.launch.exit_handlers = True
    setup.job = setup.job.but(operations=instrumented.trainer.transactions)
    return instrumented.recipe
