"""`dyno config`: what is set once, and where each value comes from."""

from __future__ import annotations

import click
from rich.table import Table
from rich.text import Text

from dbdyno.cli.options import json_option
from dbdyno.cli.preferences import Origin, Setting, Value, config_file, settings
from dbdyno.cli.terminal import terminal
from dbdyno.frozen import Frozen
from dbdyno.host import paths
from dbdyno.passwords import without_passwords
from dbdyno.report.words import safe


class ConfigRow(Frozen):
    """A key as `--json` lists it. `place` is a variable, or a file with its line; empty for a default.
    A `mirror` without a value is the machine's.
    """

    key: str
    value: Value
    origin: Origin
    place: str
    variable: str
    option: str


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show each key of the configuration file with its value here, and where that comes from.

    An option wins over its variable, the variable over the file, and the file over the default. Nothing in
    the file changes what a study measures.
    """
    if context.invoked_subcommand is not None:
        return
    found = [(setting.key, _row(setting)) for setting in settings()]
    if as_json:
        click.echo(safe.json_text([row for _, row in found]))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("key", "value", "from", "what it sets"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "key")
    for key, row in found:
        origin = ", ".join(filter(None, (row.origin, row.place)))
        table.add_row(*map(Text, (row.key, _shown(row.value) or key.otherwise, origin, key.about)))
    terminal().print(table)


@command.command()
def path() -> None:
    """Print where the configuration file is, or would be."""
    click.echo(str(config_file()))


def _row(setting: Setting) -> ConfigRow:
    value = _used(setting)
    return ConfigRow(
        key=setting.key.name,
        value=without_passwords(value) if isinstance(value, str) else value,
        origin=setting.origin,
        place=setting.place,
        variable=setting.key.variable,
        option=setting.key.option,
    )


def _used(setting: Setting) -> Value:
    """The setting's value; where nobody names a store, the one that is used then."""
    if setting.value is None and setting.key.name == "store":
        return paths.store_place_url()
    return setting.value


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return safe.clean(value or "")
