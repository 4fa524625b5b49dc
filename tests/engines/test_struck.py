"""Whatever strikes a Dyno that moves settings of a server, each setting is afterwards as it was or as others
set it, or the journal names it.

`DYNO_FAULTS` is the number of cases of each engine (0 for all), and `DYNO_FAULTS_SEED` draws them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from dbdyno.engines import registry
from dbdyno.errors import EngineMissing
from dbdyno.study.nouns import Reference
from tests.engines.struck import FAULTS, KINDS

CASES = int(os.environ.get("DYNO_FAULTS", "40"))
SEED = int(os.environ.get("DYNO_FAULTS_SEED", "1"))


@pytest.mark.parametrize("engine", KINDS)
@pytest.mark.timeout(0 if CASES == 0 else 300 + 10 * CASES)
def test_no_server_keeps_what_nobody_else_set_and_no_journal_names(engine: str) -> None:
    try:
        registry.locate(Reference.of(KINDS[engine].reference))
    except EngineMissing as missing:
        pytest.skip(f"{engine} is not here: {missing.message}")
    command = [sys.executable, "-m", "tests.engines.struck", engine, str(CASES), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = json.loads(done.stdout.splitlines()[-1])
    print(f"{sum(counted['tried'].values())} of {counted['all']} cases of {engine}, seed {SEED}")
    assert counted["breaches"] == 0
    assert {name.split(": ")[1] for name in counted["tried"]} <= set(FAULTS)
