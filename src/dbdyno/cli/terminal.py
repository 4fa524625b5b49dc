"""The console that verbs print tables on: what is in them is data, and its colours alone are Dyno's."""

from __future__ import annotations

import io
from collections.abc import Iterable

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from dbdyno.cli.encoding import own, plain


class _Console(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Everything that is printed comes through here, as text beside its style."""
        for segment in super().render(renderable, options):
            shown = segment.text if segment.control else plain(segment.text)
            yield segment if shown == segment.text else Segment(shown, segment.style)


def terminal(stderr: bool = False, soft_wrap: bool = False) -> Console:
    """The console on standard output, or on standard error."""
    return _Console(file=own("stderr" if stderr else "stdout"), highlight=False, soft_wrap=soft_wrap)


def on_paper(width: int) -> Console:
    """A console whose text `export_text` gives."""
    return _Console(record=True, highlight=False, width=width, file=io.StringIO())


def tell(line: str) -> None:
    """Says how things go: on standard error, because standard output is for data."""
    click.echo(line, err=True)
