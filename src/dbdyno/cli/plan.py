"""`dyno plan`: what a study would do, and every mistake in it that can be found before the first trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.cli.terminal import tell, terminal
from dbdyno.findings import configuration
from dbdyno.frozen import WHOLE_FILES, Configuration, Frozen, absent, listed
from dbdyno.host.cache import Tell
from dbdyno.host.launch import servers_text
from dbdyno.host.writers import Allowed
from dbdyno.layers.registry import Foresight, HostChange, Idle, Refusal, foresee
from dbdyno.obtain.source.build import Foreseen
from dbdyno.plan.arrangement import Arranged
from dbdyno.plan.blocks import Order, expected_duration_s, make_plan
from dbdyno.prepare_run.adapted import Adapted, adapted, arranged_text, budget_text, memory_text, seed_of
from dbdyno.prepare_run.building import builds_lines, builds_of, counted_text, counting_text, why_counted
from dbdyno.prepare_run.checked import (
    blocked_of,
    levels_in,
    require_baseline_unblocked,
    require_sound,
    unstartable,
)
from dbdyno.prepare_run.estimate import (
    UNKNOWN,
    Write,
    beside_blocks_s,
    counted_s,
    images_text,
    load_host_lines,
    overhead_s,
    restarts_text,
    rounds_seen_s,
    writes_lines,
    writes_of,
)
from dbdyno.prepare_run.running import in_use_of, server_lines
from dbdyno.prepare_run.stored_study import (
    PlannedFront,
    acts_lines,
    front_lines,
    planned_fronts,
    published_lines,
)
from dbdyno.prepare_run.study_here import PlannedData, engine_of, planned_data, study_at, unchecked_text
from dbdyno.records.in_use import InUse
from dbdyno.records.place import store_url
from dbdyno.records.run import Calibrated, Counting
from dbdyno.report.words.numbers import about_text, plural
from dbdyno.report.words.safe import json_text
from dbdyno.study import Design, Factor, Study, designs, excludes
from dbdyno.study.designs import counted_variants, extremes_of, trials_in_all
from dbdyno.study.nouns import STATEMENTS, Search
from dbdyno.study.published import PublishedFigure
from dbdyno.study.soak import OF_POWER, Soak
from dbdyno.study.trials import Plan, Trial, Variant


class PlanDocument(Frozen):
    """A plan as `--json` prints it, without the phases of trials and the text of the configuration file.
    `unchecked` says what of the study's levels could not be checked; empty where all was. `checks` say what
    became of the study's own statements. `expected_s` is None where nobody has seen how long its rounds of
    statements take. `writes` are all places that a run writes to, and `servers` says how
    its servers see the host. `counted` are the variants whose work is counted after the timed blocks;
    `counting` is how builds are, where it is left
    open. A search has no trials beforehand, but `factors` and what its `search` keeps to."""

    title: str
    expected_s: float | None
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
    writes: tuple[Write, ...]
    servers: str
    calibrated: Calibrated | None
    factors: tuple[Factor, ...] = absent(())
    search: Search | None = absent(None)
    in_front: tuple[PlannedFront, ...] = absent(())
    data: tuple[PlannedData, ...] = absent(())
    checks: tuple[str, ...] = absent(())
    in_use: InUse | None = absent(None)
    published: tuple[PublishedFigure, ...] = absent(())


# All trials of a study have the same phases.
_NOT_PRINTED: Any = {"trials": {"__all__": {"phases"}}, "configuration": WHOLE_FILES}


def main(
    study: Path,
    blocks: int | None,
    seed: int | None,
    start: bool,
    budget_s: float | None,
    calibration: bool,
    allowed_paths: tuple[Path, ...],
    store: str | None,
    as_json: bool,
) -> None:
    excludes.require(budget=budget_s, blocks=blocks)
    allowed = Allowed.of((), allowed_paths)
    asked = study_at(study, blocks, seed, allowed)
    builds = builds_of(asked)
    checks = require_sound(asked, tell, builds, allowed=allowed)
    url = store_url(store)
    if budget_s is None:
        here = adapted(asked, calibration=calibration)
    else:
        # Here, because a plan without a budget needs no store.
        from dbdyno.records.store import store_there

        with store_there(url) as kept:
            here = adapted(asked, budget_s, calibration, kept)
    whole = _Whole(here, builds, budget_s, checks, url, allowed)
    if start:
        whole.start(tell)
    if as_json:
        click.echo(json_text(whole.document.model_dump(mode="json", exclude=_NOT_PRINTED)))
    else:
        whole.print_on(terminal())


class _Whole:
    """All that is known of a study before it is carried out. Raises UserError for a search that is given too
    little time."""

    def __init__(
        self,
        here: Adapted,
        builds: tuple[Foreseen, ...],
        budget_s: float | None,
        checks: tuple[str, ...],
        store: str,
        allowed: Allowed,
    ) -> None:
        self.here, self.builds, self.budget_s, self.checks = here, builds, budget_s, checks
        self.study, self.plan = here.study, _planned(here.study)
        builds_s, trials_s = (
            sum(one.whole_s for one in self.builds),
            _expected_s(here, self.plan, budget_s, store),
        )
        self.expected_s = None if trials_s is None else trials_s + builds_s
        self.foresight = _foresight(here.study, self.plan, allowed)
        self.writes = writes_of(here.study, self.foresight.host, store, allowed)

    def start(self, tell: Tell) -> None:
        """Adds the variants whose servers do not start. Raises StudyError where the baseline's does not."""
        told = self.foresight.blocked
        known = {(one.factor, name) for one in told for name in one.variants}
        found = tuple(
            one
            for one in unstartable(self.study, self.plan.variants, tell)
            # A server that does not know a setting does not tell it either: that was said.
            if any((one.factor, name) not in known for name in one.variants)
        )
        require_baseline_unblocked(self.study, found)
        self.foresight = self.foresight.but(blocked=(*told, *found))

    @property
    def document(self) -> PlanDocument:
        """As `--json` prints it."""
        study, here = self.study, self.here
        return PlanDocument(
            title=study.title,
            expected_s=self.expected_s,
            unchecked=unchecked_text(study),
            checks=self.checks,
            configuration=study.configuration,
            arrangement=here.arranged,
            builds=self.builds,
            counted=tuple(variant.name for variant in counted_variants(study)),
            counting=here.counting,
            **dict(self.plan),
            **dict(self.foresight),
            writes=self.writes,
            servers=servers_text(),
            calibrated=here.calibrated,
            factors=study.factors if study.search is not None else (),
            search=study.search,
            published=study.published,
            **_around_load(study),
        )

    def print_on(self, console: Console) -> None:
        """As the terminal shows it."""
        study, plan = self.study, self.plan
        if study.search is not None:
            _print_space(console, study, plan.seed)
        else:
            _print_plan(console, study, plan)
        _print_foresight(
            console, study, self.foresight, [one.name for one in plan.variants if study.search is None]
        )
        for line in (*writes_lines(self.writes), *self._lines()):
            console.print(line)
        if study.factors or study.aa or study.soak is None:
            console.print(Text(_whole_text(study, self.expected_s), style="bold"))
        if study.soak is not None:
            console.print(Text(_soak_text(study, study.soak)))

    def _lines(self) -> Iterator[Text]:
        """What stands below the trials."""
        study, here = self.study, self.here
        habits = configuration.lines(study.configuration) if study.configuration is not None else []
        yield from map(Text, (*habits, *builds_lines(self.builds)))
        if unchecked := unchecked_text(study):
            yield Text(unchecked, style="yellow")
        fitted = budget_text(study, here.basis) if here.basis is not None else ""
        lines = [*self.checks, here.told, fitted, *_beside_blocks(study, here)]
        if not study.untimed:
            lines += [arranged_text(study, here.arranged), memory_text(study, here.arranged)]
            lines.append(images_text(study, self.budget_s))
        yield from map(Text, filter(None, (*lines, *published_lines(study))))


def _around_load(study: Study) -> dict[str, Any]:
    """What stands in front of the server, and the data that it begins with."""
    return {
        "in_front": planned_fronts(study),
        "data": planned_data(study),
        "in_use": in_use_of(study),
    }


def _beside_blocks(study: Study, here: Adapted) -> Iterator[str]:
    """What a run does beside its blocks: work that is counted, and engines that are restarted."""
    counted = why_counted(study) or counted_text(study)
    counting = counting_text(here.counting, counted_s(study))
    yield from filter(None, (counted, counting, restarts_text(study)))


def _whole_text(study: Study, expected_s: float | None) -> str:
    """How many trials there are, and how long they take."""
    if expected_s is None:
        return f"{plural(trials_in_all(study), 'trial')}; {UNKNOWN}"
    if study.search is not None:
        return f"as many trials as fit into {about_text(expected_s)}"
    return f"{plural(trials_in_all(study), 'trial')}, about {about_text(expected_s)}"


def _soak_text(study: Study, soak: Soak) -> str:
    """What `dyno soak` would do with the study."""
    rungs = ", ".join(f"{clients:,}" for clients in soak.clients)
    # Here, because most studies soak nothing.
    from dbdyno.plan.blocks import soak_expected_s

    whole_s = soak_expected_s(soak, study, overhead_s(study))
    cuts = ", on volumes of Dyno's own, which needs root" if OF_POWER & set(soak.ends) else ""
    return f"`dyno soak` has rungs of {rungs} clients{cuts}, and takes about {about_text(whole_s)}"


def _planned(study: Study) -> Plan:
    """All trials in their order. A search has none beforehand; its variants are what shows best what it may
    do to the host."""
    order = Order(seed=seed_of(study))
    if study.search is None:
        return make_plan(study, order)
    return Plan(variants=extremes_of(study), trials=(), seed=order.seed)


def _expected_s(here: Adapted, plan: Plan, budget_s: float | None, store: str) -> float | None:
    """Seconds that the trials will take; None where nobody knows. Raises UserError for a search that is given
    too few."""
    study = here.study
    if study.workload.name == STATEMENTS and study.search is None:
        # Here, because what other loads take is known by their study.
        from dbdyno.records.store import store_there

        with store_there(store) as kept:
            seen_s = rounds_seen_s(kept, study)
        return len(plan.trials) * fmean(seen_s) if seen_s else None
    if study.search is None:
        beside_s = here.basis.overhead_s if here.basis is not None else overhead_s(study)
        return expected_duration_s(len(plan.trials), study, beside_s) + beside_blocks_s(study)
    time_s = budget_s or study.search.time_s
    # Here and below, because most studies search nothing.
    from dbdyno.kinds.search import require_space

    require_space(study, time_s)
    return time_s


def _foresight(study: Study, plan: Plan, allowed: Allowed) -> Foresight:
    levels = levels_in(study, plan.variants)
    found = foresee(levels, partial(engine_of, study))
    found = found.but(blocked=blocked_of(study, plan.variants, allowed))
    # In a search, what is idle beside the baseline's other levels need not be so in a candidate.
    return found if study.search is None else found.but(idle=())


def _print_plan(console: Console, study: Study, plan: Plan) -> None:
    console.print(Text(study.title, style="bold"))
    blocks = "nothing is timed" if study.untimed else plural(study.blocks, "block")
    console.print(Text(f"{study.design.value}, {blocks}, seed {plan.seed}"))
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
    if study.blocks:
        console.print(order)
    if study.design is Design.FRACTIONAL:
        letters = zip(designs.LETTERS, study.factors, strict=False)
        named = [f"{letter} = {factor.name}" for letter, factor in letters]
        console.print(Text("\n".join([*designs.description(len(study.factors)), *named])))


def _print_foresight(console: Console, study: Study, foresight: Foresight, variants: list[str]) -> None:
    """What stands in front of the server. Then a line for each thing that is done to the host, and one
    for each reason why variants are blocked."""
    for line in (
        *load_host_lines(study),
        *map(Text, (*front_lines(study), *server_lines(study), *acts_lines(study))),
    ):
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
        told = f"not used by the load, {who}: {idle.factor} cannot matter, because {idle.reason}"
        console.print(Text(told, style="yellow"))
    stopped = {name for refusal in foresight.blocked for name in refusal.variants}
    if stopped and variants:
        will = [name for name in variants if name not in stopped]
        console.print(Text(f"will run: {_who(will, variants)}" if will else "no variant will run"))


def _who(names: Sequence[str], variants: list[str]) -> str:
    """Variants by the numbers of their rows, or by name where they have none."""
    if not variants:
        return listed(names)
    if len(names) == len(variants):
        return "all variants"
    numbers = listed([str(variants.index(name)) for name in names])
    return f"variant {numbers}" if len(names) == 1 else f"variants {numbers}"


def _print_space(console: Console, study: Study, seed: int) -> None:
    """The factors with their levels and conditions, and what else the search is to keep to."""
    from dbdyno.kinds.search import limits_of_search, space_row, space_text
    from dbdyno.plan.search.ask import FINALISTS

    console.print(Text(study.title, style="bold"))
    console.print(Text(f"{study.design.value} of {space_text(study)}, seed {seed}"))
    if study.seed is None:
        again = f"give --seed {seed} to `dyno tune` to have the same draws"
        console.print(Text(f"drawn from seed {seed}; {again}"))
    factors = Table(box=None, pad_edge=False)
    for head in ("factor", "baseline", "levels", "only if"):
        factors.add_column(head, no_wrap=head == "factor", overflow="fold")
    for factor in study.factors:
        factors.add_row(*map(Text, space_row(factor)))
    console.print(factors)
    for line in limits_of_search(study):
        console.print(Text(line))
    confirmed = f"the {FINALISTS} best candidates and the baseline"
    if study.variants:
        confirmed += f", and {listed([variant.name for variant in study.variants])}"
    console.print(Text(f"confirmed in {plural(study.blocks, 'block')} of their own: {confirmed}"))
