"""`dyno plan`: what a study would do. No side effect."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.adapted import adapted, seed_of
from dbdyno.cli.arrangement import arranged_text
from dbdyno.cli.budget import budget_text
from dbdyno.cli.building import builds_lines, builds_of
from dbdyno.cli.catalogue import unchecked_text
from dbdyno.cli.counted import counted_text, counting_text, why_counted
from dbdyno.cli.estimate import counted_s, overhead_s
from dbdyno.cli.options import budget_option, calibration_option, json_option, refuse_both
from dbdyno.cli.study_file import study_at
from dbdyno.cli.wording import duration
from dbdyno.engines import registry
from dbdyno.engines.built import Foreseen
from dbdyno.frozen import WHOLE_FILES, Configuration, Frozen
from dbdyno.layers.foresight import Foresight, HostChange, Idle, Refusal, foresee
from dbdyno.plan.arrangement import Arranged
from dbdyno.plan.blocks import expected_duration_s, make_plan
from dbdyno.plan.order import Order
from dbdyno.plan.soak import expected_s as soak_s
from dbdyno.records.record import Calibrated, Counting
from dbdyno.report.parts import configuration
from dbdyno.report.words.numbers import plural, seconds_text
from dbdyno.study import Design, Study, fraction
from dbdyno.study.designs import counted_variants, trials_in_all
from dbdyno.study.soak import Soak
from dbdyno.study.trials import Plan, Trial, Variant
from dbdyno.trial.pristine import worth_s


class PlanDocument(Frozen):
    """A plan as `--json` prints it, without the phases of trials and the text of the configuration file.
    `unchecked` says what of the study could not be checked; empty where all was. `counted` are the variants
    whose work is counted after the timed blocks; `counting` is how builds are, where the study leaves it
    open."""

    title: str
    expected_s: float
    unchecked: str
    configuration: Configuration | None
    arrangement: Arranged
    builds: tuple[Foreseen, ...]
    counted: tuple[str, ...]
    counting: Counting | None
    variants: tuple[Variant, ...]
    trials: tuple[Trial, ...]
    seed: int
    host: tuple[HostChange, ...]
    blocked: tuple[Refusal, ...]
    idle: tuple[Idle, ...]
    calibrated: Calibrated | None


# All trials of a study have the same phases.
_NOT_PRINTED: Any = {"trials": {"__all__": {"phases"}}, "configuration": WHOLE_FILES}


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--blocks", type=click.IntRange(1), help="Take this many blocks instead of the study's.")
@click.option(
    "--seed",
    type=int,
    help="Draw the order from this seed, not the study's or a random one.",
)
@budget_option
@calibration_option
@json_option
def command(
    study: Path,
    blocks: int | None,
    seed: int | None,
    budget_s: float | None,
    calibration: bool,
    as_json: bool,
) -> None:
    """Show a study's variants, its trials in their order, and the time they will take. Touches nothing.

    It shows as well what the trials will do to the host, and which variants cannot be put into effect
    anywhere.
    """
    refuse_both("--budget", budget_s, blocks=blocks)
    here = adapted(study_at(study, blocks, seed), budget_s, calibration)
    read = here.study
    plan = make_plan(read, Order(seed=seed_of(read)))
    expected_s = expected_duration_s(len(plan.trials), read, overhead_s(read)) + counted_s(read)
    foresight, builds = _foresight(read, plan), builds_of(read)
    expected_s += sum(one.whole_s for one in builds)
    if as_json:
        document = PlanDocument(
            title=read.title,
            expected_s=expected_s,
            unchecked=unchecked_text(read),
            configuration=read.configuration,
            arrangement=here.arranged,
            builds=builds,
            counted=tuple(variant.name for variant in counted_variants(read)),
            counting=here.counting,
            **dict(plan),
            **dict(foresight),
            calibrated=here.calibrated,
        )
        click.echo(json.dumps(document.model_dump(mode="json", exclude=_NOT_PRINTED), indent=2))
        return
    console = Console(highlight=False)
    _print_plan(console, read, plan)
    _print_foresight(console, foresight, [variant.name for variant in plan.variants])
    told = configuration.lines(read.configuration) if read.configuration is not None else []
    for line in (*told, *builds_lines(builds)):
        console.print(Text(line))
    if unchecked := unchecked_text(read):
        console.print(Text(unchecked, style="yellow"))
    for line in filter(None, (here.told, budget_text(read) if budget_s is not None else "")):
        console.print(Text(line))
    counted = why_counted(read) or counted_text(read)
    for line in filter(None, (counted, counting_text(here.counting, counted_s(read)))):
        console.print(Text(line))
    console.print(Text(arranged_text(read, here.arranged)))
    console.print(Text(_images_text(read, budget_s)))
    console.print(
        f"{plural(trials_in_all(read), 'trial')}, about {duration(expected_s)}", style="bold", markup=False
    )
    if read.soak is not None:
        console.print(Text(_soak_text(read, read.soak)))


def _soak_text(study: Study, soak: Soak) -> str:
    """What `dyno soak` would do with the study."""
    rungs = ", ".join(f"{clients:,}" for clients in soak.clients)
    whole_s = soak_s(soak, study, overhead_s(study))
    return f"`dyno soak` has rungs of {rungs} clients, and takes about {duration(whole_s)}"


def _images_text(study: Study, budget_s: float | None) -> str:
    """How many images of the pristine data blocks take in turn, as far as that is known before the first."""
    if study.images is not None:
        turns = ", which blocks take in turn" if study.images > 1 else ""
        return f"pristine data: {plural(study.images, 'image')}{turns}"
    limit = seconds_text(worth_s(study, budget_s))
    return f"pristine data: one image, and a second one for every second block if it takes at most {limit}"


def _foresight(study: Study, plan: Plan) -> Foresight:
    levels = {variant.name: {**study.settings, **variant.levels} for variant in plan.variants}
    return foresee(levels, registry.engine(study.engine.engine))


def _print_plan(console: Console, study: Study, plan: Plan) -> None:
    console.print(Text(study.title, style="bold"))
    console.print(Text(f"{study.design.value}, {plural(study.blocks, 'block')}, seed {plan.seed}"))
    if study.seed is None:
        again = f"give --seed {plan.seed} to `dyno run` to have this order"
        console.print(Text(f"order drawn from seed {plan.seed}; {again}"))
    variants = Table(box=None, pad_edge=False)
    variants.add_column("#", justify="right")
    variants.add_column("variant")
    for number, variant in enumerate(plan.variants):
        variants.add_row(str(number), Text(variant.name))
    console.print(variants)
    numbers = {variant.name: number for number, variant in enumerate(plan.variants)}
    order = Table(box=None, pad_edge=False)
    order.add_column("block", justify="right")
    order.add_column("variants in their order")
    for block in range(study.blocks):
        order.add_row(
            str(block), " ".join(str(numbers[t.variant.name]) for t in plan.trials if t.block == block)
        )
    console.print(order)
    if study.design is Design.FRACTIONAL:
        letters = zip(fraction.LETTERS, study.factors, strict=False)
        named = [f"{letter} = {factor.name}" for letter, factor in letters]
        console.print(Text("\n".join([*fraction.description(len(study.factors)), *named])))


def _print_foresight(console: Console, foresight: Foresight, variants: list[str]) -> None:
    """A line for each thing that is done to the host; then one for each reason why variants are blocked."""
    if not foresight.host:
        console.print("nothing is done to this host beyond processes and folders of Dyno's own")
    else:
        console.print(Text("done to this host during trials", style="bold"))
    for change in foresight.host:
        told = f"{change.factor}: {change.does}; {change.after}; needs {change.needs}"
        console.print(Text(f"  {told} ({_who(change.variants, variants)})"))
    for refusal in foresight.blocked:
        remedy = f"; {refusal.remedy}" if refusal.remedy else ""
        who = _who(refusal.variants, variants)
        console.print(Text(f"blocked, {who}: {refusal.reason}{remedy}", style="yellow"))
    for idle in foresight.idle:
        who = _who(idle.variants, variants)
        told = f"not exercised, {who}: {idle.factor} cannot matter, because {idle.reason}"
        console.print(Text(told, style="yellow"))


def _who(names: Sequence[str], variants: list[str]) -> str:
    """Variants by the numbers of their rows."""
    if len(names) == len(variants):
        return "all variants"
    numbers = ", ".join(str(variants.index(name)) for name in names)
    return f"variant {numbers}" if len(names) == 1 else f"variants {numbers}"
