"""In-toto statements on a published folder: what was tested and with which result, the figures, and how each
build was made. Each is one JSON document in the canonical spelling, so it can be made again and compared. An
account holds what they are made from.

The forms: https://in-toto.io/Statement/v1, https://in-toto.io/attestation/test-result/v0.1 and
https://slsa.dev/provenance/v1.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import Field

from dbdyno import __version__
from dbdyno.analyse import Analysis
from dbdyno.analyse.bisect import Bisection
from dbdyno.analyse.model import Role, VariantResult, Verdict
from dbdyno.analyse.soak import SoakResult, SoakVerdict
from dbdyno.findings.registered import departures
from dbdyno.findings.results import RESULTS
from dbdyno.frozen import Frozen
from dbdyno.obtain.source.build import BuildAccount
from dbdyno.prepare_run.begun import code_digest
from dbdyno.records.chain import Entry, Rerun, canonical, sha256
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.report.document import plain

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

    made: BuildAccount
    program_sha256: str


@dataclass(frozen=True)
class FolderSource:
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


STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
PROVENANCE = "https://slsa.dev/provenance/v1"
FIGURES, BUILD_TYPE, BUILDER = "urn:dyno:figures:v1", "urn:dyno:build:v1", "urn:dyno:builder:v1"
"""Names of Dyno's own forms. Nothing lies at them."""

PASSED, WARNED, FAILED = "PASSED", "WARNED", "FAILED"
_OF_VERDICT = {
    Verdict.FASTER: PASSED,
    Verdict.NO_EFFECT: PASSED,
    Verdict.SLOWER: FAILED,
    Verdict.BROKEN: FAILED,
    Verdict.FAILED: FAILED,
    Verdict.INCONCLUSIVE: WARNED,
    Verdict.BLOCKED: WARNED,
    Verdict.INERT: WARNED,
}
"""A test is a variant, and it fails where a gate would fail it."""
_OF_SOAK = {
    SoakVerdict.BROKEN: FAILED,
    SoakVerdict.FAILED: FAILED,
    SoakVerdict.DRIFTS: FAILED,
    SoakVerdict.BLOCKED: WARNED,
}

Found = Analysis | SoakResult | Bisection
Digests = Mapping[str, str]
"""SHA-256 by the path of a file."""


def kind_of(found: Found) -> str:
    """The name of the kind of result, among those that reports are made of."""
    return "report" if isinstance(found, Analysis) else "soak" if isinstance(found, SoakResult) else "bisect"


def test_result(found: Found, digests: Digests) -> bytes:
    """The statement on every file of the folder: which variants passed."""
    outcomes = dict(_outcomes(found))
    worst = next((one for one in (FAILED, WARNED) if one in outcomes.values()), PASSED)
    asked = [
        {"digest": {"sha256": digest}, "name": name}
        for name, digest in sorted(digests.items())
        if name.startswith(("study.toml", "logs.txt", "files/"))
    ]
    predicate = {
        "result": worst,
        "configuration": asked,
        "passedTests": [name for name, one in outcomes.items() if one == PASSED],
        "warnedTests": [name for name, one in outcomes.items() if one == WARNED],
        "failedTests": [name for name, one in outcomes.items() if one == FAILED],
    }
    return _statement(digests, TEST_RESULT, predicate)


def figures(given: FolderSource, found: Found, digests: Digests) -> bytes:
    """The statement with the figures themselves, on the files that they follow from."""
    run, account = given.run, given.account
    predicate: dict[str, Any] = {
        "run": run.run,
        "kind": run.kind.value,
        "answer": [plain(line) for line in RESULTS[kind_of(found)].document(found).answer],
        "records": len(given.records),
        "studySha256": run.study_digest,
        "registration": None,
        "runsOfThisStudy": [one.model_dump(mode="json") for one in account.reruns],
        "madeBy": account.made_by.model_dump(mode="json"),
    }
    if run.registered is not None:
        departed = departures(found.study, run) if isinstance(found, Analysis) else ()
        predicate["registration"] = {
            "number": run.registered.number,
            "digest": run.registered.digest,
            "departures": [one.model_dump(mode="json") for one in departed],
        }
    if isinstance(found, Analysis):
        predicate["method"] = {
            name: getattr(found.method, name) for name in ("response", "margin", "confidence")
        }
        predicate["variants"] = [_figures_of(variant) for variant in found.variants]
    return _statement(digests, FIGURES, predicate)


def provenance(given: FolderSource, build: PublishedBuild) -> bytes:
    """The statement on a build's program: from what it was made, and how."""
    made = build.made
    named = made.program.rpartition("/")[2] or made.engine
    asked = {
        "engine": made.engine,
        "source": made.source,
        "patches": list(made.patches),
        "recipe": made.recipe,
        "toolchain": made.toolchain,
        "flags": made.flags.model_dump(mode="json"),
        "layout": made.layout,
    }
    internal = {
        "key": made.key,
        "network": made.network,
        "training": made.training.model_dump(mode="json") if made.training else None,
        "bolt": made.bolt.model_dump(mode="json") if made.bolt else None,
        "tests": [test.model_dump(mode="json") for test in made.tests],
    }
    predicate = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": asked,
            "internalParameters": internal,
            "resolvedDependencies": [{"name": name} for name in (made.source, *made.patches)],
        },
        "runDetails": {
            "builder": {"id": BUILDER, "version": {"dyno": given.account.made_by.dyno}},
            "metadata": {"invocationId": given.run.run},
        },
    }
    return _statement({named: build.program_sha256}, PROVENANCE, predicate)


def digests_of(contents: Mapping[str, bytes]) -> dict[str, str]:
    """The SHA-256 of each file."""
    return {name: sha256(content) for name, content in contents.items()}


def _statement(subjects: Digests, kind: str, predicate: dict[str, Any]) -> bytes:
    named = [{"digest": {"sha256": digest}, "name": name} for name, digest in sorted(subjects.items())]
    return canonical({"_type": STATEMENT, "predicate": predicate, "predicateType": kind, "subject": named})


def _outcomes(found: Found) -> Iterator[tuple[str, str]]:
    if isinstance(found, Analysis):
        for variant in found.variants:
            if variant.role is Role.CANDIDATE and variant.verdict is not None:
                yield variant.name, _OF_VERDICT[variant.verdict]
    elif isinstance(found, SoakResult):
        yield "soak", _OF_SOAK.get(found.verdict, PASSED)


def _figures_of(variant: VariantResult) -> dict[str, Any]:
    return {
        "name": variant.name,
        "role": variant.role.value,
        "verdict": variant.verdict.value if variant.verdict else None,
        "outcomes": {outcome.value: count for outcome, count in variant.outcomes.items()},
        "response": variant.response.model_dump(mode="json") if variant.response else None,
        "effect": variant.effect.model_dump(mode="json") if variant.effect else None,
        "guards": [guard.model_dump(mode="json") for guard in variant.guards],
    }
