"""Options that several verbs share."""

from __future__ import annotations

import math

import click
import pytest
from click.testing import CliRunner

from dbdyno.cli.options import WaitingCommand, wait_option

pytestmark = pytest.mark.usefixtures("homes")


@click.command(cls=WaitingCommand)
@click.argument("study", required=False)
@wait_option
@click.option("--quiet", is_flag=True)
def measure(study: str | None, wait_s: float, quiet: bool) -> None:
    click.echo(f"{study} {wait_s} {quiet}")


@pytest.mark.parametrize(
    ("arguments", "study", "wait_s", "quiet"),
    [
        ([], None, 0.0, False),
        (["--wait"], None, math.inf, False),
        (["--wait", "a.toml"], "a.toml", math.inf, False),
        (["a.toml", "--wait"], "a.toml", math.inf, False),
        (["--wait", "--quiet"], None, math.inf, True),
        (["--wait", "10m", "a.toml"], "a.toml", 600.0, False),
        (["a.toml", "--wait", "1.5h"], "a.toml", 5400.0, False),
        (["--wait=90s", "a.toml"], "a.toml", 90.0, False),
    ],
    ids=str,
)
def test_wait_takes_a_time_only_where_one_follows(
    arguments: list[str], study: str | None, wait_s: float, quiet: bool
) -> None:
    result = CliRunner().invoke(measure, arguments)
    assert result.output == f"{study} {wait_s} {quiet}\n"


def test_a_wait_without_its_unit_is_refused() -> None:
    result = CliRunner().invoke(measure, ["--wait=soon"])
    assert result.exit_code == 2
    assert "soon" in result.output
