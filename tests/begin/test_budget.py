"""What is told of a budget."""

from __future__ import annotations

from dbdyno.begin.budget import replan_text
from dbdyno.plan.budget import Replan
from tests.fakes import make_study


def test_what_the_rest_of_a_budget_gives_is_told() -> None:
    study = make_study(*range(4))
    told = replan_text(study, Replan(blocks=9, left_out=frozenset({"a"}), overhead_s=1.04, enough_s=300.0))
    assert told.startswith(
        "the first block took 1.0 s per trial beside the load, 1 blocked variant left out: the budget gives "
        "9 blocks; half of an interval's width: ±"
    )
    told = replan_text(study, Replan(blocks=1, left_out=frozenset(), overhead_s=40.0, enough_s=744.2))
    assert told == (
        "the first block took 40.0 s per trial beside the load: no second block fits, and one gives no "
        "interval; 6 blocks need 744 s"
    )
