"""A process that takes a share of one CPU until it is killed: `python -m dbdyno.host.burner CPU PERCENT`."""

from __future__ import annotations

import os
import sys
import time

PERIOD_S = 0.05
"""Short beside what a server's client notices, long beside the clock's own cost."""


def burn(cpu: int, share: float) -> None:
    """Is at work for `share` of each period, on one CPU."""
    os.sched_setaffinity(0, {cpu})
    due_s = time.monotonic()
    while True:
        until_s = due_s + share * PERIOD_S
        while time.monotonic() < until_s:
            pass
        due_s += PERIOD_S
        # Whoever had no CPU for a while does not catch up: a hypervisor gives nothing back either.
        due_s = max(due_s, time.monotonic() - PERIOD_S)
        time.sleep(max(0.0, due_s - time.monotonic()))


if __name__ == "__main__":
    burn(int(sys.argv[1]), int(sys.argv[2]) / 100.0)
