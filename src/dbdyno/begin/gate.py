"""A run of the store held against another one, and against what this host has measured before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256

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
from dbdyno.begin.begun import between_setups
from dbdyno.begin.reference import require_one_load
from dbdyno.begin.stored_run import analysed, analysis_of, tell_unknown
from dbdyno.begin.stored_study import require_measured, require_one_data, study_of
from dbdyno.errors import StudyError, UserError
from dbdyno.frozen import level_text
from dbdyno.host.cache import Tell, silently
from dbdyno.layers.source import key_in
from dbdyno.records.circumstances import noise_of
from dbdyno.records.run import Run
from dbdyno.records.store import Store
from dbdyno.study import BASELINE
from dbdyno.study.differences import OF_THE_LOAD, meaning_of

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
