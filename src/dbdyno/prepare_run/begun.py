"""A run that begins: what it is named, what it keeps, its builds and its bench; the registration that it
carries out, and the other runs of its question. Builds can be made ahead of any run."""

from __future__ import annotations

import hashlib
import math
import platform
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno import __version__
from dbdyno.datasets import VECTOR_SEARCH
from dbdyno.driver import _driver
from dbdyno.driver.load_process import LoadProcess
from dbdyno.engines import registry
from dbdyno.engines.built import Instrumented
from dbdyno.errors import DynoError, UserError
from dbdyno.findings.registered import plan_of
from dbdyno.frozen import Configuration
from dbdyno.host.cache import Tell
from dbdyno.host.fingerprint import core_count, fingerprint
from dbdyno.host.host_lock import alone
from dbdyno.host.journal import open_journal
from dbdyno.host.paths import PACKAGE, code_files
from dbdyno.host.writers import Allowed
from dbdyno.layers.registry import LAYERS
from dbdyno.obtain.source.build import DEBIAN, NONE, BuildSpecification, Foreseen
from dbdyno.obtain.source.commands import uncommitted
from dbdyno.obtain.source.tree import commit_of, committed_unix_s, repository_of
from dbdyno.plan.search.sampler import can_drop, hopeless
from dbdyno.prepare_run.adapted import seed_of
from dbdyno.prepare_run.building import builds_of, make_builds, why_counted, wishes_of
from dbdyno.prepare_run.running import require_started
from dbdyno.prepare_run.stored_study import application_of, asked_by, asked_of, installed_of
from dbdyno.prepare_run.study_here import data_of, losses_of, on_engines, others_of
from dbdyno.records.chain import (
    Publication,
    Registered,
    RegisteredFile,
    Registration,
    Rerun,
    RunBegan,
    canonical,
    sha256,
)
from dbdyno.records.run import ComparisonRun, Data, Run, SourceCommit
from dbdyno.records.store import Store
from dbdyno.run import run_trial
from dbdyno.study import Design, Study
from dbdyno.study.designs import variants_of
from dbdyno.study.differences import meaning_of
from dbdyno.trial.bench import Bench, nobody

if TYPE_CHECKING:
    from dbdyno.engines.built import Train
    from dbdyno.host.callgrind import Callgrind
    from dbdyno.host.journal import Journal
    from dbdyno.obtain.installation import Installation
    from dbdyno.records.run import OfKind


def question_of(run: Run) -> str:
    """The digest of what a run's study asks, with the files, the configuration and the data that it names:
    two runs with the same one ask the same. Empty for a run that was brought, which asks nothing."""
    if run.of_logs:
        return ""
    return run.question or _question(asked_of(run), run.configuration, run.data)


def question_asked(study: Study, data: Iterable[Data]) -> str:
    """The same of a study that was read from its file, with the data that it brings."""
    # The command line, this host and its engines may have changed what was read, and are no part of it.
    asked = asked_by(study.text, study.path, study.folder, study.configuration).but(files=study.files)
    return _question(asked, study.configuration, data)


def _question(asked: Study, configuration: Configuration | None, data: Iterable[Data]) -> str:
    told = {
        "meaning": asked.meaning,
        "files": meaning_of(asked.files),
        "configuration": _digest_of(configuration),
        "data": [one.sha256 for one in data],
    }
    return sha256(canonical(told))


def _digest_of(configuration: Configuration | None) -> str | None:
    """The digest of an engine's own file with all that it includes."""
    if configuration is None:
        return None
    return sha256(canonical([configuration.digest, [one.digest for one in configuration.included]]))


@cache
def code_digest() -> str:
    """The digest of Dyno's own Python code, because a version names a release and no work tree."""
    whole = hashlib.sha256()
    for path in code_files():
        content = path.read_bytes()
        whole.update(f"{path.relative_to(PACKAGE).as_posix()} {len(content)}\n".encode() + content)
    return whole.hexdigest()


@cache
def driver_digest() -> str:
    """The digest of the compiled driver behind the architecture that it was compiled for."""
    return f"{platform.machine()}:{hashlib.sha256(Path(_driver.__file__).read_bytes()).hexdigest()}"


@dataclass(frozen=True)
class DynoThere:
    """A Dyno: its version, the digest of its code, and `driver_digest`; empty where nobody kept one."""

    version: str
    code: str
    driver: str

    @property
    def words(self) -> str:
        driver = f" and driver {self.driver.partition(':')[2][:12]}" if self.driver else ""
        return f"Dyno {self.version} with code {self.code[:12]}{driver}"


def own_dyno() -> DynoThere:
    return DynoThere(__version__, code_digest(), driver_digest())


def require_same_dyno(run: Run, there: DynoThere, host: str = "") -> None:
    """Raises UserError where a Dyno is not the one that began a run: it would measure in another way. It is
    this host's own, or that of the worker on the `host` that is named."""
    # A run of a Dyno that kept no digest goes on with the code of whoever asks.
    own = own_dyno()
    began = DynoThere(run.dyno_version, run.dyno_code or own.code, run.dyno_driver)
    if there.driver.partition(":")[0] != began.driver.partition(":")[0]:
        # Drivers of two architectures differ, and one of them was not kept.
        there, began = replace(there, driver=""), replace(began, driver="")
    if there == began:
        return
    told, again = f"run {run.run} began with {began.words}", f"{run.verb} --again {run.run}"
    if not run.fleet and not host:
        hint = "install the Dyno that began it, or begin a new run with this one"
        hint = f"{hint}: {again}" if run.verb == "dyno run" else hint
        raise UserError(f"{told}, and here is {there.words}", hint)
    where = f"host {host}: " if host else ""
    raise UserError(
        f"{where}the worker runs {there.words}, and {told}",
        "install the Dyno there that began it, and start the worker again if you started it; "
        "or begin a new run with one Dyno on all hosts",
    )


def registration_of(study: Study, sequential: bool, tell: Tell) -> Registration:
    """A study as it is registered now on this host, as it was read from its file with what the command line
    changes."""
    data = data_of(study, tell)
    files = [
        *(
            RegisteredFile(kind=one.kind, path=one.path, sha256=one.digest, size_bytes=one.size_bytes)
            for one in study.files or ()
        ),
        *(
            RegisteredFile(kind=one.kind, path=one.path, sha256=one.sha256, size_bytes=one.size_bytes)
            for one in data
        ),
    ]
    return Registration(
        question=question_asked(study, data),
        registered_unix_s=time.time(),
        title=study.title,
        study_path=study.path,
        study_text=study.text,
        study_sha256=study.digest,
        files=tuple(files),
        configuration_sha256=_digest_of(study.configuration),
        plan=plan_of(study, sequential),
        dyno_version=__version__,
        dyno_code=code_digest(),
        host=fingerprint(),
    )


def registered_as(store: Store, run: Run) -> Registered | None:
    """The registration that a run carries out which is about to begin: the latest of its question."""
    for entry in reversed(store.chain(question_of(run))):
        told = entry.told
        if isinstance(told, Registration):
            return Registered(
                number=entry.number,
                digest=entry.digest,
                registered_unix_s=told.registered_unix_s,
                plan=told.plan,
            )
    return None


def began(run: Run) -> RunBegan | None:
    """The entry of the chain that says that a run began; None for one that was brought."""
    if run.of_logs:
        return None
    return RunBegan(
        question=question_of(run),
        run=run.run,
        run_kind=run.kind.value,
        began_unix_s=run.created_unix_s,
        seed=run.seed,
        registration=run.registered.number if run.registered else None,
    )


def reruns_of(store: Store, run: Run) -> tuple[Rerun, ...]:
    """All runs of one question and kind that the store or its chain knows, the first one first; the run
    itself is among them. Empty for a run that was brought."""
    question = question_of(run)
    if not question:
        return ()
    told = [entry.told for entry in store.chain(question)]
    published = {one.run for one in told if isinstance(one, Publication)}
    known = {one.run: one for one in told if isinstance(one, RunBegan) and one.run_kind == run.kind.value}
    found = [
        Rerun(
            run=one.run,
            began_unix_s=one.began_unix_s,
            registration=one.registration,
            kept=store.has_run(one.run),
            published=one.run in published,
        )
        for one in known.values()
    ]
    found += [
        Rerun(run=one.run, began_unix_s=one.created_unix_s, published=one.run in published)
        for one in store.runs_of_file(run.study_digest)
        if one.run not in known and one.kind is run.kind and _asks(one, question)
    ]
    return tuple(sorted(found, key=lambda rerun: (rerun.began_unix_s, rerun.run)))


def _asks(run: Run, question: str) -> bool:
    """Whether a stored run asks this question; one whose study this Dyno cannot read does not."""
    try:
        return question_of(run) == question
    except DynoError:
        return False


def name_of_run() -> str:
    """A name for a run that begins now: the local time, and digits that tell it from others of that
    second."""
    return f"{time.strftime('%y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def require_free(store: Store, name: str | None) -> None:
    """Raises UserError for a name that the run cannot have, before anything is measured."""
    if name is not None:
        store.require_free(name)


def keep_run(store: Store, run: Run, name: str | None, note: str) -> None:
    """Keeps a run before its first trial, with its user's name and note where there are some."""
    store.add_run(run, began(run))
    if name is not None:
        store.name_run(run.run, name)
    if note:
        store.note_run(run.run, note)


def commit_of_source(study: Study) -> SourceCommit | None:
    """The commit of the last variant whose source a git repository of this machine holds; None where there is
    none."""
    found = (_commit_of(wish, study.folder) for wish in reversed(wishes_of(study)))
    return next(filter(None, found), None)


def _commit_of(wish: BuildSpecification, folder: Path) -> SourceCommit | None:
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
        dyno_code=code_digest(),
        dyno_driver=driver_digest(),
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
        drop=hopeless if can_drop(begun.study) else nobody,
        engines=on_engines(begun.study),
    )


TRAINING_S = 600.0
"""About how long a training takes, for those who wait for this host meanwhile."""


def made_ahead(study: Study, names: tuple[str, ...], allowed: Allowed, tell: Tell) -> tuple[Foreseen, ...]:
    """Makes and trains the builds of these variants, or of all, and returns what is there of them then. One
    that cannot be made is told. Raises UserError for a variant that is none, and where there is nothing to
    make."""
    wishes = _wishes_of(study, names)
    make_builds(study, wishes, _Training(study, allowed, tell).train, tell)
    words = {wish.words for wish in wishes}
    return tuple(found for found in builds_of(study) if found.words in words)


def _wishes_of(study: Study, names: tuple[str, ...]) -> dict[BuildSpecification, tuple[str, ...]]:
    wishes = wishes_of(study)
    if not wishes:
        raise UserError(f"{study.path} asks for no builds", "levels of build or source ask for them")
    known = [variant.name for variant in variants_of(study)]
    for name in names:
        if name not in known:
            raise UserError(f"no variant is called {name}", f"there are: {', '.join(known)}")
        if not any(name in those for those in wishes.values()):
            raise UserError(f"{name} runs the installed engine, and has no build", "name another variant")
    return {wish: those for wish, those in wishes.items() if not names or set(names) & set(those)}


class _Training:
    """Trains builds one at a time, and has this host to itself for no longer than that."""

    def __init__(self, study: Study, allowed: Allowed, tell: Tell) -> None:
        self._study, self._allowed, self._tell = study, allowed, tell

    def train(self, instrumented: Instrumented) -> int:
        title = f"training for {self._study.title}"
        with alone(title, TRAINING_S, math.inf, self._tell), open_journal() as journal:
            bench = bench_of(self._begun, journal, None, self._allowed)
            return training_on(bench, self._tell)(instrumented)

    @cached_property
    def _begun(self) -> Begun:
        """As a run would begin; nothing keeps it."""
        study = self._study
        installation = registry.locate(study.engine)
        return Begun(study, new_run(ComparisonRun, study, installation, self._tell), installation)
