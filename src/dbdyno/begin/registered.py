"""Registration: a study written down before a run of it, and what the store knows of runs of one question."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from dbdyno import __version__
from dbdyno.begin.given import data_of
from dbdyno.begin.stored_study import asked_by, asked_of
from dbdyno.errors import DynoError
from dbdyno.findings.registered import plan_of
from dbdyno.frozen import Configuration
from dbdyno.host.cache import Tell
from dbdyno.host.fingerprint import fingerprint
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
from dbdyno.records.run import Data, Run
from dbdyno.records.store import Store
from dbdyno.study import Study
from dbdyno.study.differences import meaning_of

PACKAGE = Path(__file__).parents[1]


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
    for path in sorted(PACKAGE.rglob("*.py")):
        content = path.read_bytes()
        whole.update(f"{path.relative_to(PACKAGE).as_posix()} {len(content)}\n".encode() + content)
    return whole.hexdigest()


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
