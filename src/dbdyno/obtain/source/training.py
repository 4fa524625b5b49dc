"""The first half of a build that is guided by a profile: an instrumented build, and its training.

Both halves are made in one folder, because a compiler finds the profile of an object by the object's path.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from dbdyno.host.once import Tell
from dbdyno.obtain.source.build import Training
from dbdyno.obtain.source.profile import collected
from dbdyno.obtain.source.toolchain import Toolchain
from dbdyno.obtain.source.wish import Trainer

ACCOUNT, PROFILE, RAW = "training.json", "profile", "raw"

Train = Callable[[Path, Path], int]
"""Starts the engine in a prefix, drives it, and stops it cleanly, with its profiles led into a folder that is
there. Gives the transactions that it did. Raises BuildFailed where that fails."""


def trained(
    folder: Path,
    trainer: Trainer,
    toolchain: Toolchain,
    instrument: Callable[[], Path],
    train: Train,
    tell: Tell,
) -> Training:
    """The training in a build's folder, carried out where there is none that is whole. `instrument` makes the
    instrumented build there, and gives its prefix. What it made is gone afterwards, but for the profile.

    Raises like `instrument`, like `train`, and like the reading of the profile.
    """
    account = folder / ACCOUNT
    if account.exists():
        return Training.model_validate_json(account.read_text())
    raw, profile = folder / RAW, folder / PROFILE
    # What a training wrote that was cut short is part of a profile at best.
    for left in (raw, profile):
        shutil.rmtree(left, ignore_errors=True)
    prefix = instrument()
    raw.mkdir()
    tell(f"training it by {trainer.words}")
    began = time.monotonic()
    transactions = train(prefix, raw)
    took_s = round(time.monotonic() - began, 3)
    found = collected(raw, folder, profile, toolchain)
    training = Training(
        trainer=trainer,
        transactions=transactions,
        took_s=took_s,
        files=found.files,
        functions=found.functions,
        executed=found.executed,
        profile=found.digest,
    )
    tell(training.words)
    # The guided build begins with none of this one's objects, also where it is interrupted and goes on.
    for instrumented in folder.iterdir():
        if instrumented.is_dir() and instrumented != profile:
            shutil.rmtree(instrumented)
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
