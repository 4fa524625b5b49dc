"""A failure is laid at the door of the engine, or of Dyno's own driver."""

from __future__ import annotations

import pytest

from dbdyno.errors import DriverFailed, DynoError, LoadDied, ServerFailed
from dbdyno.trial.blame import died, of_the_engine
from tests.fakes import FakeEngine

EMBEDDED, SERVER = FakeEngine(embedded=True).engine, FakeEngine().engine


@pytest.mark.parametrize(
    ("failure", "dead", "at_fault"),
    [
        (ServerFailed("the server died"), (True, True), (True, True)),
        (LoadDied("the load process died"), (True, False), (True, False)),
        (DriverFailed("refused", kind="connect"), (False, False), (True, True)),
        (DriverFailed("a bug of the driver"), (False, False), (False, False)),
        (DynoError("the disk is full"), (False, False), (False, False)),
    ],
)
def test_an_engine_answers_for_what_it_did_itself(
    failure: DynoError, dead: tuple[bool, bool], at_fault: tuple[bool, bool]
) -> None:
    assert (died(failure, EMBEDDED), died(failure, SERVER)) == dead
    assert (of_the_engine(failure, EMBEDDED), of_the_engine(failure, SERVER)) == at_fault
