"""The words of every report: verdicts, the answer in a sentence, warnings with their next step, and safe
text.

The warnings are a closed list: each member of `record.Doubt` has its text and its next step here.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.analyse.model import (
    Analysis,
    Exhibit,
    GuardResult,
    Kept,
    Method,
    Reason,
    Role,
    VariantResult,
    Verdict,
)
from dbdyno.records import metrics
from dbdyno.records.record import Outcome
from dbdyno.report.words.numbers import (
    DASH,
    differs,
    interval_text,
    plural,
    ratio_text,
    share_text,
    value_text,
)
from dbdyno.report.words.safe import clean
from dbdyno.report.words.verdicts import LOOKS, marked
from dbdyno.study import Interval

NAMED_MOST = 4

INTERVALS: dict[Interval, str] = {
    Interval.STUDENT: "Student’s t on the log ratios of the blocks",
    Interval.SIGNED_RANK: "exact signed-rank on the blocks’ log ratios, around the Hodges-Lehmann estimate",
    Interval.ANYTIME: "a t interval on the log ratios of the blocks that may be looked at after every block",
}


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
    if answer.level:
        return _level(analysis)
    judged = len(answer.slower) + len(answer.no_effect)
    if answer.inconclusive and not judged:
        guarded = any(_variant(analysis, name).reason is Reason.GUARD for name in answer.inconclusive)
        rest = "" if guarded else " could be faster or slower"
        return f"Not settled yet: {_enumerated(analysis, answer.inconclusive)}{rest}."
    if not judged:
        return "No variant has a speed that counts: see the museum."
    others = ", which leaves open what is inconclusive" if answer.inconclusive else ""
    return f"Nothing helped: no variant is faster than the baseline{others}."


def _level(analysis: Analysis) -> str:
    """Several helped, and the blocks do not tell the strongest from the next."""
    return f"{_enumerated(analysis, analysis.answer.level)} helped; the blocks do not tell them apart."


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
        ("Also faster", tuple(name for name in answer.faster if name not in (answer.best, *answer.level))),
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
    if variant.effect is None or not counts or variant.reason is Reason.BASELINE_BROKEN:
        return clean(variant.name)
    return f"{clean(variant.name)} ({ratio_text(variant.effect.ratio)})"


def _variant(analysis: Analysis, name: str) -> VariantResult:
    return next(variant for variant in analysis.variants if variant.name == name)


def verdict_text(variant: VariantResult) -> str:
    """The verdict with its mark; the baseline and its twin have a word of their own."""
    if variant.verdict is not None:
        return marked(variant.verdict)
    if variant.role is Role.BASELINE:
        return "baseline"
    if variant.role is Role.TWIN and variant.effect is not None and variant.effect.low is not None:
        return "A/A: different" if differs(variant.effect) else "A/A: the same"
    return "A/A"


def remark(variant: VariantResult, analysis: Analysis) -> str:
    """What a reader needs beside the verdict: why, how much more it takes, or how sure it is. May be
    empty.
    """
    if variant.verdict is Verdict.INCONCLUSIVE:
        return _why_inconclusive(variant, analysis.method)
    if variant.verdict in (Verdict.FASTER, Verdict.SLOWER):
        return _maybe_within(variant, analysis)
    if variant.verdict is Verdict.NO_EFFECT and variant.effect is not None and differs(variant.effect):
        return "a real difference, and smaller than the margin"
    return cause(variant)


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


def _why_inconclusive(variant: VariantResult, method: Method) -> str:
    if variant.reason is Reason.SPREAD:
        if variant.blocks_more is None:
            return "more than 1,000 blocks would be needed"
        return f"about {plural(variant.blocks_more, 'more block')} would settle it"
    if variant.reason is Reason.TOO_FEW_PAIRS:
        few = f"a verdict needs at least {plural(method.blocks_least, 'block')} with it and the baseline"
        return f"{few}; about {variant.blocks_more} more would settle it" if variant.blocks_more else few
    return {
        Reason.GUARD: "faster by its interval, but a guard is not shown to hold",
        Reason.BASELINE_BROKEN: "the baseline itself did not hold",
        Reason.NO_BASELINE: "the baseline has no trial with a response above zero",
        Reason.NO_RESPONSE: "its trials gave no response above zero",
        Reason.NOT_RUN: "it has not been run yet",
        None: "",
    }[variant.reason]


def guard_text(guard: GuardResult) -> str:
    """A guard and what was seen: `p99_ms <= 1.2x: 1.51 (1.40 – 1.63)`."""
    if guard.value is None:
        return f"{clean(guard.text)}: no block has a reading"
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
            f"guard {guard.state.value}, {guard_text(guard)}"
            for guard in variant.guards
            if guard.state in (Kept.UNDECIDED, Kept.UNREAD)
        ]
        said += [dropped_text(variant)]
        lines += [f"{clean(variant.name)}: {text}" for text in said if text]
    return lines


def _blocks_needed(variants: Sequence[VariantResult]) -> str:
    needed = sorted(variant.blocks_more for variant in variants if variant.blocks_more is not None)
    return (
        f"{len(variants)} variants are inconclusive: "
        f"about {plural(needed[0], 'more block')} would settle the first of them, {needed[-1]} the last"
    )


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
    return cause(variant) or LOOKS[exhibit.verdict].meaning


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
        f"Interval: {INTERVALS[method.interval]}. {_correction(method)}",
        f"A verdict needs at least {plural(method.blocks_least, 'block')}; faster needs every guard as well,"
        " shown to hold by its whole interval.",
        "Costs (p99, CPU per operation): each interval alone with"
        f" {share_text(method.confidence)}, not adjusted for the number of comparisons.",
        f"Margin: ratios from {ratio_text(1.0 / (1.0 + method.margin))} to {ratio_text(1.0 + method.margin)}"
        " count as no effect, when the whole interval lies there.",
        "More blocks: so many settle the variant in"
        f" {share_text(method.assurance)} of cases, by what the blocks tell of its ratio and spread.",
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
        f"All {method.comparisons} intervals that decide verdicts (of the response and of guards) hold"
        f" together with {together}: each alone with {each} (Šidák, JASA 62, 1967). The twin of an A/A study"
        " is not among them."
    )


def intervals_text(analysis: Analysis) -> str:
    """What the response's intervals promise; empty where nothing was compared."""
    method = analysis.method
    peeked = ", however often they were looked at" if method.sequential else ""
    if method.comparisons < 2:
        return f"Interval: {share_text(method.confidence)}{peeked}." if method.comparisons else ""
    together = f"for all {method.comparisons} comparisons together (Šidák){peeked}"
    return f"Intervals: {share_text(method.confidence)} {together}."
