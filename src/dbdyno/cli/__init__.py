"""The command line: arguments, printing, exit codes; nothing else. One file per verb.

Data goes to standard output, progress and messages to standard error. Exit codes: 0, 1 for a failure, 2 for a
mistake in the input, 3 to 8 by verdict (`exit_codes.py`), 130 after Ctrl-C.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import time
import traceback

import click
from click.shell_completion import CompletionItem

from dbdyno import __version__
from dbdyno.cli.encoding import speak_any_encoding
from dbdyno.errors import DynoError, StudyError
from dbdyno.host import paths
from dbdyno.host.interrupts import raise_on_signals

VERBS = {
    "init": "Write a first study; or a workload, from what a server was asked in production.",
    "run": "Carry out a study: every trial proved, measured, checked and recorded.",
    "tune": "Search for the setup to deploy: confirmed, with as few changes as carry its gain.",
    "soak": "Soak a study: with how many clients does each variant stand, and does anything grow?",
    "calibrate": "Find the arrangement of this host that tells the smallest differences, and keep it.",
    "plan": "Show a study's variants, its trials in their order, and the time they will take.",
    "report": "Show a run again, from the store alone.",
    "show": "Show a run as it was recorded, or one of its trials with all evidence.",
    "gate": "Hold a run against another, and end with the verdict's exit code.",
    "explain": "Explain the gap between two variants of a run as a product of factors.",
    "import": "Make a run of logs that pgbench or sysbench wrote, to report and compare it.",
    "compare": "Compare runs of one study, on different hosts or days.",
    "matrix": "Put runs of the same variants under different loads beside each other.",
    "trend": "Follow one study over many runs: each ratio, and whether it moved.",
    "diff": "Compare two builds function by function: is the code the same, and where is it not?",
    "museum": "Show what did not help in any run of the store, with its cause and its evidence.",
    "profile": "Run one variant again under perf: a flame graph, and how two variants differ.",
    "runs": "List the runs in the store; name, annotate and delete them.",
    "baseline": "Name the runs that others are held against.",
    "export": "Write a run's trials as CSV or Parquet.",
    "recipe": "Write a variant as a recipe for production; say what of one is not in effect on a server.",
    "engines": "List the engines that are here or can be obtained; fetch one.",
    "builds": "List the builds that are kept, with size, time and origin.",
    "data": "Make, read, inspect and list sets of vectors for vector_search.",
    "cache": "List what is kept (engines, sources, builds, data, images, vectors), and free it.",
    "load": "Drive a load against a server that runs already.",
    "probe": "Find out what this host offers, by trying it.",
    "config": "Show what is set once in the configuration file, and where each value comes from.",
    "schema": "Print the JSON Schema of a study, or of an output.",
    "completion": "Print the completion script of a shell: bash, zsh or fish.",
    "man": "Write the manual pages into a folder.",
    "cleanup": "Restore what a Dyno that died left behind.",
}
_TOUCH_NOTHING = ("init", "plan", "diff", "config", "schema", "completion", "man", "cleanup")
"""Verbs that do not clear up after a dead Dyno first: all but the clearing itself promise no side effect."""


class _Verbs(click.Group):
    """Loads a verb's module when it is called, so that `--help` costs nothing."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        # What an import makes stays, so looking for garbage in it takes time and finds nothing.
        gc.disable()
        try:
            command = importlib.import_module(f"dbdyno.cli.{name}").command
        finally:
            gc.enable()
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """By name and help alone: click's own way would import every verb."""
        if incomplete.startswith("-"):
            return super().shell_complete(context, incomplete)
        return [
            CompletionItem(name, help=told) for name, told in VERBS.items() if name.startswith(incomplete)
        ]

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="dyno %(version)s")
@click.pass_context
def dyno(context: click.Context) -> None:
    """A performance laboratory for database servers.

    Declare a study, the variants to compare, in a TOML file; dyno proves, drives, checks and measures each of
    them on this machine and answers what helped, by how much, what did nothing, and what broke.

    \b
      dyno run studies/quickstart.toml      the first study: needs no server and no root
      dyno plan studies/quickstart.toml     what it would do, and for how long
      dyno load run tpcb --help             the load driver on its own
    """
    if context.invoked_subcommand not in _TOUCH_NOTHING:
        from dbdyno.cli.cleanup import tell_of_others
        from dbdyno.host.journal import replay_abandoned

        for line in replay_abandoned():
            click.echo(f"restored after a Dyno that died: {line}", err=True)
        tell_of_others()


def _ask_for_patience() -> None:
    print("Restoring the host, please wait", file=sys.stderr)


def main() -> None:
    """The entry point. Every way out ends here; a traceback never reaches the user."""
    raise_on_signals(_ask_for_patience)
    speak_any_encoding()
    try:
        sys.exit(dyno.main(prog_name="dyno", standalone_mode=False))
    except DynoError as error:
        _complain(error)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain about it while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        click.echo(f"error: Dyno failed: {type(error).__name__}: {_one_line(error)}", err=True)
        click.echo(f"  hint: this is a fault in Dyno; its details are in {_keep_traceback()}", err=True)
        sys.exit(1)


def _complain(error: DynoError) -> None:
    _say(f"{click.style('error:', fg='red', bold=True)} {error.message}")
    if isinstance(error, StudyError):
        for mistake in error.mistakes:
            column = f", column {mistake.column}" if mistake.column else ""
            place = f"line {mistake.line}{column}" if mistake.line else "file"
            hint = f"\n{' ' * (len(place) + 4)}{mistake.hint}" if mistake.hint else ""
            _say(f"  {click.style(place, bold=True)}: {mistake.message}{hint}")
    if error.hint:
        _say(f"  hint: {error.hint}")


def _say(line: str) -> None:
    # https://no-color.org: set to anything but nothing; click itself does not look.
    click.echo(line, err=True, color=False if os.environ.get("NO_COLOR") else None)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _keep_traceback() -> str:
    try:
        path = paths.state() / f"failure-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
        path.write_text(traceback.format_exc(), encoding="utf-8")
    except (OSError, DynoError):
        return "no file, since none could be written"
    return str(path)
