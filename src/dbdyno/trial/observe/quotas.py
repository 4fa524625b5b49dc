"""What CPU quotas did to server and driver while the load ran, from their control groups (cgroups(7))."""

from __future__ import annotations

import os
from pathlib import Path

from dbdyno.host import cgroups
from dbdyno.trial.observe.processes import Counters


class QuotaCounters:
    """Running totals over every group whose limit holds for the server or for Dyno, and so for the driver.

    A group that Dyno made throttles as the study asked it to. What any other does, a container's or a
    service's, nobody asked for: it is counted apart, in `outer_throttled_s`.
    """

    def __init__(self, process_ids: tuple[int, ...]) -> None:
        groups = [
            group
            for process_id in (*process_ids, os.getpid())
            for group in cgroups.groups_of(process_id, "cpu")
        ]
        self._groups = tuple(dict.fromkeys(groups))
        self.missing = {} if groups else {"throttled_s": "no cgroup hierarchy offers the cpu controller"}

    def read(self) -> Counters:
        """Totals so far; none where there are no groups."""
        if not self._groups:
            return {}
        held = {group: cgroups.throttling(group) for group in self._groups}
        return {
            "quota_periods": float(sum(one.periods for one in held.values())),
            "throttled_periods": float(sum(one.throttled_periods for one in held.values())),
            "throttled_s": sum(one.throttled_s for one in held.values()),
            "outer_throttled_s": sum(one.throttled_s for group, one in held.items() if not _asked(group)),
        }


def _asked(group: Path) -> bool:
    return group.name.startswith(cgroups.PREFIX)
