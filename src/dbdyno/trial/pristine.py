"""Pristine data: a workload's rows in a data directory, made once and cloned for each trial.

Kept under `cache/pristine/KEY`, where KEY digests all that shapes the bytes: the engine's binaries, the
settings fixed at creation, the workload, its options, and the seed of the rows. Each seed makes an *image*:
the same data in another layout. Blocks take the images in turn, so that a variant which one layout favours
by chance differs between blocks, and its interval holds that.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.applications.product import Place
from dbdyno.driver.load import Invariant, Prepared
from dbdyno.frozen import Level, level_text
from dbdyno.host import once, paths
from dbdyno.host.clone import Cloned, clone_tree, tree_size_bytes
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.layers.setup import Setup
from dbdyno.study import Study
from dbdyno.study.designs import trial_count
from dbdyno.study.phases import phases_of
from dbdyno.study.trials import Purpose, Trial
from dbdyno.trial.bench import Bench

SEED = 1
"""Of the first image; each further one has the next. Every study has the same, so that data are made once."""

WORTH_SHARE = 0.05
"""A second image is made where that takes at most this share of the time that the run's loads take."""

INDEXING_S = 3600.0
"""A server that makes an index is silent until it is done."""

STOP_S = 30.0
"""How long a server may take to stop."""

APPLICATION = "application"
"""What an application keeps beside the server's data, and the folder of its socket and log."""

HEADROOM = 1.5
SPARE_BYTES = 256 << 20
"""A trial needs room for its copy, for what it writes, and for the server's own logs."""


@dataclass(frozen=True)
class Pristine:
    """Data ready to be cloned. `checks` is what held right after they were made, which took `seconds`."""

    folder: Path
    image: int
    checks: list[Invariant]
    seconds: float

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def clone(self, target: Path) -> Cloned:
        """Puts the pristine data back at `target`, which must not exist."""
        needed_bytes = int(tree_size_bytes(self.data) * HEADROOM) + SPARE_BYTES
        require_disk(target.parent, needed_bytes, "a trial")
        return clone_tree(self.data, target)


def pristine_data(setup: Setup, bench: Bench, trial: Trial) -> Pristine:
    """The pristine data of a setup in a trial's block; makes them when they are not there yet. What a search
    confirms gets images that the search has not seen."""
    images = bench.study.images
    if images is None:
        # How long the first one took is kept beside it, so every trial of a run finds the same.
        images = 2 if _image(0, setup, bench).seconds <= worth_s(bench.study, bench.run.budget_s) else 1
    first = 0 if trial.purpose in (None, Purpose.SEARCH) else images
    # What is counted stands in no block. It takes the first image, which is always there.
    return _image(first + max(trial.block, 0) % images, setup, bench)


def worth_s(study: Study, budget_s: float | None) -> float:
    """The seconds that making an image may take, so that a run makes a second one of its own accord."""
    loads_s = trial_count(study) * sum(phase.takes_s for phase in phases_of(study))
    return WORTH_SHARE * (loads_s if budget_s is None else min(loads_s, budget_s))


def _image(image: int, setup: Setup, bench: Bench) -> Pristine:
    creation = {
        name: setup.settings[name] for name in sorted(setup.engine.settings.CREATION & set(setup.settings))
    }
    # A run goes on with the engine that it began with.
    once.shelf("engines").take(setup.data_maker.prefix.name)
    seed = SEED + image
    key = _key(setup, creation, bench, seed)
    folder = once.shelf("pristine").once(key, lambda making: _make(making, setup, creation, bench, seed))
    account = json.loads((folder / "pristine.json").read_text())
    checks = [Invariant.model_validate(check) for check in account["checks"]]
    return Pristine(folder, image, checks, account["seconds"])


def _key(setup: Setup, creation: Mapping[str, Level], bench: Bench, seed: int) -> str:
    options = setup.job.options
    shape: dict[str, object] = {
        "engine": setup.engine.name,
        "installation": setup.data_maker.digest,
        "creation": dict(creation),
        "workload": setup.job.workload,
        "options": {name: options[name] for name in options.keys() - bench.study.workload.run_options},
        "seed": seed,
    }
    # An isolation level leaves no trace in data that nobody else changes.
    if opening := setup.job.opening.model_dump(exclude={"isolation"}, exclude_defaults=True):
        shape["opening"] = opening
    if bench.application is not None:
        shape["application"] = bench.application.shape
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:24]


def _make(
    making: Path, setup: Setup, creation: Mapping[str, Level], bench: Bench, seed: int
) -> tuple[str, str]:
    """Initialises, loads and stops the server cleanly; returns what the data are and where they come from."""
    engine = f"{setup.engine.name} {setup.data_maker.version}"
    bench.journal.note("tree", path=str(making))
    with bench.journal.scope():
        require_disk(making, SPARE_BYTES, "the pristine data")
        began = time.monotonic()
        setup.engine.life.initialise(setup.data_maker, making / "data", creation)
        prepared, checks = _load_rows(making / "data", setup, creation, bench, seed)
        account = {
            "engine": engine,
            "workload": setup.job.workload,
            "options": setup.job.options,
            "creation": dict(creation),
            "prepared": prepared.model_dump(),
            "checks": [check.model_dump() for check in checks],
            "seconds": round(time.monotonic() - began, 3),
        }
        (making / "pristine.json").write_text(json.dumps(account, indent=2) + "\n")
    which = f", image {seed - SEED + 1}" if seed > SEED else ""
    return f"{_shape(setup)} in {engine}{which}", setup.data_maker.origin


def _shape(setup: Setup) -> str:
    """The workload and its options in words: `tpcb, scale 1`."""
    options = [f"{name} {level_text(value)}" for name, value in setup.job.options.items() if value != ""]
    return ", ".join([setup.job.workload, *options])


def _load_rows(
    data: Path, setup: Setup, creation: Mapping[str, Level], bench: Bench, seed: int
) -> tuple[Prepared, list[Invariant]]:
    runtime = paths.runtime() / f"{setup.scratch.name}p"
    bench.journal.note("tree", path=str(runtime))
    runtime.mkdir()
    settings = {**setup.engine.settings.LOADING, **creation}
    # Of the trial's own launch its patience alone: an instrumented build may make the data.
    launch = Launch(patience=setup.launch.patience)
    server = setup.engine.life.start(setup.data_maker, data, runtime, settings, launch)
    try:
        if bench.application is not None:
            bench.application.populate(Place(data / APPLICATION, runtime / APPLICATION, server.url))
        load = bench.open_load(server.driver_environment, launch)
        try:
            job = setup.job.but(url=server.url, seed=seed, answer_timeout_s=INDEXING_S)
            prepared = load.prepare(job)
            checks = load.check(job, None)
        except BaseException:
            load.kill()
            raise
        load.close()
        server.stop(STOP_S * launch.patience)
    except BaseException:
        server.kill()
        raise
    return prepared, checks
