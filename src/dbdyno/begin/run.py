"""`dyno run`: from a question and what the command line says of it to a run that has begun."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.begin.adapted import adapted, seed_of
from dbdyno.begin.arrangement import room_bytes
from dbdyno.begin.begun import Begun, new_run
from dbdyno.begin.budget import budget_text
from dbdyno.begin.building import builds_of
from dbdyno.begin.catalogue import catalogue
from dbdyno.begin.checked import require_sound
from dbdyno.begin.counted import counting_text
from dbdyno.begin.estimate import Estimate, counted_s, estimate
from dbdyno.begin.load_host import require_load_host
from dbdyno.begin.naming import name_of_run
from dbdyno.begin.reference import reference_of
from dbdyno.begin.registered import registered_as
from dbdyno.begin.running import in_use_of, require_allowed, require_started
from dbdyno.begin.stored_study import measured_installation, study_of
from dbdyno.begin.study_file import study_at
from dbdyno.engines import registry
from dbdyno.errors import UserError
from dbdyno.host.allowed import NOTHING_ALLOWED, Allowed
from dbdyno.host.cache import Tell
from dbdyno.obtain.source.build import Foreseen
from dbdyno.plan.blocks import require_few_enough
from dbdyno.records.run import ComparisonRun, Run, SearchRun
from dbdyno.records.store import Store
from dbdyno.study import Study, excludes
from dbdyno.study.nouns import PLATFORM_FACTOR

SEQUENTIAL_BLOCKS = 50
"""How far a run goes on that stops by itself, when a variant cannot be decided."""


@dataclass(frozen=True)
class RunOptions:
    """What a user may say of a run: of a study at `path`, of a stored run that is carried out `again`, or of
    one that goes on (`resume`). `fleet` names hosts, in the user's words."""

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
    allowed: Allowed = NOTHING_ALLOWED

    @property
    def blocks_most(self) -> int | None:
        """As many blocks as were named, or as a run has at most that stops by itself."""
        return self.blocks or (SEQUENTIAL_BLOCKS if self.until else None)


@dataclass(frozen=True)
class Beginning:
    """A run that is to be carried out, the reference that takes turns with it, the builds that both need,
    and how long all of it will take."""

    begun: Begun
    reference: Begun | None
    builds: tuple[Foreseen, ...]
    expected: Estimate


def begin(store: Store, options: RunOptions, tell: Tell) -> Beginning:
    """A run that begins, or that goes on, before any of its trials. Raises UserError where the options do not
    go with the study, StudyError with all its mistakes, and DriverFailed where its load host is not ready."""
    known: tuple[Foreseen, ...] | None = None
    if options.resume is not None:
        found = _go_on(options.resume, options)
    else:
        found, known = _new(store, options, tell)
    require_load_host(found.study)
    require_allowed(found.study, options.allowed)
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
        return Beginning(begun, reference, (), Estimate(run.budget_s, 0))
    if reference is not None:
        builds = builds_of(study, reference.study)
    else:
        builds = builds_of(study) if known is None else known
    again = study.blocks if reference else 0
    expected = estimate(store, study, again, sum(build.whole_s for build in builds))
    return Beginning(begun, reference, builds, expected)


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
            in_use=in_use_of(study),
        )
    run = run.but(calibrated=here.calibrated, registered=registered_as(store, run))
    if run.registered is not None:
        tell(f"registered as entry {run.registered.number} of {store.place}")
    return Begun(study, run, installation), builds


def _require_untimed(study: Study, options: RunOptions) -> None:
    """Raises UserError for an option on blocks or on speed where the study is one of platforms."""
    excludes.require(
        {PLATFORM_FACTOR: study.of_platforms},
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
        # Here, because most runs are of a file.
        from dbdyno.begin.again import study_again

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
    from dbdyno.begin import space

    space.require_space(begun.study, begun.run.budget_s)
