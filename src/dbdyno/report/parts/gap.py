"""The gap explained: the product as a table, and as a waterfall on a log axis from the slow variant to the
fast."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dbdyno.analyse.engines import DefaultChanged
from dbdyno.analyse.model import Gap, Ratio, Share
from dbdyno.frozen import Level, level_text
from dbdyno.report.document import (
    Document,
    Element,
    Figure,
    Lines,
    Mark,
    Notes,
    Section,
    Tone,
    table,
)
from dbdyno.report.words import naming, numbers, verdicts
from dbdyno.study import fraction

RESIDUAL = "not explained"


def document(gap: Gap, title: str) -> Document:
    """The gap between two variants, as a report of its own."""
    return Document(title, (), (*sections(gap),), eyebrow="the gap explained", titled=False)


def sections(gap: Gap) -> Iterator[Section]:
    """The sentence, the product, and a row per factor."""
    yield Section("The gap explained", (*_body(gap),), aside=title(gap))


def _body(gap: Gap) -> Iterator[Element]:
    yield Figure("gap", (gap,))
    missing = (", ".join(_settings(gap, setting)) for setting in gap.missing)
    yield Lines((_product(gap),) if gap.total else tuple(f"not measured: {one}" for one in missing))
    yield Lines(tuple(Mark(line, Tone.DOUBT) for line in _left_out(gap)))
    if gap.total is None:
        return
    yield table(FRACTION_HEADS if _in_one_order(gap) else FULL_HEADS, _rows(gap))
    if gap.confounded:
        yield table(CONFOUNDED_HEADS, _confounded(gap))
    yield Notes((_note(gap), *_unset(gap)))


def _in_one_order(gap: Gap) -> bool:
    """Whether each part is known by its share alone."""
    return gap.variants_measured is not None or gap.in_order


def _settings(gap: Gap, setting: Sequence[Level]) -> Iterator[str]:
    return (f"{name}={level_text(level)}" for name, level in zip(gap.factors, setting, strict=True))


def title(gap: Gap) -> str:
    """The whole in a sentence: how far apart, and which factor has the largest part."""
    if gap.total is None:
        return "The gap cannot be split into parts, because some variants between the two were not measured."
    whole = f"{_with_interval(gap.total)} (fast / slow, {gap.metric})"
    if not numbers.differs(gap.total):
        return f"The data cannot say whether there is a gap: {whole} may be 1."
    shares = sorted(gap.shares, key=distance, reverse=True)
    largest = f"{named(shares[0])}, ×{_ratio(shares[0].share)}"
    if len(shares) > 1 and not _told_apart(shares[0], shares[1]):
        return f"The gap is {whole}. The data cannot say which part is the largest; it may be {largest}."
    return f"The gap is {whole}. Its largest part is {largest}."


def distance(share: Share) -> float:
    """How far a share is from 1, whichever way."""
    return abs(_log(share.share))


def cells(ratio: Ratio) -> tuple[str, str]:
    """A ratio and its interval, as two cells."""
    return numbers.ratio_text(ratio.ratio), numbers.interval_text(ratio)


def _told_apart(one: Share, other: Share) -> bool:
    """Whether one share is larger than another, on the log scale, by intervals that do not overlap: they hold
    together, so this errs on the safe side.
    """
    least, most = _ends(one), _ends(other)
    return least is not None and most is not None and least[0] > most[1]


def _ends(share: Share) -> tuple[float, float] | None:
    """The least and the largest distance from 1 that a share's interval allows."""
    found = share.share
    if found is None or found.low is None or found.high is None:
        return None
    ends = abs(math.log(found.low)), abs(math.log(found.high))
    return (min(ends) if numbers.differs(found) else 0.0), max(ends)


def named(share: Share) -> str:
    """A share's factor, with what its fast level gives up."""
    return verdicts.losing(naming.factor_text(share.factor), share.gives_up)


def _product(gap: Gap) -> str:
    """The gap as a product that multiplies out."""
    parts = [f"{_ratio(share.share)} {naming.factor_text(share.factor)}" for share in gap.shares]
    if gap.residual is not None:
        parts.append(f"{_ratio(gap.residual)} {RESIDUAL}")
    return f"{_ratio(gap.total)} = {' × '.join(parts)}"


def _left_out(gap: Gap) -> list[str]:
    """A sentence per factor that is not in the product."""
    return [
        f"Left out: {naming.factor_text(one.factor)}, because {level_text(one.level)} was never measured:"
        f" {one.cause}."
        for one in gap.left_out
    ]


def _note(gap: Gap) -> str:
    """How the columns were made."""
    over = f"All ratios fast / slow, geometric means over {numbers.plural(gap.blocks, 'block')}. "
    if gap.variants_measured is not None:
        return over + _note_of_fraction(gap)
    if gap.in_order:
        return (
            f"{over}Share: each variant over the one before it, so the shares multiply to the total exactly."
            " They hold for this order: in another one the same step may gain more, or less. None of the"
            " intervals of total and shares is wrong, with a confidence of"
            f" {numbers.share_text(gap.confidence)}."
        )
    return (
        f"{over}Share: averaged over every order of the changes (Shapley), so the shares multiply to the "
        f"total exactly, and nothing is left over. None of the intervals of total and shares is wrong, "
        f"with a confidence of {numbers.share_text(gap.confidence)}; each of all others holds by itself. "
        "Alone: on the slow variant. Last: when all others have been changed. Step: in the study's order. "
        "Interactions: the total over the product of the gains alone; 1 where the factors multiply."
    )


def _unset(gap: Gap) -> Iterator[str]:
    """Which changed defaults are part of the version's step, because no variant sets them."""
    groups = (
        ("that both versions have and that no variant sets", [_has_both(one) for one in gap.unset]),
        ("of the new version alone", [one.before is None for one in gap.unset]),
        ("of the old version alone", [one.after is None for one in gap.unset]),
    )
    for which, held in groups:
        names = [one.name for one, of_group in zip(gap.unset, held, strict=True) if of_group]
        if names:
            told = f"Counted with the version: {numbers.plural(len(names), 'changed default')} {which}"
            yield f"{told}: {', '.join(names)}."


def _has_both(one: DefaultChanged) -> bool:
    return one.before is not None and one.after is not None


def _note_of_fraction(gap: Gap) -> str:
    besides = max(len(share.holds_besides) for share in gap.shares)
    hidden = (
        f"Not seen in it: up to {numbers.plural(besides, 'such interaction')} per factor, which its share "
        "holds (named in the JSON). "
    )
    return (
        f"{gap.variants_measured} of {2 ** len(gap.factors):,} variants were measured. "
        "Share: the factor's effect, averaged over the settings of the others, clear of interactions of two "
        "factors; where no three interact it is Shapley's share. None of the intervals of total and shares "
        f"is wrong, with a confidence of {numbers.share_text(gap.confidence)}; nor is any of the table of "
        "interactions; what is not explained "
        "stands by itself. "
        "Not explained: the total, measured, over the product of the "
        "shares: interactions of three or more factors, and noise. "
        f"{hidden if besides else ''}Interactions of two factors do not change the total: what one "
        "gains before the other, it loses after it. Those in one line cannot be told apart."
    )


FULL_HEADS = ("factor", "share", "interval", "alone", "last", "step")
FRACTION_HEADS = ("factor", "share", "interval")
CONFOUNDED_HEADS = ("interactions (1: they multiply)", "ratio", "interval")


def _rows(gap: Gap) -> list[tuple[str, ...]]:
    """Factor, share, its interval, and where all variants were measured alone, last, step: as text, with the
    residual or the interactions, and the total, at the end."""
    lines = [_row(gap, index, share) for index, share in enumerate(gap.shares)]
    if gap.interactions is not None:
        lines.append(("interactions", "", _interval(gap.interactions), _ratio(gap.interactions), "", ""))
    if gap.residual is not None:
        lines.append((RESIDUAL, _ratio(gap.residual), _interval(gap.residual)))
    total = ("total", _ratio(gap.total), _interval(gap.total))
    lines.append(total if _in_one_order(gap) else (*total, _ratio(gap.total), "", _ratio(gap.total)))
    return lines


def _row(gap: Gap, index: int, share: Share) -> tuple[str, ...]:
    levels = f"{level_text(share.slow)} -> {level_text(share.fast)}"
    name = verdicts.losing(f"{naming.factor_text(share.factor)}: {levels}", share.gives_up)
    shown = (_ratio(share.share), _interval(share.share))
    if gap.variants_measured is not None:
        return (f"{fraction.LETTERS[index]}  {name}", *shown)
    if gap.in_order:
        return (name, *shown)
    return (name, *shown, _ratio(share.alone), _ratio(share.last), _ratio(share.step))


def _confounded(gap: Gap) -> list[tuple[str, str, str]]:
    """The interactions of two factors by the letters of the table above, the largest first."""
    ranked = sorted(gap.confounded, key=lambda one: -abs(_log(one.effect)))
    return [(one.text, _ratio(one.effect), _interval(one.effect)) for one in ranked]


def kind(share: Ratio, gap: Gap) -> str:
    """Whether a share helps to close the gap, hurts, or cannot be told from 1."""
    if share.low is None or share.high is None or share.low <= 1.0 <= share.high:
        return "undecided"
    assert gap.total is not None
    return "helps" if (share.ratio > 1.0) == (gap.total.ratio > 1.0) else "hurts"


def told(share: Ratio | None) -> str:
    """A ratio and its interval, as the waterfall writes them."""
    return f"×{_ratio(share)} ({_interval(share)})"


def _ratio(ratio: Ratio | None) -> str:
    return numbers.ratio_text(ratio.ratio) if ratio else numbers.DASH


def _interval(ratio: Ratio | None) -> str:
    return numbers.interval_text(ratio) if ratio else numbers.DASH


def _with_interval(ratio: Ratio) -> str:
    return f"{_ratio(ratio)} [{_interval(ratio)}]"


def _log(ratio: Ratio | None) -> float:
    return math.log(ratio.ratio) if ratio else 0.0
