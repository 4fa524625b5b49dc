"""What the noise of a run hides, and where it comes from."""

from __future__ import annotations

from dbdyno.analyse.floor import ALIKE_MOST, CONFIDENCE, noisier, smallest, unseen_share, widened
from dbdyno.analyse.found import Blocking, Components, Floor
from dbdyno.analyse.model import Analysis
from dbdyno.analyse.quantiles import BLOCKS_LEAST
from dbdyno.frozen import listed
from dbdyno.records import metrics
from dbdyno.records.record import Doubt, Outcome
from dbdyno.report.words.numbers import (
    DASH,
    effect_text,
    plural,
    ratio_text,
    rough_share_text,
    share_text,
    times_text,
)
from dbdyno.report.words.safe import clean

DISTURBANCES = {
    Doubt.HOST_BUSY: "other processes used its CPUs",
    Doubt.STEAL: "the hypervisor took CPU time away",
    Doubt.THROTTLED: "a quota held server or driver back",
}
"""What a host does to a trial, in the words of a sentence."""
DISTURBED_SHARE = 0.25
ALIKE_LEAST = 1.2
"""A mean that spreads less beyond that of independent slices is not told of."""


def floor_text(analysis: Analysis) -> str:
    """What the run cannot tell, and what its blocks were worth. Empty where no verdict can be given yet."""
    floor = analysis.floor
    if floor is None:
        return ""
    told = [_smallest(analysis, floor), _blocking_text(floor.blocking), _neighbours_text(floor)]
    return " ".join([*told, *([_components_text(analysis.components)] if analysis.components else [])])


def adjusted_text(analysis: Analysis) -> str:
    """The ratios with and without what other processes did, or with and without their places. Empty where
    the study asks for none of it, and its trials did not follow one another."""
    by_place = analysis.study.goal.adjust is None
    if by_place and not analysis.method.by_place:
        return ""
    found = [(one, one.effect, one.unadjusted) for one in analysis.variants if one.effect and one.unadjusted]
    if not found and by_place:
        return ""
    if not found:
        return (
            "Nothing was adjusted for the CPU time of other processes: it never differed, was not read, or"
            f" there are too few blocks with Student’s interval (more than {BLOCKS_LEAST})."
        )
    told = listed(
        [clean(one.name) for one, *_ in found],
        behind=[f" {effect_text(effect)} instead of {effect_text(plain)}" for _, effect, plain in found],
    )
    if by_place:
        return (
            "Trials followed one another, and a host drifts. So verdicts rest on ratios at equal places in a"
            f" block: {told}."
        )
    return f"Verdicts rest on ratios at equal CPU time of other processes, as the study asks: {told}."


def second_text(analysis: Analysis) -> str:
    """What CPU time tells beside the response. Empty where it was not read."""
    found = analysis.second
    if found is None:
        return ""
    title = metrics.find(found.metric).title
    differing = [one for one in found.ratios if one.differs]
    told = listed(
        [clean(one.variant) for one in differing],
        behind=[
            f" has {ratio_text(one.ratio)} times the baseline’s"
            f" ({ratio_text(one.low)} {DASH} {ratio_text(one.high)})"
            for one in differing
        ],
    )
    alike = len(found.ratios) - len(differing)
    rest = f"no difference was found with {plural(alike, 'variant')}" if alike else ""
    return (
        f"{title[0].upper()}{title[1:]}, whose ratios spread {times_text(found.spread_share)} times as far as"
        f" those of {metrics.find(analysis.method.response).title} from block to block: by it,"
        f" {'; '.join(filter(None, (told, rest)))}. With the study's confidence none of"
        " these intervals is wrong; they say what the work costs, and nothing of its speed."
    )


def smallest_text(analysis: Analysis) -> str:
    """The smallest difference that the run can see, in a line. Empty where no verdict can be given yet."""
    floor = analysis.floor
    return "" if floor is None else f"{SMALLEST}: {_seen(analysis, floor)}"


def neighbours_warning(analysis: Analysis) -> str:
    """That blocks are not independent, in a line; empty where they may be."""
    wider = "" if analysis.floor is None else _too_narrow(analysis.floor)
    told = f"! Neighbouring blocks are alike, so intervals are {wider} times too narrow: measure longer."
    return told if wider else ""


def _too_narrow(floor: Floor) -> str:
    """By how many times intervals are too narrow, where blocks are shown to be alike; else empty."""
    return times_text(widened(floor.neighbours)) if floor.neighbours_p < 1.0 - CONFIDENCE else ""


def _neighbours_text(floor: Floor) -> str:
    """Whether blocks are independent, as every interval supposes, and how far they may not be."""
    if wider := _too_narrow(floor):
        return (
            f"Blocks resemble their neighbours (correlation {floor.neighbours:+.2f}, p ="
            f" {floor.neighbours_p:.2g}), so intervals are too narrow, by about {wider} times: measure longer"
            " blocks."
        )
    told = "Intervals suppose that blocks do not resemble their neighbours"
    if floor.neighbours_high >= ALIKE_MOST:
        return f"{told}: {plural(floor.blocks, 'block')} are too few to check that."
    limit = max(0.0, floor.neighbours_high)
    return (
        f"{told}: nothing shows that they do. A correlation of up to {limit:+.2f} would not show in"
        f" {plural(floor.blocks, 'block')}; with that much, intervals should be"
        f" {times_text(widened(limit))} times as wide."
    )


def _components_text(found: Components) -> str:
    """What differs from trial to trial, and within one."""
    pieces = f"slices of {found.piece_s:.2g} s" if found.sliced else "seconds"
    alike = (
        f" and resemble their neighbours: the mean of a trial spreads {times_text(found.alike)} times as far"
    )
    alike = f"{alike} as that of independent ones" if found.alike >= ALIKE_LEAST else ""
    starts = f"{rough_share_text(found.starts_low)} {DASH} {rough_share_text(found.starts_high)}"
    return (
        f"From trial to trial a speed spreads by {rough_share_text(found.starts)} ({starts}) beyond what its"
        f" {pieces} explain, which spread by {rough_share_text(found.pieces)}{alike}."
    )


def _smallest(analysis: Analysis, floor: Floor) -> str:
    """The smallest difference that can be found, one for all variants: the table has each one's interval."""
    twin = f" The baseline and its twin: below {rough_share_text(floor.difference)}." if floor.twin else ""
    effects = {variant.name: variant.effect for variant in analysis.candidates}
    whose = "the other comparisons" if noisier(effects) else "all comparisons"
    blocks = plural(floor.blocks, "block")
    return (
        f"{SMALLEST}: {_seen(analysis, floor)}. That is half the width"
        f" of an interval over {blocks}, its spread pooled over {whose}. A stall that strikes fewer"
        f" than {rough_share_text(unseen_share(floor.blocks))} of blocks can be in none of these.{twin}"
    )


SMALLEST = "Smallest difference this run can see"


def _seen(analysis: Analysis, floor: Floor) -> str:
    """A share, and that of the noisiest variant where some are noisier than the others."""
    effects = {variant.name: variant.effect for variant in analysis.candidates}
    noisy = noisier(effects)
    of_intervals = smallest(effect for name, effect in effects.items() if name not in noisy)
    told = rough_share_text(floor.difference if of_intervals is None else of_intervals)
    if noisy:
        noisy.sort(key=lambda name: smallest([effects[name]]) or 0.0)
        told += f", and {rough_share_text(smallest([effects[noisy[-1]]]) or 0.0)} with {clean(noisy[-1])}"
        told += f" ({plural(len(noisy), 'comparison')} are noisier)" if len(noisy) > 1 else ""
    return told


def _blocking_text(blocking: Blocking) -> str:
    spread = f"{times_text(blocking.low)} {DASH} {times_text(blocking.high)}"
    seen = f"{times_text(blocking.efficiency)} times as many trials ({spread})"
    if blocking.low > 1.0:
        return f"Blocks helped: without them the same precision takes {seen}."
    return f"The data cannot say whether blocks helped: without them the same precision takes {seen}."


def is_disturbed(analysis: Analysis) -> bool:
    """Whether the host disturbed so many trials that more of them may not help."""
    measured, seen = _disturbances(analysis)
    return any(count >= DISTURBED_SHARE * measured for count in seen.values())


def machine_text(analysis: Analysis) -> str:
    """That this machine hides differences of the size that is asked for, and what disturbed it."""
    measured, seen = _disturbances(analysis)
    told = [f"{DISTURBANCES[doubt]} in {count} of {measured} trials" for doubt, count in seen.items()]
    why = "; ".join(told) if told else "nothing that Dyno watches disturbed it"
    margin, blocks = share_text(analysis.method.margin), plural(analysis.run.blocks, "block")
    return f"This machine was too noisy to tell a margin of {margin} in {blocks}: {why}."


def _disturbances(analysis: Analysis) -> tuple[int, dict[Doubt, int]]:
    """How many trials were measured, and in how many of them the host did what."""
    measured = [trial for trial in analysis.trials if trial.record.outcome is Outcome.MEASURED]
    seen = {doubt: sum(doubt in trial.warnings for trial in measured) for doubt in DISTURBANCES}
    return len(measured), {doubt: count for doubt, count in seen.items() if count}
