"""A run that kills itself as a stage of its second trial begins, by itself or beside the first:
`python -m tests.killed_run STAGE [beside]`.
"""

from __future__ import annotations

import os
import signal
import sys

from dbdyno.study.trials import Trial
from tests.fakes import Stages, make_study
from tests.spine import beside, carry_out


def main() -> None:
    def kill(trial: Trial, stage: str) -> None:
        if (trial.index, stage) == (1, sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)

    study = beside(1, 2, blocks=2) if "beside" in sys.argv else make_study(1, 2, blocks=2)
    carry_out(study, Stages(kill))


if __name__ == "__main__":
    main()
