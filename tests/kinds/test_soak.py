"""A study as a soak carries it out: rungs alone, timed, in front of nothing."""

from __future__ import annotations

import pytest

from dbdyno.errors import UserError
from dbdyno.kinds.soak import rung_by_rung
from dbdyno.study import Goal, Restarts
from dbdyno.study.designs import size_of_study, trials_in_all
from dbdyno.study.nouns import INSTRUCTIONS_PER_OP, RemoteDriver
from dbdyno.study.soak import SMOKE
from tests.fakes import make_study


def test_a_soak_has_no_trials_beside_its_rungs() -> None:
    asked = make_study(1, 2, restarts=Restarts(kills=3), goal=Goal(margin=0.1, counted=True))
    assert trials_in_all(asked) > size_of_study(asked).trials
    soaked = rung_by_rung(asked, SMOKE)
    assert trials_in_all(soaked) == 2
    assert soaked.goal.margin == 0.1


def test_a_soak_is_timed_whatever_its_study_counts() -> None:
    asked = make_study(1, 2, goal=Goal(response=INSTRUCTIONS_PER_OP))
    assert rung_by_rung(asked, SMOKE).goal.response == Goal().response


def test_an_application_in_front_of_the_server_is_refused() -> None:
    asked = make_study(1, 2, settings={"front.kind": "keystone"})
    with pytest.raises(UserError, match="keystone stands in front of the server") as refused:
        rung_by_rung(asked, SMOKE)
    assert "front.kind" in refused.value.hint


def test_a_load_from_another_host_is_refused() -> None:
    driver = RemoteDriver(hosts=("load1",), address="10.0.0.1", tls=True)
    with pytest.raises(
        UserError, match="the load comes from load1, and a soak's clients are processes"
    ) as no:
        rung_by_rung(make_study(1, 2, driver=driver), SMOKE)
    assert "[driver]" in no.value.hint
