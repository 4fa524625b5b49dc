"""A comparison, which `dyno run` carries out: from a question and what the command line says of it to a
run that has begun; a stored study laid out to be carried out again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.datasets import SET_FILE
from dbdyno.engines import registry
from dbdyno.errors import DynoError, Mistake, StudyError, UserError, remedy
from dbdyno.host import paths
from dbdyno.host.cache import Tell, silently
from dbdyno.host.writers import NOTHING_ALLOWED, Allowed
from dbdyno.kinds.held_against import reference_of
from dbdyno.kinds.kind import Beginning, KindOfRun, no_memory
from dbdyno.obtain.source.build import Foreseen
from dbdyno.plan import blocks, budget, restarts, sequential
from dbdyno.plan.blocks import require_few_enough
from dbdyno.prepare_run.adapted import adapted, budget_text, room_bytes, seed_of
from dbdyno.prepare_run.begun import Begun, name_of_run, new_run, registered_as
from dbdyno.prepare_run.building import builds_lines, builds_of, counting_text
from dbdyno.prepare_run.checked import require_sound, require_statements
from dbdyno.prepare_run.estimate import counted_s, header_of_run, require_load_host, run_estimate
from dbdyno.prepare_run.running import in_use_of, require_moves_allowed, require_started
from dbdyno.prepare_run.stored_study import asked_of, measured_installation, require_measured, study_of
from dbdyno.prepare_run.study_here import catalogue, study_at
from dbdyno.records.run import ComparisonRun, Run, SearchRun
from dbdyno.records.store import Store
from dbdyno.study import Study, excludes
from dbdyno.study.designs import trials_in_all
from dbdyno.study.files import FileKind, StudyFile, digest_of_file
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.user_data.folder import digest_of_path

if TYPE_CHECKING:
    from dbdyno.plan import Ask
    from dbdyno.plan.search.ask import Memory
    from dbdyno.plan.sequential import Told

SEQUENTIAL_BLOCKS = 50
"""How far a run goes on that stops by itself, when a variant cannot be decided."""


@dataclass(frozen=True)
class RunOptions:
    """What a user may say of a run: of a study at `path`, of a stored run that is carried out `again`, or of
    one that goes on (`resume`). `fleet` names hosts, or what starts workers on so many `hosts`, in the
    user's words."""

    path: Path | None = None
    again: str | None = None
    resume: Run | None = None
    add_blocks: int | None = None
    blocks: int | None = None
    until: str | None = None
    budget_s: float | None = None
    seed: int | None = None
    against: str | None = None
    calibration: bool = True
    fleet: str | None = None
    hosts: int | None = None
    allowed: Allowed = NOTHING_ALLOWED

    @property
    def blocks_most(self) -> int | None:
        """As many blocks as were named, or as a run has at most that stops by itself."""
        return self.blocks or (SEQUENTIAL_BLOCKS if self.until else None)


class Comparing(KindOfRun):
    """A comparison of variants in blocks, which may stop by its verdicts or have a budget, with restarts
    before its blocks and counted work after them."""

    def require(self, begun: Begun, tell: Tell, allowed: Allowed) -> None:
        require_statements(begun.study, tell, allowed)

    def ask(self, run: Any, memory: Memory = no_memory, decided: Told | None = None) -> Ask:
        asked = partial(sequential.ask, memory=sequential.SequentialMemory(tell=decided))
        timed = asked if run.sequential else blocks.ask if run.budget_s is None else budget.ask
        return partial(restarts.then_in_blocks, partial(restarts.then_counted, timed))


COMPARISON = Comparing()


def begin(store: Store, options: RunOptions, tell: Tell) -> Beginning:
    """A run that begins, or that goes on, before any of its trials. Raises UserError where the options do not
    go with the study, StudyError with all its mistakes, and DriverFailed where its load host is not ready."""
    known: tuple[Foreseen, ...] | None = None
    if options.resume is not None:
        found = _go_on(options.resume, options)
    else:
        found, known = _new(store, options, tell)
    require_load_host(found.study)
    require_moves_allowed(found.study, options.allowed)
    if options.against is not None:
        require_started(found.study)
    _require_sound_search(found, options)
    run = found.run.but(sequential=found.run.sequential or options.until is not None)
    if options.until is not None and options.resume is None:
        # Nobody has looked at it yet, and its most blocks are known.
        run = run.but(looks_planned=True)
    against = options.against
    reference, study, run = reference_of(store, against, found.study, run, tell, options.allowed)
    begun = Begun(study, run, found.installation)
    if isinstance(run, SearchRun):
        # Here, because most runs search nothing.
        from dbdyno.kinds.search import header_of_search

        of_search = partial(header_of_search, study, run)
        return Beginning(begun, run.budget_s, run.budget_s, lambda *now: [of_search(*now)])
    if reference is not None:
        builds = builds_of(study, reference.study)
    else:
        builds = builds_of(study) if known is None else known
    again = study.blocks if reference else 0
    expected = run_estimate(store, study, again, sum(build.whole_s for build in builds))

    def lines(kept: int, now_unix_s: float) -> Sequence[str]:
        return [*builds_lines(builds), header_of_run(study, run, expected, kept, now_unix_s)]

    trials = trials_in_all(study) + again
    reopens = options.add_blocks is not None
    trials_s = 0.0 if expected.unknown else expected.trials_s
    return Beginning(begun, trials_s, expected.whole_s, lines, trials, reference, builds, reopens=reopens)


def _new(store: Store, options: RunOptions, tell: Tell) -> tuple[Begun, tuple[Foreseen, ...]]:
    """A new run of the study that was asked for, and the builds that it needs."""
    name = name_of_run() if options.again is not None else ""
    read = _asked(store, options, name, tell)
    builds = builds_of(read)
    for line in require_sound(read, tell, builds, allowed=options.allowed):
        tell(line)
    _require_untimed(read, options)
    budget_s = options.budget_s
    here = adapted(read, budget_s, options.calibration, store)
    study = here.study.but(seed=seed_of(here.study))
    require_few_enough(study)
    installation = registry.locate(study.engine)
    fit = budget_text(study, here.basis) if here.basis is not None else ""
    for line in filter(None, (here.told, counting_text(here.counting, counted_s(study)), fit)):
        tell(line)
    begins = (study, installation, tell, name)
    if study.search is not None:
        run: Run = new_run(
            SearchRun, *begins, budget_s=budget_s or study.search.time_s, room_bytes=room_bytes()
        )
    else:
        duration_s = None if budget_s is None else study.workload.duration_s
        run = new_run(
            ComparisonRun,
            *begins,
            duration_s=duration_s,
            budget_s=budget_s,
            counting=here.counting,
            baselines=study.baselines if read.baselines is None else None,
            in_use=in_use_of(study),
        )
    run = run.but(calibrated=here.calibrated, registered=registered_as(store, run))
    if run.registered is not None:
        tell(f"registered as entry {run.registered.number} of {store.place}")
    return Begun(study, run, installation), builds


def _require_untimed(study: Study, options: RunOptions) -> None:
    """Raises UserError for an option on blocks or on speed where the study is one of platforms."""
    excludes.require(
        {
            PLATFORM_FACTOR: study.untimed,
            "goal.promise": bool(study.goal.promise),
            "[[meanwhile]]": bool(study.meanwhile),
        },
        blocks=options.blocks,
        until=options.until,
        budget=options.budget_s,
        against=options.against,
    )


def _asked(store: Store, options: RunOptions, name: str, tell: Tell) -> Study:
    """The study in a file, or that of a stored run as the run `name` carries it out again, with what the
    command line changes. A stored run is carried out with as many blocks as it had. Raises UserError where
    there is nothing to compare: without factors a study can be held against another run alone."""
    if options.again is not None and options.path is not None:
        told = "--again takes the study that the run kept, and not a file"
        raise UserError(told, f"leave {options.path} out")
    if options.again is not None:
        kept = store.run(options.again)
        blocks = options.blocks_most or kept.blocks
        study = study_again(kept, name, blocks, options.seed, options.allowed)
        tell(f"run {kept.run} again, from its files in {study.folder}")
    elif options.path is not None:
        names = replace(catalogue(allowed=options.allowed), lone=options.against is not None)
        study = study_at(options.path, options.blocks_most, options.seed, names=names)
    else:
        raise UserError("no study was named", "dyno run STUDY, dyno demo, or dyno run --resume")
    compares = study.factors or study.aa or study.search is not None
    if not compares and options.against is None:
        told = f"{study.path} compares nothing: it has no factors"
        raise UserError(told, f"dyno soak {study.path} soaks it")
    return study


def _go_on(run: Run, options: RunOptions) -> Begun:
    """A stored run, which has more blocks where some are added."""
    installation = measured_installation(study_of(run), run)
    if options.add_blocks is not None:
        run = _extended(run, options.add_blocks)
    return Begun(study_of(run), run, installation)


def _extended(run: Run, add_blocks: int) -> Run:
    """The run with more blocks. Its intervals hold at every look from now on, because somebody looked at the
    answer before asking for more."""
    longer = run.but(blocks=run.blocks + add_blocks, sequential=True, looks_planned=False)
    require_few_enough(study_of(longer))
    return longer


def _require_sound_search(begun: Begun, options: RunOptions) -> None:
    """Raises UserError for an option that a search has no use for, because it has its own end and its own
    verdict, and for a search that cannot come to one."""
    if not isinstance(begun.run, SearchRun):
        return
    excludes.require(
        {excludes.SEARCH: True},
        until=options.until,
        against=options.against,
        add_blocks=options.add_blocks,
    )
    # Here, because most runs search nothing.
    from dbdyno.kinds.search import require_space

    require_space(begun.study, begun.run.budget_s)


ORIGIN = "source.origin"
DEBIAN = "debian"


def study_again(run: Run, name: str, blocks: int | None, seed: int | None, allowed: Allowed) -> Study:
    """The study of a stored run, read from a folder of the new run `name` that holds all that was kept, with
    what the command line changes.

    What was too large to be kept, and what the study names by an absolute path, is looked for at its place.
    Raises StudyError with all that is missing there or is another file now, and UserError for a run that no
    `dyno run` carried out.
    """
    require_measured(run)
    if not run.compares:
        told = f"run {run.run} is {run.words}, which is not carried out again"
        raise UserError(told, f"dyno report {run.run} shows it")
    asked = asked_of(run)
    if run.files is None and asked.names_files:
        raise UserError(
            f"run {run.run} was made by a Dyno that kept no files, and its study names some",
            f"carry out the study itself: dyno run {run.study_path}",
        )
    files = run.files or ()
    if missing := [*_missing(files), *_missing_data(run)]:
        raise StudyError(f"run {run.run}", missing)
    folder = _folder(run, files, paths.data() / "again" / name)
    study = folder / Path(run.study_path).name
    try:
        _write(study, run.study_text)
        for file in files:
            _lay_out(file, folder)
        for path in (*_origins(asked), *_data_of(asked)):
            _link(folder / path, Path(run.study_folder, path))
    except OSError as error:
        raise DynoError(f"cannot write {folder}: {error.strerror}", remedy(error)) from None
    kept = run.configuration
    names = catalogue(allowed=allowed)
    names = replace(names, configure=(lambda *_: kept) if kept else names.configure)
    return study_at(study, blocks, seed, names=names)


def _missing(files: tuple[StudyFile, ...]) -> Iterator[Mistake]:
    """What of the files that are not laid out is not there, or is another file now."""
    for file in files:
        if file.text is not None and not Path(file.path).is_absolute():
            if file.digest != hashlib.sha256(file.text.encode()).hexdigest():
                told = f"the password in {file.path} was not kept"
                yield Mistake(0, told, f"carry out the study itself: it was {file.place}")
            continue
        why = (
            "an absolute path names it"
            if file.text is not None
            else "it was too large to be kept, or no text"
        )
        try:
            there = digest_of_file(Path(file.place))
        except OSError as error:
            told = f"{file.place} cannot be read: {error.strerror}"
        else:
            told = f"{file.place} is another file now" if there != file.digest else ""
        if told:
            hint = f"{why}: put the one with sha256 {file.digest} there"
            yield Mistake(0, told, hint)


def _missing_data(run: Run) -> Iterator[Mistake]:
    """What of the data that the study brought is not there, or holds something else now."""
    for data in run.data:
        place = Path(data.path)
        if not place.exists():
            told = f"there is no {place}"
        elif digest_of_path(place, silently) != data.sha256:
            told = f"{place} holds other data now"
        else:
            continue
        yield Mistake(0, told, f"a run keeps no data: put those with sha256 {data.sha256} there")


def _data_of(study: Study) -> Iterator[str]:
    """The data that a study names from its own folder."""
    named = (*study.data.dump, study.data.folder) if study.data is not None else ()
    yield from (path for path in named if path and not Path(path).expanduser().is_absolute())


def _folder(run: Run, files: tuple[StudyFile, ...], root: Path) -> Path:
    """Where the study is laid out: so deep below the root that no path of a file leads out of that."""
    relative = [os.path.normpath(file.path) for file in files if not Path(file.path).is_absolute()]
    up = max((Path(path).parts.count("..") for path in relative), default=0)
    above = [part for part in Path(run.study_folder).parts if part not in ("/", "..")]
    names = [*["above"] * up, *above][-up:] if up else []
    return root.joinpath(*names)


def _lay_out(file: StudyFile, folder: Path) -> None:
    if Path(file.path).is_absolute():
        return
    target, place = Path(os.path.normpath(folder / file.path)), Path(file.place)
    if file.text is not None:
        _write(target, file.text)
    elif file.kind is FileKind.VECTORS and place.name == SET_FILE:
        # A set of vectors is a folder.
        _link(target.parent, place.parent)
    else:
        _link(target, place)


def _origins(study: Study) -> Iterator[str]:
    """The folders of sources that a study names from its own folder."""
    varied = [level for factor in study.factors if factor.name == ORIGIN for level in factor.levels]
    for level in map(str, [*varied, *filter(None, [study.settings.get(ORIGIN)])]):
        if level.partition(":")[0] != DEBIAN and not Path(level).expanduser().is_absolute():
            yield level


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with paths.made_whole(path) as making:
        making.write_bytes(text.encode())


def _link(path: Path, place: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # A link of an earlier layout may lead nowhere by now.
    if not path.exists():
        with paths.made_whole(path) as making:
            making.symlink_to(place)
