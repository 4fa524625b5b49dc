"""The answer of a run: a sentence, who else is faster or not, and what to know of single variants."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from dbdyno.analyse.floor import apart_by_layout
from dbdyno.analyse.model import (
    Analysis,
    Kept,
    Ratio,
    Reason,
    Role,
    VariantResult,
    Verdict,
)
from dbdyno.analyse.museum import JUDGED
from dbdyno.frozen import listed, spoken
from dbdyno.records import metrics
from dbdyno.records.readings import BLOCKS_LEAST, RunOfIndex
from dbdyno.records.record import Outcome
from dbdyno.report.words import hosts, noise, plans, platforms, search
from dbdyno.report.words.naming import (
    baseline_alone,
    latencies_text,
    levels_text,
    main_text,
    marks_text,
    metric_title,
    warning,
)
from dbdyno.report.words.numbers import (
    differs,
    interval_text,
    plural,
    ratio_text,
    rough_share_text,
    share_text,
)
from dbdyno.report.words.remarks import (
    blocks_text,
    cause,
    dropped_text,
    guard_text,
    mean_text,
    not_exercised,
    remark,
    variant_of,
)
from dbdyno.report.words.safe import clause, clean
from dbdyno.report.words.verdicts import losses_of_variant

NAMED_MOST = 4


def headline(analysis: Analysis) -> str:
    """The answer in one sentence: what won and by how much, or that nothing did. What was asked for and not
    measured comes first."""
    listed = analysis.search is None and not analysis.study.untimed
    missing = not_measured(analysis) if listed else ""
    return " ".join(filter(None, (missing, _of_measured(analysis))))


def not_measured(analysis: Analysis) -> str:
    """Which variants were blocked in all their trials, why, and what would allow them; empty where all were
    measured. Those that share a reason are counted, because the findings below name them."""
    blocked: dict[tuple[str, str], list[VariantResult]] = {}
    for one in analysis.candidates:
        if one.outcomes and set(one.outcomes) == {Outcome.BLOCKED}:
            blocked.setdefault((one.cause, one.remedy), []).append(one)
    told = []
    for said, names in blocked.items():
        who = f"{_named(names[0])} was" if len(names) == 1 else f"{plural(len(names), 'variant')} were"
        told.append(f"{who} not measured: {'; '.join(filter(None, map(clean, said)))}.")
    return " ".join(told)


def _of_measured(analysis: Analysis) -> str:
    answer = analysis.answer
    if analysis.study.untimed:
        return platforms.headline(analysis)
    if not any(trial.record.outcome is Outcome.MEASURED for trial in analysis.trials):
        return "Nothing was measured, so nothing can be said about speed."
    if analysis.search is not None and not answer.baseline_broken:
        return search.headline(analysis, analysis.search)
    if not any(trial.response is not None for trial in analysis.trials):
        return f"No trial has a {analysis.method.response} above zero, so nothing can be compared."
    if analysis.run.of_logs and not analysis.candidates:
        return baseline_alone(analysis)
    if answer.baseline_broken:
        return (
            f"The baseline itself did not hold ({clean(answer.baseline_broken)}), so no ratio can be trusted."
        )
    if answer.best is not None:
        return _best(analysis, answer.best)
    if answer.level or answer.rivals:
        return _level(analysis)
    judged = len(answer.slower) + len(answer.no_effect)
    if answer.inconclusive and not judged:
        reasons = {variant_of(analysis, name).reason for name in answer.inconclusive}
        if found := _main_effects(analysis):
            return f"{found} No variant is settled by itself yet."
        if reasons == {Reason.LAYOUT}:
            builds = _enumerated(analysis, answer.inconclusive)
            return f"No build is told from luck of layout, as far as its placebos can say: {builds}."
        return f"Not settled yet: {_enumerated(analysis, answer.inconclusive)}{_why_open(analysis)}."
    if not analysis.candidates and analysis.method.layout is not None:
        reach = rough_share_text(analysis.method.layout.difference)
        return f"Placebos alone were measured: luck of layout reaches {reach}."
    if not judged:
        return "" if not_measured(analysis) else _nothing_counts(analysis)
    if _frontier_differs(analysis):
        return "No variant is faster by itself, but curves differ at the same recall: see the frontier."
    if answer.slower and len(answer.slower) == len(analysis.candidates):
        slower = _enumerated(analysis, answer.slower)
        return f"Slower than the baseline in {metric_title(analysis)}: {slower}."
    others = ", which leaves open what is inconclusive" if answer.inconclusive else ""
    return f"Nothing helped: no variant is faster than the baseline{others}."


def _why_open(analysis: Analysis) -> str:
    """Why no variant is settled, where all have one reason; empty where they have several, or another that
    stands beside each."""
    found = [variant_of(analysis, name) for name in analysis.answer.inconclusive]
    reasons = {one.reason for one in found}
    if reasons == {Reason.TOO_FEW_PAIRS}:
        needs = f": a verdict needs {plural(analysis.method.blocks_least, analysis.method.unit)}"
        return needs if len(found) > 1 else f"{needs}; {_so_far(found[0], analysis)}"
    if reasons != {Reason.SPREAD}:
        return ""
    if len(found) > 1:
        return ": their intervals hold 1"
    return f": its interval, {interval_text(found[0].effect)}, holds 1" if found[0].effect else ""


def _so_far(variant: VariantResult, analysis: Analysis) -> str:
    """What the few blocks say of a variant."""
    ratios = [one.ratio for one in variant.block_ratios]
    if not ratios and variant.effect is not None:  # Repetitions that belong to no others have one ratio.
        ratios = [variant.effect.ratio] * sum(variant.outcomes.values())
    if not ratios:
        return "none has a ratio so far"
    least, most = ratio_text(min(ratios)), ratio_text(max(ratios))
    unit = analysis.method.unit
    if len(ratios) == 1:
        return f"one {unit} says {least}"
    if least == most:
        return f"all {len(ratios)} {unit}s say {least}"
    return f"the {len(ratios)} {unit}s so far say {least} to {most}"


def _nothing_counts(analysis: Analysis) -> str:
    """Why no variant can be compared: there is none, or what became of the first."""
    if not analysis.candidates:
        return "Only the baseline was measured, so there is nothing to compare it with."
    first = next((one for one in analysis.candidates if cause(one)), None)
    why = f"{clean(first.name)}: {clause(cause(first))}" if first is not None else "no variant ran to its end"
    if any(one.verdict is Verdict.BROKEN for one in analysis.candidates):
        return f"The speed of no variant counts. {why}."
    return f"Nothing was measured beside the baseline. {why}."


def _main_effects(analysis: Analysis) -> str:
    """What single factors do over all settings of the others, and the whole gap; empty where none is told
    from 1, nor a build from luck of layout."""
    mains = analysis.factorial.main if analysis.factorial is not None else ()
    clear = [
        main
        for main in mains
        if differs(main.effect) and not apart_by_layout((main.factor,), main.effect, analysis.method)
    ]
    if not clear:
        return ""
    clear.sort(key=lambda main: abs(math.log(main.effect.ratio)), reverse=True)
    first = clear[:NAMED_MOST]
    told = listed([*map(main_text, first)], behind=[f" is {_with_interval(one.effect)}" for one in first])
    text = f"Main effects on {metrics.find(analysis.method.response).title}: {told}."
    total = analysis.gap.total if analysis.gap is not None else None
    return (
        f"{text} The whole gap is {_with_interval(total)}." if total is not None and differs(total) else text
    )


def _with_interval(ratio: Ratio) -> str:
    return f"{ratio_text(ratio.ratio)} times ({interval_text(ratio)})"


def _frontier_differs(analysis: Analysis) -> bool:
    """Whether a curve of the frontier is told from the first at some recall."""
    curves = analysis.frontier.curves if analysis.frontier is not None else ()
    effects = [reading.effect for curve in curves for reading in curve.readings]
    return any(effect is not None and differs(effect) for effect in effects)


def _level(analysis: Analysis) -> str:
    """The strongest that helped, and who may have helped as much or more. What single factors do leads."""
    answer = analysis.answer
    if answer.level:
        helped = f"{_enumerated(analysis, answer.level)} helped."
        parts = [_main_effects(analysis), f"{helped} The {analysis.method.unit}s cannot tell them apart."]
    else:
        strongest = answer.faster[0]
        parts = [_helped(analysis, strongest, "helped")]
    if answer.rivals:
        one_of = "One of " if len(answer.rivals) > 1 else ""
        parts.append(f"{one_of}{_enumerated(analysis, answer.rivals)} may help as much or more.")
    return " ".join(filter(None, (*parts, _without_loss(analysis, answer.level or answer.faster[:1]))))


def _best(analysis: Analysis, name: str) -> str:
    most = " most" if len(analysis.candidates) > 1 else ""
    helped = _helped(analysis, name, f"helped{most}")
    return " ".join(filter(None, (helped, _without_loss(analysis, [name]))))


def _without_loss(analysis: Analysis, told: Sequence[str]) -> str:
    """The strongest of those that helped and give nothing up, where those that are told all do, or that there
    is none; empty where nobody has to be named."""
    if not all(variant_of(analysis, name).gives_up for name in told):
        return ""
    keeping = [name for name in analysis.answer.faster if not variant_of(analysis, name).gives_up]
    if not keeping:
        return "No variant that gives up nothing is shown to help."
    return _helped(analysis, keeping[0], "helped and gives up nothing")


def _helped(analysis: Analysis, name: str, how: str) -> str:
    variant = variant_of(analysis, name)
    effect = variant.effect
    assert effect is not None  # a variant without an effect is never faster
    times = f"{ratio_text(effect.ratio)} times the baseline’s {metric_title(analysis)}"
    told = f"{_named(variant)} {how}: {times} ({interval_text(effect)})"
    return f"{told}{_beside(analysis, name)}."


def _beside(analysis: Analysis, name: str) -> str:
    """What contradicts a variant's ratio, or may explain it."""
    return hosts.beside(analysis, name) + plans.beside(analysis, name)


def findings(analysis: Analysis) -> list[tuple[str, str]]:
    """The rest of the answer: a heading and the variants it holds for, only where there are any. A study of
    platforms has none, because none of its variants has a speed."""
    if analysis.study.untimed:
        return []
    answer, run = analysis.answer, analysis.run
    idle = tuple(name for name in answer.no_effect if not_exercised(variant_of(analysis, name)))
    no_effect = tuple(name for name in answer.no_effect if name not in idle)
    lucky = tuple(name for name in answer.inconclusive if variant_of(analysis, name).reason is Reason.LAYOUT)
    inconclusive = tuple(name for name in answer.inconclusive if name not in lucky)
    told_first = answer.level or answer.faster[:1]
    groups = (
        ("Also faster", tuple(name for name in answer.faster if name not in told_first)),
        ("Slower", answer.slower),
        (f"No effect (within {share_text(analysis.method.margin)})", no_effect),
        ("Not used by this load", idle),
        ("Within luck of layout", lucky),
        ("Inconclusive", inconclusive),
        ("Broken", answer.broken),
        ("Blocked", answer.blocked),
        ("Failed", answer.failed),
        ("Inert (the baseline’s code)", answer.inert),
        (
            "Placebos (the baseline’s code at other addresses)",
            tuple(one.name for one in analysis.variants if one.role is Role.PLACEBO),
        ),
    )
    told = [("Brought", warning(run.of_logs, analysis.method.unit))] if run.of_logs else []
    told += [(title, _enumerated(analysis, names, _beside)) for title, names in groups if names]
    flipping = plans.flipping(analysis)
    return [*told, ("Plans that flip in the baseline", flipping)] if flipping else told


def _enumerated(
    analysis: Analysis, names: Sequence[str], beside: Callable[[Analysis, str], str] = lambda *_: ""
) -> str:
    """The first few by name with what is `beside` them, the rest by number: the table below names them
    all."""
    found = [variant_of(analysis, name) for name in names]
    behind = [_marks(one) + beside(analysis, one.name) for one in found]
    return listed([_spoken(analysis, one) for one in found], NAMED_MOST, behind)


def _spoken(analysis: Analysis, variant: VariantResult) -> str:
    """What a sentence calls a variant: the number of a candidate tells a reader nothing."""
    if analysis.search is not None and variant.changed:
        return levels_text(variant.changed)
    return clean(spoken(variant.name))


def _named(variant: VariantResult) -> str:
    """A variant with what it gives up."""
    return f"{clean(spoken(variant.name))}{marks_text(losses_of_variant(variant))}"


def _marks(variant: VariantResult) -> str:
    """The ratio where it counts, and what the variant gives up."""
    counts = variant.verdict in JUDGED or (variant.role is Role.PLACEBO and variant.verdict is None)
    if variant.effect is None or not counts or variant.reason is Reason.BASELINE_BROKEN:
        return marks_text(losses_of_variant(variant))
    return marks_text(losses_of_variant(variant), ratio_text(variant.effect.ratio))


def notes(analysis: Analysis) -> list[str]:
    """What a reader of the table must know of single variants: remarks, open guards, blocks without a pair.

    What stands in the museum is not said twice.
    """
    exhibited = {exhibit.variant for exhibit in analysis.museum}
    open_still = [variant for variant in _open(analysis) if blocks_text(variant)]
    lines = [] if len(open_still) <= NAMED_MOST else [_blocks_needed(open_still)]
    told = exhibited | ({variant.name for variant in open_still} if lines else set())
    for variant in analysis.variants:
        said = [] if variant.name in told else [remark(variant, analysis)]
        said += [
            f"guard {guard.state.value}, {guard_text(guard)}"
            for guard in variant.guards
            if guard.state in (Kept.UNDECIDED, Kept.UNREAD)
        ]
        beside = mean_text(variant) if variant.reason is not Reason.MEAN else ""
        said += [f"its ratio is the middle of its blocks, {beside}" if beside else "", dropped_text(variant)]
        lines += [f"{clean(variant.name)}: {text}" for text in said if text]
    if analysis.run.of_logs:
        latencies = [latencies_text(variant) for variant in analysis.variants]
        return [*lines, *filter(None, latencies), *(f"{one}." for one in analysis.run.of_logs.remarks)]
    return [*lines, *to_go_on(analysis)]


TWO_NUMBERS = (
    "Where two numbers of blocks are given, the noise is too large for one: half of such cases"
    " finish by the first number, 80 % by the second."
)
TIMES_BLOCKS = 4
"""Whoever needs more than so many times the blocks that there are needs a quieter machine."""
LONGER = "To lower the noise, measure longer (workload.duration)"
LESS_NOISE = f"{LONGER}, with more clients, or as `dyno calibrate STUDY` finds best on this host."
LESS_NOISE_IN_USE = f"{LONGER}, or when less is asked of the server."


def _open(analysis: Analysis) -> list[VariantResult]:
    """The inconclusive variants of which more blocks could tell something."""
    return [
        variant
        for variant in analysis.variants
        if variant.verdict is Verdict.INCONCLUSIVE and not variant.idle
    ]


def to_go_on(analysis: Analysis) -> list[str]:
    """The command that goes on, or what keeps this machine from an answer where the blocks would be too many.
    A search has its own end."""
    found, run = _open(analysis), clean(analysis.run.run)
    allowed, less_noise = "", LESS_NOISE
    if analysis.run.in_use is not None:
        allowed, less_noise = f" --allow-server {clean(analysis.run.in_use.url)}", LESS_NOISE_IN_USE
    if analysis.search is not None or not found:
        return []
    if len(analysis.trials) < analysis.trials_planned and not analysis.run.sequential:
        return [f"The run is not over yet. To go on: dyno run --resume {run}{allowed}"]
    found = [one for one in found if one.effect is None or not one.effect.hosts]
    beyond = [one for one in found if one.reason is Reason.SPREAD and not blocks_text(one)]
    ranges = [one for one in found if one.blocks_more_even is not None]
    more = max((one.blocks_more_even or one.blocks_more or 0 for one in found), default=0)
    if not found:
        return []
    lines = [TWO_NUMBERS] if ranges else []
    machine = noise.machine_text(analysis)
    if more > TIMES_BLOCKS * analysis.run.blocks or (beyond and not more):
        return [*lines, less_noise, machine]
    lines += [less_noise] if ranges or beyond else []
    lines += [f"To go on: dyno run --resume {run} --add-blocks {more}{allowed}"] if more else []
    return [*lines, machine] if noise.is_disturbed(analysis) else lines


def _blocks_needed(variants: Sequence[VariantResult]) -> str:
    first, last = (
        choose(variants, key=lambda variant: variant.blocks_more or math.inf) for choose in (min, max)
    )
    return (
        f"{len(variants)} variants are inconclusive: "
        f"{blocks_text(first)} would settle the first of them, {blocks_text(last)} the last"
    )


def in_brief(analysis: Analysis) -> RunOfIndex:
    """What a list of runs says of one that was held against no other."""
    counted = Counter(one.verdict.value for one in analysis.candidates if one.verdict is not None)
    shown = _shown(analysis)
    return RunOfIndex(
        title=analysis.study.title,
        answer=headline(analysis),
        verdicts=counted,
        line_of=shown.name if shown else "",
        line=tuple(one.ratio for one in shown.block_ratios) if shown else (),
    )


def _shown(analysis: Analysis) -> VariantResult | None:
    """The variant that the line is of: the best, or that which differs most."""
    lined = [one for one in analysis.candidates if len(one.block_ratios) >= BLOCKS_LEAST and one.effect]
    best = [one for one in lined if one.name == analysis.answer.best]
    return max(best or lined, key=_distance, default=None)


def _distance(result: VariantResult) -> float:
    return abs(math.log(result.effect.ratio)) if result.effect and result.effect.ratio > 0.0 else 0.0
