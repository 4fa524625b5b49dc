"""A run held against another one: measured again in turn with it, or found in the store, and against what
this host has measured before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from dbdyno.analyse import Analysis
from dbdyno.analyse.gate import (
    Gate,
    HeldAnalysis,
    PastRun,
    against_stored,
    log_mean,
    side_by_side,
    with_floor,
)
from dbdyno.engines import registry
from dbdyno.errors import DynoError, StudyError, UserError
from dbdyno.frozen import level_text
from dbdyno.host import cache
from dbdyno.host.cache import Tell, silently
from dbdyno.host.writers import NOTHING_ALLOWED, Allowed
from dbdyno.layers.source import key_in
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.source.tree import SourceTree, git_revision, repository_of
from dbdyno.prepare_run.adapted import arranged_in_turn, require_timed
from dbdyno.prepare_run.begun import Begun, new_run
from dbdyno.prepare_run.building import require_baseline_build
from dbdyno.prepare_run.checked import require_sound
from dbdyno.prepare_run.stored_run import analysed, analysis_of, tell_unknown
from dbdyno.prepare_run.stored_study import (
    measured_installation,
    require_measured,
    require_one_data,
    study_of,
)
from dbdyno.prepare_run.study_here import between_setups, catalogue, study_at
from dbdyno.records.circumstances import noise_of
from dbdyno.records.run import ComparisonRun, Run, of_kind
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import plural
from dbdyno.study import BASELINE, Study
from dbdyno.study.differences import OF_THE_LOAD, difference, meaning_of

SHARED_BY_TURNS = (
    "blocks", "seed", "mirrored", "created_unix_s", "dyno_version", "host", "calibrated", "arrangement",
    "slice_s",
)  # fmt: skip
"""Of a run, what the reference that takes turns with it has as well."""


def reference_of(
    store: Store, against: str | None, study: Study, run: Run, tell: Tell, allowed: Allowed = NOTHING_ALLOWED
) -> tuple[Begun | None, Study, Run]:
    """What is held against, a run or the study in a file, as it is measured in turn with this run, which then
    names it; None where the engine or the build of a run is no longer here. In the same slices where all
    servers can be up at once, else trials of both follow one another. Raises UserError where the two cannot
    be compared."""
    if against is None:
        return _reference_still(store, run), study, run
    if names_study(against):
        stored, asked, installation = _of_file(_file_of(against, study, tell), study, run, tell, allowed)
        measured = "is measured beside this run"
    else:
        stored = store.run(against)
        asked = study_of(stored)
        require_one_load(study, asked, against)
        try:
            installation = measured_installation(asked, stored)
            require_baseline_build(asked, store.records(stored.run), silently)
        except DynoError as error:
            tell(f"{against} is not measured again: {error.message}")
            return None, study, run.but(against=stored.run)
        measured = "is measured again"
    found = arranged_in_turn(study, asked)
    how = f"in turn with this run's: {found.why}" if found.why else "in the same slices as this run's"
    tell(f"{against} {measured}: {plural(run.blocks, 'trial')}, {how}")
    again = _measured_again(stored, run.but(arrangement=found.arrangement))
    run = run.but(reference=again.run, against=against, arrangement=found.arrangement)
    return Begun(study_of(again), again, installation), study.but(arrangement=found.arrangement), run


def names_study(against: str) -> bool:
    """Whether what is held against is the study in a file or in a commit: no run's name looks so."""
    return against.endswith(".toml") or against.startswith(PREFIX)


def _file_of(against: str, study: Study, tell: Tell) -> Path:
    if against.startswith(PREFIX):
        return study_in_commit(Path(study.path), against.removeprefix(PREFIX), tell)
    return Path(against)


PREFIX = "git:"
"""Before a revision, where a run or a file may be named as well: no run's name holds a colon."""
TREE = "tree"


def study_in_commit(path: Path, revision: str, tell: Tell) -> Path:
    """The file at the same place in a revision of the repository that holds it. The files of the commit are
    laid into the cache once, because the run goes on with them after a stop. Raises UserError where there is
    no repository, no such revision, or no such file in it."""
    repository = repository_of(path)
    source = git_revision(repository, revision)
    laid = cache.shelf("sources").once(f"commit-{source.digest[:24]}", partial(_lay, source=source), tell)
    place = path.resolve().relative_to(repository.resolve())
    found = laid / TREE / place
    if not found.is_file():
        raise UserError(
            f"{source.title} has no {place}, so there is nothing to hold against",
            "name a revision that has the study, or measure it without --against",
        )
    return found


def _lay(folder: Path, source: SourceTree) -> tuple[str, str]:
    source.lay(folder / TREE)
    return f"files of {source.title}", source.title


def _of_file(
    path: Path, study: Study, run: Run, tell: Tell, allowed: Allowed
) -> tuple[Run, Study, Installation]:
    """The baseline of the study in a file as a run that begins now, as far as it does not follow the other
    run. Raises StudyError with every mistake in the file."""
    names = replace(catalogue(allowed=allowed), lone=True)
    asked = study_at(path, study.blocks, run.seed, names=names)
    require_one_load(study, asked, str(path))
    for line in require_sound(asked, tell, allowed=allowed):
        tell(line)
    installation = registry.locate(asked.engine)
    asked = asked.but(arrangement=study.arrangement, slice_s=study.slice_s)
    return new_run(ComparisonRun, asked, installation, tell), asked, installation


def _reference_still(store: Store, run: Run) -> Begun | None:
    """The reference that took turns with a run that goes on, with as many blocks as that has now; None where
    there is none, or where the two were cut short in different blocks. Raises UserError where its engine is
    gone."""
    if not run.took_turns_with:
        return None
    stored = store.run(run.took_turns_with)
    ours, theirs = (
        {record.block for record in store.records(one.run) if record.whole and record.variant == BASELINE}
        for one in (run, stored)
    )
    if ours != theirs:
        return None
    again = stored.but(blocks=run.blocks, sequential=run.sequential, looks_planned=run.looks_planned)
    asked = study_of(again)
    return Begun(asked, again, measured_installation(asked, again))


def require_one_load(study: Study, reference: Study, against: str) -> None:
    """Raises UserError where two studies cannot be held against each other."""
    require_timed(reference, "--against")
    same = study.workload == reference.workload and study.goal.response == reference.goal.response
    if not same:
        raise UserError(
            f"{against} measured another load or response",
            "a gate needs one [workload] and one response on both sides; engine and settings may differ",
        )
    if found := difference(reference.files, study.files, OF_THE_LOAD):
        raise UserError(
            f"{against} ran other statements: {found}",
            "a gate needs one load on both sides: put the file back, or measure a new baseline",
        )


KEEPS_NOT: dict[str, object] = {
    "reference": None,
    "against": "",
    "sequential": False,
    "looks_planned": False,
    "budget_s": None,
}
"""What a run that is measured again has not from the stored one, because the other run decides it."""


def _measured_again(stored: Run, run: Run) -> ComparisonRun:
    """The run that measures a stored one again, in turn with `run`."""
    shared = {name: getattr(run, name) for name in SHARED_BY_TURNS}
    return of_kind(ComparisonRun, stored, run=f"reference-{run.run}", **{**KEEPS_NOT, **shared})


HISTORY_MOST = 200
"""Runs of the past that are looked at, the latest first."""

BUILT = frozenset(("build", "source"))
"""Layers whose levels name what an engine is built from. What was built, the records tell."""


def nothing() -> None:
    """What is done between two runs that are read, where nobody has to give way."""


def gate_of(
    store: Store,
    run: Run,
    against: str,
    tell: Tell,
    between: Callable[[], None] = nothing,
    history: bool = True,
) -> Gate:
    """A run of the store held against the one that is named so. `between` is called before each run of the
    past is read; without `history` none is, where two took turns. Raises UserError where the two measured
    something else."""
    beside = run.took_turns_with
    reference = store.run(against)
    again = store.run(beside) if beside else None
    # A baseline's name stands for the stored run; what took turns is that run's setup, measured again.
    if again is not None and setup_of(store, again) == setup_of(store, reference):
        reference = again
    for each in (run, reference):
        require_measured(each)
    if run.run == reference.run:
        raise UserError("a run cannot be held against itself", "name two runs; see: dyno runs")
    ours, theirs = analysis_of(store, run), analysis_of(store, reference)
    require_one_load(ours.study, theirs.study, against)
    require_one_data(reference, run)
    tell_unknown((run, reference), tell)
    setup, in_turn = setup_of(store, reference), again is not None and reference.run == again.run
    past = list(_past(store, run, between)) if history or not in_turn else []
    if in_turn:
        made = side_by_side(against, ours, theirs, _earlier_turns(store, run, between) if history else ())
    else:
        known = [one for one in past if one.run != run.run]
        made = against_stored(against, ours, theirs, setup, known)
    lost = between_setups(ours.study, theirs.study)
    made = made.but(result=made.result.but(gives_up=lost))
    return with_floor(made, setup, [one for one in past if one.run not in (run.run, beside)])


def held_gate(
    store: Store, run: Run, between: Callable[[], None] = nothing, history: bool = True
) -> Gate | None:
    """What a run found that was begun to be held against another one; None for others, and where that one is
    gone. Without its `history` nothing is known of this host's noise, as long as the two took turns."""
    if not run.held:
        return None
    try:
        found = gate_of(store, run, run.took_turns_with or run.held_against, silently, between, history)
    except UserError:
        return None
    return found.but(against=run.held_against) if run.held_against else found


def with_gate(store: Store, analysis: Analysis, between: Callable[[], None] = nothing) -> Analysis:
    """The analysis, which its gate comes before where its run was held against another."""
    found = held_gate(store, analysis.run, between)
    return analysis if found is None else before(found, analysis)


def before(found: Gate, analysis: Analysis) -> HeldAnalysis:
    """The analysis of a run with its gate. Its trials may be read only while they are told."""
    return HeldAnalysis.model_construct(**dict(analysis), gate=found)


def setup_of(store: Store, run: Run) -> str:
    """A digest of what a run's baseline variant was: engine, build, levels and load."""
    # How the host was arranged is no part of it, because a reference takes over what its run has.
    study = study_of(run.but(calibrated=None))
    levels = {name: level_text(level) for name, level in {**study.settings, **study.baseline}.items()}
    load = study.workload.model_dump(mode="json", exclude={"run_options"})
    build = _build_of(store, run) if {name.partition(".")[0] for name in levels} & BUILT else ""
    files = meaning_of(study.files, OF_THE_LOAD)
    told = [study.engine.engine, run.installation.digest or None, build, levels, load, files]
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _build_of(store: Store, run: Run) -> str:
    """The key of the build that a run's baseline ran with; empty where its records tell of none."""
    baseline = (record for record in store.records(run.run) if record.variant == BASELINE)
    return next((key for record in baseline if (key := key_in(record.evidence))), "")


def _history(store: Store, run: Run) -> Iterator[Run]:
    """The finished runs that this host made with the same engine, load, number of blocks and Dyno."""
    study = study_of(run)
    alike = noise_of(run)
    for summary in store.runs()[:HISTORY_MOST]:
        other = summary.run
        if not summary.finished or not other.in_blocks or noise_of(other) != alike:
            continue
        try:
            asked = study_of(other)
        except StudyError:
            # A run of an engine or a workload that this Dyno does not know.
            continue
        same_load = meaning_of(asked.files, OF_THE_LOAD) == meaning_of(study.files, OF_THE_LOAD)
        if same_load and (asked.engine.engine, asked.workload) == (study.engine.engine, study.workload):
            yield other


def _past(store: Store, run: Run, between: Callable[[], None]) -> Iterator[PastRun]:
    for other in _history(store, run):
        between()
        analysis = analysed(study_of(other), other, store.readable_records(other.run))
        value, response = log_mean(analysis), analysis.baseline.response
        # A run that lost blocks wanders further than the others.
        if value is not None and response is not None and response.trials == other.blocks:
            yield PastRun(
                run=other.run, setup=setup_of(store, other), began_unix_s=other.created_unix_s, log_mean=value
            )


def _earlier_turns(
    store: Store, run: Run, between: Callable[[], None]
) -> Iterator[tuple[Analysis, Analysis]]:
    """The runs of one setup that took turns before."""
    history = {other.run: other for other in _history(store, run)}
    for other in history.values():
        reference = history.get(other.took_turns_with or "")
        if (
            other.run != run.run
            and reference is not None
            and (setup_of(store, other) == setup_of(store, reference))
        ):
            between()
            yield analysis_of(store, other), analysis_of(store, reference)
