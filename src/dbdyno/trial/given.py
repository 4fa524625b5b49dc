"""Pristine data from what a study brings: a dump that is loaded, or a folder that is copied, once.

What they are is their contents, so their key holds no path and no workload. What the workload's invariants
say of them is found on a clone, once for each workload, because the data must stay as they came.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from dbdyno.driver.load import Invariant
from dbdyno.engines.engine import Server, Taking
from dbdyno.engines.server import NAME, url_of_database
from dbdyno.errors import DriverFailed, UserError
from dbdyno.frozen import Level
from dbdyno.host import cache
from dbdyno.host.clone import clone_tree
from dbdyno.host.launch import Launch
from dbdyno.host.room import require_disk
from dbdyno.layers.setup import Setup
from dbdyno.study.nouns import GivenData
from dbdyno.trial.bench import Bench
from dbdyno.trial.beside import loading, runtime_of, serving
from dbdyno.user_data.dump import Dump, dump_at
from dbdyno.user_data.folder import digest_of_path

STOP_S = 300.0
"""A server that has just loaded everything writes it before it ends."""


@dataclass(frozen=True)
class BroughtData:
    """The data that a study brings: `sources` are their paths, `digest` is that of their contents. `setup` is
    of the trial that needs them first, and `creation` are the settings that are fixed when data are made."""

    data: GivenData
    sources: tuple[Path, ...]
    digest: str
    setup: Setup
    creation: Mapping[str, Level]
    bench: Bench

    @property
    def taking(self) -> Taking:
        taking = self.setup.engine.taking
        assert taking is not None, "the reader refuses [data] for an engine that takes none"
        return taking

    @property
    def shape(self) -> dict[str, object]:
        """What shapes the data beside the engine and its creation."""
        return {"data": self.digest, "kind": _kind(self.data), "database": self.data.database}

    @property
    def words(self) -> str:
        """What the data are, for the list of all that is kept."""
        names = ", ".join(path.name for path in self.sources)
        return f"{_kind(self.data)} {names}, sha256 {self.digest[:12]}"


def given_data(setup: Setup, creation: Mapping[str, Level], bench: Bench) -> BroughtData | None:
    """What the study brings; None where its workload makes the data."""
    data = bench.study.data
    if data is None:
        return None
    sources = data.paths(bench.study.folder)
    kept = [one.sha256 for one in bench.run.data] or [""] * len(sources)
    digests = [_digest_of(source, began, bench) for source, began in zip(sources, kept, strict=True)]
    return BroughtData(data, sources, _whole(digests), setup, creation, bench)


def _whole(digests: Sequence[str]) -> str:
    """One digest of all sources."""
    return digests[0] if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()


def _digest_of(source: Path, began: str, bench: Bench) -> str:
    """What a file or a folder holds. A run goes on with what it `began` with, which may still be kept where
    the file is gone. Raises UserError where it holds something else by now, or is needed and gone."""
    if not source.exists():
        if began:
            return began
        raise UserError(f"there is no {source}", "a relative path counts from the study's folder")
    found = digest_of_path(source, bench.tell)
    if began and found != began:
        raise UserError(
            f"{source} has changed since the run began: its sha256 was {began[:12]} and is {found[:12]}",
            "bring the file back, or begin a new run",
        )
    return found


def make_given(given: BroughtData, making: Path) -> dict[str, object]:
    """Loads the dumps, or copies the folder, into `making / "data"`; returns the account of it."""
    setup, data = given.setup, making / "data"
    done: list[str] = []
    if given.data.folder:
        [source] = given.sources
        given.taking.require_folder(setup.data_maker.version, source)
        given.bench.tell(f"copying {source}")
        given.taking.bring_in(setup.data_maker, source, data)
    else:
        dumps = [dump_at(source) for source in given.sources]
        require_disk(making, sum(dump.needed_bytes for dump in dumps), "loading the dump")
        setup.engine.life.initialise(setup.data_maker, data, given.creation)
        with _running(given, data, {}) as server:
            for dump in dumps:
                done += _loaded(given, server, data, dump)
    if _whole([digest_of_path(source, given.bench.tell) for source in given.sources]) != given.digest:
        # What was loaded would be kept under the name of what it was before.
        names = ", ".join(map(str, given.sources))
        raise UserError(f"{names} changed while it was read", "have nobody write it, then begin a new run")
    with (
        given.taking.adopt(setup.data_maker, data) as first,
        _running(given, data, first) as server,
        loading(given.bench, server, Launch()) as load,
    ):
        given.taking.require_recovered(server.log() if given.data.folder else "")
        database = _chosen(given.taking.databases(server.url, load.query), given)
        done += given.taking.settle(server.url, load.query)
        if given.data.setup:
            url = url_of_database(server.url, database) if database else server.url
            load.prepare(given.setup.job.but(url=url))
    if database:
        (data / NAME).write_text(f"{database}\n")
    for line in done:
        given.bench.tell(line)
    return {"sources": [str(source) for source in given.sources], "sha256": given.digest, "done": done}


def checks_of_data(given: BroughtData, folder: Path) -> list[Invariant]:
    """What the workload's invariants say of the data, found once and kept beside them."""
    setup = given.setup
    asked = {"workload": setup.job.workload, "options": setup.job.options}
    key = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:24]
    place = folder / f"checks-{key}.json"
    if not place.is_file():
        found = _checked(given, folder)
        cache.keep_beside(place, json.dumps([check.model_dump() for check in found]))
        return found
    return [Invariant.model_validate(check) for check in json.loads(place.read_text())]


def _checked(given: BroughtData, folder: Path) -> list[Invariant]:
    clone = given.setup.scratch / "looked-at"
    clone_tree(folder / "data", clone)
    try:
        with _running(given, clone, {}, kept=False) as server, loading(given.bench, server, Launch()) as load:
            return load.check(given.setup.job.but(url=server.url), None)
    except DriverFailed as failed:
        if failed.kind not in ("server", "user"):
            # Nothing was asked of the data.
            raise
        name = given.setup.job.workload
        raise UserError(
            f"the data of the study do not hold what the workload {name} needs: {failed.message}",
            f"bring data with its tables, with the options that they were made with; {failed.hint}".rstrip(
                "; "
            ),
        ) from None
    finally:
        shutil.rmtree(clone, ignore_errors=True)


def _loaded(given: BroughtData, server: Server, data: Path, dump: Dump) -> list[str]:
    given.bench.tell(f"loading {dump.path}, {dump.size_bytes / 1e6:,.1f} MB")
    try:
        return given.taking.load(
            given.setup.data_maker, server, data, dump, given.data.database, given.bench.tell
        )
    except UserError as refused:
        if server.alive():
            raise
        raise UserError(f"the server ended while {dump.path} was loaded", refused.message) from None


def _chosen(found: list[str], given: BroughtData) -> str:
    """The database that the load connects to. Raises UserError where the data do not tell which."""
    wanted, what = given.data.database, given.words
    listed = ", ".join(found)
    if wanted and wanted not in found and found != [""]:
        told = f"they hold {listed}" if found else "they hold no tables"
        raise UserError(f"the {what} has no database `{wanted}` with tables: {told}", "name one of them")
    if not found:
        raise UserError(f"the {what} holds no tables", "is it a dump of the schema, or of another database?")
    if not wanted and len(found) > 1:
        raise UserError(
            f"the {what} holds {len(found)} databases: {listed}",
            f'name the one that the load connects to: database = "{found[0]}"',
        )
    return wanted or found[0]


def _kind(data: GivenData) -> str:
    return "dump" if data.dump else "folder"


def _running(
    given: BroughtData, data: Path, first: Mapping[str, Level], kept: bool = True
) -> AbstractContextManager[Server]:
    """The server on the data, as pristine data are loaded; it ends cleanly where they are `kept`."""
    runtime = runtime_of(given.setup, given.bench, "p")
    return serving(given.setup, data, runtime, {**given.creation, **first}, STOP_S if kept else None)
