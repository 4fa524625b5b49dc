"""What stands beside a variant: its verdict, why it has it, its guards, and its place in the museum.

What each doubt about a trial means for the figures, and what to do next.

The list is closed: each member of `record.Doubt` has its text and its next step here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dbdyno.analyse.floor import most_more
from dbdyno.analyse.model import (
    Analysis,
    Dropped,
    Exhibit,
    GuardResult,
    Kept,
    Method,
    Reason,
    Role,
    Unit,
    VariantResult,
    Verdict,
)
from dbdyno.records.metrics import OBSERVED_ABOVE, SHARES_ABOVE
from dbdyno.records.record import Doubt, Outcome
from dbdyno.report.words.numbers import (
    DASH,
    differs,
    effect_text,
    limits_text,
    narrower_text,
    plural,
    ratio_text,
    share_text,
    value_text,
)
from dbdyno.report.words.safe import clean
from dbdyno.report.words.verdicts import LOOKS, losing, losses_of_variant, lost, marked
from dbdyno.study import ANSWERS, DURABLE


def variant_of(analysis: Analysis, name: str) -> VariantResult:
    return next(variant for variant in analysis.variants if variant.name == name)


def verdict_text(variant: VariantResult) -> str:
    """The verdict with its mark, and with what the variant gives up."""
    return losing(_verdict_alone(variant), losses_of_variant(variant))


def _verdict_alone(variant: VariantResult) -> str:
    """The baseline, its twin and placebos have a word of their own."""
    if not_exercised(variant):
        return f"{LOOKS[Verdict.NO_EFFECT].glyph} not used by the load"
    if variant.reason is Reason.LAYOUT:
        return f"{LOOKS[Verdict.INCONCLUSIVE].glyph} within luck of layout"
    if variant.verdict is not None:
        return marked(variant.verdict)
    if variant.role in (Role.BASELINE, Role.PLACEBO):
        return variant.role.value
    if variant.role is Role.TWIN and variant.effect is not None and variant.effect.low is not None:
        return "A/A: different" if differs(variant.effect) else "A/A: the same"
    return "A/A"


def not_exercised(variant: VariantResult) -> bool:
    """Whether the load had no use for what the variant changes: then no effect says nothing of it."""
    return variant.verdict is Verdict.NO_EFFECT and bool(variant.idle)


def remark(variant: VariantResult, analysis: Analysis) -> str:
    """What a reader needs beside the verdict: why, how much more it takes, or how sure it is. May be
    empty.
    """
    if variant.verdict is Verdict.INCONCLUSIVE and variant.idle:
        return f"the load did not use it ({clean(variant.idle)}), so more blocks would say nothing about it"
    if variant.verdict is Verdict.INCONCLUSIVE:
        return _why_inconclusive(variant, analysis.method)
    if variant.verdict in (Verdict.FASTER, Verdict.SLOWER):
        idle = (
            variant.idle
            and f"the load did not use it ({clean(variant.idle)}), so something else made the difference"
        )
        return idle or "; ".join(filter(None, (_maybe_within(variant, analysis), _carried_text(variant))))
    if not_exercised(variant):
        return f"the load did not use it: {clean(variant.idle)}"
    if variant.verdict is Verdict.NO_EFFECT and variant.effect is not None:
        real = "a real difference, but smaller than the margin" if differs(variant.effect) else ""
        return "; ".join(filter(None, (real, narrower_text(variant.effect)))) or cause(variant)
    return cause(variant)


def mean_text(variant: VariantResult) -> str:
    """The mean that stands beside a signed-rank estimate. Empty where there is none."""
    return "" if variant.mean is None else f"their mean is {effect_text(variant.mean)}"


def cause(variant: VariantResult) -> str:
    """Why a variant ended in the museum, from its trials or its guards."""
    if variant.cause:
        return f"{_share_ended(variant)}{clean(variant.cause)}"
    broken = [guard_text(guard) for guard in variant.guards if guard.state is Kept.BROKEN]
    return "; ".join(broken)


def _share_ended(variant: VariantResult) -> str:
    """In how many blocks a variant ended as its verdict says, where others went well."""
    ended = sum(count for outcome, count in variant.outcomes.items() if outcome.value == variant.verdict)
    trials = sum(variant.outcomes.values())
    return f"in {ended} of {plural(trials, 'block')}: " if 0 < ended < trials else ""


def _maybe_within(variant: VariantResult, analysis: Analysis) -> str:
    effect, band = variant.effect, 1.0 + analysis.method.margin
    if effect is None or effect.low is None or effect.high is None:
        return ""
    nearest = effect.low if effect.low > 1.0 else 1.0 / effect.high
    return (
        f"perhaps by less than the margin of {share_text(analysis.method.margin)}" if nearest < band else ""
    )


def _carried_text(variant: VariantResult) -> str:
    """That a few blocks make the verdict."""
    if not variant.carried_by:
        return ""
    blocks = plural(_pairs(variant), "block")
    return f"{variant.carried_by} of its {blocks} carry that, because the others alone do not tell it"


def _why_inconclusive(variant: VariantResult, method: Method) -> str:
    if variant.reason is Reason.LAYOUT and method.layout is not None:
        return f"layout alone could make it {limits_text(method.layout)}, and its interval reaches into that"
    if variant.reason is Reason.MEAN and variant.effect is not None:
        middle = ratio_text(variant.effect.ratio)
        return f"the middle of its blocks is {middle}, and {mean_text(variant)}: they disagree"
    if variant.reason is Reason.SPREAD and method.unit is not Unit.BLOCK:
        return f"it may be 1: more {method.unit}s would narrow its interval"
    if variant.reason is Reason.SPREAD:
        more = blocks_text(variant)
        return f"{more} would settle it" if more else _out_of_reach(variant)
    if variant.reason is Reason.TOO_FEW_PAIRS:
        few = f"a verdict needs at least {plural(method.blocks_least, method.unit)} with it and the baseline"
        more = blocks_text(variant)
        return f"{few}; {more} would settle it" if more else few
    return {
        Reason.GUARD: "its interval says faster, but a guard is not shown to hold",
        Reason.FAILS_MORE: "its interval says faster, but more of its transactions failed, and what fails is"
        " no part of the figure",
        Reason.BASELINE_BROKEN: "the baseline itself did not hold",
        Reason.NO_BASELINE: "the baseline has no trial with a response above zero",
        Reason.NO_RESPONSE: "its trials gave no response above zero",
        Reason.NOT_RUN: "it has not been run yet",
        Reason.EMULATED: "emulated speed has no verdict",
        Reason.LAYOUT: "",
        Reason.MEAN: "",
        Reason.LOST: "blocks were lost to failures: had they been the slowest of all, the verdict would be"
        " another",
        None: "",
    }[variant.reason]


def blocks_text(variant: VariantResult) -> str:
    """How many more blocks would settle a variant: about a number, or from one to another where the noise is
    too large for one. Empty where that is beyond reach, or not known."""
    even, likely = variant.blocks_more_even, variant.blocks_more
    if even is None:
        return "" if likely is None else f"about {plural(likely, 'more block')} like these"
    if likely is None:
        return f"{even:,} to {_beyond(_most_more(variant))}"
    return f"{even:,} to {plural(likely, 'more block')} like these"


def _out_of_reach(variant: VariantResult) -> str:
    """Why no number of blocks is told: too many would be needed, or there are as many already, or more of the
    same hosts or images of the data would not help."""
    if variant.effect is not None and variant.effect.hosts:
        return f"its interval is over the means of {variant.effect.hosts} hosts: more hosts would narrow it"
    if variant.effect is not None and variant.effect.images:
        return (
            f"the {variant.effect.images} copies of the data favour it differently, and more blocks of these"
            " do not settle it; `images` in the study takes more of them"
        )
    if most := _most_more(variant):
        return f"the noise is too large: {_beyond(most)} would be needed"
    return f"the noise is too large: {plural(_pairs(variant), 'block')} did not settle it"


def _beyond(most: int) -> str:
    return f"more than {plural(most, 'further block')}"


def _most_more(variant: VariantResult) -> int:
    return most_more(_pairs(variant))


def _pairs(variant: VariantResult) -> int:
    return variant.effect.pairs if variant.effect else 0


def guard_text(guard: GuardResult) -> str:
    """A guard and what was seen: `p99_ms <= 1.2x: 1.51 (1.40 – 1.63)`."""
    if guard.metric == DURABLE and guard.value is not None:
        cuts = plural(guard.trials, "power cut")
        return f"{clean(guard.text)}: {guard.value:.0f} of {cuts} took something along"
    if guard.metric == ANSWERS:
        told = "no answer was compared"
        if guard.value is not None:
            told = f"{guard.value:.0f} of {plural(guard.trials, 'statement')} answered otherwise"
        return f"{clean(guard.text)}: {told}"
    if guard.value is None and guard.metric == DURABLE:
        return f"{clean(guard.text)}: no power was cut"
    if guard.value is None:
        percentile = guard.metric.removesuffix("_ms") in SHARES_ABOVE
        why = (
            f": fewer than {OBSERVED_ABOVE} transactions of a trial lie above it; measure longer, or guard a"
            " lower percentile"
        )
        return f"{clean(guard.text)}: no block has a reading{why if percentile else ''}"
    if guard.baseline is not None:
        ours, theirs = (value_text(guard.metric, value) for value in (guard.value, guard.baseline))
        return f"{clean(guard.text)}: {ours}, the baseline {theirs}"
    form = ratio_text if guard.relative else (lambda value: value_text(guard.metric, value))
    seen = form(guard.value)
    if guard.low is not None and guard.high is not None and guard.trials > 1:
        seen += f" ({form(guard.low)} {DASH} {form(guard.high)})"
    return f"{clean(guard.text)}: {seen}"


def dropped_text(variant: VariantResult) -> str:
    """Which blocks gave no pair, for a variant that was compared all the same."""
    if not variant.dropped or variant.effect is None:
        return ""
    parts = [
        f"{_blocks_text(blocks)} ({clean(name)}: {outcome.value if outcome else 'not run'})"
        for (name, outcome), blocks in _dropped_alike(variant.dropped)
    ]
    return f"compared over {plural(variant.effect.pairs, 'block')}; no pair in " + "; ".join(parts)


def _dropped_alike(dropped: Sequence[Dropped]) -> Iterator[tuple[tuple[str, Outcome | None], list[int]]]:
    """Blocks that follow one another and gave no pair because of the same variant's same end, from 0."""

    def alike(numbered: tuple[int, Dropped]) -> tuple[str, Outcome | None, int]:
        number, drop = numbered
        # Of blocks that follow one another this difference is the same.
        return drop.variant, drop.outcome, drop.block - number

    for (name, outcome, _), drops in groupby(enumerate(dropped), alike):
        yield (name, outcome), [drop.block for _, drop in drops]


def _blocks_text(blocks: Sequence[int]) -> str:
    first, last = blocks[0] + 1, blocks[-1] + 1
    return f"block {first}" if first == last else f"blocks {first} {DASH} {last}"


def rooms(analysis: Analysis) -> list[list[Exhibit]]:
    """The museum with what ended alike put together: the same outcome, cause and remedy, told once."""
    grouped: dict[tuple[str, str, str], list[Exhibit]] = {}
    for exhibit in analysis.museum:
        key = (exhibit.verdict.value, exhibit_text(exhibit, analysis), exhibit.remedy)
        grouped.setdefault(key, []).append(exhibit)
    return list(grouped.values())


def exhibit_text(exhibit: Exhibit, analysis: Analysis) -> str:
    """The cause of one entry of the museum."""
    variant = variant_of(analysis, exhibit.variant)
    if exhibit.verdict is Verdict.NO_EFFECT and variant.effect is not None:
        seen = f"ratio {effect_text(variant.effect)}"
        within = f"{seen}, within {share_text(analysis.method.margin)}"
        told = f"{within}: {remark(variant, analysis)}" if remark(variant, analysis) else within
        return f"{told}; it gives up {lost(variant.gives_up)} all the same" if variant.gives_up else told
    return cause(variant) or LOOKS[exhibit.verdict].meaning


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
    Doubt.DEFERRED: Advice(
        "the server put off work until others had their turn",
        "the server put off work (checkpoints, vacuum, purge) until others had their turn, so its own slices"
        " show less than it costs",
        "compare cpu_between_share and written_between_share; where variants differ in them, give"
        ' arrangement = "one-after-the-other"',
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
    Doubt.CAPACITY_AT_LEAST: Advice(
        "the capacity is at least that: no rate was too much for the server",
        "no rate was found that the server itself does not keep, so its capacity is at least the figure",
        "raise workload.threads, give the driver CPUs or a load host of its own, or promise more",
    ),
    Doubt.FEW_ABOVE: Advice(
        "steps are short for the percentile: raise workload.duration",
        "few transactions of a step lie above the percentile of the promise, so it is known roughly",
        "raise workload.duration, which is the length of a step, or promise a lower percentile",
    ),
    Doubt.MIXED_RESETS: Advice(
        "data were restored in different ways",
        "the pristine data were restored in different ways in trials that are compared",
        "run all trials on one file system, so that all copies are made alike",
    ),
}
