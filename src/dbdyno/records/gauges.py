"""The gauges: what a server holds at a moment, and is watched for in a soak."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dbdyno.records.metrics import Format, bytes_text, microseconds_text, number_text


class Source(StrEnum):
    """Who tells a gauge's value."""

    KERNEL = "the kernel"
    ENGINE = "the engine"
    DRIVER = "the driver"


@dataclass(frozen=True)
class Gauge:
    """One gauge. `definition` says what its value is. What is `counted` grows with the transactions, so that
    its growth is told by the million of them. Where a rise is no `fault`, it is told and not judged: the load
    itself writes rows. What an engine clears away in its background falls behind at first, so its rise in a
    load shorter than `judged_after_s` is no more than told. A level up to `harmless` is no worry."""

    name: str
    title: str
    source: Source
    definition: str
    style: Format = Format.NUMBER
    counted: bool = True
    fault: bool = True
    judged_after_s: float = 0.0
    harmless: float = 0.0

    def format(self, value: float) -> str:
        """A value with its unit."""
        return {Format.BYTES: bytes_text, Format.MICROSECONDS: microseconds_text}.get(
            self.style, number_text
        )(value)


CACHE = "cache_bytes"
"""What an engine's cache of pages holds. It has a size, so what fills it is no leak."""
SHARED = "shared_bytes"
"""What of the memory that an engine's processes share they have touched: PostgreSQL's cache of pages."""
UNDO_HARMLESS = 100_000.0
"""A choice: a backlog of so many versions comes and goes on a busy server, so growth below it is no sign."""
P99 = "p99_us"
"""The one gauge that the load process tells, with its tally."""

GAUGES: dict[str, Gauge] = {
    gauge.name: gauge
    for gauge in (
        Gauge("resident_bytes", "resident memory", Source.KERNEL,
              "Memory of the server's processes that is resident. What they share counts once, as the "
              "process that holds most of it has it.", Format.BYTES),
        Gauge("private_bytes", "private memory", Source.KERNEL,
              "Memory that the server's processes have to themselves, resident or swapped out (RssAnon and "
              "VmSwap of /proc/PID/status).", Format.BYTES),
        Gauge(SHARED, "shared memory", Source.KERNEL,
              "What the server's processes have touched of the memory that they share, as the one that "
              "touched most of it has it (RssShmem of /proc/PID/status).", Format.BYTES, fault=False),
        Gauge("heap_bytes", "memory by the engine's own count", Source.ENGINE,
              "What the engine says that it has allocated.", Format.BYTES),
        Gauge(CACHE, "pages in the cache", Source.ENGINE,
              "What the engine's cache of pages holds: InnoDB's buffer pool.", Format.BYTES, fault=False),
        Gauge("open_files", "open files", Source.KERNEL,
              "Open descriptors of the server's processes, sockets included."),
        Gauge("threads", "threads", Source.KERNEL, "Threads of the server's processes."),
        Gauge("disk_bytes", "data on the disk", Source.KERNEL,
              "Blocks that the files of the data directory occupy.", Format.BYTES, fault=False),
        Gauge("undo", "undo log", Source.ENGINE,
              "Versions of rows that the engine still keeps for older readers: InnoDB's history list, "
              "PostgreSQL's dead rows.", judged_after_s=600.0, harmless=UNDO_HARMLESS),
        Gauge("redo_bytes", "redo log", Source.ENGINE,
              "Redo log that the engine still needs: InnoDB's checkpoint age, the files of PostgreSQL's "
              "write-ahead log.", Format.BYTES, fault=False),
        Gauge(P99, "99th percentile latency", Source.DRIVER,
              "Of the transactions that ended in each second.", Format.MICROSECONDS, counted=False),
    )
}  # fmt: skip
"""All gauges by name, in the order in which reports list them."""
