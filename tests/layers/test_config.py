"""The config layer refuses what leads out of the server's folders, before and while it is put in."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from dbdyno.driver.job import Job
from dbdyno.engines import registry
from dbdyno.errors import Blocked, DynoError
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.host.journal import Journal
from dbdyno.layers import config
from dbdyno.layers.config import ConfigLayer, held_file
from dbdyno.layers.setup import Setup
from dbdyno.study import Factor
from dbdyno.study.nouns import Reference
from tests.fakes import INSTALLATION, FakeEngine
from tests.trials import tried

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


@pytest.mark.parametrize("name", ["firebird", "postgresql", "sqlite"])
def test_the_engine_that_runs_is_proved_by_the_file_that_it_holds(
    name: str, homes_with_engines: Path
) -> None:
    try:
        installation = registry.engine(name).obtaining.locate(Reference(name))
    except DynoError as missing:
        pytest.skip(f"{name} is not here: {missing.message}")
    with tried(name, **{ENGINE_FACTOR: name}) as one:
        assert one.running.server.version in one.value(ENGINE_FACTOR)
        evidence = one.evidence[ENGINE_FACTOR]
        assert evidence.effective is not None and evidence.accepted is not None
        file = held_file(installation, one.running.process_ids)
        assert file is not None and str(file) in evidence.effective.source
        assert installation.digest in evidence.accepted.source
        for level, is_asked in ((name, True), ("mysql", False), (f"{name}@0.0", False)):
            assert config._prove(level, one.running).in_effect is is_asked
