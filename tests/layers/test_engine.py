"""The engine layer on engines that run."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines import registry
from dbdyno.errors import DynoError
from dbdyno.frozen import ENGINE_FACTOR
from dbdyno.layers.engine import held_file
from dbdyno.study.reference import Reference
from tests.trials import tried


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
