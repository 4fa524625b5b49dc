"""The page of a study of platforms: what works, what does not and why, and no speed."""

from __future__ import annotations

from dbdyno.records.record import Record
from tests.analyse.platforms_cases import BLOCKED, EMULATED, LOSING, NATIVE, analysed, platform
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
