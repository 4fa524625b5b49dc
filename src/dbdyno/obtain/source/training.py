"""The training of a build: an instrumented program runs a load, and the profile that it writes is kept.

A compiler guides a second build by the profile, and BOLT lays the finished program out anew by it. Both
are trained here in the same way. The compiler's two builds are made in one folder, because it finds the
profile of an object by the object's path.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import BuildFailed
from dbdyno.host.cache import Tell
from dbdyno.obtain.source.build import Training
from dbdyno.obtain.source.profile import Profile
from dbdyno.obtain.source.wish import Trainer

ACCOUNT, PROFILE, RAW = "training.json", "profile", "raw"


@dataclass(frozen=True)
class Untrained:
    """An instrumented engine in a prefix, and the load that is to train it. Its processes write their
    profiles into the folder `raw`, where the `environment` leads them."""

    prefix: Path
    trainer: Trainer
    raw: Path
    environment: Mapping[str, str]


Train = Callable[[Untrained], int]
"""Starts the engine, drives it, and stops it cleanly. Gives the transactions that it did. Raises BuildFailed
where that fails."""


@dataclass(frozen=True)
class Profiling:
    """One way to count what a program executes. `instrument` makes a program that writes its profile into a
    folder, and gives its prefix; `environment` leads its processes there; `collect` makes of that folder the
    profile, in another one that it makes. What was instrumented is gone afterwards."""

    instrument: Callable[[Path], Path]
    environment: Callable[[Path], Mapping[str, str]]
    collect: Callable[[Path, Path], Profile]


def trained(
    folder: Path, trainer: Trainer, profiling: Profiling, train: Train | None, tell: Tell
) -> Training:
    """The training in a folder, carried out where there is none that is whole.

    Raises BuildFailed where nobody can train here, and like `train` and both steps of `profiling`.
    """
    account = folder / ACCOUNT
    if account.exists():
        return Training.model_validate_json(account.read_text())
    if train is None:
        raise BuildFailed(
            f"the build that {trainer.workload} trains is no longer here, and a trial trains none",
            "`dyno run` trains builds before its first trial",
        )
    raw, profile = folder / RAW, folder / PROFILE
    # What a training wrote that was cut short is part of a profile at best.
    for left in (raw, profile):
        shutil.rmtree(left, ignore_errors=True)
    raw.mkdir(parents=True)
    prefix = profiling.instrument(raw)
    began = time.monotonic()
    transactions = train(Untrained(prefix, trainer, raw, profiling.environment(raw)))
    took_s = round(time.monotonic() - began, 3)
    found = profiling.collect(raw, profile)
    training = Training(
        trainer=trainer,
        transactions=transactions,
        took_s=took_s,
        files=found.files,
        functions=found.functions,
        executed=found.executed,
        profile=found.digest,
        moved=found.moved,
        left=found.left,
    )
    tell(training.words)
    shutil.rmtree(raw)
    os.sync()
    whole = folder / f"{ACCOUNT}.part"
    whole.write_text(training.model_dump_json(indent=1) + "\n")
    whole.rename(account)
    return training


def lay_profile(folder: Path) -> None:
    """Puts the files of gcc's profiles, where there are any, where it looks for them: beside the objects that
    it will make."""
    for file in (folder / PROFILE).rglob("*.gcda"):
        place = folder / file.relative_to(folder / PROFILE)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)


def remove_profile(prefix: Path) -> None:
    """Takes the profile out of what the build installed."""
    for file in prefix.rglob("*.gcda"):
        file.unlink()
