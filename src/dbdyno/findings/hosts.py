"""The hosts of a fleet: each variant over them and on each of them.

A variant's effect on each host of a fleet, and how far hosts differ.

A host's own interval is over its blocks, and knows their images and looks. All hosts and variants are
corrected together, so that no host is said to contradict the others because many were looked at. How far
hosts differ is the variance of their means, less what the spread of their blocks explains (W. G. Cochran,
Biometrics 10, 1954, 101-129). What a further host would show in as many blocks is Student's prediction
interval of one more mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dbdyno.analyse.analysis import Basis
from dbdyno.analyse.columns import Floats
from dbdyno.analyse.estimate import (
    FLEET_HOST,
    HOSTS_LEAST,
    NOBODYS,
    Contrasts,
    Trials,
    around_means,
    contrasts_of,
    estimated_ratio,
    paired_by_block,
    with_copies,
)
from dbdyno.analyse.floor import floor
from dbdyno.analyse.found import HostEffect, HostsCompared, OneHost, OnHosts, RatioPosition
from dbdyno.analyse.intervals import as_told, bounded_exp, position_of
from dbdyno.analyse.model import Analysis, Method, VariantResult, Verdict
from dbdyno.analyse.quantiles import confidence_each, t_quantile
from dbdyno.records.run import FleetHost
from dbdyno.report.document import ColumnKind, Detail, Figure, Notes, Row, Section, table
from dbdyno.report.words import hosts, numbers, remarks
from dbdyno.report.words.safe import clean
from dbdyno.study import Interval


def hosts_compared(
    trials: Sequence[Trials], results: Sequence[VariantResult], method: Method
) -> HostsCompared | None:
    """Each variant but the baseline on each host that has blocks of both; None where there is one host."""
    rows = trials[0].rows
    names = sorted(name for name in rows.columns.seen(FLEET_HOST, rows.places) if name)
    if len(names) < 2:
        return None
    baseline, each = with_copies(trials), confidence_each(method.confidence_each, len(names))
    found = (_on_hosts(*one, baseline, method, each) for one in zip(trials[1:], results[1:], strict=True))
    return HostsCompared(
        hosts=tuple(_one_host(name, trials, method) for name in names),
        over_hosts=len(names) >= HOSTS_LEAST and method.interval is not Interval.SIGNED_RANK,
        confidence_each=each,
        variants=tuple(one for one in found if one is not None),
    )


def _one_host(name: str, trials: Sequence[Trials], method: Method) -> OneHost:
    own = [
        replace(each, by_block=rows.only(rows.columns.having(FLEET_HOST, rows.places, name)), readings={})
        for each, rows in ((each, each.rows) for each in trials)
    ]
    return OneHost(name=name, blocks=len(own[0].by_block), floor=floor(own, method))


def _on_hosts(
    trials: Trials, result: VariantResult, baseline: Trials, method: Method, confidence: float
) -> OnHosts | None:
    by_host = _by_host(trials, baseline, method)
    if not by_host:
        return None
    each = tuple(_host_effect(host, values, method, confidence) for host, values in by_host.items())
    logs = {host: found.values for host, found in by_host.items()}
    low, high = _further(logs, confidence=method.confidence)
    return OnHosts(
        variant=trials.variant.name,
        each=each,
        contrary=tuple(_contrary(each, result, method)),
        between_log_sd=_between(logs),
        further_low=low,
        further_high=high,
    )


def _by_host(trials: Trials, baseline: Trials, method: Method) -> dict[str, Contrasts]:
    """The contrasts of each host of a fleet, in the order of its values; empty for a run of one host."""
    pairs = paired_by_block(trials, baseline, method.response)
    found = contrasts_of(trials.rows, pairs)
    _, names = trials.rows.told(FLEET_HOST, pairs)
    numbers = sorted(set(found.hosts.tolist()) - {NOBODYS}, key=lambda number: str(names[number]))
    return {names[number]: _of_host(found, number) for number in numbers}


def _of_host(found: Contrasts, number: int) -> Contrasts:
    own = np.flatnonzero(found.hosts == number)
    own = own[np.argsort(found.values[own], kind="stable")]
    return Contrasts(found.values[own], np.full(len(own), NOBODYS), found.images[own])


def _host_effect(host: str, logs: Contrasts, method: Method, confidence: float) -> HostEffect:
    ratio = estimated_ratio(method.response, logs, confidence, around_means(method), judged=True)
    assert ratio is not None  # a host has a block, or it is not among them
    told = position_of(ratio, method)
    shown = as_told(ratio, told is RatioPosition.LEVEL, method.margin)
    return HostEffect(
        host=host, blocks=ratio.pairs, ratio=ratio.ratio, low=ratio.low, high=ratio.high, told=told,
        narrower=shown.narrower,
    )  # fmt: skip


def _contrary(each: Sequence[HostEffect], result: VariantResult, method: Method) -> Iterator[str]:
    """The hosts that by themselves say the opposite of the variant's verdict."""
    if result.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return iter(())
    above = (result.verdict is Verdict.FASTER) == method.higher_is_better
    opposite = RatioPosition.BELOW if above else RatioPosition.ABOVE
    return (one.host for one in each if one.told is opposite)


def _between(logs: Mapping[str, Floats]) -> float | None:
    if len(logs) < 2 or any(len(values) < 2 for values in logs.values()):
        return None
    means = np.array([values.mean() for values in logs.values()])
    explained = float(np.mean([values.var(ddof=1) / len(values) for values in logs.values()]))
    return math.sqrt(max(0.0, float(means.var(ddof=1)) - explained))


def _further(logs: dict[str, Floats], confidence: float) -> tuple[float | None, float | None]:
    """Where the ratio of one more host lies, with this confidence."""
    if len(logs) < HOSTS_LEAST:
        return None, None
    means = np.array([values.mean() for values in logs.values()])
    half = t_quantile(confidence, len(means)) * float(means.std(ddof=1)) * math.sqrt(1.0 + 1.0 / len(means))
    return bounded_exp(float(means.mean()) - half), bounded_exp(float(means.mean()) + half)


OVER = ("variant", "ratio", "interval", "lowest", "highest", "hosts by themselves")
MACHINES = ("host", "CPU", "cores", "kernel", "engine", "blocks", "floor")
EACH = ("variant", "host", "blocks", "ratio", "interval", "by itself")
KINDS = {
    "interval": ColumnKind.PHRASE,
    **dict.fromkeys(
        ("lowest", "highest", "hosts by themselves", "host", "by itself", "CPU", "kernel", "engine"),
        ColumnKind.TEXT,
    ),
}
ASIDE = (
    "Dot and line: a variant over hosts, and on each host. Thin line: where a further host would lie. Band:"
    " the margin."
)


def find(basis: Basis) -> HostsCompared | None:
    """What each host of a fleet says of each variant."""
    return hosts_compared(basis.trials, basis.results, basis.method)


def sections(analysis: Analysis) -> Iterator[Section]:
    """A figure, each variant in a line, and each on each host; nothing for a run of one host."""
    compared = analysis.hosts
    if compared is None or not compared.variants:
        return
    over = [_over(analysis, one) for one in compared.variants]
    yield Section(
        "Hosts",
        (Figure("dbdyno.report.figures.hosts:forest", (analysis,), key="hosts"),),
        aside=ASIDE,
        detail=Detail.PAGE,
    )
    yield Section("Over hosts", (table(OVER, over, KINDS, dense=True), Notes((*_notes(analysis, compared),))))
    machines = [_machine(analysis.run.fleet, one) for one in compared.hosts]
    yield Section(
        "Machines", (table(MACHINES, machines, KINDS, dense=True), Notes((*_of_machines(analysis),)))
    )
    each = [row for one in compared.variants for row in _each(analysis, one)]
    share = numbers.share_text(compared.confidence_each)
    said = (
        f"Each interval is Student’s over the blocks of one host, with {share}, so that with the study's"
        " confidence none is wrong."
    )
    yield Section(
        "On each host", (table(EACH, each, KINDS, dense=True), Notes((said,))), detail=Detail.DETAILS
    )


def _over(analysis: Analysis, one: OnHosts) -> Row:
    effect = remarks.variant_of(analysis, one.variant).effect
    ratio, interval = (
        (numbers.DASH, numbers.DASH)
        if effect is None
        else (numbers.ratio_text(effect.ratio), numbers.interval_text(effect))
    )
    return clean(one.variant), ratio, interval, *hosts.span_text(one), hosts.hosts_text(analysis, one)


def _each(analysis: Analysis, one: OnHosts) -> Iterator[Row]:
    for on in one.each:
        yield (
            clean(one.variant),
            clean(on.host),
            str(on.blocks),
            numbers.ratio_text(on.ratio),
            hosts.interval_of(on),
            "; ".join(filter(None, (hosts.told_text(analysis, on.told), numbers.narrower_text(on)))),
        )


def _machine(fleet: Sequence[FleetHost], one: OneHost) -> Row:
    """A host as its worker told it, and what its own blocks cannot tell."""
    known = next((each for each in fleet if each.name == one.name), None)
    floor = numbers.rough_share_text(one.floor.difference) if one.floor else numbers.DASH
    if known is None:
        return clean(one.name), *[numbers.DASH] * 4, str(one.blocks), floor
    cpu, cores = known.host.cpu.model, known.host.cpu.usable_cores
    return (
        clean(one.name),
        clean(cpu or numbers.DASH),
        str(cores or numbers.DASH),
        clean(known.host.kernel or numbers.DASH),
        clean(known.installation.version or numbers.DASH),
        str(one.blocks),
        floor,
    )


def _of_machines(analysis: Analysis) -> Iterator[str]:
    yield "Floor: the smallest difference that the blocks of a host by themselves can find."
    if out := [one.name for one in analysis.run.fleet if one.left_out]:
        yield f"Taken out before all their blocks were over: {hosts.enumerated(out)}."


def _notes(analysis: Analysis, compared: HostsCompared) -> Iterator[str]:
    yield f"Of {numbers.plural(len(compared.hosts), 'host')}, what each by itself says of a variant."
    for one in compared.variants:
        said = []
        if spread := hosts.spread_text(one):
            said.append(spread)
        if further := hosts.further_text(one):
            share = numbers.share_text(analysis.method.confidence)
            said.append(f"a further host like these would show {further} in as many blocks ({share})")
        if said:
            yield f"{clean(one.variant)}: {'; '.join(said)}."
