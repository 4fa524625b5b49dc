"""A run that has begun: a study, the run that keeps it, and the engine that is measured.

Commits that a run has to do with: the one whose study it is held against, and that of its source.

What the variants of a run give up by the levels that they change, as layers know it.

A run that begins: the name that it gets, and the name and note of its user's.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno import __version__
from dbdyno.applications.registry import installed
from dbdyno.begin.adapted import seed_of
from dbdyno.begin.building import make_builds, wishes_of
from dbdyno.begin.counted import why_counted
from dbdyno.begin.engines import engine_of, on_engines, others_of
from dbdyno.begin.given import data_of
from dbdyno.begin.registered import began, question_asked
from dbdyno.begin.running import require_started
from dbdyno.begin.stored_study import application_of, installed_of
from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.host import cache
from dbdyno.host.cache import Tell
from dbdyno.host.fingerprint import core_count, fingerprint
from dbdyno.host.journal import open_journal
from dbdyno.layers.registry import LAYERS, given_up
from dbdyno.obtain.source.commands import uncommitted
from dbdyno.obtain.source.tree import Source, commit_of, committed_unix_s, git_revision, repository_of
from dbdyno.obtain.source.wish import DEBIAN, NONE, BuildWish
from dbdyno.plan.search.dropping import can_drop, hopeless
from dbdyno.records.run import Run, SourceCommit
from dbdyno.records.store import Store
from dbdyno.run import run_trial
from dbdyno.study import Design, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.space import Promise
from dbdyno.trial.bench import Bench, nobody

if TYPE_CHECKING:
    from dbdyno.engines.built import Instrumented, Train
    from dbdyno.host.callgrind import Callgrind
    from dbdyno.host.journal import Journal
    from dbdyno.host.writers import Allowed
    from dbdyno.obtain.installation import Installation
    from dbdyno.records.run import OfKind


def name_of_run() -> str:
    """A name for a run that begins now: the local time, and digits that tell it from others of that
    second."""
    return f"{time.strftime('%y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def require_free(store: Store, name: str | None) -> None:
    """Raises UserError for a name that the run cannot have, before anything is measured."""
    if name is not None:
        store.require_free(name)


def keep(store: Store, run: Run, name: str | None, note: str) -> None:
    """Keeps a run before its first trial, with its user's name and note where there are some."""
    store.add_run(run, began(run))
    if name is not None:
        store.name_run(run.run, name)
    if note:
        store.note_run(run.run, note)


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


def _lay(folder: Path, source: Source) -> tuple[str, str]:
    source.lay(folder / TREE)
    return f"files of {source.title}", source.title


def commit_of_source(study: Study) -> SourceCommit | None:
    """The commit of the last variant whose source a git repository of this machine holds; None where there is
    none."""
    found = (_commit_of(wish, study.folder) for wish in reversed(wishes_of(study)))
    return next(filter(None, found), None)


def _commit_of(wish: BuildWish, folder: Path) -> SourceCommit | None:
    if wish.origin.startswith(DEBIAN):
        return None
    place = folder / Path(wish.origin).expanduser()
    try:
        repository = repository_of(place / NONE)
        commit = commit_of(repository, "HEAD" if wish.revision == NONE else wish.revision)
        changed = uncommitted(repository) if wish.revision == NONE else 0
        committed_s = committed_unix_s(repository, commit)
    except UserError:
        # A folder that git does not know is built as it is, and has no commit.
        return None
    return SourceCommit(
        repository=str(repository), hash=commit, committed_unix_s=committed_s, changed=changed
    )


@dataclass(frozen=True)
class Begun:
    """A study, its run, and the engine that it measures."""

    study: Study
    run: Run
    installation: Installation


def new_run(
    kind: type[OfKind], study: Study, installation: Installation, tell: Tell, name: str = "", **own: Any
) -> OfKind:
    """A run of a study that begins now on this host, with what its kind has of its own. Raises UserError for
    vectors and for an application that cannot be had, which would end every trial of it, and for a server
    that runs already where nothing is known of it."""
    if "in_use" not in own:
        require_started(study)
    application = application_of(study)
    if study.workload.name == VECTOR_SEARCH:
        # Here, because other workloads need no vectors.
        from dbdyno.datasets.vectors import with_vector_set

        with_vector_set(study.workload.name, study.workload.options, study.folder, tell)
    data = data_of(study, tell)
    return kind(
        run=name or name_of_run(),
        study_path=study.path,
        study_text=study.text,
        study_digest=study.digest,
        study_folder=str(study.folder),
        files=study.files,
        configuration=study.configuration,
        seed=seed_of(study),
        mirrored=True,
        blocks=study.blocks,
        created_unix_s=time.time(),
        dyno_version=__version__,
        host=fingerprint(),
        installation=installed_of(installation, application),
        arrangement=study.arrangement,
        slice_s=study.slice_s,
        data=data,
        commit=commit_of_source(study),
        question=question_asked(study, data),
        engines={level: installed_of(other) for level, other in others_of(study).items()},
        given_up=None if study.design is Design.SEARCH else losses_of(study),
        **own,
    )


def make_builds_of(begun: Begun, reference: Begun | None, store: Store, allowed: Allowed, tell: Tell) -> None:
    """Makes the builds of both sides before the first trial, so that no compiler disturbs one, and has each
    pass the correctness gate. Raises UserError where the run was begun with others, and BaselineFailed where
    that of a baseline does not pass."""
    with open_journal() as journal:
        for side in filter(None, (begun, reference)):
            wishes = wishes_of(side.study, of_reference=side is reference)
            if not wishes:
                continue
            # Here and below, because most studies make no builds.
            from dbdyno.build_check import pass_gate

            bench = replace(bench_of(side, journal, None, allowed), tell=tell)
            make_builds(
                side.study,
                wishes,
                training_on(bench, tell),
                tell,
                partial(store.records, side.run.run),
                partial(pass_gate, bench, tell),
            )


def training_on(bench: Bench, tell: Tell) -> Train:
    """Trains engines by trials on a bench, which no run keeps."""

    def train(instrumented: Instrumented) -> int:
        tell(f"training a build by {instrumented.trainer.words}")
        from dbdyno.trial import training

        record = run_trial(training.TRAINING, training.bench_of(bench, instrumented))
        return training.transactions_of(record, instrumented.trainer)

    return train


def bench_of(begun: Begun, journal: Journal, callgrind: Callgrind | None, allowed: Allowed) -> Bench:
    """The bench of a run, with what counts its trials under Valgrind, if they are to be."""
    return Bench(
        study=begun.study,
        run=begun.run,
        engine=registry.engine(begun.study.engine.engine),
        installation=begun.installation,
        layers=LAYERS,
        journal=journal,
        open_load=LoadProcess,
        cores=core_count(),
        allowed=allowed,
        callgrind=callgrind if why_counted(begun.study) else None,
        counter=callgrind,
        application=installed(begun.study.application),
        drop=hopeless if can_drop(begun.study) else nobody,
        engines=on_engines(begun.study),
    )
