"""The options of the verbs that ask; `body` imports what carries them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbdyno.cli.options import (
    Duration,
    WaitingCommand,
    budget_option,
    calibration_option,
    devices_option,
    json_option,
    mirror_option,
    paths_option,
    store_option,
    wait_option,
)
from dbdyno.cli.verbs import body


@click.command(cls=WaitingCommand)
@mirror_option
@wait_option
def demo(**asked: Any) -> None:
    """Carry out a first study in a minute and a half: Firebird embedded, no server, no root.

    What the engine lacks is fetched into Dyno's own cache first. `dyno init --example quickstart` writes the
    same study as a file of yours, to change it.
    """
    body("demo:main")(**asked)


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--blocks", type=click.IntRange(1), help="Take this many blocks instead of the study's.")
@click.option(
    "--seed",
    type=int,
    help="Draw the order from this seed, not the study's or a random one.",
)
@click.option(
    "--start",
    is_flag=True,
    help="Also start the server of each variant, on empty data, to see whether it takes all its settings.",
)
@budget_option
@calibration_option
@paths_option
@store_option
@json_option
def plan(**asked: Any) -> None:
    """Show a study's variants, its trials in their order, and the time they will take. Measures nothing.

    It also shows what the trials will do to the host, where they write, and which variants will be blocked
    here, and why. It reports all mistakes at once; a baseline that will be blocked is one. To find them it
    runs what the study names: the program of the engine and of the compiler, to read its version, and the
    text of a script in Lua. Where the study brings SQL of its own, it starts a server of the baseline, has it
    prepare each statement on empty tables, or on a copy of the data that the study brings, and removes the
    server. Such data are loaded first, and kept for the run.
    """
    body("plan:main")(**asked)


@click.command()
@json_option
@click.option(
    "--platform",
    metavar="ARCHITECTURE",
    help="Find out what works of another architecture here: programs and engines, under an emulator.",
)
@click.option(
    "--program",
    "programs",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --platform: a program in C that is compiled, linked and run as well. It ends with 0 where all"
    " is well.",
)
def probe(**asked: Any) -> None:
    """Find out what this host is and offers, by doing each thing and restoring it.

    Takes a few seconds. As root it can tell more; without, it says what needs root. With --platform it takes
    about a minute, and times nothing.
    """
    body("probe:main")(**asked)


@click.command()
@click.argument("study", required=False, type=click.Path(path_type=Path))
@click.option("--blocks", type=click.IntRange(1), help="The run will have this many blocks.")
@click.option(
    "--until",
    type=click.Choice(["margin"]),
    help="The run will end when its verdicts stand, after 50 blocks at most (or --blocks).",
)
@json_option
@store_option
def register(**asked: Any) -> None:
    """Write STUDY down before its first trial: its text, its files, how it will be analysed, and this host.

    The entry goes to the end of a chain in the store, and each entry holds the digest of the one before. A
    run of the study then says that it was registered, and names what was carried out otherwise. Give the
    digest that is printed to somebody else, or commit it: only that shows when the study was registered,
    because the clock and the store are yours.

    Without STUDY: list what is registered, and check the chain.
    """
    body("register:main")(**asked)


@click.command(cls=WaitingCommand)
@click.argument("study", required=False, type=click.Path(path_type=Path))
@click.option("--engine", help="Without a study: an engine as a study names it, such as mariadb@11.8.")
@click.option("--workload", help="Without a study: a workload, with its default options.")
@click.option("--clients", type=click.IntRange(1), default=1, show_default=True, help="Without a study.")
@click.option("--time", "time_s", type=Duration(), default=90.0, help="For slices (default 90s).")
@devices_option
@paths_option
@wait_option
@json_option
def calibrate(**asked: Any) -> None:
    """Measure how much one setup differs from itself here, under several bindings, and keep the best.

    One server runs the study's baseline. Pairs of short slices follow one another under each binding of
    server and driver, in random order. Studies of this engine, workload with its options, and number of
    clients use the best binding until they say otherwise: `cpu` levels of their own, or --no-calibration.
    """
    body("calibrate:main")(**asked)
