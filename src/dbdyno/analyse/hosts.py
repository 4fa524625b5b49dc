"""A variant's effect on each host of a fleet, and how far hosts differ.

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

from dbdyno.analyse.blocks import Trials, paired_by_block, with_copies
from dbdyno.analyse.columns import Floats
from dbdyno.analyse.estimate import (
    FLEET_HOST,
    HOSTS_LEAST,
    NOBODYS,
    Contrasts,
    around_means,
    contrasts_of,
    estimate,
)
from dbdyno.analyse.fleet import HostEffect, HostsCompared, OneHost, OnHosts, Told
from dbdyno.analyse.floor import floor
from dbdyno.analyse.intervals import bounded_exp, within
from dbdyno.analyse.model import Method, Ratio, VariantResult, Verdict
from dbdyno.analyse.quantiles import confidence_each, t_quantile
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
    ratio = estimate(method.response, logs, confidence, around_means(method))
    assert ratio is not None  # a host has a block, or it is not among them
    return HostEffect(
        host=host, blocks=ratio.pairs, ratio=ratio.ratio, low=ratio.low, high=ratio.high,
        told=_told(ratio, method),
    )  # fmt: skip


def _told(ratio: Ratio, method: Method) -> Told:
    """A difference is told as a verdict is: from the whole interval, and from as many blocks."""
    if ratio.pairs < method.blocks_least or ratio.low is None or ratio.high is None:
        return Told.OPEN
    if within(ratio, method.margin):
        return Told.LEVEL
    if ratio.low > 1.0:
        return Told.ABOVE
    return Told.BELOW if ratio.high < 1.0 else Told.OPEN


def _contrary(each: Sequence[HostEffect], result: VariantResult, method: Method) -> Iterator[str]:
    """The hosts that by themselves say the opposite of the variant's verdict."""
    if result.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return iter(())
    above = (result.verdict is Verdict.FASTER) == method.higher_is_better
    opposite = Told.BELOW if above else Told.ABOVE
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
