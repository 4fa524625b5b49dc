"""Verdicts as JUnit XML: what consumers of it read, whatever stands in names."""

from __future__ import annotations

from xml.etree import ElementTree

from dbdyno.analyse.gate import side_by_side
from dbdyno.analyse.model import Verdict
from dbdyno.findings import analyse, junit
from tests.analyse.builds import INERT, builds
from tests.analyse.factory import a_run, a_study, broken, every_verdict, records_of
from tests.analyse.gate_cases import an_analysis
from tests.analyse.platforms_cases import BLOCKED, EMULATED, FOREIGN, LOSING, NATIVE, analysed

FAILING = frozenset({Verdict.BROKEN, Verdict.FAILED, Verdict.SLOWER})


def suite_of(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites" and [child.tag for child in root] == ["testsuite"]
    suite = root[0]
    for tag, name in (
        ("testcase", "tests"),
        ("testcase/failure", "failures"),
        ("testcase/skipped", "skipped"),
    ):
        assert int(suite.attrib[name]) == len(suite.findall(tag))
    assert all(case.attrib["classname"] and case.attrib["name"] for case in suite.iter("testcase"))
    return suite


def ended(suite: ElementTree.Element) -> dict[str, str]:
    """How each case ended, by the variant that its name begins with."""
    return {
        case.attrib["name"].split(":")[0]: case[0].tag if len(case) else "passed"
        for case in suite.iter("testcase")
    }


def test_each_comparison_is_a_case_and_ends_as_its_verdict_says() -> None:
    study, records = every_verdict()
    cases = ended(suite_of(junit.render(analyse(study, a_run(study), records), FAILING)))
    assert cases["baseline"] == "passed"
    assert cases["config.page_cache=64k"] == "passed"
    assert cases["config.page_size=32768"] == "failure"
    assert cases["config.forced_writes=off"] == "failure"
    assert cases["memory.allocator=jemalloc"] == "failure"


def test_only_what_a_pipeline_stops_by_is_a_failure() -> None:
    study, records = every_verdict()
    analysis = analyse(study, a_run(study), records)
    assert ended(suite_of(junit.render(analysis, frozenset())))["config.page_size=32768"] == "passed"


def test_what_the_data_cannot_say_is_skipped_with_the_reason() -> None:
    study = a_study(blocks=2)
    (skipped,) = suite_of(junit.render(analyse(study, a_run(study), records_of(study)), FAILING)).iter(
        "skipped"
    )
    assert "a verdict needs at least 6 blocks" in skipped.attrib["message"]


def test_a_baseline_that_did_not_hold_is_a_failure() -> None:
    study = a_study()
    records = records_of(study, changes={"baseline": broken("account 118, history 117")})
    cases = ended(suite_of(junit.render(analyse(study, a_run(study), records), FAILING)))
    assert cases["baseline"] == "failure"


def test_a_slower_run_fails_its_gate_with_the_interval_and_the_sentence() -> None:
    gate = side_by_side("main", an_analysis(speed=0.8), an_analysis("main"))
    suite = suite_of(junit.gate(gate, FAILING))
    (failure,) = suite.iter("failure")
    assert failure.attrib["type"] == "slower"
    assert "Slower: the throughput is 0.800 (0.800 – 0.800) times that of main." in failure.attrib["message"]
    assert "took turns" in suite.findtext("system-out", "")


def test_names_cannot_break_the_document() -> None:
    study = a_study(title="<&\"'\x00\x1b[31m]]>\ud800 鯨")
    analysis = analyse(study, a_run(study), records_of(study))
    assert "鯨" in suite_of(junit.render(analysis, FAILING)).attrib["name"]


def test_an_inert_level_is_skipped_and_a_placebo_is_no_case() -> None:
    study, records = builds()
    suite = suite_of(junit.render(analyse(study, a_run(study), records), FAILING))
    cases = ended(suite)
    assert cases[INERT] == "skipped" and not any("build.layout" in name for name in cases)
    failing = suite_of(junit.render(analyse(study, a_run(study), records), {Verdict.INERT}))
    assert ended(failing)[INERT] == "failure"


def test_a_platform_that_works_passes_and_one_that_does_not_fails() -> None:
    found = suite_of(junit.render(analysed(NATIVE, LOSING), FAILING))
    assert ended(found) == {"baseline": "passed", FOREIGN: "failure"}
    assert ended(suite_of(junit.render(analysed(NATIVE, EMULATED), FAILING)))[FOREIGN] == "passed"
    (skipped,) = suite_of(junit.render(analysed(NATIVE, BLOCKED), frozenset())).iter("skipped")
    assert "is not on this machine" in skipped.attrib["message"]
