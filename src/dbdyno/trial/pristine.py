"""Pristine data: a workload's rows in a data directory, made once and cloned for each trial.

Kept under `cache/pristine/KEY`, where KEY digests all that shapes the bytes: the engine's binaries, the
settings fixed at creation, the workload, its options, the contents of the files that it reads, and the seed
of the rows. Each seed makes an *image*: the same data in another layout. Pairs of blocks take the images in
turn, so that a variant which one layout favours by chance is not favoured in every block. The second block of
a pair runs the order of the first backwards on the same image, so that order and image stay apart.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.driver.job import Job
from dbdyno.driver.load import Invariant, Prepared, files_read
from dbdyno.engines.upgrade import STOP_S, not_taken_over
from dbdyno.errors import Blocked, ServerFailed
from dbdyno.frozen import ENGINE_FACTOR, Frozen, Level, level_text
from dbdyno.host import cache
from dbdyno.host.clone import Cloned, clone_tree, tree_size_bytes
from dbdyno.host.room import require_disk
from dbdyno.layers.setup import Setup
from dbdyno.obtain.installation import Installation
from dbdyno.study import Study
from dbdyno.study.designs import trial_count
from dbdyno.study.trials import Purpose, Trial, phases_of
from dbdyno.trial.answers import TableRows, rows_of
from dbdyno.trial.bench import INDEXING_S, Bench, OnEngine, digest_as_begun, front_of
from dbdyno.trial.beside import launch_of, loading, runtime_of, serving
from dbdyno.trial.given import BroughtData, checks_of_data, given_data, make_given


class Upgrade(Frozen):
    """How data were taken over, in words, and the seconds from the clean stop of the old version to that of
    the new one, copying left out."""

    by: str
    seconds: float

    def after(self, before: Upgrade | None, version: str) -> Upgrade:
        """This step behind those by which data came to the version that it takes them from."""
        if before is None:
            return self
        by = f"{before.by}, then from {version} by {self.by}"
        return Upgrade(by=by, seconds=round(before.seconds + self.seconds, 3))


@dataclass(frozen=True)
class Takeover:
    """A setup whose data are taken over: from whom, which is the `first` or a version between, and with which
    settings fixed when they were made."""

    first: OnEngine
    setup: Setup
    creation: Mapping[str, Level]
    bench: Bench

    @property
    def shape(self) -> dict[str, str]:
        """What shapes the data beside those that are taken over."""
        return {"upgraded": self.setup.engine.name, "installation": self.setup.data_maker.digest}

    def carry_out(self, source: Path, data: Path) -> Upgrade:
        """Puts a copy of the older version's data at `data`, and has them taken over. Raises Blocked where
        they cannot be."""
        old, new = self.first.installation, self.setup.data_maker
        refused = not_taken_over(self.first.engine, old, self.setup.engine, new)
        upgrading = self.setup.engine.upgrading
        if refused is not None or upgrading is None:
            raise refused or _failed(old, new, f"{self.setup.engine.title} has no way for it")
        self.bench.tell(f"{self.setup.engine.title} {new.version} takes over data of {old.version}")
        clone_tree(source, data)
        runtime = runtime_of(self.setup, self.bench, "u")
        began = time.monotonic()
        try:
            by = upgrading.take_over(old, new, data, runtime, self.creation)
        except ServerFailed as failed:
            raise _failed(old, new, failed.message) from failed
        return Upgrade(by=by, seconds=round(time.monotonic() - began, 3))


def rows_text(data: Path, setup: Setup, creation: Mapping[str, Level], bench: Bench) -> str:
    """The checksums over all tables of data that the setup's own version reads; empty where the engine cannot
    be asked for them. What its server writes into the data stays there."""
    if setup.engine.compared is None:
        return ""
    runtime = runtime_of(setup, bench, "r")
    with (
        serving(setup, data, runtime, creation, STOP_S) as server,
        loading(bench, server, launch_of(setup)) as load,
    ):
        return "; ".join(table.text for table in rows_of(load, server.url, setup.engine.compared))


def _failed(old: Installation, new: Installation, reason: str) -> Blocked:
    return Blocked(
        ENGINE_FACTOR,
        f"{new.engine} {new.version} could not take over the data of {old.version}: {reason}",
        "name a version between them as a further level of `engine`: data then go from one to the next. Or"
        " let each make its own data",
    )


WHOLE = cache.WHOLE["pristine"]
"""The account of how data were made, which marks them as whole."""

SEED = 1
"""Of the first image; each further one has the next. Every study has the same, so that data are made once."""

GENERATED = 2
"""Rises when the driver makes other rows of the same workload, options and seed."""

WORTH_SHARE = 0.05
"""Further images are made where that takes at most this share of the time that the run's loads take."""

IMAGES_ENOUGH = 6
"""Over so many images an interval holds the luck of each (`analyse/images.py`). With a second one alone that
luck is at least not in every block."""

IMAGES_BYTES = 8 << 30
"""What all images of a run may take of the disk."""

SERVER_STOP_S = 30.0
"""How long a server may take to stop."""

FRONT = "front"
"""What an application keeps beside the server's data, and the folder of the socket and the log of what stands
in front."""

HEADROOM = 1.5
SPARE_BYTES = 256 << 20
"""A trial needs room for its copy, for what it writes, and for the server's own logs."""


@dataclass(frozen=True)
class Pristine:
    """Data ready to be cloned. `checks` is what held right after they were made, which took `seconds`.
    Where engines are compared, `rows` are the checksums of their tables. `upgrade` says how they were taken
    over from another version, where they were."""

    folder: Path
    image: int
    checks: list[Invariant]
    seconds: float
    rows: str = ""
    upgrade: Upgrade | None = None

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
    if bench.study.data is not None:
        # What was brought has one layout.
        return _image(0, setup, bench)
    if images is None:
        images = _worth(_image(0, *_on_first(setup, bench)), worth_s(bench.study, bench.run.budget_s))
    first = 0 if trial.purpose in (None, Purpose.FLOOR, Purpose.SEARCH) else images
    # What is counted stands in no block. It takes the first image, which is always there.
    return _image(first + bench.run.pair_on_host(trial.block) % images, setup, bench)


def _worth(first: Pristine, further_s: float) -> int:
    """How many images a run makes of its own accord. How long the first one took is kept beside it, so every
    trial of a run finds the same."""
    soon = (IMAGES_ENOUGH - 1) * first.seconds <= further_s
    if soon and IMAGES_ENOUGH * tree_size_bytes(first.data) <= IMAGES_BYTES:
        return IMAGES_ENOUGH
    return 2 if first.seconds <= further_s else 1


def _on_first(setup: Setup, bench: Bench) -> tuple[Setup, Bench]:
    """A setup on the first of the engines that are compared: its data say for all how many images there are,
    since a block's ratios hold the luck of one image alone where all trials have the same."""
    first = bench.engines.get(bench.study.engine.written)
    return (setup, bench) if first is None or bench.taken_from is not None else _on(first, setup, bench)


def _on(one: OnEngine, setup: Setup, bench: Bench) -> tuple[Setup, Bench]:
    """A setup and its bench on another engine."""
    return (
        replace(setup, engine=one.engine, installation=one.installation),
        replace(bench, engine=one.engine, installation=one.installation),
    )


def place_brought(setup: Setup, bench: Bench, target: Path) -> None:
    """Puts a copy of the pristine data of what a study brings at `target`. Makes them when they are not there
    yet, and says what for. Whether they suit the workload is not looked at: its statements are judged
    first."""
    creation = _creation(setup)
    given = given_data(setup, creation, bench)
    key = _key(setup, creation, bench, SEED, given)
    if not cache.shelf("pristine").holds(key):
        bench.tell("the data of the study are made ready to check its statements; its run uses them too")
    folder = _folder(setup, creation, bench, SEED, given)
    Pristine(folder, 0, [], 0.0).clone(target)


def worth_s(study: Study, budget_s: float | None) -> float:
    """The seconds that making further images may take, so that a run makes them of its own accord."""
    loads_s = trial_count(study) * sum(phase.takes_s for phase in phases_of(study))
    return WORTH_SHARE * (loads_s if budget_s is None else min(loads_s, budget_s))


def _image(image: int, setup: Setup, bench: Bench) -> Pristine:
    first = bench.taken_from
    if first is not None:
        return _taken_over(image, Takeover(first, setup, _creation(setup), bench))
    creation = _creation(setup)
    given = given_data(setup, creation, bench)
    folder = _folder(setup, creation, bench, SEED + image, given)
    account = json.loads((folder / WHOLE).read_text())
    checks = [Invariant.model_validate(check) for check in account["checks"]]
    rows = account.get("rows", "")
    if given is not None:
        checks = checks_of_data(given, folder)
        if bench.study.upgraded:
            rows = _rows_beside(folder, setup, creation, bench)
    return Pristine(folder, image, checks, account["seconds"], rows)


def _taken_over(image: int, takeover: Takeover) -> Pristine:
    """The image of the version before, as this one has taken it over. It counts as made in the time that the
    first one took, so that all versions have as many images."""
    source = _image(image, *_on(takeover.first, takeover.setup, takeover.bench))
    shape = {"from": source.folder.name, **takeover.shape}
    folder = cache.shelf("pristine").once(
        _digest(shape),
        lambda making: _make_upgraded(making, source, takeover),
        takeover.bench.tell,
        note=takeover.bench.journal.note_tree,
    )
    account = json.loads((folder / WHOLE).read_text())
    step = Upgrade.model_validate(account["upgrade"])
    upgrade = step.after(source.upgrade, takeover.first.installation.version)
    return replace(source, folder=folder, rows=account["rows"], upgrade=upgrade)


def _make_upgraded(making: Path, source: Pristine, takeover: Takeover) -> tuple[str, str]:
    old, setup = takeover.first.installation, takeover.setup
    with takeover.bench.journal.scope():
        needed_bytes = int(2 * tree_size_bytes(source.data) * HEADROOM) + SPARE_BYTES
        require_disk(making, needed_bytes, "the data that a version takes over")
        upgrade = takeover.carry_out(source.data, making / "data")
        account: dict[str, object] = {
            "engine": f"{setup.engine.name} {setup.data_maker.version}",
            "from": source.folder.name,
            "upgrade": upgrade.model_dump(),
            "rows": rows_text(making / "data", setup, takeover.creation, takeover.bench),
        }
        (making / WHOLE).write_text(json.dumps(account, indent=2) + "\n")
    what = f"{_shape(setup)} of {setup.engine.name} {old.version}, upgraded to {setup.data_maker.version}"
    return what, setup.data_maker.origin


def _rows_beside(folder: Path, setup: Setup, creation: Mapping[str, Level], bench: Bench) -> str:
    """The checksums over what a study brings: found on a clone, once, and kept beside the data."""
    place = folder / "rows.txt"
    if not place.is_file():
        clone = setup.scratch / "summed"
        clone_tree(folder / "data", clone)
        with bench.journal.scope():
            found = rows_text(clone, setup, creation, bench)
        shutil.rmtree(clone)
        cache.keep_beside(place, found)
        return found
    return place.read_text()


def _creation(setup: Setup) -> dict[str, Level]:
    """The settings that are fixed when data are made."""
    return {
        name: setup.settings[name] for name in sorted(setup.engine.settings.CREATION & set(setup.settings))
    }


def _folder(
    setup: Setup, creation: Mapping[str, Level], bench: Bench, seed: int, given: BroughtData | None
) -> Path:
    # A run goes on with the engine that it began with.
    cache.shelf("engines").take(setup.data_maker.prefix.name)
    key = _key(setup, creation, bench, seed, given)
    return cache.shelf("pristine").once(
        key,
        lambda making: _make(making, setup, creation, bench, seed, given),
        bench.tell,
        note=bench.journal.note_tree,
    )


def _key(
    setup: Setup, creation: Mapping[str, Level], bench: Bench, seed: int, given: BroughtData | None = None
) -> str:
    options, files = setup.job.options, _contents(setup.job, bench)
    # A path says nothing of what it leads to.
    left_out = bench.study.workload.run_options | {option for option, _ in files}
    shape: dict[str, object] = {
        "engine": setup.engine.name,
        "installation": setup.data_maker.digest,
        "creation": dict(creation),
        "workload": setup.job.workload,
        "options": {name: options[name] for name in options.keys() - left_out},
        "seed": seed,
        "generated": GENERATED,
    }
    if bench.engines:
        # Whoever makes them reads all rows once more.
        shape["summed"] = True
    if files:
        shape["files"] = files
    # An isolation level leaves no trace in data that nobody else changes.
    if opening := setup.job.opening.model_dump(exclude={"isolation"}, exclude_defaults=True):
        shape["opening"] = opening
    front = front_of(setup, bench)
    if front is not None and front.program.prepare:
        shape["application"] = front.shape
    if given is not None:
        own = ("engine", "installation", "creation") if not given.data.setup else tuple(shape)
        shape = {name: shape[name] for name in own if name in shape} | given.shape
    return _digest(shape)


def _digest(shape: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:24]


def _contents(job: Job, bench: Bench) -> list[tuple[str, str]]:
    """The hash of each file that shapes the data, with the workload's option that leads to it. Raises
    UserError for one that is not as it was when the run began."""
    contents = []
    for file in files_read(job.workload, job.options, Path(job.folder)):
        digest = digest_as_begun(Path(file.path), bench.run)
        if file.option not in bench.study.workload.run_options:
            contents.append((file.option, digest))
    return contents


def _make(
    making: Path,
    setup: Setup,
    creation: Mapping[str, Level],
    bench: Bench,
    seed: int,
    given: BroughtData | None,
) -> tuple[str, str]:
    """Initialises, loads and stops the server cleanly; returns what the data are and where they come from."""
    engine = f"{setup.engine.name} {setup.data_maker.version}"
    with bench.journal.scope():
        require_disk(making, SPARE_BYTES, "the pristine data")
        began = time.monotonic()
        account: dict[str, object] = {"engine": engine, "creation": dict(creation), "checks": []}
        if given is not None:
            account |= make_given(given, making)
        else:
            setup.engine.life.initialise(setup.data_maker, making / "data", creation)
            prepared, checks, tables = _load_rows(making / "data", setup, creation, bench, seed)
            account |= {
                "workload": setup.job.workload,
                "options": setup.job.options,
                "prepared": prepared.model_dump(),
                "checks": [check.model_dump() for check in checks],
                "rows": "; ".join(table.text for table in tables),
            }
        account["seconds"] = round(time.monotonic() - began, 3)
        (making / WHOLE).write_text(json.dumps(account, indent=2) + "\n")
    if given is not None:
        return f"{given.words} in {engine}", setup.data_maker.origin
    which = f", image {seed - SEED + 1}" if seed > SEED else ""
    return f"{_shape(setup)} in {engine}{which}", setup.data_maker.origin


def _shape(setup: Setup) -> str:
    """The workload and its options in words: `tpcb, scale 1`."""
    options = [f"{name} {level_text(value)}" for name, value in setup.job.options.items() if value != ""]
    return ", ".join([setup.job.workload, *options])


def _load_rows(
    data: Path, setup: Setup, creation: Mapping[str, Level], bench: Bench, seed: int
) -> tuple[Prepared, list[Invariant], tuple[TableRows, ...]]:
    runtime = runtime_of(setup, bench, "p")
    with serving(setup, data, runtime, creation, SERVER_STOP_S) as server:
        front = front_of(setup, bench)
        if front is not None and front.program.prepare:
            front.populate(server.url, data / FRONT, runtime / FRONT)
        with loading(bench, server, launch_of(setup)) as load:
            job = setup.job.but(url=server.url, seed=seed, answer_timeout_s=INDEXING_S)
            prepared = load.prepare(job)
            checks = load.check(job, None)
            compared = setup.engine.compared if bench.engines else None
            tables = rows_of(load, server.url, compared) if compared else ()
    return prepared, checks, tables
