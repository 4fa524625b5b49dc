"""`dyno init`: a first study, from five answers or from two configuration files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from dbdyno.cli.study_file import catalogue, installation_of
from dbdyno.engines import registry
from dbdyno.engines.configuration import read_configuration
from dbdyno.engines.engine import Engine
from dbdyno.errors import UserError
from dbdyno.frozen import Configuration, Level
from dbdyno.study.fraction import FACTORS_LEAST, FACTORS_MOST
from dbdyno.study.reference import Reference

GOALS = {"throughput": "throughput", "latency": "p99_ms", "cpu": "server_cpu_us_per_op"}
SIZES = ("scale", "warehouses", "table_size")
"""Options of workloads that say how large the data are."""


@click.command()
@click.argument("engine", type=click.Choice(sorted(registry.ENGINES)))
@click.option("--goal", type=click.Choice(list(GOALS)), help="What hurts.")
@click.option("--workload", help="What the load is.")
@click.option("--clients", type=click.IntRange(1), help="How many clients work at a time.")
@click.option("--size", type=click.IntRange(1), help="How large the data are, in the workload's own measure.")
@click.option("--time", "time_", help="How long a run may take, such as 30m.")
@click.option("--from", "base", type=click.Path(path_type=Path), help="The configuration file that you have.")
@click.option("--to", "other", type=click.Path(path_type=Path), help="Vary what differs in this one.")
@click.option("--output", type=click.Path(path_type=Path), default=Path("study.toml"), show_default=True)
def command(
    engine: str,
    goal: str | None,
    workload: str | None,
    clients: int | None,
    size: int | None,
    time_: str | None,
    base: Path | None,
    other: Path | None,
    output: Path,
) -> None:
    """Write a first study of ENGINE, with comments. It asks five questions on a terminal; an option answers
    one of them. With --from and --to, the study varies what differs between two configuration files."""
    if output.exists():
        raise UserError(f"{output} is there already", "give another name with --output")
    if other is not None and base is None:
        raise UserError("--to needs the file that it is held against", "add --from FILE")
    goal = goal or _asked("What hurts", "throughput", list(GOALS))
    names = [offer.name for offer in catalogue(ask_engines=False).workloads]
    workload = workload or _asked("Which workload", "tpcb", names)
    if workload not in names:
        raise UserError(f"there is no workload {workload!r}", f"there are: {', '.join(names)}")
    clients = clients or int(_asked("How many clients", "8"))
    size = size or int(_asked("How large are the data, in the workload's measure", "10"))
    time_ = time_ or _asked("How long may a run take", "30m")
    head = [f'title = "What helps {registry.engine(engine).title}?"']
    parts = _compared(engine, base, other, output.parent)
    load = _load(workload, clients, size)
    aim = [
        "",
        "[goal]",
        f'response = "{GOALS[goal]}"',
        'margin   = "2%"         # closer than this: no effect',
    ]
    output.write_text("\n".join([*head, *parts[0], "", *load, *parts[1], *aim]) + "\n", encoding="utf-8")
    click.echo(
        f"{output}\n  see what it does: dyno plan {output}\n  then: dyno run {output} --budget {time_}"
    )


def _asked(question: str, default: str, choices: list[str] | None = None) -> str:
    """The answer of whoever sits at the terminal; the default where nobody does."""
    if not sys.stdin.isatty():
        return default
    kind = click.Choice(choices) if choices else None
    return str(click.prompt(question, default=default, type=kind))


def _load(workload: str, clients: int, size: int) -> list[str]:
    offer = catalogue(ask_engines=False).workload(workload)
    measure = next((name for name in SIZES if offer and offer.option(name)), None)
    sized = [f"{measure} = {size}"] if measure else []
    return ["[workload]", f'name = "{workload}"', *sized, f"clients = {clients}", 'duration = "20s"']


def _compared(name: str, base: Path | None, other: Path | None, folder: Path) -> tuple[list[str], list[str]]:
    """The lines of the engine and the design, and those of the factors."""
    engine = registry.engine(name)
    if base is None:
        return [f'engine = "{name}"'], _factors(engine.settings.OFTEN_VARIED)
    left = _read(engine, base)
    table = f'engine = {{ name = "{name}", configuration = {json.dumps(_from(base, folder))} }}'
    if other is None:
        return [table], _factors(engine.settings.OFTEN_VARIED)
    right = _read(engine, other)
    both = [one for one in left.settings if one in right.settings]
    varied = {
        one: (left.settings[one], right.settings[one])
        for one in both
        if left.settings[one] != right.settings[one]
    }
    if not varied:
        raise UserError(f"{base} and {other} set nothing differently", "see what they give: dyno plan STUDY")
    alone = sorted(left.settings.keys() ^ right.settings.keys())
    told = [f"# {one} is set in one file alone: to vary it, give both levels" for one in alone]
    return [table, f'design = "{_design(len(varied))}"'], [*_factors(varied), *told]


def _design(factors: int) -> str:
    """All combinations explain a gap exactly, a fraction nearly; of many factors neither is in reach."""
    if factors < FACTORS_LEAST:
        return "factorial"
    return "fractional-factorial" if factors <= FACTORS_MOST else "one-at-a-time"


def _read(engine: Engine, path: Path) -> Configuration:
    installation = installation_of(Reference(engine=engine.name))
    try:
        return read_configuration(engine, installation, str(path), Path())
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}", "give the path of a configuration file") from None


def _from(path: Path, folder: Path) -> str:
    """The path as the study names it: from its own folder where the file lies in there."""
    whole, within = path.resolve(), folder.resolve()
    return str(whole.relative_to(within) if whole.is_relative_to(within) else whole)


def _factors(varied: Mapping[str, tuple[Level, ...]]) -> list[str]:
    rows = [f'"{name}" = {json.dumps(list(levels), ensure_ascii=False)}' for name, levels in varied.items()]
    return ["", "[factors]  # the first level of each is the baseline's", *rows]
