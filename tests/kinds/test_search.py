"""What is told of a search before it begins."""

from __future__ import annotations

import pytest

from dbdyno.errors import UserError
from dbdyno.kinds.search import header, require_space, space_text
from dbdyno.study import Factor
from dbdyno.study.grammars import constraint
from dbdyno.study.space import Search
from tests.searches import a_search, listed, ranged


def test_a_space_is_told_by_its_factors_and_points() -> None:
    study, _ = a_search(ranged("config.a", 16), listed("config.b", 2))
    assert space_text(study) == "2 factors with 32 points"
    study, _ = a_search(*(ranged(f"config.f{number}", 10) for number in range(12)))
    assert space_text(study) == "12 factors with about 10^12 points"


@pytest.mark.parametrize(("kept", "told"), [(1, "1 trial of it is kept"), (2, "2 trials of it are kept")])
def test_what_is_kept_of_a_search_is_told(kept: int, told: str) -> None:
    assert header(*a_search(), kept, 0.0).endswith(told)


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
