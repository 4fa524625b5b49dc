"""In-toto statements on a published folder: what was tested and with which result, the figures, and how each
build was made. Each is one JSON document in the canonical spelling, so it can be made again and compared.

The forms: https://in-toto.io/Statement/v1, https://in-toto.io/attestation/test-result/v0.1 and
https://slsa.dev/provenance/v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.analyse import Analysis
from dbdyno.analyse.bisect import Bisection
from dbdyno.analyse.model import Role, VariantResult, Verdict
from dbdyno.analyse.soak import SoakResult, SoakVerdict
from dbdyno.findings.registered import departures
from dbdyno.findings.results import RESULTS
from dbdyno.publish.account import Given, PublishedBuild
from dbdyno.records.chain import canonical, sha256
from dbdyno.report.document import plain

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


def figures(given: Given, found: Found, digests: Digests) -> bytes:
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


def provenance(given: Given, build: PublishedBuild) -> bytes:
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
