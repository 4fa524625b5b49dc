"""What of a search's goal and load goes over to another workload."""

from __future__ import annotations

import pytest

from dbdyno.cli.on_other import goal_on, load_on, require_options
from dbdyno.errors import UserError
from dbdyno.study import Goal, Guard, Workload
from tests.fakes import make_study

INVARIANTS = Guard(text="invariants", metric="invariants")
P99 = Guard(text="p99_ms <= 1.2x", metric="p99_ms", bound=1.2, relative=True)
ORDERS = Guard(text="new_orders_per_minute >= 9", metric="new_orders_per_minute", bound=9.0, at_most=False)
RECALL = Guard(text="recall >= 0.9", metric="recall", bound=0.9, at_most=False)
READY = Guard(text="ready_after_kill_s <= 9", metric="ready_after_kill_s", bound=9.0)


@pytest.mark.parametrize(
    ("workload", "kept"),
    [
        ("point_select", (INVARIANTS, P99)),
        ("tpcc", (INVARIANTS, P99, ORDERS, READY)),
        ("vector_search", (INVARIANTS, P99, RECALL)),
        ("tpcb", (INVARIANTS, P99, READY)),
        ("tpcb select_only=true", (INVARIANTS, P99)),
    ],
)
def test_guards_go_over_as_far_as_the_other_workload_has_what_they_name(
    workload: str, kept: tuple[Guard, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    offer, load = load_on(make_study(), workload)
    guards = (INVARIANTS, P99, ORDERS, RECALL, READY)
    assert goal_on(Goal(guards=guards), load, offer).guards == kept
    told = capsys.readouterr().err
    assert [guard for guard in guards if f"the guard {guard.text} is left out" in told] == [
        guard for guard in guards if guard not in kept
    ]


def test_the_response_goes_over_where_the_other_workload_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    offer, load = load_on(make_study(), "point_select")
    assert goal_on(Goal(response="p99_ms"), load, offer).response == "p99_ms"
    assert capsys.readouterr().err == ""
    assert goal_on(Goal(response="queries_per_s"), load, offer).response == "throughput"
    assert "throughput is compared and not queries_per_s" in capsys.readouterr().err


def test_a_load_has_its_own_options_and_what_it_shares_with_the_study() -> None:
    own = Workload(name="read_write", clients=8, duration_s=3.0, options={"tables": 4, "table_size": 500})
    _, load = load_on(make_study(workload=own), "read_only table_size=9 clients=2")
    assert (load.name, load.clients, load.duration_s) == ("read_only", 2, 3.0)
    assert load.options == {"tables": 4, "table_size": 9}, "without what is so by default"


def test_a_winner_that_changes_an_option_needs_a_workload_with_it() -> None:
    offer, _ = load_on(make_study(), "point_select")
    require_options(("config.pool", "workload.clients", "workload.table_size"), offer)
    with pytest.raises(UserError, match=r"the winner changes workload\.ef, which the workload point_select"):
        require_options(("config.pool", "workload.ef"), offer)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("tpcz", '--on: "tpcz" is no workload', "did you mean `tpcc`?"),
        ("tpcb sclae=2", '--on: the workload tpcb has no option "sclae"', "did you mean `scale`?"),
        ("tpcb scale=0", "--on: `scale`: cannot be 0", "allowed: 1 to"),
    ],
)
def test_a_misspelt_load_gets_one_message(text: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        load_on(make_study(), text)
    assert message in caught.value.message and hint in caught.value.hint
