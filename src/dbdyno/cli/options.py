"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbdyno.study.values import Fault, duration_s


class Duration(click.ParamType[float]):
    """Seconds of a duration with its unit, as a study writes it: `90s`, `10m`, `1.5h`."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return duration_s(value, 1.0)
        except Fault as fault:
            self.fail(f"{fault.message}; {fault.hint}", param, ctx)


store_option = click.option(
    "--store",
    metavar="URL",
    help="Where runs are kept: sqlite:////path or postgresql://user:password@host/database. "
    "Default: DYNO_STORE, else a SQLite file under the XDG data folder.",
)
budget_option = click.option(
    "--budget",
    "budget_s",
    type=Duration(),
    help="Fit blocks and durations to this time (10m, 1.5h), and say what precision that can reach.",
)
devices_option = click.option(
    "--allow-device",
    "devices",
    multiple=True,
    type=click.Path(path_type=Path, readable=False),
    help="A block device that levels of storage.device may overwrite. It must carry nothing.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
