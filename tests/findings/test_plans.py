"""Plans that changed beside an effect, in all forms of a report."""

from __future__ import annotations

import json

from syrupy.assertion import SnapshotAssertion

from dbdyno.analyse import Analysis
from dbdyno.engines.facts import PlanStep
from dbdyno.findings import analyse, as_json, plans, trial
from dbdyno.records.record import Plans, Record, StatementPlan
from dbdyno.report.renderers.terminal import render
from dbdyno.report.words import answer
from dbdyno.trial.around_load import planned
from tests.analyse.factory import a_run, a_study, records_of
from tests.analyse.plans_cases import BY_INDEX, BY_SCAN, INSERT, TEXT, asked
from tests.report.cases import HOSTILE
from tests.report.forms import as_markdown, as_page, on_terminal, print_report, print_sections

STUDY = a_study(blocks=6)
SLOW = "config.page_cache=64k"


def analysed(changed_in: range, ratio: float = 0.5, *others: StatementPlan) -> Analysis:
    records = [
        asked(
            record,
            BY_SCAN if record.variant == SLOW and record.block in changed_in else BY_INDEX,
            INSERT,
            *others,
        )
        for record in records_of(STUDY, {SLOW: ratio})
    ]
    return analyse(STUDY, a_run(STUDY), records)


def printed(analysis: Analysis) -> str:
    return on_terminal(lambda console: print_report(analysis, console, details=True))


def test_the_answer_names_the_plan_that_changed_beside_the_effect() -> None:
    slower = dict(answer.findings(analysed(range(6))))["Slower"]
    assert slower.startswith(SLOW)
    assert slower.endswith(", and the plan of `q3` changed: index scan users_pkey -> seq scan users")
    faster = answer.headline(analysed(range(6), ratio=1.5))
    assert faster.endswith(", and the plan of `q3` changed: index scan users_pkey -> seq scan users.")
    some = dict(answer.findings(analysed(range(3))))["Slower"]
    assert "the plan of `q3` changed in 3 of 6 blocks: index" in some
    for text in (slower, faster, some):
        assert "because" not in text and "caused" not in text


def test_a_plan_that_flips_in_the_baseline_is_told_once_and_of_no_variant() -> None:
    records = [
        asked(record, BY_SCAN if record.block < (2 if record.variant == SLOW else 3) else BY_INDEX, INSERT)
        for record in records_of(STUDY, {SLOW: 0.5})
    ]
    findings = dict(answer.findings(analyse(STUDY, a_run(STUDY), records)))
    assert "the plan of" not in findings["Slower"]
    assert findings["Plans that flip in the baseline"] == "`q3`"
    assert "Plans that flip in the baseline" not in dict(answer.findings(analysed(range(3))))


def test_each_form_shows_both_plans() -> None:
    analysis = analysed(range(6))
    for form in (printed(analysis), as_page(analysis), as_markdown(analysis)):
        assert (
            plans.TITLE in form
            and "seq scan users" in form
            and "index scan users\\_pkey" in form.replace("users_pkey", "users\\_pkey")
        )
    [variant] = json.loads(as_json.render(analysis))["plans"]["variants"]
    assert variant["changes"][0]["after"][0]["steps"] == ["seq scan users: filter (id = ?)"]
    assert TEXT in as_page(analysis)


def test_the_table_on_a_terminal(snapshot: SnapshotAssertion) -> None:
    found = analysed(range(3)).plans
    assert found is not None
    assert on_terminal(lambda console: print_sections(plans.sections(found), console)) == snapshot


def test_where_nothing_changed_one_line_says_so() -> None:
    analysis = analysed(range(0))
    line = "Query plans: the same in all variants."
    assert line in printed(analysis) and line in as_page(analysis) and line in as_markdown(analysis)
    assert plans.HEADS[2] not in printed(analysis) + as_page(analysis) + as_markdown(analysis)


def test_runs_without_plans_have_no_such_part() -> None:
    analysis = analyse(STUDY, a_run(STUDY), records_of(STUDY))
    assert not any(
        plans.NOTE in form for form in (printed(analysis), as_page(analysis), as_markdown(analysis))
    )


def test_hostile_names_harm_no_form() -> None:
    hostile = planned(HOSTILE, HOSTILE, (PlanStep(HOSTILE, (HOSTILE,)),))
    refused = StatementPlan(statement=HOSTILE, text=HOSTILE + "2", why_not=HOSTILE)
    records = [
        record.model_copy(
            update={
                "plans": Plans(statements=(hostile if record.variant == SLOW else _other(hostile), refused))
            }
        )
        for record in records_of(STUDY, {SLOW: 0.5})
    ]
    analysis = analyse(STUDY, a_run(STUDY), records)
    assert "\x1b" not in printed(analysis)
    assert "<script>alert" not in as_page(analysis)
    assert "<script>" not in as_markdown(analysis)
    assert "\x1b" not in shown(records[0])


def _other(plan: StatementPlan) -> StatementPlan:
    return planned(plan.statement, plan.text, (PlanStep("index scan"),))


def shown(record: Record) -> str:
    return on_terminal(lambda console: render(trial.document(record, a_run(STUDY)), console))


def test_a_trial_shows_its_plans() -> None:
    record = asked(records_of(STUDY)[0], BY_SCAN)
    assert "q3" in shown(record) and "seq scan users: filter (id = ?)" in shown(record)
    failed = record.model_copy(update={"plans": Plans(why_not="the server died")})
    assert "not known: the server died" in shown(failed)


def test_rows_stand_below_the_steps_and_what_is_far_off_is_marked() -> None:
    def executed(record: Record, scans: bool) -> Record:
        plan = planned("q3", TEXT, (BY_SCAN if scans else BY_INDEX,))
        if record.block == 0:
            plan = plan.but(rows=((2.0, 5000.0) if scans else (1.0, 1.0),))
        return record.but(plans=Plans(statements=(plan, INSERT)))

    records = [executed(record, record.variant == SLOW) for record in records_of(STUDY, {SLOW: 0.5})]
    analysis = analyse(STUDY, a_run(STUDY), records)
    page, markdown = as_page(analysis), as_markdown(analysis)
    far_off = "2 rows expected, 5,000 given: 2,500 times too few expected"
    assert f'<span class="doubt">{far_off}</span>' in page and far_off in markdown
    assert "<small>1 row expected, 1 given</small>" in page
    assert plans.ROWS_NOTE[:40] in page
    assert far_off in shown(next(record for record in records if record.variant == SLOW))
    assert "rows expected" not in as_page(analysed(range(6)))
    [variant] = json.loads(as_json.render(analysis))["plans"]["variants"]
    assert variant["changes"][0]["after"][0]["rows"] == [[2.0, 5000.0]]
