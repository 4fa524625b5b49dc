"""The answer of a run: a sentence, who else is faster or not, and what to know of single variants."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.analyse.layout import could_be_layout
from dbdyno.analyse.model import (
    Analysis,
    Kept,
    Ratio,
    Reason,
    Role,
    VariantResult,
    Verdict,
)
from dbdyno.records import metrics
from dbdyno.records.record import Outcome
from dbdyno.report.words import search
from dbdyno.report.words.brought import alone, latencies_text, warning
from dbdyno.report.words.naming import main_text
from dbdyno.report.words.numbers import (
    differs,
    interval_text,
    ratio_text,
    rough_share_text,
    share_text,
)
from dbdyno.report.words.remarks import (
    blocks_text,
    dropped_text,
    guard_text,
    not_exercised,
    remark,
    variant_of,
)
from dbdyno.report.words.safe import clean

NAMED_MOST = 4


def headline(analysis: Analysis) -> str:
    """The answer in one sentence: what won and by how much, or that nothing did."""
    answer = analysis.answer
    if not any(trial.record.outcome is Outcome.MEASURED for trial in analysis.trials):
        return "Nothing was measured, so nothing can be said about speed."
    if analysis.search is not None and not answer.baseline_broken:
        return search.headline(analysis, analysis.search)
    if not any(trial.response is not None for trial in analysis.trials):
        return f"No trial has a {analysis.method.response} above zero, so nothing can be compared."
    if analysis.run.brought is not None and not analysis.candidates:
        return alone(analysis)
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
        reasons = {variant_of(analysis, name).reason for name in answer.inconclusive}
        rest = "" if reasons & {Reason.GUARD, Reason.LAYOUT} else " could be faster or slower"
        if found := _main_effects(analysis):
            return f"{found} No variant is settled by itself yet."
        if reasons == {Reason.LAYOUT}:
            builds = _enumerated(analysis, answer.inconclusive)
            return (
                f"No build is told from luck of layout: placebos differ from the baseline as far as {builds}."
            )
        return f"Not settled yet: {_enumerated(analysis, answer.inconclusive)}{rest}."
    if not analysis.candidates and analysis.method.layout is not None:
        reach = rough_share_text(analysis.method.layout.difference)
        return f"Placebos alone were measured: luck of layout reaches {reach}."
    if not judged:
        return "No variant has a speed that counts: see the museum."
    if _frontier_differs(analysis):
        return "No variant is faster by itself, but curves differ at the same recall: see the frontier."
    others = ", which leaves open what is inconclusive" if answer.inconclusive else ""
    return f"Nothing helped: no variant is faster than the baseline{others}."


def _main_effects(analysis: Analysis) -> str:
    """What single factors do over all settings of the others, and the whole gap; empty where none is told
    from 1, nor a build from luck of layout."""
    mains = analysis.factorial.main if analysis.factorial is not None else ()
    clear = [
        main
        for main in mains
        if differs(main.effect) and not could_be_layout((main.factor,), main.effect, analysis.method)
    ]
    if not clear:
        return ""
    clear.sort(key=lambda main: abs(math.log(main.effect.ratio)), reverse=True)
    told = [f"{main_text(main)} is {_with_interval(main.effect)}" for main in clear[:NAMED_MOST]]
    text = f"Main effects on {metrics.find(analysis.method.response).title}: {', '.join(told)}."
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
    """Several helped, and the blocks do not tell which most. What single factors do leads."""
    unit = analysis.method.unit
    level = f"{_enumerated(analysis, analysis.answer.level)} helped. The {unit}s cannot tell them apart."
    return " ".join(filter(None, (_main_effects(analysis), level)))


def _best(analysis: Analysis, name: str) -> str:
    effect = variant_of(analysis, name).effect
    assert effect is not None  # a variant without an effect is never faster
    metric = metrics.find(analysis.method.response)
    return (
        f"{clean(name)} helped most: {ratio_text(effect.ratio)} times the baseline’s {metric.title}"
        f" ({interval_text(effect)})."
    )


def findings(analysis: Analysis) -> list[tuple[str, str]]:
    """The rest of the answer: a heading and the variants it holds for, only where there are any."""
    answer, brought = analysis.answer, analysis.run.brought
    idle = tuple(name for name in answer.no_effect if not_exercised(variant_of(analysis, name)))
    no_effect = tuple(name for name in answer.no_effect if name not in idle)
    lucky = tuple(name for name in answer.inconclusive if variant_of(analysis, name).reason is Reason.LAYOUT)
    inconclusive = tuple(name for name in answer.inconclusive if name not in lucky)
    groups = (
        ("Also faster", tuple(name for name in answer.faster if name not in (answer.best, *answer.level))),
        ("Slower", answer.slower),
        (f"No effect (within {share_text(analysis.method.margin)})", no_effect),
        ("Not exercised by this load", idle),
        ("Within the placebos’ spread", lucky),
        ("Inconclusive", inconclusive),
        ("Broken", answer.broken),
        ("Blocked", answer.blocked),
        ("Failed", answer.failed),
        ("Inert (the baseline’s code)", answer.inert),
        ("Placebos", tuple(one.name for one in analysis.variants if one.role is Role.PLACEBO)),
    )
    told = [("Brought", warning(brought, analysis.method.unit))] if brought is not None else []
    return [*told, *((title, _enumerated(analysis, names)) for title, names in groups if names)]


def _enumerated(analysis: Analysis, names: Sequence[str]) -> str:
    """The first few by name, the rest by number: the table below names them all."""
    shown = names if len(names) <= NAMED_MOST + 1 else names[:NAMED_MOST]
    between = "; " if any(", " in name for name in shown) else ", "
    text = between.join(_with_ratio(variant_of(analysis, name)) for name in shown)
    return text if len(shown) == len(names) else f"{text} and {len(names) - len(shown)} more"


def _with_ratio(variant: VariantResult) -> str:
    judged = (Verdict.FASTER, Verdict.SLOWER, Verdict.NO_EFFECT, Verdict.INCONCLUSIVE)
    counts = variant.verdict in judged or (variant.role is Role.PLACEBO and variant.verdict is None)
    if variant.effect is None or not counts or variant.reason is Reason.BASELINE_BROKEN:
        return clean(variant.name)
    return f"{clean(variant.name)} ({ratio_text(variant.effect.ratio)})"


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
        said += [dropped_text(variant)]
        lines += [f"{clean(variant.name)}: {text}" for text in said if text]
    if analysis.run.brought is not None:
        latencies = [latencies_text(variant) for variant in analysis.variants]
        return [*lines, *filter(None, latencies), *(f"{one}." for one in analysis.run.brought.remarks)]
    return [*lines, *_to_go_on(analysis)]


TWO_NUMBERS = (
    "Where two numbers of blocks are given, the noise is too large for one: half of such cases need no more"
    " than the first, four of five no more than the second."
)
LESS_NOISE = (
    "To lower the noise, measure longer (workload.duration), with more clients, or as `dyno calibrate STUDY`"
    " finds best on this host."
)


def _open(analysis: Analysis) -> list[VariantResult]:
    """The inconclusive variants of which more blocks could tell something."""
    return [
        variant
        for variant in analysis.variants
        if variant.verdict is Verdict.INCONCLUSIVE and not variant.idle
    ]


def _to_go_on(analysis: Analysis) -> list[str]:
    """The command that adds the blocks which are needed, and what helps where they are many or not known. A
    search has its own end."""
    if analysis.search is not None:
        return []
    found = _open(analysis)
    beyond = [one for one in found if one.reason is Reason.SPREAD and not blocks_text(one)]
    ranges = [one for one in found if one.blocks_more_even is not None]
    more = max((one.blocks_more_even or one.blocks_more or 0 for one in found), default=0)
    lines = [TWO_NUMBERS] if ranges else []
    lines += [LESS_NOISE] if ranges or beyond else []
    command = f"To go on: dyno run --resume {clean(analysis.run.run)} --add-blocks {more}"
    return [*lines, command] if more else lines


def _blocks_needed(variants: Sequence[VariantResult]) -> str:
    first, last = (
        choose(variants, key=lambda variant: variant.blocks_more or math.inf) for choose in (min, max)
    )
    return (
        f"{len(variants)} variants are inconclusive: "
        f"{blocks_text(first)} would settle the first of them, {blocks_text(last)} the last"
    )
