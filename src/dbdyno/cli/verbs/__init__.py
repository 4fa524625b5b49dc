"""What each verb can be asked, apart from what carries it out, so that its help imports only its options."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

_FILES = {
    "ask": ("demo", "plan", "probe", "register", "calibrate"),
    "measure": ("run", "tune", "evaluate", "bisect", "soak", "profile", "import"),
    "read": (
        *("report", "show", "explain", "museum", "export", "publish", "verify"),
        *("compare", "gate", "matrix", "trend", "diff"),
    ),
    "keep": ("recipe", "hosts", "builds", "cache", "engines", "fleet", "worker", "schema"),
}
OLD_NAMES = {
    "show": "report RUN --trials` or `dyno report RUN TRIAL",
    "data": "cache data",
    "builds": "cache builds",
    "worker": "fleet worker",
    "hosts": "fleet hosts",
    "driver": "fleet driver",
}
"""Verbs that have a new name. The old one works in this version, and says the new one."""
_DECLARED_IN = {verb: file for file, verbs in _FILES.items() for verb in verbs}


class Subverbs(click.Group):
    """A verb whose further verbs are declared elsewhere, and are imported when they are asked for."""

    ELSEWHERE: tuple[str, ...] = ()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *self.ELSEWHERE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command(cmd_name) if cmd_name in self.ELSEWHERE else super().get_command(ctx, cmd_name)


def command(verb: str) -> click.Command:
    """The command of a verb. Where what carries it out is light, its own file declares it."""
    place = f"{verb}:command"
    if verb in _DECLARED_IN:
        place = f"verbs.{_DECLARED_IN[verb]}:{'import_logs' if verb == 'import' else verb}"
    found: click.Command = _at(place)
    return found


def body(place: str) -> Callable[..., Any]:
    """What carries a verb out: `run:main` is `main` of `cli/run.py`, which is imported now."""
    found: Callable[..., Any] = _at(place)
    return found


def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"dbdyno.cli.{module}"), name)
