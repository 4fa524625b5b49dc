"""What a published folder is made from: a run with its records, and what its store and host know of it."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from pydantic import Field

from dbdyno import __version__
from dbdyno.frozen import Frozen
from dbdyno.obtain.source.build import Made
from dbdyno.prepare_run.begun import code_digest
from dbdyno.records.chain import Entry, Rerun
from dbdyno.records.record import Record
from dbdyno.records.run import Run

FORMAT = 1
LIBRARIES = ("numpy", "scipy", "altair", "vl-convert-python", "jinja2", "pydantic")
"""What figures and pages go through. Another version of one may give another last digit, or another page."""


class MadeBy(Frozen):
    """What made a folder. `code` is the digest of Dyno's own Python code."""

    dyno: str
    code: str
    python: str
    machine: str
    libraries: dict[str, str] = Field(default_factory=dict)


class Account(Frozen):
    """What stands in `publication.json`. `reruns` are all runs of the same question that the store knew, the
    published one among them. `key` is the fingerprint of the key that signs; empty where none does. `unkept`
    are the builds of the run that its host did not keep any more."""

    format: int = FORMAT
    run: str
    published_unix_s: float
    made_by: MadeBy
    reruns: tuple[Rerun, ...] = ()
    key: str = ""
    unkept: tuple[str, ...] = ()


class PublishedBuild(Frozen):
    """A build of the run: the account of how it was made, and the digest of its program."""

    made: Made
    program_sha256: str


@dataclass(frozen=True)
class Given:
    """All that a folder is made from. The `chain` is that of the store, with the contents of the entries of
    this question alone."""

    account: Account
    run: Run
    records: tuple[Record, ...]
    chain: tuple[Entry, ...]
    builds: tuple[PublishedBuild, ...] = ()


def made_here() -> MadeBy:
    """This Dyno, with the libraries that it uses."""
    return MadeBy(
        dyno=__version__,
        code=code_digest(),
        python=platform.python_version(),
        machine=platform.machine(),
        libraries={name: found for name in LIBRARIES if (found := _version(name))},
    )


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""
