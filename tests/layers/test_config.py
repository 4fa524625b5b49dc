"""The config layer refuses what leads out of the server's folders, before and while it is put in."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from dbdyno.driver.job import Job
from dbdyno.errors import Blocked
from dbdyno.host.journal import Journal
from dbdyno.layers.config import ConfigLayer
from dbdyno.layers.setup import Setup
from dbdyno.study import Factor
from tests.fakes import INSTALLATION, FakeEngine

CONFIG = ConfigLayer()


@pytest.mark.parametrize("installed", [True, False])
def test_a_level_outside_of_the_folders_is_a_mistake(installed: bool) -> None:
    factor = Factor(name="config.speed", levels=(1, "/etc/victim", "../victim"))
    found = CONFIG.mistakes(factor, FakeEngine().engine, INSTALLATION if installed else None)
    assert [one.message for one in found] == [
        "config.speed: '/etc/victim' leads outside of the server's own folder",
        "config.speed: '../victim' leads outside of the server's own folder",
    ]
    assert all(one.hint for one in found)


def test_a_stored_study_is_checked_when_its_levels_are_put_in(tmp_path: Path) -> None:
    engine = FakeEngine().engine
    [request] = CONFIG.ask({"speed": "/etc/victim"}, engine)
    setup = Setup(engine, INSTALLATION, tmp_path, cast(Journal, None), Job(workload="tpcb"))
    with pytest.raises(Blocked, match="leads outside") as refused:
        request.apply(setup)
    assert refused.value.factor == "config.speed"
    assert not setup.settings
