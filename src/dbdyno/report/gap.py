"""The gap explained: the product as a table, and as a waterfall on a log axis from the slow setup to the
fast."""

from __future__ import annotations

import math

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dbdyno.analyse.model import Gap, Ratio
from dbdyno.report import wording
from dbdyno.study import level_text


def title(gap: Gap) -> str:
    """The whole in a sentence: how far apart, and which factor has the largest part."""
    if gap.total is None:
        return "The gap cannot be shared out: setups between the two were not measured together."
    largest = max(gap.shares, key=lambda share: abs(_log(share.share)))
    return (
        f"The gap is {_with_interval(gap.total)} (fast / slow, {gap.metric}); the largest part of it is "
        f"{largest.factor}, ×{_ratio(largest.share)}."
    )


def product(gap: Gap) -> str:
    """The gap as a product that multiplies out."""
    parts = " × ".join(f"{_ratio(share.share)} {share.factor}" for share in gap.shares)
    return f"{_ratio(gap.total)} = {parts}"


def render(gap: Gap, console: Console) -> None:
    """Prints the sentence, the product, and a row per factor."""
    console.print(Text("The gap explained", style="bold"))
    console.print(Text(title(gap)))
    if gap.total is None:
        for setting in gap.missing:
            named = ", ".join(f"{n}={level_text(v)}" for n, v in zip(gap.factors, setting, strict=True))
            console.print(Text(f"  not measured: {named}"))
        return
    console.print(Text(product(gap)))
    console.print(_table(gap))
    console.print(Text(note(gap), style="dim"))


def note(gap: Gap) -> str:
    """How the columns were made."""
    return (
        f"All ratios fast / slow, geometric means over {wording.plural(gap.blocks, 'block')}. "
        "Share: averaged over every order of the changes (Shapley), so the shares multiply to the total "
        f"exactly, with no residual; their intervals hold together with {gap.confidence:.0%}. "
        "Alone: on the slow setup. Last: when all others have been changed. Step: in the study's order. "
        "Interactions: the total over the product of the gains alone; 1 where the factors multiply."
    )


def rows(gap: Gap) -> list[tuple[str, str, str, str, str, str]]:
    """Factor, share, its interval, alone, last, step: as text, with the total and the interactions at the
    end."""
    lines = [
        (
            f"{share.factor}: {level_text(share.slow)} -> {level_text(share.fast)}",
            _ratio(share.share),
            _interval(share.share),
            _ratio(share.alone),
            _ratio(share.last),
            _ratio(share.step),
        )
        for share in gap.shares
    ]
    if gap.interactions is not None:
        lines.append(("interactions", "", _interval(gap.interactions), _ratio(gap.interactions), "", ""))
    lines.append(("total", _ratio(gap.total), _interval(gap.total), _ratio(gap.total), "", _ratio(gap.total)))
    return lines


HEADS = ("factor", "share", "interval", "alone", "last", "step")


def _table(gap: Gap) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in HEADS:
        table.add_column(head, justify="left" if head == "factor" else "right", no_wrap=head != "factor")
    for line in rows(gap):
        table.add_row(*line)
    return table


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
    return wording.ratio_text(ratio.ratio) if ratio else wording.DASH


def _interval(ratio: Ratio | None) -> str:
    return wording.interval_text(ratio) if ratio else wording.DASH


def _with_interval(ratio: Ratio) -> str:
    return f"{_ratio(ratio)} [{_interval(ratio)}]"


def _log(ratio: Ratio | None) -> float:
    return math.log(ratio.ratio) if ratio else 0.0
