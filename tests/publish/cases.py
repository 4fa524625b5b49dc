"""What the tests of publish share: a run as it is given to be published, and keys."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from dbdyno.findings.registered import plan_of
from dbdyno.host.fingerprint import Host
from dbdyno.obtain.source.build import BuildAccount, Flags
from dbdyno.prepare_run.begun import question_of
from dbdyno.prepare_run.stored_study import asked_by
from dbdyno.publish.making import PrivateKey, private_key
from dbdyno.publish.statement import Account, FolderSource, PublishedBuild, made_here
from dbdyno.records.chain import Entry, Publication, Registered, Registration, RunBegan, sha256
from dbdyno.study.files import FileKind, StudyFile
from tests.analyse.factory import a_run, records_of
from tests.study_texts import STUDY

SCRIPT = "-- no statement\n"
KINDS = ("ed25519", "ec")
BUILD = PublishedBuild(
    made=BuildAccount(
        key="0123456789abcdef",
        engine="sqlite",
        words="gcc -O2",
        source="sqlite 3.46",
        toolchain="gcc 12",
        flags=Flags(compile=("-O2",)),
        recipe="ab" * 32,
        program="lib/libsqlite3.so",
        took_s=1.0,
    ),
    program_sha256="cd" * 32,
)


def a_key(folder: Path, kind: str = "ed25519", name: str = "dyno") -> PrivateKey:
    """A key that openssl makes."""
    path = folder / f"{name}.key"
    curve = ("-pkeyopt", "ec_paramgen_curve:P-256") if kind == "ec" else ()
    subprocess.run(
        ["openssl", "genpkey", "-algorithm", kind, *curve, "-out", str(path)], check=True, capture_output=True
    )
    return private_key(path, no_password)


def no_password() -> NoReturn:
    raise AssertionError("this key needs no password")


def a_registered(key: PrivateKey | None, **changes: object) -> FolderSource:
    """The same run, registered as entry 1 and begun as entry 2. The registration may have `changes`."""
    given = a_given(key)
    run = given.run
    study = asked_by(STUDY, "study.toml", Path(), None).but(blocks=6)
    told = Registration(
        question=question_of(run), registered_unix_s=1.0, title=study.title, study_path=study.path,
        study_text=STUDY, study_sha256=study.digest, plan=plan_of(study), dyno_version="0", dyno_code="0",
        host=Host(),
    )  # fmt: skip
    entry = Entry.after(None, told.but(**changes))
    kept = Registered(number=1, digest=entry.digest, registered_unix_s=1.0, plan=told.plan)
    began = RunBegan(
        question=told.question, run=run.run, run_kind="comparison", began_unix_s=run.created_unix_s,
        seed=run.seed, registration=1,
    )  # fmt: skip
    chain = (entry, Entry.after((1, entry.digest), began))
    return replace(given, run=run.but(registered=kept), chain=chain)


def a_given(key: PrivateKey | None) -> FolderSource:
    """A run of synthetic records with a script and a build, which began as entry 2 behind another study's."""
    study = asked_by(STUDY, "study.toml", Path(), None).but(blocks=6)
    script = StudyFile(
        kind=FileKind.WORKLOAD, path="../load.lua", place="/load.lua", size_bytes=len(SCRIPT),
        digest=sha256(SCRIPT.encode()), text=SCRIPT,
    )  # fmt: skip
    run = a_run(study).but(run="published", blocks=6, files=(script,))
    records = [
        record.but(run=run.run) for record in records_of(study, {"config.synchronous=OFF": 1.5}, seed=1)
    ]
    other = Publication(question="of another", run="hidden", published_unix_s=1.0, statement_sha256="0")
    first = Entry.after(None, other)
    began = RunBegan(
        question=question_of(run), run=run.run, run_kind="comparison",
        began_unix_s=run.created_unix_s, seed=run.seed,
    )  # fmt: skip
    chain = (first.closed(), Entry.after((first.number, first.digest), began))
    account = Account(
        run=run.run,
        published_unix_s=run.created_unix_s,
        made_by=made_here(),
        key=key.public.fingerprint if key else "",
    )
    return FolderSource(account, run, tuple(records), chain, (BUILD,))
