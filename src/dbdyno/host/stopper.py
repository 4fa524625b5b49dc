"""A process that stops all processes of a control group now and then, until it is killed:
`python -m dbdyno.host.stopper GROUP STOP_S EVERY_S`."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from dbdyno.host import kernel_files


def stop_now_and_then(group: Path, stop_s: float, every_s: float) -> None:
    """In each `every_s` the group's processes are stopped for `stop_s`, at its end."""
    while True:
        time.sleep(every_s - stop_s)
        stopped = send(group, signal.SIGSTOP)
        time.sleep(stop_s)
        for process_id in stopped:
            with suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGCONT)


def send(group: Path, number: signal.Signals) -> list[int]:
    """Sends a signal to every member, and gives those that got it."""
    found = []
    for line in kernel_files.text(group / "cgroup.procs", may_be_empty=True).split():
        with suppress(ProcessLookupError):
            os.kill(int(line), number)
            found.append(int(line))
    return found


if __name__ == "__main__":
    stop_now_and_then(Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
