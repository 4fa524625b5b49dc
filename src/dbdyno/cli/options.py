"""Options that several verbs share."""

from __future__ import annotations

import click

store_option = click.option(
    "--store",
    metavar="URL",
    help="Where runs are kept: sqlite:////path or postgresql://user:password@host/database. "
    "Default: DYNO_STORE, else a SQLite file under the XDG data folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
