"""What is said of a soak, in every form: the answer first, and the hours until a limit."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from dbdyno.analyse.soak import SoakResult, SoakVerdict, soaked
from dbdyno.findings import as_json, junit
from dbdyno.findings import soak as words
from dbdyno.records.metrics import GAUGES
from dbdyno.records.record import Guested, Loss, Outcome, Recovery
from dbdyno.report.document import Row, Table
from dbdyno.report.renderers import html, markdown
from dbdyno.study import BASELINE
from dbdyno.study.soak import SMOKE, Act
from tests.analyse.factory import records_of
from tests.analyse.soak_cases import RUN, STUDY, a_soak, filling, flat, leaking, rung
from tests.report.cases import HOSTILE
from tests.report.shown import printed

LEAKS = a_soak(baseline=(leaking(64.0), flat))
STANDS = a_soak()
FILLS = a_soak(baseline=(filling, flat))


def broken(cause: str = "the server died under the load") -> SoakResult:
    records = [rung(record, flat) for record in records_of(STUDY)]
    told = {"outcome": Outcome.BROKEN, "cause": cause, "remedy": "look at its log"}
    return soaked(STUDY, RUN, [records[0].model_copy(update=told), *records[1:]])


def blocked_end() -> SoakResult:
    record = rung(next(one for one in records_of(STUDY) if one.variant == BASELINE), flat)
    kill = Recovery(act=Act.KILL, blocked="no volume of Dyno's", remedy="run as root")
    last = record.phases[-1].model_copy(update={"name": "kill", "recovery": kill})
    guests = (Guested(name="churn", clients=3, rounds=12, operations=9, errors={"1040 too many": 2}),)
    first = record.phases[0].model_copy(update={"guests": guests})
    return soaked(STUDY, RUN, [record.model_copy(update={"phases": (first, last)})])


def after(act: Act, **seen: object) -> SoakResult:
    """A soak of one rung that ended in an act which showed this."""
    record = rung(next(one for one in records_of(STUDY) if one.variant == BASELINE), flat)
    cut = Recovery.model_validate({"act": act, "ready_s": 0.5, "acknowledged": 90, **seen})
    last = record.phases[-1].model_copy(update={"name": "tear", "recovery": cut})
    return soaked(STUDY, RUN, [record.model_copy(update={"phases": (record.phases[0], last)})])


def remark_after(**seen: object) -> str:
    """What a rung's table says of a power cut that showed this."""
    return words.phase_rows(after(Act.TEAR, **seen).rungs[0])[-1][-1]


def tables(found: SoakResult) -> dict[tuple[str, ...], tuple[Row, ...]]:
    """The rows of a soak's tables by their heads."""
    parts = [part for section in words.document(found).sections for part in section.body]
    return {tuple(one.head for one in part.columns): part.rows for part in parts if isinstance(part, Table)}


def test_a_power_cut_says_what_was_torn_and_what_was_found() -> None:
    assert remark_after(torn_pages=16).endswith("16 pages torn; everything was found")
    assert "no page was on its way, so none was torn" in remark_after(torn_pages=0)
    price = remark_after(torn_pages=1, permits=Loss.COMMITS, lost=2, lost_ms=3.5)
    assert "2 of 90 acknowledged transactions were gone" in price and "the settings permit that" in price
    fault = remark_after(torn_pages=1, lost=2, lost_ms=3.5)
    assert "after a torn-page cut, 2 of 90" in fault
    assert "everything" not in price + fault and "permit" not in fault


def test_a_leak_is_told_by_gauge_rate_and_hours() -> None:
    said = words.headline(LEAKS)
    assert said.startswith("It drifts: private memory rises; ")
    assert "until the limit of 7.451 GiB (the host's memory)" in said
    [row] = [row for row in words.drift_rows(LEAKS) if row[1] == "8 clients"]
    assert row[0] == "private memory" and "GiB" in row[3] and "MiB – " in row[4]


def test_one_rung_is_told_phase_by_phase_with_pass_or_fail() -> None:
    def results(found: SoakResult) -> dict[str, str]:
        assert words.STEP_HEADS in tables(found)
        return {row[0]: row[1] for row in words.step_rows(found.rungs[0])}

    assert results(blocked_end())["kill"] == "– not done"
    torn = after(Act.TEAR, torn_pages=1)
    assert results(torn)["torn page"] == "✓ pass" and set(results(torn).values()) == {"✓ pass"}
    assert results(after(Act.TEAR, torn_pages=1, lost=2, lost_ms=3.5))["torn page"] == "✗ fail"
    assert "torn page" in printed(words.document(torn), width=2_000)
    assert words.STEP_HEADS not in tables(broken()), "several rungs are told rung by rung"
    short = torn.model_copy(update={"run": torn.run.but(soak=SMOKE)})
    assert words.RUNG_HEADS in tables(torn) and words.RUNG_HEADS not in tables(short)


def test_growth_is_told_by_the_hour_only_where_the_load_lasted() -> None:
    assert all(row[3].endswith(" per hour") for row in words.drift_rows(STANDS))
    brief = STANDS.run.but(soak=SMOKE)
    told = words.drift_rows(STANDS.model_copy(update={"run": brief}))
    assert told and all(row[3].endswith(" in 20 s") for row in told)
    assert GAUGES["p99_us"].format(-6_903_022.0) == "-6.9 s"
    assert [GAUGES["p99_us"].format(value) for value in (12.0, 4_250.0)] == ["12 us", "4.25 ms"]


def test_a_setup_that_stands_says_down_to_what() -> None:
    assert words.headline(STANDS).startswith("It stands: ")
    assert all("no growth down to " in row[-1] for row in words.drift_rows(STANDS))


def test_what_fills_is_open_and_the_next_step_is_longer() -> None:
    assert words.headline(FILLS).startswith("It is open")
    assert "A load of 7 min is likely to settle it" in words.headline(FILLS)
    assert any("--duration 7m" in step for step in words.next_steps(FILLS))


def test_what_broke_tells_its_cause_and_the_remedy() -> None:
    found = broken()
    assert words.headline(found).startswith("It broke: ")
    assert any("the server died under the load" in line for line in words.findings(found))
    assert any("look at its log" in line for line in words.findings(found))


def test_what_this_host_cannot_do_is_said_and_breaks_nothing() -> None:
    found = blocked_end()
    assert any(line.startswith("Not done, kill: no volume of Dyno's") for line in words.findings(found))
    rows = words.phase_rows(found.rungs[0])
    assert "churn: 3 clients, 12 rounds; 1040 too many (2)" in rows[0][6]
    assert "not done" in rows[1][7]


def test_the_engine_is_told_in_the_version_that_answered() -> None:
    """The version of a build need not be that of the installed engine."""
    own = [record.but(engine_version="10.11.18-MariaDB") for record in records_of(STUDY)]
    facts = dict(words.document(soaked(STUDY, RUN, [rung(record, flat) for record in own])).facts)
    assert facts["Engine"].endswith(" 10.11.18-MariaDB")
    none = [record.but(engine_version="") for record in own]
    facts = dict(words.document(soaked(STUDY, RUN, [rung(record, flat) for record in none])).facts)
    assert facts["Engine"].endswith(RUN.installation.version)


@pytest.mark.parametrize(
    "found", [LEAKS, STANDS, FILLS, broken(), blocked_end()], ids=lambda one: one.verdict
)
def test_every_form_holds_the_answer(found: SoakResult) -> None:
    answer = words.headline(found)
    assert answer in printed(words.document(found), width=2_000)
    page, text = html.render(words.document(found)), markdown.render(words.document(found))
    assert found.rungs[0].variant in page and "data-figure" in page
    assert text.endswith("\n") and "## " in text
    document = json.loads(as_json.of_model(found, {"run": as_json.OF_A_RUN}))
    assert document["verdict"] == found.verdict.value


def cases(found: SoakResult) -> dict[str, str]:
    suite = ElementTree.fromstring(junit.soak(found).encode())[0]
    return {case.attrib["name"]: case[0].tag if len(case) else "passed" for case in suite.iter("testcase")}


def test_a_pipeline_stops_by_what_grew_or_broke() -> None:
    drift = f"8 clients: {GAUGES['private_bytes'].title}"
    assert cases(LEAKS)[drift] == "failure"
    assert cases(STANDS)[drift] == "passed"
    assert cases(FILLS)[drift] == "skipped"
    assert list(cases(broken()).values()).count("failure") == 1
    assert cases(blocked_end())["8 clients: kill"] == "skipped"


def test_hostile_text_stays_text() -> None:
    found = broken(HOSTILE)
    assert "<script>alert" not in html.render(words.document(found))
    assert "\x1b[31m" not in printed(words.document(found))


def test_every_verdict_has_a_look_and_words() -> None:
    assert set(words.LOOKS) == set(SoakVerdict)
    said = {words.headline(LEAKS.model_copy(update={"verdict": verdict})) for verdict in SoakVerdict}
    assert len(said) == len(SoakVerdict)
