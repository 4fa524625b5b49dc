"""`dyno plan`: what a study would do. No side effect."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from pydantic import Field
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.adapted import Adapted, adapted, seed_of
from dbdyno.cli.application import PlannedApplication, application_lines, planned_application
from dbdyno.cli.arrangement import arranged_text
from dbdyno.cli.budget import budget_text
from dbdyno.cli.building import builds_lines, builds_of
from dbdyno.cli.catalogue import unchecked_text
from dbdyno.cli.counted import counted_text, counting_text, why_counted
from dbdyno.cli.estimate import counted_s, overhead_s, restarts_s
from dbdyno.cli.options import budget_option, calibration_option, json_option, refuse_both
from dbdyno.cli.restarts import restarts_text
from dbdyno.cli.space import print_space, require_space
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
from dbdyno.study import Design, Factor, Study, fraction
from dbdyno.study.act import OF_POWER
from dbdyno.study.designs import counted_variants, extremes_of, trials_in_all
from dbdyno.study.soak import Soak
from dbdyno.study.space import Search
from dbdyno.study.trials import Plan, Trial, Variant
from dbdyno.trial.pristine import worth_s


class PlanDocument(Frozen):
    """A plan as `--json` prints it, without the phases of trials and the text of the configuration file.
    `unchecked` says what of the study could not be checked; empty where all was. `counted` are the variants
    whose work is counted after the timed blocks; `counting` is how builds are, where the study leaves it
    open. A search has no trials beforehand, but `factors` and what its `search` keeps to."""

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
    factors: tuple[Factor, ...] = Field(default=(), exclude_if=lambda factors: not factors)
    search: Search | None = Field(default=None, exclude_if=lambda search: search is None)
    application: PlannedApplication | None = Field(default=None, exclude_if=lambda planned: planned is None)


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
    plan, builds = _planned(read), builds_of(read)
    expected_s = _expected_s(read, plan, budget_s) + sum(one.whole_s for one in builds)
    foresight = _foresight(read, plan)
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
            factors=read.factors if read.search is not None else (),
            search=read.search,
            application=planned_application(read),
        )
        click.echo(json.dumps(document.model_dump(mode="json", exclude=_NOT_PRINTED), indent=2))
        return
    console = Console(highlight=False)
    if read.search is not None:
        print_space(console, read, plan.seed)
    else:
        _print_plan(console, read, plan)
    _print_foresight(console, read, foresight, [one.name for one in plan.variants if read.search is None])
    habits = configuration.lines(read.configuration) if read.configuration is not None else []
    for line in (*habits, *builds_lines(builds)):
        console.print(Text(line))
    if unchecked := unchecked_text(read):
        console.print(Text(unchecked, style="yellow"))
    fitted = budget_text(read) if budget_s is not None and read.search is None else ""
    for line in filter(None, (here.told, fitted)):
        console.print(Text(line))
    for line in _beside_blocks(read, here):
        console.print(Text(line))
    console.print(Text(arranged_text(read, here.arranged)))
    console.print(Text(_images_text(read, budget_s)))
    if read.factors or read.aa or read.soak is None:
        console.print(Text(_whole_text(read, expected_s), style="bold"))
    if read.soak is not None:
        console.print(Text(_soak_text(read, read.soak)))


def _beside_blocks(study: Study, here: Adapted) -> Iterator[str]:
    """What a run does beside its blocks: work that is counted, and engines that are restarted."""
    counted = why_counted(study) or counted_text(study)
    counting = counting_text(here.counting, counted_s(study))
    yield from filter(None, (counted, counting, restarts_text(study)))


def _whole_text(study: Study, expected_s: float) -> str:
    """How many trials there are, and how long they take."""
    if study.search is not None:
        return f"as many trials as fit into {duration(expected_s)}"
    return f"{plural(trials_in_all(study), 'trial')}, about {duration(expected_s)}"


def _soak_text(study: Study, soak: Soak) -> str:
    """What `dyno soak` would do with the study."""
    rungs = ", ".join(f"{clients:,}" for clients in soak.clients)
    whole_s = soak_s(soak, study, overhead_s(study))
    cuts = ", on volumes of Dyno's own, which needs root" if OF_POWER & set(soak.ends) else ""
    return f"`dyno soak` has rungs of {rungs} clients{cuts}, and takes about {duration(whole_s)}"


def _planned(study: Study) -> Plan:
    """All trials in their order. A search has none beforehand; its variants are what shows best what it may
    do to the host."""
    order = Order(seed=seed_of(study))
    if study.search is None:
        return make_plan(study, order)
    return Plan(variants=extremes_of(study), trials=(), seed=order.seed)


def _expected_s(study: Study, plan: Plan, budget_s: float | None) -> float:
    """Seconds that the trials will take. Raises UserError for a search that is given too few."""
    if study.search is None:
        timed_s = expected_duration_s(len(plan.trials), study, overhead_s(study))
        return timed_s + counted_s(study) + restarts_s(study)
    time_s = budget_s or study.search.time_s
    require_space(study, time_s)
    return time_s


def _images_text(study: Study, budget_s: float | None) -> str:
    """How many images of the pristine data blocks take in turn, as far as that is known before the first."""
    if study.search is not None:
        return "pristine data: the confirmation takes images of its own"
    if study.images is not None:
        turns = ", which blocks take in turn" if study.images > 1 else ""
        return f"pristine data: {plural(study.images, 'image')}{turns}"
    limit = seconds_text(worth_s(study, budget_s))
    return f"pristine data: one image, and a second one for every second block if it takes at most {limit}"


def _foresight(study: Study, plan: Plan) -> Foresight:
    levels = {variant.name: {**study.settings, **variant.levels} for variant in plan.variants}
    found = foresee(levels, registry.engine(study.engine.engine))
    # In a search, what is idle beside the baseline's other levels need not be so in a candidate.
    return found if study.search is None else found.model_copy(update={"idle": ()})


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
            str(block + 1), " ".join(str(numbers[t.variant.name]) for t in plan.trials if t.block == block)
        )
    console.print(order)
    if study.design is Design.FRACTIONAL:
        letters = zip(fraction.LETTERS, study.factors, strict=False)
        named = [f"{letter} = {factor.name}" for letter, factor in letters]
        console.print(Text("\n".join([*fraction.description(len(study.factors)), *named])))


def _print_foresight(console: Console, study: Study, foresight: Foresight, variants: list[str]) -> None:
    """What stands in front of the server. Then a line for each thing that is done to the host, and one
    for each reason why variants are blocked."""
    for line in application_lines(planned_application(study)):
        console.print(line)
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
    """Variants by the numbers of their rows, or by name where they have none."""
    if not variants:
        return ", ".join(names)
    if len(names) == len(variants):
        return "all variants"
    numbers = ", ".join(str(variants.index(name)) for name in names)
    return f"variant {numbers}" if len(names) == 1 else f"variants {numbers}"
