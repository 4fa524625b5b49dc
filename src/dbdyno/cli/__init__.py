"""The command line: arguments, printing, exit codes; nothing else. One file per verb. `verbs/` declares those
whose own file is heavy, so that their help imports their options alone.

Data goes to standard output, progress and messages to standard error. Exit codes: 0, 1 for a failure, 2 for a
mistake in the input, 3 to 8 by verdict (`exit_codes.py`), 130 after Ctrl-C.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
import time
import traceback
from itertools import takewhile

import click
from click.shell_completion import CompletionItem

from dbdyno import __version__
from dbdyno.cli.encoding import open_what_is_closed, own, plain, speak_any_encoding
from dbdyno.cli.server_url import hide_passwords
from dbdyno.cli.verbs import OLD_NAMES, command
from dbdyno.errors import DynoError, StudyError, UserError
from dbdyno.host import paths
from dbdyno.host.process import leave_no_core
from dbdyno.interrupts import raise_on_signals
from dbdyno.passwords import without_passwords

GROUPS: dict[str, dict[str, str]] = {
    "Ask": {
        "demo": "Carry out a first study in a minute and a half: no server, no root.",
        "init": "Write a first study; or a study, workload or recording from a production log.",
        "plan": "Show a study's variants, its trials in their order, and the time they will take.",
        "register": "Write a study down before its first trial, so that others can see what was planned.",
        "calibrate": "Find the CPU binding on this host that shows the smallest differences, and keep it.",
    },
    "Measure": {
        "run": "Carry out a study: every trial proved, measured, checked and recorded.",
        "tune": "Search for the setup to deploy, confirm it, and remove changes that do not help.",
        "evaluate": "Measure what a searcher of yours asks, a line of JSON each, and judge its best.",
        "bisect": "Find the commit, the version or the setting that made a server slower.",
        "soak": "Soak a study: with how many clients does each variant stay up, and does anything grow?",
        "load": "Drive a load against a server that runs already.",
        "profile": "Run one variant again under perf: a flame graph, and how two variants differ.",
        "import": "Turn logs of pgbench or sysbench into a run, to report and compare it.",
    },
    "Read": {
        "report": "Show a run again, or one of its trials with all evidence.",
        "explain": "Explain the gap between two variants of a run as a product of factors.",
        "museum": "Show what did not help in any run of the store, with its cause and its evidence.",
        "export": "Write a run's trials as CSV or Parquet.",
        "publish": "Write a run into a folder that others can check: records, study, page, signature.",
        "verify": "Check a published folder: signature, digests, and the analysis made again.",
        "serve": "Serve pages on this machine: all runs, reports, trends, and a run under way.",
    },
    "Compare": {
        "compare": "Compare runs of one study, on different hosts or days.",
        "gate": "Compare a run with another one, and end with the verdict's exit code.",
        "baseline": "Name the runs that others are compared with.",
        "matrix": "Put runs of the same variants under different loads beside each other.",
        "trend": "Follow one study over many runs: each ratio, and whether it moved.",
        "diff": "Compare two builds function by function: is the code the same, and where is it not?",
    },
    "Deploy": {
        "recipe": "Write a variant as a recipe for production; check a running server against a recipe.",
    },
    "Keep house": {
        "runs": "List the runs in the store; name, annotate and delete them.",
        "fleet": "Lend this host to runs, list the hosts, copy the load driver to another one.",
        "probe": "Find out what this host offers, by trying it.",
        "engines": "List the engines that are here or can be obtained; fetch one.",
        "cache": "List what is kept (engines, builds, data, sets of vectors), make and free it.",
        "config": "Show what is set once in the configuration file, and where each value comes from.",
        "cleanup": "Restore what a killed Dyno left behind.",
    },
}
"""The verbs by what one wants of them, in the order in which a newcomer needs them."""
HIDDEN = {
    "schema": "Print the JSON Schema of a study, or of an output.",
    "completion": "Print the completion script of a shell: bash, zsh or fish.",
    "man": "Write the manual pages into a folder.",
}
"""Verbs that programs and packagers call: no help lists them with what they do."""
VERBS = {name: told for verbs in (*GROUPS.values(), HIDDEN) for name, told in verbs.items()}
FIRST_WEEK: dict[str, dict[str, str]] = {
    "Is it faster: a setting, an upgrade, a build, an index?": {
        "demo": "a first study, which needs no server and no root",
        "init": "write a study, from your my.cnf, your server or your log",
        "plan": "what a study will do here, and for how long",
        "run": "carry it out: proved, measured, checked",
        "report": "what came out, once more",
    },
    "What is the best setup? Since when is it slower?": {
        "tune": "search within a budget, and confirm what is found",
        "bisect": "the commit, the version or the setting that did it",
    },
    "May this merge request go in? (CI)": {
        "gate": "hold a run against another one; the exit code tells",
    },
    "Which settings go into production?": {
        "recipe": "a variant as files to deploy; check a server against them",
    },
    "What is there?": {
        "runs": "the runs in the store",
    },
}
"""The ten verbs that one needs first, by question."""
_ALL, _PATH = "dyno.all", "dyno.path"
"""Where a call notes whether all verbs are to be shown, and its first two words."""
_TOUCH_NOTHING = ("init", "plan", "verify", "diff", "config", "schema", "completion", "man", "cleanup")
"""Verbs that do not restore what a dead Dyno left before they begin: they measure nothing."""

_MEASURE = (
    *("demo", "probe", "calibrate", "worker", "fleet worker"),
    *(verb for verb in GROUPS["Measure"] if verb != "import"),
)
"""Verbs whose findings what a dead Dyno left would change."""


class _Verbs(click.Group):
    """Loads a verb's module when it is called, so that `--help` costs nothing. With `--all` that shows all
    verbs, and those of the first week without."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        own = list(takewhile(lambda word: word.startswith("-"), args))
        context.meta[_ALL] = "--all" in own
        # It is no option of its own, because click would show the help before it knows of a later one.
        rest = [word for word in own if word != "--all"] + args[len(own) :]
        return super().parse_args(context, ["--help"] if context.meta[_ALL] and not rest else rest)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in VERBS and name not in OLD_NAMES:
            return None
        # What an import makes stays, so looking for garbage in it takes time and finds nothing.
        gc.disable()
        try:
            return command(name)
        finally:
            gc.enable()

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        context.meta[_PATH] = (args[0], " ".join(args[:2]))
        if not context.resilient_parsing and (new := OLD_NAMES.get(args[0])):
            click.echo(
                f"`dyno {args[0]}` is now `dyno {new}`; the old name goes in the next version", err=True
            )
        return super().resolve_command(context, args)

    def shell_complete(self, context: click.Context, incomplete: str) -> list[CompletionItem]:
        """By name and help alone: click's own way would import every verb."""
        if incomplete.startswith("-"):
            return super().shell_complete(context, incomplete)
        return [
            CompletionItem(name, help=told) for name, told in VERBS.items() if name.startswith(incomplete)
        ]

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        groups = GROUPS if context.meta.get(_ALL) else FIRST_WEEK
        # One width for all, so that the groups line up.
        widest = max(len(name) for verbs in groups.values() for name in verbs)
        for title, verbs in groups.items():
            formatter.write(f"\n{title}\n")
            with formatter.indentation():
                formatter.write_dl([(name.ljust(widest), told) for name, told in verbs.items()])
        if groups is GROUPS:
            formatter.write(f"\nFor programs and packagers: {', '.join(HIDDEN)}\n")


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="dyno %(version)s")
@click.pass_context
def dyno(context: click.Context) -> None:
    """A performance laboratory for database servers.

    Declare a study, which is the variants to compare, in a TOML file. Dyno proves, drives, checks and
    measures each of them on this machine. It answers what helped, by how much, what did nothing, and what
    broke. These are the commands of a first week; `dyno --help --all` shows all of them.
    """
    if context.invoked_subcommand not in _TOUCH_NOTHING:
        from dbdyno.cli.cleanup import tell_of_others, tell_of_servers
        from dbdyno.host.journal import replay_abandoned

        try:
            for line in replay_abandoned():
                click.echo(f"restored after a Dyno that died: {line}", err=True)
        except DynoError as resisting:
            # On such a host nothing may be measured, and all that was can be read.
            if any(words in _MEASURE for words in context.meta[_PATH]):
                raise
            click.echo(f"warning: {_plain(resisting.message)}; {_plain(resisting.hint)}", err=True)
        tell_of_servers()
        tell_of_others()


def _ask_for_patience() -> None:
    print("Restoring the host, please wait", file=sys.stderr)


def main() -> None:
    """The entry point. Every way out ends here; a traceback never reaches the user."""
    open_what_is_closed()
    raise_on_signals(_ask_for_patience)
    speak_any_encoding()
    hide_passwords()
    leave_no_core()
    try:
        sys.exit(dyno.main(prog_name="dyno", standalone_mode=False))
    except DynoError as error:
        _complain(error)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        # It repeats what was written, which may be a URL at the wrong place.
        said = io.StringIO()
        error.show(said)
        click.echo(without_passwords(said.getvalue()), err=True, nl=False)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain about it while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if told := _of_installation(error) or _of_host(error) or _of_path(error):
            _complain(told)
            sys.exit(told.exit_code)
        click.echo(f"error: Dyno failed: {type(error).__name__}: {_one_line(error)}", err=True)
        click.echo(f"  hint: this is a fault in Dyno; its details are in {_keep_traceback()}", err=True)
        sys.exit(1)


def _of_installation(error: Exception) -> DynoError | None:
    if not isinstance(error, ImportError):
        return None
    # Here, because an installation is almost always whole.
    from dbdyno.cli.incomplete import c_library, incomplete

    return incomplete(error, c_library())


_LIMITS = {
    errno.EMFILE: "open files of a process (ulimit -n)",
    errno.ENFILE: "open files of the host (fs.file-max)",
    errno.EAGAIN: "processes and threads (ulimit -u, or pids.max of the control group)",
    errno.ENOMEM: "memory (ulimit -v, or memory.max of the control group)",
    errno.EADDRNOTAVAIL: "free ports (net.ipv4.ip_local_port_range)",
}


def _of_host(error: Exception) -> DynoError | None:
    """The limit that the host has come to, where that is what went wrong."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        number = errno.EAGAIN
    if (limit := _LIMITS.get(number or 0)) is None:
        return None
    return DynoError(
        f"this host has no more {limit}: {_one_line(error)}", "raise that limit, or ask for less"
    )


def _of_path(error: Exception) -> DynoError | None:
    """That a path is no text, where that is what went wrong: Python reads such bytes as lone surrogates, and
    neither JSON nor a store can hold them."""
    if not isinstance(error, UnicodeEncodeError) or "surrogates" not in error.reason:
        return None
    return UserError(
        f"{_plain(ascii(error.object))} is not UTF-8", "name the files and folders that Dyno uses in UTF-8"
    )


def _complain(error: DynoError) -> None:
    _say(f"{click.style('error:', fg='red', bold=True)} {_plain(error.message)}")
    if isinstance(error, StudyError):
        for mistake in error.mistakes:
            column = f", column {mistake.column}" if mistake.column else ""
            place = f"line {mistake.line}{column}" if mistake.line else "file"
            hint = f"\n{' ' * (len(place) + 4)}{mistake.hint}" if mistake.hint else ""
            _say(f"  {click.style(place, bold=True)}: {_plain(mistake.message + hint)}")
    if error.hint:
        _say(f"  hint: {_plain(error.hint)}")


def _say(line: str) -> None:
    # https://no-color.org: set to anything but nothing; click itself does not look.
    click.echo(line, file=own("stderr"), color=False if os.environ.get("NO_COLOR") else None)


def _one_line(error: Exception) -> str:
    return _plain(" ".join(str(error).split()))[:300]


def _plain(text: str) -> str:
    return plain(without_passwords(text))


def _keep_traceback() -> str:
    try:
        path = paths.state() / f"failure-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
        path.write_text(without_passwords(traceback.format_exc()), encoding="utf-8")
    except (OSError, DynoError):
        return "no file, since none could be written"
    return str(path)
