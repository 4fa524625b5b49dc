"""Writes `us.hlog` with HdrHistogram for Python, and prints what that says of the log named, by tag.

It needs the package hdrhistogram 0.10.8: python make.py us.hlog; python make.py ns.hlog
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from hdrh.histogram import HdrHistogram  # type: ignore[import-not-found]
from hdrh.log import HistogramLogWriter  # type: ignore[import-not-found]

HOUR_US, DIGITS = 3_600_000_000, 3
SHARES = (50, 90, 95, 99, 99.9)


def write(path: Path) -> None:
    """Six seconds of 500 latencies in microseconds."""
    drawn = random.Random(7)
    with path.open("w") as file:
        log = HistogramLogWriter(file)
        log.output_comment("[Logging for: READ]")
        log.output_log_format_version()
        log.output_base_time(1_700_000_000_000)
        log.output_legend()
        for second in range(6):
            interval = HdrHistogram(1, HOUR_US, DIGITS)
            for _ in range(500):
                interval.record_value(int(drawn.lognormvariate(6.5, 0.8)) + 1)
            log.output_interval_histogram(interval, second or 1e-9, second + 1, 1000.0)


def tell(path: Path) -> None:
    sums: dict[str, HdrHistogram] = {}
    for line in path.read_text().splitlines():
        if not line.startswith(("#", '"')):
            tag, rest = line.split(",", 1) if line.startswith("Tag=") else ("", line)
            total = sums.setdefault(tag, HdrHistogram(1, HOUR_US * 1000, DIGITS))
            total.add(HdrHistogram.decode(rest.split(",")[3]))
    for tag, total in sums.items():
        points = {share: total.get_value_at_percentile(share) for share in SHARES}
        print(tag, total.total_count, points, total.get_max_value(), total.get_mean_value())


if __name__ == "__main__":
    asked = Path(sys.argv[1])
    if asked.name == "us.hlog":
        write(asked)
    tell(asked)
