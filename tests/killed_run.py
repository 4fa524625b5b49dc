"""A run that kills itself as a stage of its second trial begins: `python -m tests.killed_run STAGE`."""

from __future__ import annotations

import os
import signal
import sys

from dbdyno.study.trials import Trial
from tests.fakes import Stages, make_study
from tests.test_run import carry_out


def main() -> None:
    def kill(trial: Trial, stage: str) -> None:
        if (trial.index, stage) == (1, sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)

    carry_out(make_study(1, 2, blocks=2), Stages(kill))


if __name__ == "__main__":
    main()
