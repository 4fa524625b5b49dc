"""What the noise of a run hides, and where it comes from."""

from __future__ import annotations

import math

from dbdyno.analyse.model import Analysis, Ratio
from dbdyno.analyse.noise import Blocking, Components, Floor
from dbdyno.analyse.quantiles import BLOCKS_LEAST
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


def floor_text(analysis: Analysis) -> str:
    """What the run cannot tell, and what its blocks were worth. Empty where no verdict can be given yet."""
    floor = analysis.floor
    if floor is None:
        return ""
    told = [_smallest(analysis, floor), _blocking_text(floor.blocking), _neighbours_text(floor)]
    return " ".join([*told, *([_components_text(analysis.components)] if analysis.components else [])])


def adjusted_text(analysis: Analysis) -> str:
    """The ratios with and without what other processes did. Empty where the study asks for none of it."""
    if analysis.study.goal.adjust is None:
        return ""
    found = [(one, one.effect, one.unadjusted) for one in analysis.variants if one.effect and one.unadjusted]
    if not found:
        return (
            "Nothing was adjusted for the CPU time of other processes: it never differed, was not read, or"
            f" there are too few blocks with Student’s interval (more than {BLOCKS_LEAST})."
        )
    told = ", ".join(
        f"{one.name} {effect_text(effect)} instead of {effect_text(plain)}" for one, effect, plain in found
    )
    return f"Verdicts rest on ratios at equal CPU time of other processes, as the study asks: {told}."


def second_text(analysis: Analysis) -> str:
    """What CPU time tells where it repeats better than the response. Empty where it does not."""
    found = analysis.second
    if found is None:
        return ""
    title = metrics.find(found.metric).title
    told = [
        f"{ratio_text(one.ratio)} ({ratio_text(one.low)} {DASH} {ratio_text(one.high)}) with {one.variant}"
        for one in found.ratios
        if one.differs
    ]
    alike = len(found.ratios) - len(told)
    differs = f"it is {', '.join(told)}, as a ratio to the baseline’s" if told else ""
    rest = f"no difference was found with {plural(alike, 'variant')}" if alike else ""
    return (
        f"{title[0].upper()}{title[1:]} repeats better than {metrics.find(analysis.method.response).title}"
        f" here: from block to block its ratios spread {times_text(found.spread_share)} times as far. By it,"
        f" {'; '.join(filter(None, (differs, rest)))}. These intervals hold together; they say what the work"
        " costs, and nothing of its speed."
    )


def _neighbours_text(floor: Floor) -> str:
    """Whether blocks are independent, as every interval supposes."""
    spread = f"{floor.neighbours_low:+.2f} {DASH} {floor.neighbours_high:+.2f}"
    told = f"Neighbouring blocks correlate by {floor.neighbours:+.2f} ({spread})"
    if floor.neighbours_low > 0.0:
        return f"{told}, so intervals are too narrow: measure longer blocks."
    return f"{told}."


def _components_text(found: Components) -> str:
    """What differs from trial to trial, and within one."""
    pieces = f"slices of {found.piece_s:.2g} s" if found.sliced else "seconds"
    starts = f"{rough_share_text(found.starts_low)} {DASH} {rough_share_text(found.starts_high)}"
    return (
        f"From trial to trial a speed spreads by {rough_share_text(found.starts)} ({starts}) beyond what its"
        f" {pieces} explain, which spread by {rough_share_text(found.pieces)}."
    )


def _smallest(analysis: Analysis, floor: Floor) -> str:
    """The smallest difference that can be found: of each variant by its own interval, because one that syncs
    every commit is noisier than one that does not."""
    widths = sorted(
        (reach_of(variant.effect), variant.name)
        for variant in analysis.candidates
        if variant.effect is not None and variant.effect.low and variant.effect.high
    )
    twin = f" The baseline and its twin: below {rough_share_text(floor.difference)}." if floor.twin else ""
    if not widths:
        pooled, blocks = rough_share_text(floor.difference), plural(floor.blocks, "block")
        return f"Noise floor: this run cannot find differences below {pooled} ({blocks})."
    (least, one), (most, other) = widths[0], widths[-1]
    told = rough_share_text(least)
    if told != rough_share_text(most):
        told += f" ({clean(one)}) to {rough_share_text(most)} ({clean(other)})"
    of = f"half the width of each interval over {plural(floor.blocks, 'block')}"
    return f"Noise floor: this run cannot find differences below {told}: {of}.{twin}"


def reach_of(effect: Ratio) -> float:
    """Half the width of an interval, as the share by which a ratio differs from 1: the smallest difference
    that is found in every second run."""
    assert effect.low and effect.high  # whoever asks has both ends
    return math.expm1((math.log(effect.high) - math.log(effect.low)) / 2.0)


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
