"""What must hold of a fleet's run whatever befell it, and of the hosts that carried it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbdyno.analyse import Analysis
from dbdyno.fleet.session import Session
from dbdyno.plan.blocks import Order, make_plan
from dbdyno.prepare_run.stored_run import analysed
from dbdyno.prepare_run.stored_study import study_of
from dbdyno.records.record import Record
from dbdyno.records.run import Run
from dbdyno.records.store import Store

OVERLAPS = """SELECT l.fence, r.fence FROM dyno_leases l JOIN dyno_leases r
    ON l.number = r.number AND l.fence < r.fence AND l.during && r.during"""
STRETCH_S = 1.0
"""How far a record's own times may lie outside of its lease: the lease is taken and given back around it."""


def faults(store: Store, session: Session, run: Run, alone: Sequence[Record]) -> list[str]:
    """What does not hold of a run that is over, in words; `alone` are the records of the same study that one
    host carried out with the same seed."""
    records = store.records(run.run)
    return [
        *_of_trials(run, records),
        *(f"leases {one} and {other} of one host overlap" for one, other in session.execute(OVERLAPS)),
        *_of_leases(session, run, records),
        *_of_one_host(run, records, alone),
        *(f"the run is not finished: {run.run}" for _ in range(not store.summary(run).finished)),
    ]


def _of_trials(run: Run, records: Sequence[Record]) -> list[str]:
    """Each trial of the plan once, where its host was not taken out, and each by the host whose it is."""
    left_out = {host.name for host in run.fleet if host.left_out}
    plan = {trial.index: trial for trial in make_plan(study_of(run), Order.of(run)).trials}
    there = [record.trial for record in records]
    hosts = {index: host.name for index, one in plan.items() if (host := run.host_of(one.block))}
    found = [f"trial {index} is there twice" for index in set(there) if there.count(index) > 1]
    found += [f"trial {index} was not asked for" for index in set(there) - plan.keys()]
    missing = {index for index in plan.keys() - set(there) if hosts[index] not in left_out}
    found += [f"trial {index} of {hosts[index]} is missing" for index in sorted(missing)]
    for one in records:
        own, planned = hosts.get(one.trial), plan.get(one.trial)
        if one.fleet_host != own:
            found.append(f"trial {one.trial} is of {own}, and {one.fleet_host} measured it")
        if planned and (one.block, one.position, one.variant) != (
            planned.block,
            planned.position,
            planned.variant.name,
        ):
            found.append(f"trial {one.trial} is another one than planned")
        if not one.whole:
            found.append(f"trial {one.trial} is not whole")
    return found


def _of_leases(session: Session, run: Run, records: Sequence[Record]) -> list[str]:
    """Each record was made while its lease was in force."""
    found = []
    times = "SELECT extract(epoch FROM lower(during))::float8, extract(epoch FROM upper(during))::float8"
    for one in records:
        rows = session.execute(f"{times} FROM dyno_leases WHERE fence = %s AND run = %s", one.fence, run.run)
        if not rows:
            found.append(f"trial {one.trial} bears lease {one.fence}, which is none of the run")
            continue
        ((since, until),) = rows
        if not since - STRETCH_S <= one.started_unix_s <= one.finished_unix_s <= until + STRETCH_S:
            found.append(f"trial {one.trial} was not made under its lease {one.fence}")
    return found


def _of_one_host(run: Run, records: Sequence[Record], alone: Sequence[Record]) -> list[str]:
    """But for times, all is as one host has it with the same seed: the records, and their analysis."""
    theirs = {one.trial: untimed(one) for one in alone}
    found = [
        f"trial {one.trial} differs from that of one host: {untimed(one)} is not {theirs.get(one.trial)}"
        for one in records
        if untimed(one) != theirs.get(one.trial)
    ]
    if found or any(host.left_out for host in run.fleet):
        return found
    study, single = study_of(run), run.but(fleet=())
    those = [one for one in alone if one.trial in {record.trial for record in records}]
    ours, other = (answer_of(analysed(study, single, each)) for each in (records, those))
    return [] if ours == other else [f"the analysis differs from that of one host: {ours} is not {other}"]


def untimed(record: Record) -> dict[str, Any]:
    """What of a record no clock decides."""
    return {
        "block": record.block,
        "position": record.position,
        "variant": record.variant,
        "levels": record.levels,
        "outcome": record.outcome.value,
        "checks": sorted((check.name, check.holds) for check in record.checks),
        "evidence": [(one.factor, one.requested, one.in_effect) for one in record.evidence],
        "phases": [phase.name for phase in record.phases],
    }


def answer_of(analysis: Analysis) -> dict[str, Any]:
    """What of an analysis no clock decides."""
    method = analysis.method
    return {
        "variants": [(one.name, one.role, one.levels, one.outcomes) for one in analysis.variants],
        "blocks": [sorted(ratio.block for ratio in one.block_ratios) for one in analysis.variants],
        "trials": [(one.record.trial, one.record.block, one.record.outcome) for one in analysis.trials],
        "planned": analysis.trials_planned,
        "method": (method.response, method.margin, method.confidence_each, method.comparisons),
    }
