"""What both kinds of studies share that `dyno init` writes: goals, clients, durations, and this host."""

from __future__ import annotations

from typing import Any

import click

from dbdyno.cli.first_study import Host
from dbdyno.cli.options import Duration
from dbdyno.host import paths, room
from dbdyno.host.fingerprint import core_count

GOALS = {"throughput": "throughput", "latency": "p99_ms", "cpu": "server_cpu_us_per_op"}
CLIENTS_EACH_CPU, CLIENTS_LEAST = 4, 8


class DurationText(click.ParamType[str]):
    """A duration as it was written, because the command that runs the study is shown with it."""

    name = Duration.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        Duration().convert(value, param, ctx)
        return str(value)


def host_here() -> Host:
    """What of this host decides how large a first study may be."""
    return Host(
        cpus=core_count(),
        memory_bytes=room.available_memory_bytes(),
        disk_bytes=room.free_disk_bytes(paths.cache_place()),
    )
