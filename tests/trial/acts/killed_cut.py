"""A power cut in which Dyno itself is killed, as soon as the power is off.

`python -m tests.trial.acts.killed_cut`
"""

from __future__ import annotations

import os
import signal

from dbdyno.host.volumes.power import PowerSwitch
from dbdyno.study.soak import Act
from dbdyno.study.trials import Phase
from dbdyno.trial.acts import act_on
from tests.trial.acts.rounds_cases import LOSING, running


def main() -> None:
    off = PowerSwitch.off

    def off_for_good(switch: PowerSwitch) -> None:
        off(switch)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(PowerSwitch, "off", off_for_good)  # noqa: B010  a method of the real switch
    with running("sqlite", LOSING["sqlite"], Act.CUT) as (up, bench, undo):
        act_on(up, Phase(name="cut-1", duration_s=0.3, then=Act.CUT, ledger=True), bench, undo)


if __name__ == "__main__":
    main()
