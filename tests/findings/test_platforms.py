"""The page of a study of platforms: what works, what does not and why, and no speed."""

from __future__ import annotations

import json

import pytest

from dbdyno.analyse.model import Reason, Verdict
from dbdyno.findings import as_json
from dbdyno.records.record import Outcome, Record
from tests.analyse.platforms_cases import BLOCKED, EMULATED, FOREIGN, LOSING, NATIVE, analysed, platform
from tests.report.forms import as_markdown, as_page


def markdown(*records: Record) -> str:
    return as_markdown(analysed(*records))


def test_each_platform_has_a_row_and_its_machine() -> None:
    told = markdown(NATIVE, EMULATED)
    assert "| firebird\\@5 | amd64 | 5.0.4 | yes | right | all 200 | all 100 |" in told
    assert "| firebird\\@5 | s390x | 5.0.4 | yes | right | all 120 | all 100 |" in told
    assert "| firebird\\@5 | s390x | big | 4 KiB | 4 KiB | qemu-s390x-static 7.2.22 |" in told
    assert "What does not" not in told
    assert "firebird 5.0.4-1, libc6 2.36-9" in told


def test_no_form_has_a_time_or_a_ratio() -> None:
    found = analysed(NATIVE, EMULATED)
    for told in (as_markdown(found), as_page(found)):
        assert "Emulated speed has no verdict" in told
        assert not any(word in told for word in ("ready, s", "Verdicts", "per s", "1.500"))


def test_what_does_not_work_is_told_with_its_cause() -> None:
    told = markdown(NATIVE, LOSING)
    assert "1 of 2 platforms tried work. Not: platform.architecture=s390x." in told
    assert "3 of 100 lost" in told
    assert "after a kill, 3 of 100 acknowledged transactions were gone." in told
    blocked = markdown(NATIVE, BLOCKED)
    assert "| firebird\\@5 | s390x | – | no | – | – | – |" in blocked
    assert "of s390x is not on this machine; \\`dyno engines fetch\\` obtains it." in blocked


def test_versions_that_differ_between_architectures_are_told() -> None:
    other = EMULATED.but(platform=platform("s390x", version="5.0.3"))
    assert "firebird\\@5 is not one version on all: 5.0.4 on amd64, 5.0.3 on s390x." in markdown(
        NATIVE, other
    )
    assert "is not one version" not in markdown(NATIVE, EMULATED)


def test_builds_are_told_by_their_compiler_in_place_of_the_engine() -> None:
    native, other = (
        one.but(platform=platform(name, built="gcc -O2", packages="0123 by gcc, on libc6 2.36-9"))
        for one, name in ((NATIVE, "amd64"), (EMULATED, "s390x"))
    )
    told = markdown(native, other)
    assert "| s390x | 5.0.4 | gcc -O2 | yes | right | all 120 | all 100 |" in told
    assert "Build: 0123 by gcc, on libc6 2.36-9." in told
    assert "Each engine was compiled here" in told and "ran as packages" not in told
    assert "built by" not in markdown(NATIVE, EMULATED)


def test_instructions_stand_apart_where_they_were_counted() -> None:
    counted = EMULATED.but(platform=platform("s390x", instructions=61234))
    told = markdown(NATIVE, counted)
    assert "| firebird\\@5 | s390x | packages | 61,234 |" in told
    assert "compare builds of one" in told
    assert "Counted work" not in markdown(NATIVE, EMULATED)


@pytest.mark.parametrize(
    ("record", "verdict", "reason"),
    [
        (EMULATED, Verdict.INCONCLUSIVE, Reason.EMULATED),
        (LOSING, Verdict.BROKEN, None),
        (BLOCKED, Verdict.BLOCKED, None),
    ],
)
def test_a_variant_has_the_verdict_of_what_it_did(
    record: Record, verdict: Verdict, reason: Reason | None
) -> None:
    found = analysed(NATIVE, record)
    baseline, foreign = found.variants
    assert (baseline.verdict, baseline.response, baseline.effect) == (None, None, None)
    assert (foreign.name, foreign.verdict, foreign.reason) == (FOREIGN, verdict, reason)
    assert foreign.effect is None and foreign.response is None and not foreign.costs


def test_no_time_of_an_emulator_is_told() -> None:
    found = analysed(NATIVE, EMULATED)
    assert found.survival is not None
    acts = [act for one in found.survival.variants for act in one.acts]
    assert [(act.rounds, act.acknowledged) for act in acts] == [(1, 100), (2, 200), (1, 100), (2, 120)]
    assert all(act.ready_s is None and act.stop_s is None and act.full_speed_s is None for act in acts)
    told = json.loads(as_json.render(found))
    assert told["trials"] == [] and told["trials_planned"] == 0
    assert told["headline"] == "All of 2 platforms tried work."


def test_what_it_ran_on_stands_beside_each_variant() -> None:
    found = analysed(NATIVE, EMULATED)
    assert found.survival is not None
    native, foreign = found.survival.variants
    assert native.platform is not None and native.platform.emulator == ""
    assert foreign.platform is not None and foreign.platform.byte_order == "big"
    assert foreign.says == "s390x, read: the server says s390x"
    assert (native.outcome, foreign.outcome) == (Outcome.MEASURED, Outcome.MEASURED)
