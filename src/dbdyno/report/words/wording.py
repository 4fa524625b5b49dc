"""The words of every report: verdicts, the answer in a sentence, warnings with their next step, and safe
text.

The warnings are a closed list: each member of `record.Doubt` has its text and its next step here.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.analyse.model import (
    Analysis,
    Exhibit,
    FactorEffect,
    GuardResult,
    Interaction,
    Kept,
    Method,
    Ratio,
    Reason,
    Role,
    VariantResult,
    Verdict,
)
from dbdyno.frozen import level_text
from dbdyno.records import metrics
from dbdyno.records.record import Doubt, Outcome

DASH = "–"
NAMED_MOST = 4
SHARED_LEAST = 14


@dataclass(frozen=True)
class Advice:
    """What a warning means for the figures, and what to do next."""

    text: str
    next_step: str


WARNINGS: dict[Doubt, Advice] = {
    Doubt.NOT_SETTLED: Advice(
        "throughput had not settled for half of the measured part, so its mean says little",
        "raise workload.warmup, or workload.duration beyond the period of what recurs (checkpoints)",
    ),
    Doubt.DRIVER_SATURATED: Advice(
        "the driver was the limit, so differences between servers are hidden",
        "raise workload.threads, give the driver more CPUs, or lower workload.clients",
    ),
    Doubt.RATE_NOT_KEPT: Advice(
        "the offered rate was not kept, so latencies hold the growing queue",
        "lower workload.rate_per_s below what the slowest variant can serve",
    ),
    Doubt.STEAL: Advice(
        "the hypervisor took CPU time away during the load",
        "measure on dedicated CPUs, or add blocks",
    ),
    Doubt.HOST_BUSY: Advice(
        "other processes of this host used its CPUs during the load",
        "stop them, or add blocks",
    ),
    Doubt.ERRORS_IN_LOAD: Advice(
        "some operations failed and count for nothing in the throughput",
        "look at the kinds of errors in the trial's tally; deadlocks are retried, refusals are not",
    ),
    Doubt.SERVER_LOG: Advice(
        "the server's log holds complaints from during the trial",
        "read the lines in the trial's record; a refused setting is a finding of its own",
    ),
    Doubt.THROTTLED: Advice(
        "a CPU quota that the study did not ask for held server or driver back",
        "raise the limit of the container or service that dyno runs in, or ask for less (cpu.quota)",
    ),
    Doubt.MIXED_RESETS: Advice(
        "the pristine data came back in different ways in trials that are compared",
        "run all trials on one file system, so that all copies are made alike",
    ),
}

MARKS: dict[Verdict, str] = {
    Verdict.FASTER: "▲",
    Verdict.SLOWER: "▼",
    Verdict.NO_EFFECT: "=",
    Verdict.INCONCLUSIVE: "?",
    Verdict.BROKEN: "✗",
    Verdict.BLOCKED: "⊘",
    Verdict.INERT: "≡",
    Verdict.FAILED: "✗",
}

MEANINGS: dict[Verdict, str] = {
    Verdict.FASTER: "the whole interval lies on the better side of 1",
    Verdict.SLOWER: "the whole interval lies on the worse side of 1",
    Verdict.NO_EFFECT: "the whole interval lies within the margin around 1",
    Verdict.INCONCLUSIVE: "the interval is too wide to tell",
    Verdict.BROKEN: "it broke an invariant or a guard: its speed does not count",
    Verdict.BLOCKED: "it could not be put into effect here",
    Verdict.INERT: "it is the same machine code as the baseline",
    Verdict.FAILED: "it did not build, start or survive, or the driver was the limit",
}


def ratio_text(value: float) -> str:
    """A ratio to a precision that its size deserves: 0.982, 1.62, 23.1, 1,204."""
    if value >= 1000.0:
        return f"{value:,.0f}"
    if value >= 10.0:
        return f"{value:.1f}"
    return f"{value:.3f}" if value >= 0.0995 else f"{value:.2g}"


def cost_text(value: float) -> str:
    """A ratio of cost, to two decimals where it is near 1."""
    return f"{value:.2f}" if 0.1 <= value < 10.0 else bound_text(value)


def interval_text(ratio: Ratio) -> str:
    """Low and high, or what there is instead."""
    if ratio.low is None or ratio.high is None:
        return "one pair"
    return f"{bound_text(ratio.low)} {DASH} {bound_text(ratio.high)}"


def bound_text(value: float) -> str:
    """One end of an interval; ends too far out to mean anything are said to be so."""
    if value > 1e3:
        return ">1,000"
    return "<0.001" if value < 1e-3 else ratio_text(value)


def share_text(share: float) -> str:
    """A share as a percentage with no more digits than it needs: 2 %, 0.5 %, 99.49 %."""
    return f"{100.0 * share:.4g} %"


def value_text(metric: str, value: float) -> str:
    """A metric's value in the format of its registry, without unit."""
    return metrics.find(metric).format(value)


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def engine_text(analysis: Analysis) -> str:
    """The engine, in the version that answered."""
    answered = [trial.record for trial in analysis.trials if trial.record.outcome is Outcome.MEASURED]
    records = answered or [trial.record for trial in analysis.trials]
    versions = sorted({record.engine_version for record in records if record.engine_version})
    engine = analysis.study.engine
    return clean(" ".join([engine.engine, ", ".join(versions) or engine.version]).strip())


def workload_text(analysis: Analysis) -> str:
    """The workload and how it is driven."""
    workload = analysis.study.workload
    loop = "" if workload.rate_per_s is None else f", {workload.rate_per_s:,.6g} per s offered"
    schedule = f", schedule {workload.schedule}" if workload.schedule else ""
    think_time = f", think time {workload.think_time}" if workload.think_time else ""
    return clean(f"{workload.name}, {plural(workload.clients, 'client')}{loop}{schedule}{think_time}")


def headline(analysis: Analysis) -> str:
    """The answer in one sentence: what won and by how much, or that nothing did."""
    answer = analysis.answer
    if not any(trial.record.outcome is Outcome.MEASURED for trial in analysis.trials):
        return "Nothing was measured, so nothing can be said of speed."
    if not any(trial.response is not None for trial in analysis.trials):
        return f"No trial has a {analysis.method.response} above zero, so nothing can be compared."
    if answer.baseline_broken:
        return (
            f"The baseline itself did not hold ({clean(answer.baseline_broken)}), so no ratio can be trusted."
        )
    if answer.best is not None:
        return _best(analysis, answer.best)
    judged = len(answer.slower) + len(answer.no_effect)
    if answer.inconclusive and not judged:
        return f"Not settled yet: {_enumerated(analysis, answer.inconclusive)} could be faster or slower."
    if not judged:
        return "No variant has a speed that counts: see the museum."
    others = ", which leaves open what is inconclusive" if answer.inconclusive else ""
    return f"Nothing helped: no variant is faster than the baseline{others}."


def _best(analysis: Analysis, name: str) -> str:
    effect = _variant(analysis, name).effect
    assert effect is not None  # a variant without an effect is never faster
    metric = metrics.find(analysis.method.response)
    return (
        f"{clean(name)} helped most: {ratio_text(effect.ratio)} times the baseline’s {metric.title}"
        f" ({interval_text(effect)})."
    )


def findings(analysis: Analysis) -> list[tuple[str, str]]:
    """The rest of the answer: a heading and the variants it holds for, only where there are any."""
    answer = analysis.answer
    groups = (
        ("Also faster", answer.faster[1:]),
        ("Slower", answer.slower),
        (f"No effect (within {share_text(analysis.method.margin)})", answer.no_effect),
        ("Inconclusive", answer.inconclusive),
        ("Broken", answer.broken),
        ("Blocked", answer.blocked),
        ("Inert", answer.inert),
        ("Failed", answer.failed),
    )
    return [(title, _enumerated(analysis, names)) for title, names in groups if names]


def _enumerated(analysis: Analysis, names: Sequence[str]) -> str:
    """The first few by name, the rest by number: the table below names them all."""
    shown = names if len(names) <= NAMED_MOST + 1 else names[:NAMED_MOST]
    text = ", ".join(_with_ratio(_variant(analysis, name)) for name in shown)
    return text if len(shown) == len(names) else f"{text} and {len(names) - len(shown)} more"


def _with_ratio(variant: VariantResult) -> str:
    counts = variant.verdict in (Verdict.FASTER, Verdict.SLOWER, Verdict.NO_EFFECT, Verdict.INCONCLUSIVE)
    if variant.effect is None or not counts:
        return clean(variant.name)
    return f"{clean(variant.name)} ({ratio_text(variant.effect.ratio)})"


def _variant(analysis: Analysis, name: str) -> VariantResult:
    return next(variant for variant in analysis.variants if variant.name == name)


def verdict_text(variant: VariantResult) -> str:
    """The verdict with its mark; the baseline and its twin have a word of their own."""
    if variant.verdict is not None:
        return f"{MARKS[variant.verdict]} {variant.verdict.value}"
    if variant.role is Role.BASELINE:
        return "baseline"
    if variant.role is Role.TWIN and variant.effect is not None and variant.effect.low is not None:
        return "A/A: different" if differs(variant.effect) else "A/A: the same"
    return "A/A"


def differs(effect: Ratio) -> bool:
    """Whether an interval excludes 1."""
    return effect.low is not None and effect.high is not None and not effect.low <= 1.0 <= effect.high


def remark(variant: VariantResult, analysis: Analysis) -> str:
    """What a reader needs beside the verdict: why, how much more it takes, or how sure it is. May be
    empty.
    """
    if variant.verdict is Verdict.INCONCLUSIVE:
        return _why_inconclusive(variant)
    if variant.verdict in (Verdict.FASTER, Verdict.SLOWER):
        return _maybe_within(variant, analysis)
    if variant.verdict is Verdict.NO_EFFECT and variant.effect is not None and differs(variant.effect):
        return "a real difference, and smaller than the margin"
    return cause(variant)


def cause(variant: VariantResult) -> str:
    """Why a variant ended in the museum, from its trials or its guards."""
    if variant.cause:
        return clean(variant.cause)
    broken = [guard_text(guard) for guard in variant.guards if guard.state is Kept.BROKEN]
    return "; ".join(broken)


def _maybe_within(variant: VariantResult, analysis: Analysis) -> str:
    effect, band = variant.effect, 1.0 + analysis.method.margin
    if effect is None or effect.low is None or effect.high is None:
        return ""
    nearest = effect.low if effect.low > 1.0 else 1.0 / effect.high
    return (
        f"perhaps by less than the margin of {share_text(analysis.method.margin)}" if nearest < band else ""
    )


def _why_inconclusive(variant: VariantResult) -> str:
    if variant.reason is Reason.SPREAD:
        if variant.blocks_more is None:
            return "more than 1,000 blocks would be needed"
        return f"about {plural(variant.blocks_more, 'more block')} would settle it"
    return {
        Reason.TOO_FEW_PAIRS: "fewer than two blocks hold both it and the baseline",
        Reason.NO_BASELINE: "the baseline has no trial with a response above zero",
        Reason.NO_RESPONSE: "its trials gave no response above zero",
        Reason.NOT_RUN: "it has not been run yet",
        None: "",
    }[variant.reason]


def guard_text(guard: GuardResult) -> str:
    """A guard and what was seen: `p99_ms <= 1.2x: 1.51 (1.40 – 1.63)`."""
    if guard.value is None:
        return clean(guard.text)
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
        f"block {drop.block + 1} ({clean(drop.variant)}: {drop.outcome.value if drop.outcome else 'not run'})"
        for drop in variant.dropped
    ]
    return f"compared over {plural(variant.effect.pairs, 'block')}; no pair in " + ", ".join(parts)


def notes(analysis: Analysis) -> list[str]:
    """What a reader of the table must know of single variants: remarks, open guards, blocks without a pair.

    What stands in the museum is not said twice.
    """
    exhibited = {exhibit.variant for exhibit in analysis.museum}
    open_still = [variant for variant in analysis.variants if variant.blocks_more is not None]
    lines = [] if len(open_still) <= NAMED_MOST else [_blocks_needed(open_still)]
    told = exhibited | ({variant.name for variant in open_still} if lines else set())
    for variant in analysis.variants:
        said = [] if variant.name in told else [remark(variant, analysis)]
        said += [
            f"guard undecided, {guard_text(guard)}"
            for guard in variant.guards
            if guard.state is Kept.UNDECIDED
        ]
        said += [dropped_text(variant)]
        lines += [f"{clean(variant.name)}: {text}" for text in said if text]
    return lines


def _blocks_needed(variants: Sequence[VariantResult]) -> str:
    needed = sorted(variant.blocks_more for variant in variants if variant.blocks_more is not None)
    return (
        f"{len(variants)} variants are inconclusive for their spread: "
        f"about {plural(needed[0], 'more block')} would settle the first of them, {needed[-1]} the last"
    )


def factor_text(name: str) -> str:
    """A factor as tables and figures call it: the load's own knobs are known by their names alone."""
    return clean(name.removeprefix("workload."))


def main_text(row: FactorEffect) -> str:
    """A main effect: what is divided by what."""
    return clean(f"{factor_text(row.factor)}: {level_text(row.level)} / {level_text(row.against)}")


def pair_text(row: Interaction) -> str:
    """An interaction's two levels."""
    parts = zip(row.factors, row.levels, strict=True)
    return clean(" × ".join(f"{factor_text(factor)}={level_text(level)}" for factor, level in parts))


def rooms(analysis: Analysis) -> list[list[Exhibit]]:
    """The museum with what ended alike put together: the same outcome, cause and remedy, told once."""
    grouped: dict[tuple[str, str, str], list[Exhibit]] = {}
    for exhibit in analysis.museum:
        key = (exhibit.verdict.value, exhibit_text(exhibit, analysis), exhibit.remedy)
        grouped.setdefault(key, []).append(exhibit)
    return list(grouped.values())


def exhibit_text(exhibit: Exhibit, analysis: Analysis) -> str:
    """The cause of one entry of the museum."""
    variant = _variant(analysis, exhibit.variant)
    if exhibit.verdict is Verdict.NO_EFFECT and variant.effect is not None:
        seen = f"ratio {ratio_text(variant.effect.ratio)} ({interval_text(variant.effect)})"
        within = f"{seen}, within {share_text(analysis.method.margin)}"
        return f"{within}: {remark(variant, analysis)}" if remark(variant, analysis) else within
    return cause(variant) or MEANINGS[exhibit.verdict]


def aa_text(analysis: Analysis) -> str:
    """What the A/A check showed, beside what was promised. Empty without one."""
    check = analysis.aa
    if check is None:
        return ""
    if check.comparisons == 0:
        return "A/A: no comparison yet; it takes two blocks."
    share = share_text(check.called / check.comparisons)
    judged = (
        "as promised" if check.as_promised else "more than chance explains: do not trust small effects here"
    )
    whole = ""
    if check.effect is not None and check.effect.low is not None:
        seen = f"{ratio_text(check.effect.ratio)} ({interval_text(check.effect)})"
        whole = f" Over all {check.pairs} pairs: {seen}."
    return (
        f"A/A: {check.called} of {plural(check.comparisons, 'comparison')} of the baseline with itself called"
        f" different ({share}; promised {share_text(check.promised)}): {judged}.{whole}"
    )


def method_text(analysis: Analysis) -> list[str]:
    """How each number was made, a sentence or two per item."""
    method, metric = analysis.method, metrics.find(analysis.method.response)
    unit = f" ({metric.unit})" if metric.unit else ""
    return [
        f"Response: {metric.title}{unit}. {metric.definition}",
        "Ratio: variant / baseline within a block, then the geometric mean over blocks. A block holds every"
        " variant once, in random order, so what disturbs a whole block cancels.",
        f"Interval: Student’s t on the log ratios of the blocks. {_correction(method)}",
        "Costs (p99, CPU per operation) and guards: each interval alone with"
        f" {share_text(method.confidence)}, not adjusted for the number of comparisons.",
        f"Margin: ratios from {ratio_text(1.0 / (1.0 + method.margin))} to {ratio_text(1.0 + method.margin)}"
        " count as no effect, when the whole interval lies there.",
        "More blocks: the estimate takes ratio and spread as seen, and settles the variant in"
        f" {share_text(method.power)} of cases.",
        "Steady state: changepoints of the per-second series, warm-up included, in the manner of Barrett"
        " et al., OOPSLA 2017; lone seconds do not count.",
        "Latency: from the driver’s histograms, all measured trials of a variant together, three significant"
        " digits; drawn as far as ten operations lie above.",
    ]


def _correction(method: Method) -> str:
    peeked = (
        " The run looked at them after every block and left out what was settled: they hold at all those"
        " looks together (Lai, Annals of Statistics 4, 1976)."
        if method.sequential
        else ""
    )
    return _together(method) + peeked


def _together(method: Method) -> str:
    together, each = share_text(method.confidence), share_text(method.confidence_each)
    if method.comparisons < 2:
        return f"It holds with {together}; a single comparison needs no correction."
    return (
        f"All {method.comparisons} intervals of the response hold together with {together}: each alone with"
        f" {each} (Šidák, JASA 62, 1967). The twin of an A/A study is not among them."
    )


def clean(text: str) -> str:
    """Text from outside, on one line, with everything that could steer a terminal or hide words made
    visible.
    """
    lines = without_passwords(text).replace("\r\n", "\n")
    return "".join(_visible(character) for character in lines.replace("\n", " ⏎ "))


def clean_lines(text: str) -> str:
    """The same for text of several lines: newlines and tabs stay."""
    lines = without_passwords(text).replace("\r\n", "\n")
    return "".join(character if character in "\n\t" else _visible(character) for character in lines)


def without_passwords(text: str) -> str:
    """Text without the passwords of its URLs: a report is made to be passed on."""
    return re.sub(r"(\w://[^\s:/@\"']*):[^\s@/\"']+@", r"\1:***@", text)


def _visible(character: str) -> str:
    """Control, format (bidirectional overrides among them), surrogate and private characters as their
    code.
    """
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co"):
        return f"\\u{{{ord(character):x}}}"
    return character


def seconds_text(seconds: float) -> str:
    """A duration a person reads: 43 s, 2 min 5 s, 1 h 12 min."""
    whole = round(seconds)
    if not math.isfinite(seconds) or whole < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def intervals_text(analysis: Analysis) -> str:
    """What the response's intervals promise; empty where nothing was compared."""
    method = analysis.method
    peeked = ", however often they were looked at" if method.sequential else ""
    if method.comparisons < 2:
        return f"Interval: {share_text(method.confidence)}{peeked}." if method.comparisons else ""
    together = f"for all {method.comparisons} comparisons together (Šidák){peeked}"
    return f"Intervals: {share_text(method.confidence)} {together}."


def shared_beginning(names: Sequence[str]) -> str:
    """What all names begin with, up to a `.` or `=`, where it is long enough to be worth saying once."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    pairs = enumerate(zip(first, last, strict=False))
    common = next((at for at, (one, other) in pairs if one != other), len(first))
    beginning = re.sub(r"[^.=]*$", "", first[:common])
    return beginning if len(beginning) >= SHARED_LEAST else ""


def wrapped(name: str, width: int, indent: str = "  ") -> str:
    """A long name on several lines, cut after its punctuation, where a reader would."""
    lines: list[str] = []
    line = ""
    room = max(width - len(indent), 1)
    words = re.findall(r"[^ .=_/,]*[ .=_/,]*", name)
    for part in (word[at : at + room] for word in words for at in range(0, len(word), room)):
        if line and len(line) + len(part.rstrip()) > width:
            lines.append(line.rstrip())
            line = indent
        line += part
    return "\n".join([*lines, line])


def percentile_text(above: float) -> str:
    """The percentile that a share of operations lies above: 99.9 % for 0.001."""
    return f"{100.0 * (1.0 - above):.6g} %"
