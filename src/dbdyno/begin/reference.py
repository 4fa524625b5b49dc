"""The run that a new one is held against, measured again in turn with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dbdyno.begin.adapted import require_timed
from dbdyno.begin.arrangement import arranged_in_turn
from dbdyno.begin.begun import PREFIX, Begun, new_run, study_in_commit
from dbdyno.begin.building import require_baseline_build
from dbdyno.begin.catalogue import catalogue
from dbdyno.begin.checked import require_sound
from dbdyno.begin.stored_study import measured_installation, study_of
from dbdyno.begin.study_file import study_at
from dbdyno.engines import registry
from dbdyno.errors import DynoError, UserError
from dbdyno.host.cache import Tell, silently
from dbdyno.host.writers import NOTHING_ALLOWED, Allowed
from dbdyno.obtain.installation import Installation
from dbdyno.records.run import ComparisonRun, Run, of_kind
from dbdyno.records.store import Store
from dbdyno.report.words.numbers import plural
from dbdyno.study import BASELINE, Study
from dbdyno.study.differences import OF_THE_LOAD, difference

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
