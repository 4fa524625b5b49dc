"""Runs of two sides beside each other: what differs, the gap and its parts, and what may be said of it."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.analyse.compare import (
    NO_GAPS,
    RUNS_LEAST,
    SCALES,
    Comparison,
    Conclusion,
    Difference,
    Hardware,
    VariantGap,
)
from dbdyno.analyse.model import Ratio
from dbdyno.findings.gap import bar
from dbdyno.frozen import level_shown, listed
from dbdyno.records import metrics
from dbdyno.records.metrics import number_text
from dbdyno.report.document import (
    ColumnKind,
    Document,
    Element,
    Figure,
    Lines,
    Notes,
    Section,
    Steps,
    TableCell,
    Words,
    table,
)
from dbdyno.report.words import numbers, safe, verdicts
from dbdyno.report.words.numbers import multiple_text


def document(found: Comparison, options: str = "") -> Document:
    """What may be said in short, then of each gap, what it is made of, and what differs. `options` are those
    that the comparison was asked with."""
    return Document(
        title=title(found),
        answer=(headline(found),),
        sections=(
            _said(found),
            *_steps(found, options),
            _gaps(found),
            *_per_unit(found),
            _differences(found),
        ),
        eyebrow="two runs of one study",
        titled=False,
    )


def title(found: Comparison) -> str:
    """Which runs, of which study."""
    left, right = (f"run{'s' if len(names) > 1 else ''} {', '.join(names)}" for names in found.runs)
    return f"{found.left.study_path}: {right} beside {left}"


SAID = (
    (Conclusion.GAP, "A gap"),
    (Conclusion.OPEN, "Open"),
    (Conclusion.NO_GAP, "No gap"),
    (Conclusion.NO_GAP_OF_RUNS, "No gap between these runs"),
)
"""What is said in short of gaps by their conclusion, the gravest first."""
NAMED_MOST = 3


def headline(found: Comparison) -> str:
    """Which variants have a gap, in a sentence for each conclusion, with right / left."""
    told = []
    for conclusion, words in SAID:
        gaps = [gap for gap in found.gaps if gap.conclusion is conclusion]
        ratios = [f" {multiple_text(gap.total)}" for gap in gaps]
        if gaps:
            told.append(f"{words}: {listed([_names(gap) for gap in gaps], NAMED_MOST, ratios)}.")
    return " ".join(told) or "No variant was measured on both sides."


def _said(found: Comparison) -> Section:
    lines = tuple(sentence(gap, found) for gap in found.gaps)
    return Section("What may be said", (Lines(lines, bullets=True),))


def _steps(found: Comparison, options: str) -> Iterator[Section]:
    if step := next_step(found, options):
        yield Section("What would settle it", (Steps((step,)),))


def _gaps(found: Comparison) -> Section:
    metric = metrics.find(found.metric).title
    figures = [figure(gap, metric, place) for place, gap in enumerate(found.gaps) if parts(gap)]
    rows = table(HEADS, [row(gap, found) for gap in found.gaps], {"says": ColumnKind.TEXT})
    return Section("What the gap is made of", (*figures, rows, Notes((note(found),))))


def _per_unit(found: Comparison) -> Iterator[Section]:
    if lines := per_unit_rows(found):
        yield Section("Without the hardware", (table(per_unit_heads(found), lines),))


def _differences(found: Comparison) -> Section:
    heads = ("what", f"left, {found.left.run}", f"right, {found.right.run}", "does it matter")
    rows = [(one.name, one.left, one.right, matters(one)) for one in found.differences]
    differing: Element = Lines((nothing_differs(found),))
    if rows:
        differing = table(heads, rows, dict.fromkeys(heads[1:], ColumnKind.TEXT))
    return Section("Apples to apples? What differs", (differing,))


def nothing_differs(found: Comparison) -> str:
    """What is said in the place of an empty table."""
    if found.left.of_logs:
        return "Apples to apples? Nobody knows: the logs do not tell of hosts, servers or settings."
    return "Apples to apples: nothing that Dyno reads differs between the two runs."


HEADS = ("variant", "left", "right", "right / left", "factors", "hardware", "the rest", "says")


def row(gap: VariantGap, found: Comparison) -> tuple[Words | TableCell, ...]:
    """One variant's gap and its parts; their product is the gap."""
    metric = metrics.find(found.metric)
    return (
        _names(gap),
        metric.format(gap.left_mean),
        metric.format(gap.right_mean),
        _multiple(gap.total),
        _multiple(gap.factors) if gap.factors else ("1" if gap.left == gap.right else numbers.DASH),
        numbers.DASH if gap.hardware is None else numbers.ratio_text(gap.hardware),
        _multiple(gap.residual) if gap.residual else numbers.DASH,
        gap.conclusion.value,
    )


def _multiple(ratio: Ratio) -> TableCell:
    interval = () if ratio.low is None else (numbers.interval_text(ratio),)
    return TableCell(f"×{numbers.ratio_text(ratio.ratio)}", interval)


PER_UNIT = {(1, 1): " per core and GHz", (-1, -1): " x cores x GHz", (0, -1): " x GHz"}
"""What a response is called once hardware is taken out of it, by the powers with which it goes."""


def per_unit_heads(found: Comparison) -> tuple[str, ...]:
    """Of the table of `per_unit_rows`."""
    metric = metrics.find(found.metric)
    name = f"{metric.unit or metric.title}{PER_UNIT[SCALES[metric.unit]]}"
    return ("variant", f"left: {name}", "cores x GHz", f"right: {name}", "cores x GHz", "right / left")


def per_unit_rows(found: Comparison) -> list[tuple[str, ...]]:
    """Each side's response without its hardware, a row per variant; none where the response goes with no
    hardware, or where it is not known.
    """
    metric = metrics.find(found.metric)
    lines: list[tuple[str, ...]] = []
    for gap in found.gaps:
        left, right = gap.per_unit
        if left is not None and right is not None:
            sides = [
                (metric.format(value), f"{_cores(side)} x {_clock(side)}")
                for value, side in zip((left, right), gap.hardware_sides, strict=True)
            ]
            lines.append((_names(gap), *sides[0], *sides[1], numbers.ratio_text(right / left)))
    return lines


def sentence(gap: VariantGap, found: Comparison) -> str:
    """What may be said of one gap, and no more."""
    head = f"{_names(gap)}: right / left is {multiple_text(gap.total)}."
    margin = numbers.share_text(found.margin)
    if gap.conclusion in NO_GAPS:
        assert gap.residual is not None
        rest = ", ".join(filter(None, (multiple_text(gap.residual), numbers.narrower_text(gap.residual))))
        rest = f"{rest}, within the margin of {margin}."
        return f"There is {gap.conclusion.value}. {head} That is {_made_of(gap)}. {_explained(gap)}{rest}"
    if gap.conclusion is Conclusion.GAP:
        assert gap.residual is not None
        rest = f"{multiple_text(gap.residual)}, which nothing here explains."
        return f"There is a gap. {head} {_explained(gap)}{rest} {gap.runs[0]} and {gap.runs[1]} runs in turn."
    left = f" {_explained(gap)}{multiple_text(gap.residual)}." if gap.residual is not None else ""
    return f"{head}{left} The data cannot say whether there is a gap: {gap.why_open}."


def _by_run(gap: VariantGap) -> bool:
    """Whether runs are the unit of the gap's intervals."""
    return min(gap.runs) >= RUNS_LEAST


def next_step(found: Comparison, options: str = "") -> str:
    """The commands that would settle what is open for want of runs in turn; empty where nothing is. The last
    one has the `options` that this comparison was asked with."""
    if all(gap.conclusion is not Conclusion.OPEN or gap.residual is None for gap in found.gaps):
        return ""
    missing = [max(0, RUNS_LEAST - len(names)) for names in found.runs]
    again = f"dyno run {safe.argument(found.left.study_path)}"
    if any(missing):
        how = f"{numbers.plural(missing[0], 'more run')} on the left and {missing[1]} on the right, in turn"
    else:
        how = "another run of each side, in turn"
    sides = " ".join(
        ",".join([*map(safe.argument, names), *["RUN"] * max(1 if not any(missing) else 0, more)])
        for names, more in zip(found.runs, missing, strict=True)
    )
    return f"To settle it: {how} ({again}), then: dyno compare {sides}{options}"


WORTH_A_WORD = 0.005
"""Clocks that were counted never agree to the last digit."""


def _made_of(gap: VariantGap) -> str:
    """The gap in everyday words: `12.5 % fewer cores`."""
    parts = []
    if gap.factors is not None:
        parts.append(f"{multiple_text(gap.factors)} of the variants")
    powers, (left, right) = gap.powers, gap.hardware_sides
    for power, over, under, words in (
        (powers[0], right.cores_used, left.cores_used, ("more cores", "fewer cores")),
        (powers[1], right.gigahertz, left.gigahertz, ("more GHz", "less GHz")),
    ):
        if power and over and under and abs(over / under - 1.0) >= WORTH_A_WORD:
            more = over > under
            share = numbers.share_text(abs(over / under - 1.0), digits=3)
            parts.append(f"{share} {words[0] if more else words[1]}")
    return " and ".join(parts) or "the same hardware and the same variant"


def _explained(gap: VariantGap) -> str:
    parts, same = [], ""
    if gap.factors is not None:
        parts.append(f"the variants ({multiple_text(gap.factors)})")
    if gap.hardware is not None and gap.powers != (0, 0) and abs(gap.hardware - 1.0) < WORTH_A_WORD:
        same = "Same hardware speed. "
    elif gap.hardware is not None and gap.powers != (0, 0):
        cores, clocks = [[f(side) for side in gap.hardware_sides] for f in (_cores, _clock)]
        parts.append(
            f"cores x GHz ({numbers.ratio_text(gap.hardware)}: {cores[1]} x {clocks[1]} over "
            f"{cores[0]} x {clocks[0]})"
        )
    return f"{same}Without {' and '.join(parts)}, it is " if parts else f"{same}It is "


def note(found: Comparison) -> str:
    """How the figures were made, and what they assume."""
    lines = [
        f"Right / left = factors x hardware x the rest, of {metrics.find(found.metric).title}, geometric "
        f"means. The runs share no block, so intervals are Welch's on logs of {_unit(found)}, together "
        f"with {numbers.share_text(found.confidence)}. Factors: the two variants as the left run measured "
        "them. Hardware assumes that the response goes with cores (no more than clients) and frequency; it "
        "is a normalisation, not a measurement."
    ]
    if any(not side.measured for gap in found.gaps for side in gap.hardware_sides):
        lines.append(
            "*: no cycles were counted; the frequency is the one that the host names, at the run's start."
        )
    if found.left.of_logs:
        lines.append(f"Both runs were made of logs of {found.left.of_logs.tool}, not measured by Dyno.")
    if any(found.doubtful):
        lines.append(f"Measured trials with warnings: {found.doubtful[0]} left, {found.doubtful[1]} right.")
    if found.sequential:
        lines.append(
            "A run that stopped as soon as its verdicts were settled has intervals here that are too narrow."
        )
    if found.not_in_both:
        lines.append(f"Not measured in both: {', '.join(found.not_in_both)}.")
    return " ".join(lines)


def _unit(found: Comparison) -> str:
    by_run = {_by_run(gap) for gap in found.gaps}
    if by_run == {True}:
        return "runs, each by its mean"
    return "trials" if by_run == {False} else f"runs (of trials, with fewer than {RUNS_LEAST} runs a side)"


def figure(gap: VariantGap, metric: str, place: int) -> Figure:
    """The gap between two runs as bars: variants, hardware, what is left, and the whole."""
    bars = [bar(step, ratio, "undecided", told) for step, ratio, told in parts(gap)]
    bars.append(bar("total", gap.total, "total", multiple_text(gap.total)))
    title = f"{metric}: right / left (log scale)"
    return Figure("dbdyno.report.figures.charts:factors_of_gap", (bars, title), f"gap-{place}", _names(gap))


def parts(gap: VariantGap) -> list[tuple[str, Ratio, str]]:
    """What the gap multiplies out to, each with its ratio and how it is told; none where hardware is not
    known.
    """
    if gap.hardware is None or gap.residual is None:
        return []
    variants = [("variants", gap.factors, multiple_text(gap.factors))] if gap.factors else []
    hardware = gap.residual.but(ratio=gap.hardware, low=None, high=None)
    return [
        *variants,
        ("cores x GHz", hardware, f"×{numbers.ratio_text(gap.hardware)}"),
        ("the rest", gap.residual, multiple_text(gap.residual)),
    ]


def matters(difference: Difference) -> str:
    """What the study knows of how much such a difference matters."""
    if not difference.known:
        return "not measured by this study"
    return "; ".join(
        f"{one.factor}={level_shown(one.level)} {multiple_text(one.effect)} ({one.side})"
        for one in difference.known
    )


def _names(gap: VariantGap) -> str:
    names = dict.fromkeys((gap.left, gap.right))
    return verdicts.losing(" to ".join(name for name in names), gap.gives_up)


def _cores(side: Hardware) -> str:
    return str(side.cores_used) if side.cores_used else numbers.DASH


def _clock(side: Hardware) -> str:
    return (
        numbers.DASH
        if side.gigahertz is None
        else number_text(side.gigahertz) + ("" if side.measured else "*")
    )
