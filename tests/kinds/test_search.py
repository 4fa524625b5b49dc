"""What is told of a search before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import UserError
from dbdyno.kinds.search import (
    data_on,
    goal_on,
    header_of_search,
    load_on,
    require_options,
    require_space,
    space_text,
)
from dbdyno.study import Factor, Goal, Guard, Workload
from dbdyno.study.grammars import constraint
from dbdyno.study.nouns import GivenData, Search
from tests.fakes import make_study
from tests.searches import a_search, listed, ranged


def test_a_space_is_told_by_its_factors_and_points() -> None:
    study, _ = a_search(ranged("config.a", 16), listed("config.b", 2))
    assert space_text(study) == "2 factors with 32 points"
    study, _ = a_search(*(ranged(f"config.f{number}", 10) for number in range(12)))
    assert space_text(study) == "12 factors with about 10^12 points"


@pytest.mark.parametrize(("kept", "told"), [(1, "1 trial of it is kept"), (2, "2 trials of it are kept")])
def test_what_is_kept_of_a_search_is_told(kept: int, told: str) -> None:
    assert header_of_search(*a_search(), kept, 0.0).endswith(told)


def test_the_time_that_is_missing_is_told_in_minutes() -> None:
    study, _ = a_search()
    with pytest.raises(UserError, match="too few for a search") as caught:
        require_space(study, 60.0)
    assert "give at least" in caught.value.hint
    require_space(study, 3600.0)


def test_an_empty_space_is_refused() -> None:
    study, _ = a_search()
    with pytest.raises(UserError, match="the space is empty"):
        require_space(study.model_copy(update={"factors": ()}), 3600.0)


def test_constraints_that_leave_only_the_baseline_are_refused() -> None:
    study, _ = a_search(ranged("config.a", 16), ranged("config.b", 16))
    study = study.model_copy(update={"search": Search(constraints=(constraint("config.a + config.b <= 0"),))})
    with pytest.raises(UserError, match="nothing of the space may be tried"):
        require_space(study, 3600.0)


def test_a_space_without_room_in_memory_is_refused() -> None:
    pool = Factor(name="config.innodb_buffer_pool_size", levels=("128M", "900T"))
    study, _ = a_search(pool)
    with pytest.raises(UserError, match="has room in memory"):
        require_space(study, 3600.0)


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
    workload: str, kept: tuple[Guard, ...]
) -> None:
    offer, load = load_on(make_study(), workload)
    guards = (INVARIANTS, P99, ORDERS, RECALL, READY)
    told: list[str] = []
    assert goal_on(Goal(guards=guards), load, offer, told.append).guards == kept
    left_out = [guard for guard in guards if guard not in kept]
    assert [line.split(" is left out")[0] for line in told] == [
        f"the guard {guard.text}" for guard in left_out
    ]


def test_the_response_goes_over_where_the_other_workload_has_it() -> None:
    offer, load = load_on(make_study(), "point_select")
    told: list[str] = []
    assert goal_on(Goal(response="p99_ms"), load, offer, told.append).response == "p99_ms"
    assert told == []
    assert goal_on(Goal(response="queries_per_s"), load, offer, told.append).response == "throughput"
    assert told[0].startswith("throughput is compared and not queries_per_s")


def test_a_load_has_its_own_options_and_what_it_shares_with_the_study() -> None:
    own = Workload(name="read_write", clients=8, duration_s=3.0, options={"tables": 4, "table_size": 500})
    _, load = load_on(make_study(workload=own), "read_only table_size=9 clients=2")
    assert (load.name, load.clients, load.duration_s) == ("read_only", 2, 3.0)
    assert load.options == {"tables": 4, "table_size": 9}, "without what is so by default"


def test_a_relative_path_counts_from_the_current_folder_and_one_of_the_study_from_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = Workload(name="script", options={"file": "own.pgbench", "setup": "sql/tables.sql"})
    study = make_study(workload=own, place="/studies")
    _, load = load_on(study, "script file=mine/x.pgbench clients=2")
    assert load.options == {"file": f"{tmp_path}/mine/x.pgbench", "setup": "/studies/sql/tables.sql"}
    assert load_on(study, "script file=/whole.pgbench")[1].options["file"] == "/whole.pgbench"


@pytest.mark.parametrize(
    ("own", "other", "kept"),
    [
        ("script", "script", GivenData(dump=("shop.sql",), setup=True)),
        ("script", "replay", GivenData(dump=("shop.sql",))),
        ("script", "point_select", None),
        ("read_write", "point_select", GivenData(dump=("shop.sql",))),
    ],
)
def test_data_go_over_unless_a_built_in_load_would_miss_its_tables(
    own: str, other: str, kept: GivenData | None
) -> None:
    data = GivenData(dump=("shop.sql",), setup=True)
    study = make_study(workload=Workload(name=own), data=data)
    told: list[str] = []
    assert data_on(study, Workload(name=other), told.append) == kept
    left_out = "[data] is left out, because point_select makes its own tables"
    assert told == ([left_out] if kept is None else [])


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
