"""How a run arranges the trials of a block on this host, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial

from dbdyno.applications.registry import PRODUCTS
from dbdyno.begin.engines import engine_of
from dbdyno.begin.running import needs_restarts, settable
from dbdyno.driver import _driver
from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.host.room import available_memory_bytes, memory_limit
from dbdyno.layers.knob import Scope
from dbdyno.layers.layer import by_layer
from dbdyno.layers.registry import foresee
from dbdyno.plan.arrangement import MEMORY_SHARE, Arranged, Circumstances, arranged
from dbdyno.report.words import numbers
from dbdyno.study import Arrangement, Study
from dbdyno.study.designs import extremes_of, variants_of
from dbdyno.study.phases import phases_of
from dbdyno.study.trials import Variant


def arranged_for(study: Study, counted: bool) -> Arranged:
    """How a run of the study that begins now arranges its trials. Raises UserError where the study asks for
    what cannot be."""
    found = arranged(study, _circumstances(study, extremes_of(study), counted))
    if study.arrangement is Arrangement.SIDE_BY_SIDE and found.why:
        raise UserError(
            f"trials cannot be arranged side by side: {found.why}",
            f'write arrangement = "{Arrangement.ONE_AFTER_THE_OTHER}", or leave it out',
        )
    return found


def arranged_in_turn(study: Study, reference: Study) -> Arranged:
    """How the trials of a study that is arranged share the host with those of a reference's baseline."""
    if study.arrangement is not Arrangement.SIDE_BY_SIDE:
        after = Arrangement.ONE_AFTER_THE_OTHER
        return Arranged(arrangement=after, why="trials follow one another in this run")
    own = _circumstances(study, variants_of(study))
    other = _circumstances(reference, variants_of(reference)[:1])
    return arranged(study, own.with_other(other))


def _circumstances(study: Study, variants: Sequence[Variant], counted: bool = False) -> Circumstances:
    levels = {variant.name: {**study.settings, **variant.levels} for variant in variants}
    asked = {name: settable(study, one) for name, one in levels.items()}
    changes = foresee(asked, partial(engine_of, study)).host
    of_host = [one.factor for one in changes if one.scope is Scope.HOST or one.factor.startswith("storage.")]
    # A server that runs already takes what it takes.
    each_bytes = [0 if study.server else server_bytes(study, one) for one in levels.values()]
    return Circumstances(
        host_factors=tuple(of_host),
        counted=counted,
        pauses=has_pauses(study),
        restarted_for=needs_restarts(study),
        # A search puts into a block what has room, and compares with the baseline at the least.
        needed_bytes=sum(each_bytes) if study.search is None else 2 * each_bytes[0],
        available_bytes=available_memory_bytes(),
    )


def room_bytes() -> int:
    """What the servers of a block may take together here."""
    return int(MEMORY_SHARE * available_memory_bytes())


def server_bytes(study: Study, levels: Mapping[str, Level]) -> int:
    """About what a server takes of memory with these levels, the application in front of it included."""
    settings, wish = engine_of(study, levels).settings, study.application
    front_bytes = wish.workers * PRODUCTS[wish.name].worker_bytes if wish else 0
    return front_bytes + settings.memory_bytes(by_layer(levels).get("config", {}))


def has_pauses(study: Study) -> bool:
    """Whether clients of any variant wait by themselves between transactions, as TPC-C's terminals can."""
    given = study.workload.options
    varied = [by_layer(variant.levels).get("workload", {}) for variant in extremes_of(study)]
    each = [{name: levels.get(name, level) for name, level in given.items()} for levels in varied]
    folder = str(study.folder)
    try:
        return any(_driver.pauses(study.workload.name, json.dumps(options), folder) for options in each)
    except _driver.DriverError:
        # Options that the driver refuses end the run where they are used.
        return False


def arranged_text(study: Study, found: Arranged) -> str:
    """The arrangement in a line."""
    if found.why:
        return f"trials run one after the other: {found.why}"
    phase = phases_of(study)[0]
    length = numbers.seconds_text(phase.duration_s / (phase.slices or 1))
    if study.server is not None:
        return (
            f"variants take turns on the one server: the load goes round in {phase.slices} slices of {length}"
        )
    return (
        f"the servers of a block run side by side: the load goes round in {phase.slices} slices of {length}"
    )


def memory_text(study: Study, found: Arranged) -> str:
    """What the settings of servers that are up together allow them; empty where each is up by itself."""
    if found.why or study.search is not None or study.server is not None:
        return ""
    each_bytes = [server_bytes(study, {**study.settings, **one.levels}) for one in variants_of(study)]
    limit_bytes, who = memory_limit()
    together = (
        f"the {len(each_bytes)} servers of a block may take about {sum(each_bytes) >> 20:,} MiB together"
    )
    return f"memory: {together}, and {who} {limit_bytes >> 20:,} MiB"
