"""Plans of statements, held against the baseline's block by block."""

from __future__ import annotations

from dbdyno.engines.facts import PlanStep
from dbdyno.findings import analyse
from dbdyno.findings.plans import change_text, compared_plans
from dbdyno.records.record import Plans, Record, StatementPlan
from dbdyno.trial.around_load import planned
from tests.analyse.factory import a_run, a_study, broken, records_of
from tests.analyse.plans_cases import BY_INDEX, BY_SCAN, INSERT, TEXT, asked

STUDY = a_study(blocks=6)


def records(changed_in: range, baseline_flips_in: range = range(0)) -> list[Record]:
    """Six blocks in which the variant's plan is another one in some, and the baseline's in others."""
    return [
        asked(
            record,
            BY_SCAN
            if record.block in (changed_in if record.variant != "baseline" else baseline_flips_in)
            else BY_INDEX,
            INSERT,
        )
        for record in records_of(STUDY)
    ]


def test_a_plan_that_differs_in_every_block_is_a_change_and_no_flip() -> None:
    found = compared_plans(records(range(6)), "baseline")
    assert found is not None and found.statements == 2 and found.flips == ()
    [variant] = found.variants
    [change] = variant.changes
    assert (variant.compared, change.statement, change.text) == (2, "q3", TEXT)
    assert (change.changed, change.blocks) == (6, 6)
    assert change.change == "index scan users_pkey -> seq scan users"
    assert [form.blocks for form in (*change.before, *change.after)] == [6, 6]
    assert change.after[0].steps == ("seq scan users: filter (id = ?)",)


def test_a_plan_that_flips_is_counted_by_block() -> None:
    found = compared_plans(records(range(3)), "baseline")
    assert found is not None
    [change] = found.of("config.page_cache=64k")
    assert (change.changed, change.blocks) == (3, 6)
    [flip] = found.flips
    assert (flip.variant, flip.statement) == ("config.page_cache=64k", "q3")
    assert sorted((form.summary, form.blocks) for form in flip.forms) == [
        ("index scan users_pkey", 3),
        ("seq scan users", 3),
    ]


def test_a_variant_that_flips_with_the_baseline_has_changed_nothing() -> None:
    found = compared_plans(records(range(2), baseline_flips_in=range(2)), "baseline")
    assert found is not None and found.of("config.page_cache=64k") == ()
    assert [flip.variant for flip in found.flips] == ["baseline", "config.page_cache=64k"]


def test_a_block_counts_where_both_plans_are_known() -> None:
    kept = [
        broken("account 1, history 2")(record)
        if record.variant == "baseline" and record.block == 0
        else record.but(plans=None)
        if record.variant != "baseline" and record.block == 1
        else record
        for record in records(range(6))
    ]
    found = compared_plans(kept, "baseline")
    assert found is not None
    [change] = found.of("config.page_cache=64k")
    assert (change.changed, change.blocks) == (4, 4)


def test_what_has_no_plan_says_why_once() -> None:
    why = StatementPlan(statement="q5", text="CALL f(?)", why_not="no engine has a plan for such a statement")
    kept = [asked(record, BY_INDEX, why) for record in records_of(STUDY)]
    last = kept.pop()
    kept.append(last.but(plans=Plans(why_not="the server died")))
    found = compared_plans(kept, "baseline")
    assert found is not None and found.statements == 1
    assert [(one.name, one.why) for one in found.unexplained] == [
        ("q5", "no engine has a plan for such a statement"),
        (last.variant, "the server died"),
    ]


def test_runs_without_plans_tell_of_none() -> None:
    """Those of earlier versions, and of studies that ask for none."""
    assert compared_plans(records_of(STUDY), "baseline") is None
    assert "plans" not in analyse(STUDY, a_run(STUDY), records_of(STUDY)).model_dump()
    assert all("plans" not in record.model_dump() for record in records_of(STUDY))


def test_a_change_names_the_steps_that_went_and_came() -> None:
    def one(*titles: str) -> StatementPlan:
        step = PlanStep(titles[0])
        for title in titles[1:]:
            step = PlanStep(title, inputs=(step,))
        return planned("q", "SELECT ?", (step,))

    scan, sort, limit = "seq scan t", "sort", "limit"
    assert (
        change_text(one(scan, sort, limit), one("index scan t_k", limit))
        == "seq scan t + sort -> index scan t_k"
    )
    assert change_text(one(scan, limit), one(scan, sort, limit)) == "with sort"
    assert change_text(one(scan, sort, limit), one(scan, limit)) == "without sort"
    assert change_text(one(scan), one(scan)) == "the same steps in another way"
