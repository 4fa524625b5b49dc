"""What each doubt about a trial means for the figures, and what to do next.

The list is closed: each member of `record.Doubt` has its text and its next step here.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.records.record import Doubt


@dataclass(frozen=True)
class Advice:
    """What a warning means for the figures, the same in `brief`, and what to do next."""

    brief: str
    text: str
    next_step: str


WARNINGS: dict[Doubt, Advice] = {
    Doubt.NOT_SETTLED: Advice(
        "throughput had not settled: raise workload.warmup",
        "throughput had not settled for half of the measured part, so its mean says little",
        "raise workload.warmup, or workload.duration beyond the period of what recurs (checkpoints)",
    ),
    Doubt.DRIVER_SATURATED: Advice(
        "the driver was the limit: raise workload.threads",
        "the driver was the limit, so differences between servers are hidden",
        "raise workload.threads, give the driver more CPUs, or lower workload.clients",
    ),
    Doubt.DRIVER_WAITED: Advice(
        "the driver waited for a CPU: give it CPUs of its own",
        "a driver thread waited for a CPU half of the time or more, so part of each latency is its wait",
        "give server and driver CPUs of their own (cpu.server, cpu.driver), a load host more CPUs, or lower"
        " workload.clients",
    ),
    Doubt.RATE_NOT_KEPT: Advice(
        "the offered rate was not kept: lower rate_per_s",
        "the offered rate was not kept: some failed, or latencies include the wait in a growing queue",
        "lower workload.rate_per_s below what the slowest variant can serve; look at the errors of the tally",
    ),
    Doubt.STEAL: Advice(
        "the hypervisor took CPU time away",
        "the hypervisor took CPU time away during the load",
        "measure on dedicated CPUs, or add blocks",
    ),
    Doubt.HOST_BUSY: Advice(
        "other processes used this host's CPUs",
        "other processes of this host used its CPUs during the load",
        "stop them, or add blocks",
    ),
    Doubt.ERRORS_IN_LOAD: Advice(
        "operations failed: dyno report RUN TRIAL",
        "some operations failed and count for nothing in the throughput",
        "see their kinds (dyno report RUN TRIAL); deadlocks are retried, refusals are not",
    ),
    Doubt.SERVER_LOG: Advice(
        "the server complained in its log: dyno report RUN TRIAL",
        "the server complained in its log during the trial",
        "read the lines (dyno report RUN TRIAL); a refused setting is a finding of its own",
    ),
    Doubt.THROTTLED: Advice(
        "a CPU quota held server or driver back",
        "a CPU quota that the study did not ask for held server or driver back",
        "raise the limit of the container or service that dyno runs in, or ask for less (cpu.quota)",
    ),
    Doubt.CACHES_FILLING: Advice(
        "index caches were still filling: raise workload.warmup",
        "the caches of the index were still being filled when the load began",
        "raise workload.warmup until it holds several passes over the queries, or take fewer queries",
    ),
    Doubt.BESIDE_BUSY: Advice(
        "servers without a slice used CPUs in the background",
        "servers that had no slice used the host's CPUs in their background during the load",
        'compare beside_cpu_s; where variants differ in it, give arrangement = "one-after-the-other"',
    ),
    Doubt.SHORT_SLICES: Advice(
        'transactions are long for a slice: set slice = "2s"',
        "a client had fewer than two transactions in a slice, so the slices show how a load begins, and not"
        " how it goes on",
        'give longer slices (slice, workload.duration), or arrangement = "one-after-the-other" and a ramp',
    ),
    Doubt.REPLAY_LATE: Advice(
        "the driver sent statements late: lower workload.speed",
        "the driver sent statements of the recording late, so part of the latencies is its own wait",
        "lower workload.speed, give the driver CPUs of its own (cpu.driver) or a load host more CPUs, or"
        " raise workload.threads",
    ),
    Doubt.LOAD_HOST_BUSY: Advice(
        "the load's host had other work",
        "the host that the load came from had other work, or less CPU time than it should",
        "stop what runs there, or take another host",
    ),
    Doubt.NETWORK_BOUND: Advice(
        "clients waited for the network: raise clients",
        "clients waited for the network for much of the time, so the network is part of what is measured",
        "raise workload.clients until the server is busy, or take a host that is closer",
    ),
    Doubt.LINK_UNSTEADY: Advice(
        "the network between load and server was unsteady",
        "the way between load and server changed its speed, or lost some of what was sent",
        "look for other traffic on it, or add blocks",
    ),
    Doubt.LOAD_NOT_TOGETHER: Advice(
        "load hosts did not begin together",
        "the load hosts did not begin together, so the server had the load of some of them at first",
        "measure longer slices, or take load hosts with a steadier network",
    ),
    Doubt.MIXED_RESETS: Advice(
        "data were restored in different ways",
        "the pristine data were restored in different ways in trials that are compared",
        "run all trials on one file system, so that all copies are made alike",
    ),
}
