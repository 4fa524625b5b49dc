"""The stage after the load: may this trial have a speed, and what makes its speed doubtful?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dbdyno.driver.link import LoadHost
from dbdyno.driver.load import Invariant
from dbdyno.driver.tally import OpenLoop, Tally
from dbdyno.engines.server import untold
from dbdyno.layers.setup import Running
from dbdyno.records.load_words import came_to, driver_lagged, waited_for_cpu, with_examples
from dbdyno.records.record import Check, Doubt, Observation
from dbdyno.study.trials import EACH_LEAST, Phase
from dbdyno.trial.nodes import checks_of_invariants, nodes_agree, of_others

ERRORS_SHARE_MAX = 0.001
"""More errors than this per operation, and the speed is partly that of failing."""
STEAL_SHARE_MAX = 0.01
OTHERS_SHARE_MAX = 0.05
"""Shares of the host's CPU time that the hypervisor, or processes that are not of the trial, may take
unmentioned."""
CPU_BETWEEN_SHARE_MAX = 0.05
"""Of a server's CPU time, what it may take in the turns of others. Its own slices lack as much, so a speed
that CPUs limit is too high by up to this share."""
WRITTEN_PER_S_LEAST = 2**20
"""Who writes less than this in a second puts nothing off: slow disks take a hundred times as much."""
THROTTLED_SHARE_MAX = 0.01
"""Held back for longer than this share of the measured part, by a limit that the study did not ask for."""
LOG_LINES_MAX = 5
NETWORK_SHARE_MAX = 0.05
"""A round trip of a larger share of the mean latency, and the network is much of what is measured."""
BANDWIDTH_SHARE_MAX = 0.5
"""Answers that take more of what the network carries wait for each other."""
RESENT_SHARE_MAX = 0.001
"""Each segment that is lost holds its client up for at least 200 ms, which is what Linux waits."""
UNSTEADY_TIMES, UNSTEADY_S = 2.0, 500e-6
"""How far the shortest round trip may grow in a load: so many times, and as long as a wake-up takes where all
CPUs are busy."""
LATE_SHARE_MAX = 0.05
"""How much later than the first load host another one may begin, as a share of what is measured in one
piece."""


Findings = tuple[tuple[Check, ...], dict[Doubt, str]]
"""Checks that hold or not, and warnings with what was seen."""


def check(running: Running, phase: Phase, observation: Observation, cores: int) -> tuple[Running, Findings]:
    """Asks the driver for the workload's invariants, on each node of a cluster, then judges the tally, the
    server's log and the host. After a rest there is nothing but the log to judge. What the log has told is
    not told again."""
    tally = running.tally
    # What other nodes have told clients of must be on the first one, too.
    nodes = nodes_agree(running) if tally else ()
    invariants = running.load.check(running.data_job, running.told_so_far) if tally else []
    logged = running.log_problems()
    problems = untold(logged, running.logged)
    running = replace(running, logged=tuple(logged))
    if tally is None:
        return running, ((), {Doubt.SERVER_LOG: _log(problems)} if problems else {})
    checks, doubts = judge_trial(tally, invariants, problems, observation, cores)
    if running.afar is not None:
        doubts |= judge_load_hosts(running.afar.seen, tally)
    others = of_others(running, running.told_so_far) if tally else ()
    return running, ((*checks, *nodes, *others, *_slices(tally, phase)), doubts)


def judge_trial(
    tally: Tally,
    invariants: Sequence[Invariant],
    log_problems: Sequence[str],
    observation: Observation,
    cores: int,
) -> Findings:
    """The judgement alone: no server, no clock."""
    checks = [Check(name="operations", holds=tally.operations > 0, detail=came_to(tally))]
    checks.append(Check(name="clients", holds=tally.clients_lost == 0, detail=_clients(tally)))
    checks += checks_of_invariants(invariants)
    warnings = {
        Doubt.ERRORS_IN_LOAD: _errors(tally),
        Doubt.DRIVER_SATURATED: tally.saturated or "",
        Doubt.DRIVER_WAITED: waited_for_cpu(tally),
        Doubt.RATE_NOT_KEPT: _rate(tally.open_loop),
        Doubt.REPLAY_LATE: driver_lagged(tally.replay) if tally.replay else "",
        Doubt.SERVER_LOG: _log(log_problems),
        Doubt.STEAL: _host_share(observation, "steal_s", STEAL_SHARE_MAX, cores, "the hypervisor"),
        Doubt.HOST_BUSY: _host_share(observation, "other_cpu_s", OTHERS_SHARE_MAX, cores, "other processes"),
        Doubt.THROTTLED: _throttled(observation),
        Doubt.SHORT_SLICES: _short_slices(tally),
        Doubt.BESIDE_BUSY: _beside(tally, observation, cores),
        Doubt.DEFERRED: _deferred(tally, observation),
    }
    return tuple(checks), {warning: text for warning, text in warnings.items() if text}


def judge_load_hosts(hosts: Sequence[LoadHost], tally: Tally) -> dict[Doubt, str]:
    """What of each host that shared the load, and of when they began, makes a speed doubtful."""
    found: dict[Doubt, str] = {}
    for host in hosts:
        for doubt, text in judge_load_host(host, tally).items():
            found[doubt] = "; ".join(filter(None, [found.get(doubt, ""), text]))
    stretch_s = min((one.duration_s for one in tally.slices), default=tally.duration_s)
    late = [host for host in hosts if (host.late_s or 0.0) > LATE_SHARE_MAX * stretch_s]
    if late:
        told = ", ".join(f"{host.name} by {1e3 * (host.late_s or 0.0):.1f} ms" for host in late)
        found[Doubt.LOAD_NOT_TOGETHER] = f"later than the first load host began: {told}"
    return found


def judge_load_host(host: LoadHost, tally: Tally) -> dict[Doubt, str]:
    """What of the host that the load came from, and of the way to it, makes a speed doubtful. The limits are
    those of the server's host."""
    shares = (
        (host.share(host.steal_s), STEAL_SHARE_MAX, "the hypervisor"),
        (host.share(host.busy_s - host.driver_s), OTHERS_SHARE_MAX, "what is not the driver"),
    )
    busy = [
        f"{who} took {share:.1%} of the CPU time of {host.name}"
        for share, most, who in shares
        if share > most
    ]
    found = {
        Doubt.LOAD_HOST_BUSY: "; ".join(busy),
        Doubt.NETWORK_BOUND: _network_bound(host, tally),
        Doubt.LINK_UNSTEADY: _unsteady(host),
    }
    return {doubt: text for doubt, text in found.items() if text}


def _network_bound(host: LoadHost, tally: Tally) -> str:
    """A transaction waits for the network once at least, and most wait once for each statement. What all
    answers weigh has to go through it as well."""
    mean_us, trip_us = tally.latency_us.mean, host.round_trip_s * 1e6
    told = []
    if mean_us and trip_us > NETWORK_SHARE_MAX * mean_us:
        share = f"{trip_us / mean_us:.0%} of a mean latency of {mean_us:.0f} us"
        told.append(f"one round trip takes {trip_us:.0f} us, {share}")
    carried = min((one.from_server_bytes_per_s for one in host.bandwidths), default=0.0)
    share_of_load = 1.0 if host.operations is None else host.operations / max(1, tally.operations)
    taken = share_of_load * tally.bytes_received / max(tally.duration_s, 1e-9)
    if carried and taken > BANDWIDTH_SHARE_MAX * carried:
        told.append(f"answers took {taken / carried:.0%} of what the network carries to {host.name}")
    return "; ".join(told)


def _unsteady(host: LoadHost) -> str:
    # A median of a few also shows that a process there, or the server, had to wait for a CPU.
    shortest = [reading.network.min_s for reading in host.readings]
    told = []
    if shortest and max(shortest) > UNSTEADY_TIMES * min(shortest) + UNSTEADY_S:
        least, most = min(shortest) * 1e6, max(shortest) * 1e6
        told.append(f"the shortest round trip went from {least:.0f} to {most:.0f} us")
    if host.resent_share > RESENT_SHARE_MAX:
        told.append(f"{host.name} sent {host.resent_share:.1%} of its TCP segments again")
    return "; ".join(told)


def _slices(tally: Tally, phase: Phase) -> tuple[Check, ...]:
    """Whether the load went on to its end, or to where a search ended it: it does not where a transaction in
    a slice hangs. A workload with phases of its own has no slices."""
    if not phase.slices or not tally.slices:
        return ()
    text = f"{len(tally.slices)} of {phase.slices} slices were driven"
    if tally.interrupted:
        return (Check(name="slices", holds=True, detail=f"{text}, because it was far behind"),)
    return (Check(name="slices", holds=len(tally.slices) == phase.slices, detail=text),)


def _clients(tally: Tally) -> str:
    if not tally.clients_lost:
        return ""
    text = f"{tally.clients_lost} of {tally.clients} clients lost their connection and did not get it back"
    if tally.unknown:
        text += f"; whether {tally.unknown} transactions took effect is unknown"
    return f"{text}; errors: {with_examples(tally)}" if tally.errors else text


def _errors(tally: Tally) -> str:
    # What was retried, a deadlock say, did succeed in the end: it shows as time and as `retries`.
    count = sum(tally.errors.values()) - tally.retries
    if count <= ERRORS_SHARE_MAX * max(1, tally.operations):
        return ""
    return (
        f"{count} errors that were not retried and {tally.operations} successful operations; "
        f"all errors: {with_examples(tally)}"
    )


def _short_slices(tally: Tally) -> str:
    if not tally.slices:
        return ""
    each = tally.by_client.least if tally.by_client else tally.work / tally.clients
    each /= len(tally.slices)
    if each >= EACH_LEAST:
        return ""
    who = "a client" if tally.clients > 1 else "the client"
    length_s = tally.duration_s / len(tally.slices)
    return f"{who} did {each:.2g} transactions in a slice of {length_s:.2g} s, on average of the slices"


def _beside(tally: Tally, observation: Observation, cores: int) -> str:
    # Without slices whoever is beside the load was put there on purpose.
    if not tally.slices:
        return ""
    return _host_share(observation, "beside_cpu_s", OTHERS_SHARE_MAX, cores, "servers without a slice")


def _deferred(tally: Tally, observation: Observation) -> str:
    """How much of its own work a server did while others had their turn: checkpoints, vacuum, purge. They pay
    for that, and its own slices do not show it."""
    if not tally.slices:
        return ""
    told, seen = [], observation.totals
    between_s, whole_s = (seen.get(f"cpu_s_{what}", 0.0) for what in ("between", "in_all"))
    if between_s > CPU_BETWEEN_SHARE_MAX * whole_s:
        told.append(f"{between_s / whole_s:.0%} of its CPU time")
    between, whole = (seen.get(f"written_bytes_{what}", 0.0) for what in ("between", "in_all"))
    last, own_s = tally.slices[-1], sum(one.duration_s for one in tally.slices)
    from_first_s = last.started_unix_s + last.duration_s - tally.slices[0].started_unix_s
    others_s = max(0.0, from_first_s - own_s)
    # Written at the pace of its own slices, it is what goes on all the time, however many servers there are.
    if between > others_s * max(WRITTEN_PER_S_LEAST, (whole - between) / own_s):
        told.append(f"{between / whole:.0%} of its writes, faster than under its load")
    return f"in the turns of others the server had {'; '.join(told)}" if told else ""


def _rate(open_loop: OpenLoop | None) -> str:
    if open_loop is None or open_loop.kept:
        return ""
    text = f"offered {open_loop.offered_per_s:.0f}/s, achieved {open_loop.achieved_per_s:.0f}/s"
    waited = open_loop.backlog_end
    return f"{text}; {waited} transactions waited for a client at the end" if waited else text


def _log(problems: Sequence[str]) -> str:
    shown = " | ".join(problems[:LOG_LINES_MAX])
    rest = len(problems) - LOG_LINES_MAX
    return f"{shown} | and {rest} more" if rest > 0 else shown


def _host_share(observation: Observation, name: str, share_max: float, cores: int, who: str) -> str:
    capacity_s = observation.duration_s * cores
    taken_s = observation.totals.get(name, 0.0)
    if capacity_s <= 0 or taken_s <= share_max * capacity_s:
        return ""
    return f"{who} took {taken_s / capacity_s:.1%} of the host's CPU time"


def _throttled(observation: Observation) -> str:
    held_s = observation.totals.get("outer_throttled_s", 0.0)
    if held_s <= THROTTLED_SHARE_MAX * observation.duration_s:
        return ""
    return f"a CPU quota from outside the study held threads back for {held_s:.2f} s, summed over CPUs"
