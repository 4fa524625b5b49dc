"""A load that is to do so much does all of it, or its trial fails."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from threading import Timer

import psutil
import pytest

from dbdyno.errors import DynoError, ServerFailed
from dbdyno.layers.setup import Running
from dbdyno.study.trials import Phase
from dbdyno.trial.bench import Clock
from dbdyno.trial.drive import drive
from tests.trials import tried

pytestmark = pytest.mark.engine
SHORT = r"phase load: [\d,]+ of 1,000,000,000 transactions were done in \S+ of 0.2 s"


def driven(running: Running, phase: Phase) -> Running:
    steps = drive(running, phase, nullcontext, Clock())
    try:
        while True:
            next(steps)
    except StopIteration as end:
        found: Running = end.value
        return found


def test_a_phase_ends_when_its_work_is_done_and_fails_where_time_is_short(homes_with_data: Path) -> None:
    with tried("sqlite") as found:
        running = driven(found.running, Phase(name="load", duration_s=60.0, operations=20))
        assert running.tally is not None and running.tally.operations == 20
        with pytest.raises(DynoError, match=SHORT):
            driven(found.running, Phase(name="load", duration_s=0.2, operations=1_000_000_000))


def test_work_that_ends_with_its_server_says_after_how_long(homes_with_data: Path) -> None:
    with pytest.raises(ServerFailed, match="SIGKILL"), tried("mariadb") as found:
        server = psutil.Process(found.running.process_ids[0])
        strike = Timer(1.0, server.kill)
        strike.start()
        with pytest.raises(DynoError) as ended:
            driven(found.running, Phase(name="load", duration_s=600.0, operations=1_000_000_000))
        strike.join()
        took = re.search(r"were done in (\S+) of 600 s", ended.value.message)
        assert took and float(took[1]) < 600.0, ended.value.message
