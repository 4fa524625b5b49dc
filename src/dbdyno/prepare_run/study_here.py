"""A study on this host: read from its file, with what it may name here, the data that it brings, the engines
that it compares, and what its variants give up.

What it may name follows from the real registries, and from the engine where that is installed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dbdyno.applications.registry import FRONTS
from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.driver import _driver
from dbdyno.engines import registry
from dbdyno.engines.configuration import read_configuration, require_settings
from dbdyno.engines.engine import Engine, Taking
from dbdyno.engines.upgrade import is_older, not_taken_over, step_before
from dbdyno.errors import Blocked, DynoError, EngineMissing, Mistake, UserError
from dbdyno.frozen import Configuration, Frozen, Level, level_text
from dbdyno.host.cache import Tell
from dbdyno.host.writers import NOTHING_ALLOWED, Allowed
from dbdyno.layers.config import mistakes_beside, untaken
from dbdyno.layers.registry import KNOBS, LAYERS, Refusal, files_of_level, given_up, gives_up
from dbdyno.layers.workload import files_of_workload
from dbdyno.obtain.installation import Installation
from dbdyno.records import metrics
from dbdyno.records.metrics import bytes_text
from dbdyno.records.run import Data, Run
from dbdyno.registry import LazyTable, Those
from dbdyno.sql_logs import recording
from dbdyno.study import Catalogue, Factor, Study, read_study, workload_offers
from dbdyno.study.catalogue import BesideCheck, NamesFiles
from dbdyno.study.designs import extremes_of, variants_of
from dbdyno.study.nouns import PLATFORM_FACTOR, GivenData, Promise, Reference
from dbdyno.study.trials import Variant
from dbdyno.trial.bench import OnEngine
from dbdyno.trial.count import require_countable
from dbdyno.user_data.dump import Dump, dump_at
from dbdyno.user_data.folder import digest_of_path, size_bytes_of


class PlannedData(Frozen):
    """Where a study's data come from, as `dyno plan --json` tells it."""

    kind: str
    path: str
    size_bytes: int


def given_mistakes(
    data: GivenData,
    folder: Path,
    installation: Installation | None,
    reference: Reference,
    factors: Sequence[Factor],
) -> list[Mistake]:
    """What is wrong with the data that a study in a folder brings, as far as their files say it. Whoever has
    no installation yet is told of that elsewhere."""
    engine = registry.engine(reference.engine)
    found: list[Mistake] = []
    for path in data.paths(folder):
        try:
            if engine.taking is None:
                raise UserError(f"data cannot be brought for {engine.title}", "leave [data] out")
            if data.folder:
                _require_folder(engine, engine.taking, path, installation)
                _require_fixed(engine, factors)
            else:
                _require_dump(engine, engine.taking, dump_at(path), installation)
        except (UserError, OSError) as error:
            message, hint = (error.message, error.hint) if isinstance(error, UserError) else (str(error), "")
            found.append(Mistake(0, message, hint))
    return found


def planned_data(study: Study) -> tuple[PlannedData, ...]:
    """Where the data come from, and their size; nothing where the workload makes them."""
    data = study.data
    if data is None:
        return ()
    kind = "dump" if data.dump else "folder"
    return tuple(
        PlannedData(kind=kind, path=str(path), size_bytes=size_bytes_of(path))
        for path in data.paths(study.folder)
    )


def data_text(planned: Sequence[PlannedData]) -> str:
    """The same as a line of a plan."""
    named = ", ".join(f"{one.path} ({bytes_text(one.size_bytes)})" for one in planned)
    how = "loaded" if planned[0].kind == "dump" else "copied"
    return f"pristine data: one copy, {how} from {named}"


def data_of(study: Study, tell: Tell) -> tuple[Data, ...]:
    """What a run keeps of the data that its study brings."""
    if study.data is None:
        return ()
    return tuple(
        Data(
            kind="dump" if study.data.dump else "folder",
            path=str(path.absolute()),
            sha256=digest_of_path(path, tell),
            size_bytes=size_bytes_of(path),
        )
        for path in study.data.paths(study.folder)
    )


def _require_folder(engine: Engine, taking: Taking, path: Path, installation: Installation | None) -> None:
    if not path.exists():
        raise UserError(f"there is no {path}", "a relative path counts from the study's folder")
    if path.is_dir() and engine.embedded:
        raise UserError(f"{path} is a folder", f"for {engine.title} `folder` is the database's file")
    if not path.is_dir() and not engine.embedded:
        raise UserError(f"{path} is no folder", "a dump is given as `dump`")
    taking.require_folder(installation.version if installation else "", path)


def _require_fixed(engine: Engine, factors: Sequence[Factor]) -> None:
    """What is fixed when data are made cannot differ between variants that share a folder."""
    fixed = {f"config.{name}" for name in engine.settings.CREATION}
    for factor in factors:
        if factor.name in fixed:
            raise UserError(
                f"`{factor.name}` is fixed in a folder, and varies in this study", "bring a dump instead"
            )


def _require_dump(engine: Engine, taking: Taking, dump: Dump, installation: Installation | None) -> None:
    writers = [one for one in registry.ENGINES.values() if one.taking and one.taking.writes(dump)]
    if writers and engine not in writers:
        raise UserError(
            f"{dump.path} is a dump of {writers[0].title}, and the study's engine is {engine.title}",
            "write the dump with the tool of the study's engine",
        )
    if not writers and not dump.is_text:
        raise UserError(
            f"{dump.path} is in no format that is known here",
            "a dump is SQL, as it is or packed with gzip, bzip2, xz or zstd, or an archive of pg_dump",
        )
    if installation is not None:
        try:
            taking.require_dump(installation, dump)
        except EngineMissing as missing:
            raise UserError(missing.message, missing.hint) from None


def catalogue(ask_engines: bool = True, allowed: Allowed = NOTHING_ALLOWED) -> Catalogue:
    """What a study may name here. With `ask_engines`, settings are checked against the engine where it is
    installed. Levels may lead to what is `allowed`."""
    return Catalogue(
        engines=frozenset(registry.ENGINES),
        choosing=Those(registry.ENGINES, lambda engine: engine.sessions_choose),
        workloads=workload_offers(_driver.workloads()),
        layers=LazyTable(LAYERS, lambda name: _factor_check(name, ask_engines, allowed)),
        beside=_beside_check(allowed) if ask_engines else None,
        metrics=frozenset(metrics.METRICS),
        knobs=LazyTable(KNOBS, lambda name: f"{KNOBS[name].effect}; levels: {KNOBS[name].levels}"),
        configure=_configure,
        # What a stored run may give up was decided when it began.
        gives_up=_gives_up if ask_engines else None,
        losing=lambda reference: registry.engine(reference.engine).settings.LOSING,
        fronts=frozenset(FRONTS),
        given=_given if ask_engines else None,
        # A stored run keeps its own.
        files=NamesFiles(files_of_workload, files_of_level) if ask_engines else None,
        # A stored study is read where its files may be gone.
        recorded=recording.about if ask_engines else None,
        networked=Those(registry.ENGINES, lambda engine: engine.network),
        ends_statements=Those(registry.ENGINES, lambda engine: engine.statement_timeout),
        sessions=Those(registry.ENGINES, lambda engine: engine.locks),
        each_writes=Those(registry.ENGINES, _writes_on_each),
    )


def _writes_on_each(engine: Engine) -> bool:
    """Whether a cluster of the kind that the engine has by default takes writes on all nodes."""
    return next((kind.EACH_WRITES for kind in engine.clusters.values()), False)


def _configure(name: str, folder: Path, reference: Reference) -> Configuration:
    engine = registry.engine(reference.engine)
    return require_settings(read_configuration(engine, installation_of(reference), name, folder))


def _gives_up(factor: str, level: Level, reference: Reference) -> Promise | None:
    return gives_up(factor, level, registry.engine(reference.engine))


def _factor_check(
    layer: str, ask_engines: bool, allowed: Allowed
) -> Callable[[Factor, Reference], list[Mistake]]:
    def check(factor: Factor, reference: Reference) -> list[Mistake]:
        if not ask_engines:
            return []
        try:
            engine = registry.engine(reference.engine)
        except UserError:
            # The reader reports an unknown engine itself.
            return []
        return LAYERS[layer].mistakes(factor, engine, installation_of(reference), allowed)

    return check


def _beside_check(allowed: Allowed) -> BesideCheck:
    def check(factor: Factor, beside: Mapping[str, Level], reference: Reference) -> list[Mistake]:
        engine, installation = registry.engine(reference.engine), installation_of(reference)
        return mistakes_beside(LAYERS[factor.layer], factor, beside, engine, installation, allowed)

    return check


def _given(data: GivenData, folder: Path, reference: Reference, factors: tuple[Factor, ...]) -> list[Mistake]:
    return given_mistakes(data, folder, installation_of(reference), reference, factors)


def unchecked_text(study: Study) -> str:
    """What could not be checked of the study's levels, and what allows it; empty where they were."""
    names = {*study.settings, *study.baseline}
    missing = (one for one in map(located, study.engines) if isinstance(one, DynoError))
    if (first := next(missing, None)) is None or not any(name.startswith("config.") for name in names):
        return ""
    return f"the levels of `config` were not checked, because {first.message}; {first.hint}"


def installation_of(reference: Reference) -> Installation | None:
    """The installation, where there is one: a study can be read where its engine is not."""
    found = located(reference)
    return found if isinstance(found, Installation) else None


@functools.cache
def located(reference: Reference) -> Installation | DynoError:
    """The installation, or why there is none."""
    try:
        return registry.locate(reference)
    except DynoError as missing:
        return missing


def study_at(
    path: Path,
    blocks: int | None = None,
    seed: int | None = None,
    allowed: Allowed = NOTHING_ALLOWED,
    names: Catalogue | None = None,
) -> Study:
    """The study in a file, with what the command line changes. Its levels may lead to what is `allowed`;
    `names` stands in the place of the catalogue that says so. Raises StudyError with every mistake in it."""
    study = changed(read_study(path, names or catalogue(allowed=allowed)), blocks, seed)
    _require_vectors(study)
    if study.goal.counted:
        require_countable(study)
    return study


def changed(study: Study, blocks: int | None, seed: int | None, duration_s: float | None = None) -> Study:
    """The study with what is given in the place of its own."""
    given: dict[str, object] = {"blocks": blocks, "seed": seed}
    if duration_s is not None:
        given["workload"] = study.workload.but(duration_s=duration_s)
    return study.but(**{name: value for name, value in given.items() if value is not None})


def _require_vectors(study: Study) -> None:
    """Raises UserError where any variant searches vectors that cannot be had, before anything is touched."""
    if study.workload.name != VECTOR_SEARCH:
        return
    # Here, because no other workload has a use for numpy.
    from dbdyno.datasets.vectors import require_vectors

    knobs = [factor.name for factor in study.factors if factor.layer == "workload"]
    variants = extremes_of(study)
    for levels in {tuple(variant.levels[name] for name in knobs) for variant in variants}:
        varied = {name.removeprefix("workload."): level for name, level in zip(knobs, levels, strict=True)}
        require_vectors({**study.workload.options, **varied}, study.folder)


@dataclass(frozen=True)
class Needed:
    """An engine that is not here; with an `architecture`, its packages of that one."""

    reference: Reference
    architecture: str = ""

    @property
    def words(self) -> str:
        """As `dyno engines fetch` takes it."""
        platform = f" --platform {self.architecture}" if self.architecture else ""
        return f"{self.reference.written}{platform}"


def needed_by(study: Study) -> Iterator[Needed]:
    """What is missing, in the order of the study. A path and a URL are where they are, or are not."""
    fixed = study.settings.get(PLATFORM_FACTOR)
    varied = next((factor.levels for factor in study.factors if factor.name == PLATFORM_FACTOR), ())
    levels = varied or ((fixed,) if fixed is not None else ())
    for reference in study.engines:
        if reference.path:
            continue
        if not levels and not isinstance(located(reference), Installation):
            yield Needed(reference)
        for architecture in map(level_text, levels):
            if not _there(reference, architecture):
                yield Needed(reference, architecture)


def _there(reference: Reference, architecture: str) -> bool:
    try:
        registry.platforms(registry.engine(reference.engine)).locate(reference.version, architecture)
    except DynoError:
        return False
    return True


def fetched_for(study: Study, mirror: str, tell: Tell) -> list[Installation]:
    """Fetches all that is missing, and returns it. Raises UserError where something cannot be had."""
    missing = list(needed_by(study))
    for one in missing:
        tell(f"needed and not here: {one.words}")
    found = []
    for one in missing:
        engine, version = registry.engine(one.reference.engine), one.reference.version
        if one.architecture:
            found.append(registry.platforms(engine).fetch(version, one.architecture, mirror, tell))
        else:
            found.append(engine.obtaining.fetch(version, mirror, tell))
    located.cache_clear()
    return found


def engine_of(study: Study, levels: Mapping[str, Level]) -> Engine:
    """The engine that a variant with these levels runs on."""
    return registry.engine(study.engine_of(levels).engine)


def on_engines(study: Study) -> dict[str, OnEngine]:
    """By the level of the factor `engine`, what a trial at it runs on; empty where engines are no factor.
    Raises the error of an installation that is not here."""
    if len(study.engines) < 2:
        return {}
    return {one.written: OnEngine(registry.engine(one.engine), _here(one)) for one in study.engines}


def others_of(study: Study) -> dict[str, Installation]:
    """The installations beside the baseline's, by their levels. Raises like `on_engines`."""
    return {one.written: _here(one) for one in study.engines[1:]}


def _here(reference: Reference) -> Installation:
    found = located(reference)
    if isinstance(found, DynoError):
        raise found
    return found


def untaken_of(study: Study, variants: Iterable[Variant], allowed: Allowed) -> tuple[Refusal, ...]:
    """The variants that are blocked because their engine does not take levels which another engine of the
    study takes: a refusal for each of these levels. An engine that is not here is not asked."""
    refused: dict[tuple[str, str, str], list[str]] = {}
    for variant in variants if len(study.engines) > 1 else ():
        levels = {**study.settings, **variant.levels}
        found = located(study.engine_of(levels))
        installation = found if isinstance(found, Installation) else None
        whys = list(untaken(levels, LAYERS, engine_of(study, levels), installation, allowed))
        if not whys and study.upgraded and installation is not None:
            whys = list(filter(None, [_not_taken_over(study, levels, installation)]))
        for why in whys:
            hint = _for_all(study, why.factor) or why.hint
            refused.setdefault((why.factor, why.message, hint), []).append(variant.name)
    return tuple(
        Refusal(factor=factor, reason=reason, remedy=remedy, variants=tuple(names))
        for (factor, reason, remedy), names in refused.items()
    )


def _for_all(study: Study, factor: str) -> str:
    """What to do about a setting of all variants that one of their engines does not take; else empty. Its
    name is no slip of the pen, because another engine of the study takes it."""
    of_file = study.configuration
    if of_file is not None and study.settings.get(factor) == of_file.settings.get(factor):
        where = of_file.path
    else:
        where = "[settings]"
    every = f"take it out of {where}, or give it a level that each engine of the study takes"
    return every if factor in study.settings else ""


def _not_taken_over(study: Study, levels: Mapping[str, Level], installation: Installation) -> Blocked | None:
    first = located(study.engine)
    if not isinstance(first, Installation) or first.digest == installation.digest:
        return None
    engine, found = engine_of(study, levels), map(located, study.engines)
    here = [one for one in found if isinstance(one, Installation)]
    before = step_before(engine, installation, first, here)
    return not_taken_over(registry.engine(before.engine), before, engine, installation)


class OlderEngine(Frozen):
    """A level of the factor `engine` that is older than the first, whose data it was to take over."""

    levels: tuple[str, str]
    versions: tuple[str, str]
    title: str


def older_engines(study: Study) -> Iterator[OlderEngine]:
    """The levels that do not read the data of the study's first version, where they were to take them over;
    as far as they are here."""
    first = located(study.engine)
    if not study.upgraded or not isinstance(first, Installation):
        return
    engine = registry.engine(first.engine)
    for reference in study.engines[1:]:
        found = located(reference)
        if not isinstance(found, Installation) or found.engine != first.engine:
            continue
        if is_older(engine, found.version, first.version):
            yield OlderEngine(
                levels=(study.engine.written, reference.written),
                versions=(first.version, found.version),
                title=engine.title,
            )


class SameEngine(Frozen):
    """Two levels of the factor `engine` that are one server: the same bytes."""

    levels: tuple[str, str]
    origin: str
    digest: str


def same_engines(study: Study) -> Iterator[SameEngine]:
    """The levels that lead to the installation of an earlier one, as far as they are here."""
    seen: dict[tuple[str, str], Reference] = {}
    for reference in study.engines:
        found = located(reference)
        if isinstance(found, Installation):
            first = seen.setdefault((found.engine, found.digest), reference)
            if first is not reference:
                levels = (first.written, reference.written)
                yield SameEngine(levels=levels, origin=found.origin, digest=found.digest)


def with_losses(study: Study, run: Run) -> Run:
    """A run that says what its variants give up. An imported one cannot, because its logs tell no levels."""
    if run.given_up is not None or run.of_logs or run.searches:
        return run
    return run.but(given_up=losses_of(study))


def losses_of(study: Study) -> dict[str, tuple[Promise, ...]]:
    """What the variants of a study give up that its baseline keeps, by name, without those that keep all."""
    found = {variant.name: given_up_by(study, variant.levels) for variant in variants_of(study)}
    return {name: promises for name, promises in found.items() if promises}


def given_up_by(study: Study, levels: Mapping[str, Level]) -> tuple[Promise, ...]:
    """What levels on top of a study's baseline give up."""
    baseline = {**study.settings, **study.baseline}
    return given_up({**baseline, **levels}, baseline, engine_of(study, levels))


def between_setups(ours: Study, theirs: Study) -> tuple[Promise, ...]:
    """What the baseline of a study gives up that the one of another study keeps. Nothing is told of two
    engines."""
    if ours.engine.engine != theirs.engine.engine:
        return ()
    before = {**theirs.settings, **theirs.baseline}
    return given_up({**ours.settings, **ours.baseline}, before, registry.engine(ours.engine.engine))
