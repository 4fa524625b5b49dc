"""What each variant loses when its engine ends, and how long it takes to come back.

A loss is a count, not a sample of speeds: one acknowledged transaction that is gone is proof. That none was
lost is only as good as the number of rounds, so a bound on the share of losing rounds stands beside it. And a
cut that could not take anything along would prove nothing, so a control that must lose stands beside all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median

from pydantic import Field

from dbdyno.analyse.quantiles import is_beaten
from dbdyno.frozen import Frozen, absent
from dbdyno.records.metrics import median_of
from dbdyno.records.record import Loss, Outcome, Platform, Record, Recovery
from dbdyno.records.reset import Log, Reset
from dbdyno.study import Study
from dbdyno.study.designs import CONTROL, variants_of
from dbdyno.study.nouns import PLATFORM_FACTOR
from dbdyno.study.soak import OF_POWER, Act

CONFIDENCE = 0.95
"""Of the bound on the share of losing rounds, each by itself."""


OF_KERNEL = "10"
"""The register that the kernel adds to."""


class Spread(Frozen):
    """Seconds over some rounds."""

    median: float
    least: float
    most: float


class OnNodes(Frozen):
    """What the rounds of one act on a cluster's nodes came to. A node was back within `rejoin_s`, by each of
    `transfers` so often; another one took the first one's place within `replaced_s`. No commit was
    acknowledged for `silent_s`, and whoever gave a node all data came no further for `donor_still_s`. After
    `unequal` rounds the nodes did not hold the same. Of `looks` at the
    latest commits of clients on other nodes, `stale` did not show them, the oldest `stale_ms_most` later."""

    rejoin_s: Spread | None = None
    transfers: dict[str, int] = Field(default_factory=dict)
    replaced_s: Spread | None = None
    silent_s: Spread | None = None
    donor_still_s: Spread | None = absent(None)
    unequal: int = 0
    looks: int = 0
    stale: int = 0
    stale_ms_most: float = 0.0


class OnMachine(Frozen):
    """What the resets of an emulated machine in one `way` came to.

    `again` says after how many the firmware ran. The guest needed `staged_s` to make one ready. From then on,
    the firmware had handed over after `firmware_s`, the guest was up after `boot_s`, and the engine had
    answered after `ready_s`. Of each log stand here how many events it had, at least and at most, and after
    how many resets it explained its registers; the kernel's also `with_earlier` logs, since the firmware last
    ran. The kernel's register had so many different values. `unexplained` are the registers that a log did
    not explain, and `faults` what could not be read of one, each told once.
    """

    way: str
    again: int
    staged_s: Spread
    firmware_s: Spread | None
    boot_s: Spread
    ready_s: Spread
    firmware_events: tuple[int, int]
    firmware_explains: int
    kernel_events: tuple[int, int]
    kernel_explains: int
    kernel_values: int
    with_earlier_explains: int
    unexplained: tuple[int, ...] = ()
    faults: tuple[str, ...] = ()


class ByAct(Frozen):
    """What one act did to a variant in all its rounds.

    In `losing` rounds acknowledged transactions were gone, `lost` in all and `lost_most` in one, the first of
    them at most `lost_ms_most` old; `acknowledged` are those of all rounds. After `damaged` rounds the data
    were not sound, or the engine did not come up. `torn_pages` is None where none were to be torn. Of flipped
    bits the engine `told`, or was `silent` and handed out another row; the rest it did not read. Times are
    medians over the rounds: until it answered, until the next load had its full speed, and of a clean stop.
    What became of a cluster's nodes is in `nodes`, and of a machine that was reset in `machine`.
    """

    act: Act
    rounds: int
    losing: int
    damaged: int
    acknowledged: int
    lost: int
    lost_most: int
    lost_ms_most: float
    torn_pages: int | None = None
    told: int = absent(0)
    silent: int = absent(0)
    ready_s: float | None = None
    full_speed_s: float | None = None
    stop_s: float | None = None
    nodes: OnNodes | None = absent(None)
    machine: OnMachine | None = absent(None)

    @property
    def share_most(self) -> float:
        """What share of such rounds may harm, by the rounds that did not: the bound of the binomial law where
        none of them did, 1 elsewhere."""
        if self.losing or self.damaged:
            return 1.0
        return 1.0 - float((1.0 - CONFIDENCE) ** (1.0 / self.rounds))


class Survivor(Frozen):
    """One variant, what its settings `permit` a power cut to take along, and what each act did in its
    `trials`. `faults` are what they do not permit, each told once. `cause` says why rounds are missing; empty
    where none are. In a study of platforms it ran on a `platform`, its server `says` for which machine it was
    built, its trials came to an `outcome`, and nothing has a time."""

    variant: str
    trials: tuple[int, ...] = ()
    permits: Loss = Loss.NOTHING
    acts: tuple[ByAct, ...] = ()
    faults: tuple[str, ...] = ()
    cause: str = ""
    platform: Platform | None = absent(None)
    says: str = absent("")
    outcome: Outcome | None = absent(None)

    @property
    def power(self) -> tuple[ByAct, ...]:
        """What happened without power."""
        return tuple(one for one in self.acts if one.act in OF_POWER)

    @property
    def loss(self) -> tuple[int, int]:
        """What the power cuts did at worst: after how many the data were damaged, and how many acknowledged
        transactions one of them took along."""
        damaged = sum(one.damaged for one in self.power)
        return damaged, max((one.lost_most for one in self.power), default=0)

    @property
    def harmed(self) -> bool:
        """Whether a power cut took something along that a client was told of, or damaged the data."""
        return any(one.losing or one.damaged for one in self.power)


class Survival(Frozen):
    """All variants, in the study's order, and the control; None where no power was cut. Where `unproven` says
    why, that nothing was lost says nothing. `frontier` names the variants that none beats in both, its speed
    and what power cuts took along; it is empty where they took nothing along of any variant."""

    variants: tuple[Survivor, ...]
    control: Survivor | None = None
    unproven: str = ""
    frontier: tuple[str, ...] = absent(())

    @property
    def tried(self) -> tuple[Survivor, ...]:
        """All that was tried, the control last."""
        return self.variants if self.control is None else (*self.variants, self.control)


def survival(study: Study, records: Sequence[Record]) -> Survival | None:
    """What the records of restarts say; None where there are none."""
    found = [record for record in records if record.of_restarts]
    if not found:
        return None
    variants = tuple(survivor(variant.name, found) for variant in variants_of(study) if not variant.twin)
    if study.untimed:
        variants = tuple(_on_platform(one, found) for one in variants)
    if not any(one.power for one in variants):
        return Survival(variants=variants)
    tried = Survival(variants=variants, control=survivor(CONTROL, found))
    return tried.but(unproven=_unproven(tried))


def with_frontier(found: Survival, worths: Mapping[str, float]) -> Survival:
    """With the variants that none beats in both. Of `worths`, by variant, more is better. What was not tried
    without power is left out, because nobody knows what it loses."""
    tried = [one for one in found.variants if one.power and not one.cause and one.variant in worths]
    if not any(one.harmed for one in tried):
        return found
    # Damage comes before losses, because no count of lost transactions is as bad.
    points = {one.variant: (worths[one.variant], tuple(-part for part in one.loss)) for one in tried}
    leading = tuple(name for name, point in points.items() if not is_beaten(point, points.values()))
    return found.but(frontier=leading)


def survivor(name: str, records: Iterable[Record]) -> Survivor:
    """One variant's rounds."""
    mine = sorted((record for record in records if record.variant == name), key=lambda record: record.trial)
    recoveries = [recovery for record in mine for recovery in record.recoveries]
    return Survivor(
        variant=name,
        trials=tuple(record.trial for record in mine),
        permits=Loss.gravest(recovery.permits for recovery in recoveries if recovery.act in OF_POWER),
        acts=tuple(_by_act(mine)),
        faults=tuple(dict.fromkeys(_faults(mine))),
        cause=next((one.cause for one in mine if one.outcome in (Outcome.BLOCKED, Outcome.FAILED)), ""),
    )


def _on_platform(one: Survivor, records: Iterable[Record]) -> Survivor:
    """A variant of a study of platforms, without the times of an emulator."""
    mine = [record for record in records if record.variant == one.variant]
    machine = (each for record in mine for each in record.evidence if each.factor == PLATFORM_FACTOR)
    effective = next((each.effective for each in machine), None)
    remedy = next((record.remedy for record in mine if record.cause == one.cause), "")
    return one.but(
        cause="; ".join(filter(None, (one.cause, remedy))),
        acts=tuple(act.but(ready_s=None, full_speed_s=None, stop_s=None) for act in one.acts),
        platform=next((record.platform for record in mine if record.platform), None),
        says="" if effective is None else f"{effective.value}: {effective.source}",
        outcome=max((record.outcome for record in mine), key=list(Outcome).index, default=None),
    )


def _faults(records: Iterable[Record]) -> Iterator[str]:
    """What acts took along that the settings do not permit, and what the engine did wrong before one came."""
    for record in records:
        yield from (recovery.fault for recovery in record.recoveries if recovery.fault)
        if record.outcome is Outcome.BROKEN:
            yield record.cause


def _by_act(records: Sequence[Record]) -> Iterator[ByAct]:
    order = list(Act).index
    found = (round for record in records for round in record.rounds)
    done = (round for round in found if not round[0].blocked)
    rounds = sorted(done, key=lambda round: order(round[0].act))
    for act, group in groupby(rounds, key=lambda round: round[0].act):
        pairs = list(group)
        recoveries = [recovery for recovery, _ in pairs]
        torn = [one.torn_pages for one in recoveries if one.torn_pages is not None]
        yield ByAct(
            act=act,
            rounds=len(recoveries),
            losing=sum(one.lost > 0 for one in recoveries),
            damaged=sum(bool(one.damage) for one in recoveries),
            acknowledged=sum(one.acknowledged for one in recoveries),
            lost=sum(one.lost for one in recoveries),
            lost_most=max(one.lost for one in recoveries),
            lost_ms_most=max(one.lost_ms for one in recoveries),
            torn_pages=sum(torn) if torn else None,
            ready_s=median_of(one.ready_s for one in recoveries),
            full_speed_s=median_of(full_speed_s for _, full_speed_s in pairs),
            stop_s=median_of(one.stop_s for one in recoveries),
            told=sum(one.told is True for one in recoveries),
            silent=sum(one.told is False for one in recoveries),
            nodes=_on_nodes(recoveries),
            machine=_on_machine([one.reset for one in recoveries if one.reset is not None]),
        )


def _on_nodes(recoveries: Sequence[Recovery]) -> OnNodes | None:
    """None where no node was struck."""
    found = [(one, one.cluster) for one in recoveries if one.cluster is not None]
    if not found:
        return None
    nodes = [cluster for _, cluster in found]
    return OnNodes(
        rejoin_s=spread_of_times(one.rejoin_s for one in nodes),
        transfers=dict(Counter(one.transfer for one in nodes if one.transfer)),
        replaced_s=spread_of_times(one.replaced_s for one in nodes),
        silent_s=spread_of_times(one.silent_s for one in nodes),
        donor_still_s=spread_of_times(one.donor_still_s for one in nodes),
        unequal=sum("nodes_equal" in one.damage for one, _ in found),
        looks=sum(one.looks for one in nodes),
        stale=sum(one.stale for one in nodes),
        stale_ms_most=max(one.stale_ms for one in nodes),
    )


def _on_machine(resets: Sequence[Reset]) -> OnMachine | None:
    """None where no machine was reset."""
    staged_s = spread_of_times(one.staged_s for one in resets)
    boot_s, ready_s = (
        spread_of_times(one.boot_s for one in resets),
        spread_of_times(one.ready_s for one in resets),
    )
    if staged_s is None or boot_s is None or ready_s is None:
        return None
    logs = [log for one in resets for log in (one.firmware, one.kernel)]
    return OnMachine(
        way=resets[0].way,
        again=sum(one.firmware_again for one in resets),
        staged_s=staged_s,
        firmware_s=spread_of_times(one.firmware_s for one in resets),
        boot_s=boot_s,
        ready_s=ready_s,
        firmware_events=_least_and_most(one.firmware for one in resets),
        firmware_explains=sum(one.firmware.explains for one in resets),
        kernel_events=_least_and_most(one.kernel for one in resets),
        kernel_explains=sum(one.kernel.explains for one in resets),
        kernel_values=len({one.registers.get(OF_KERNEL) for one in resets}),
        with_earlier_explains=sum(one.with_earlier.explains for one in resets),
        unexplained=tuple(sorted({number for log in logs for number in log.unexplained})),
        faults=tuple(dict.fromkeys(log.fault for log in logs if log.fault)),
    )


def _least_and_most(logs: Iterable[Log]) -> tuple[int, int]:
    counts = [log.events for log in logs]
    return min(counts), max(counts)


def spread_of_times(seconds: Iterable[float | None]) -> Spread | None:
    known = [one for one in seconds if one is not None]
    return Spread(median=median(known), least=min(known), most=max(known)) if known else None


def _unproven(found: Survival) -> str:
    """Why that nothing was lost proves nothing; empty where something was lost that could be."""
    permitting = [one for one in found.tried if one.permits is not Loss.NOTHING]
    if any(one.harmed for one in permitting):
        return ""
    if found.control is not None and found.control.cause:
        return f"the control could not be tried: {found.control.cause}"
    if not permitting:
        return "no setup was tried whose settings permit a loss"
    return "nothing was lost even where the settings permit it, so the cuts came too late or too seldom"
