"""A run that has begun: a study, the run that keeps it, and the engine that is measured."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dbdyno import __version__
from dbdyno.applications.registry import installed
from dbdyno.begin.adapted import seed_of
from dbdyno.begin.building import make_builds, wishes_of
from dbdyno.begin.commits import commit_of_source
from dbdyno.begin.counted import why_counted
from dbdyno.begin.engines import on_engines, others_of
from dbdyno.begin.given import data_of
from dbdyno.begin.losses import losses_of
from dbdyno.begin.naming import name_of_run
from dbdyno.begin.registered import question_asked
from dbdyno.begin.running import require_started
from dbdyno.begin.stored_study import application_of, installed_of
from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.host.fingerprint import core_count, fingerprint
from dbdyno.host.journal import open_journal
from dbdyno.layers.registry import LAYERS
from dbdyno.plan.search.dropping import can_drop, hopeless
from dbdyno.run import run_trial
from dbdyno.study import Design
from dbdyno.trial.bench import Bench, nobody

if TYPE_CHECKING:
    from dbdyno.engines.built import Instrumented, Train
    from dbdyno.host.allowed import Allowed
    from dbdyno.host.cache import Tell
    from dbdyno.host.callgrind import Callgrind
    from dbdyno.host.journal import Journal
    from dbdyno.obtain.installation import Installation
    from dbdyno.records.run import OfKind, Run
    from dbdyno.records.store import Store
    from dbdyno.study import Study


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
