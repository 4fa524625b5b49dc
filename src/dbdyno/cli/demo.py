"""`dyno demo`: the first study from beginning to end, wherever Dyno is installed."""

from __future__ import annotations

import math

from dbdyno.begin.examples import DEMO, study_of
from dbdyno.begin.study_file import study_at
from dbdyno.cli.patience import patient
from dbdyno.cli.preferences import FOREVER
from dbdyno.cli.verbs.measure import run
from dbdyno.engines import registry


def main(mirror: str, wait_s: float) -> None:
    path = study_of(DEMO)
    engine = study_at(path).engine
    with patient() as patience:
        registry.engine(engine.engine).obtaining.fetch(engine.version, mirror, patience.tell)
    wait = FOREVER if math.isinf(wait_s) else f"{wait_s:g}s"
    run.main([str(path), f"--wait={wait}"], prog_name="dyno run", standalone_mode=False)
