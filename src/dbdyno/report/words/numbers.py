"""How every report writes its numbers. A metric has a format of its own, in `records/metrics.py`.

How every report and list writes when something was: in UTC, because host and reader may be apart. Whoever
waits for an end has the host's own clock.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dbdyno.records import metrics

if TYPE_CHECKING:
    from dbdyno.analyse.found import HostEffect, LayoutSpread
    from dbdyno.analyse.model import Ratio
    from dbdyno.records.binary import CodeBeside

DASH = "–"


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
    return between_text(ratio.low, ratio.high)


def narrower_text(effect: Ratio | HostEffect) -> str:
    """The interval by which there is no effect, where that is not the one beside the ratio."""
    inner = effect.narrower
    if inner is None:
        return ""
    return f"its interval of {share_text(inner.confidence)} tells it: {between_text(inner.low, inner.high)}"


def between_text(low: float, high: float) -> str:
    """Both ends of an interval."""
    return f"{bound_text(low)} {DASH} {bound_text(high)}"


def limits_text(spread: LayoutSpread) -> str:
    """How far luck of layout goes: 0.971 to 1.034 times the baseline."""
    return f"{ratio_text(spread.low)} to {ratio_text(spread.high)} times the baseline"


def effect_text(effect: Ratio | None) -> str:
    """A ratio with its interval: 1.620 (1.601 – 1.639)."""
    return DASH if effect is None else f"{ratio_text(effect.ratio)} ({interval_text(effect)})"


def multiple_text(effect: Ratio) -> str:
    """×1.620 (1.601 – 1.639), without an interval where it has none."""
    return f"×{ratio_text(effect.ratio) if effect.low is None else effect_text(effect)}"


def bound_text(value: float) -> str:
    """One end of an interval; ends too far out to mean anything are said to be so."""
    if value > 1e3:
        return ">1,000"
    return "<0.001" if value < 1e-3 else ratio_text(value)


def differs(effect: Ratio) -> bool:
    """Whether an interval excludes 1."""
    return effect.low is not None and effect.high is not None and not effect.low <= 1.0 <= effect.high


def share_text(share: float, digits: int = 4) -> str:
    """A share as a percentage with no more digits than it needs: 2 %, 0.5 %, 99.49 %. One that has more of
    them before the point is whole: 1,234 %."""
    percent = 100.0 * share
    whole = abs(percent) >= 10.0**digits - 0.5
    return f"{percent:,.0f} %" if whole else f"{percent:.{digits}g} %"


def part_text(part: float, whole: float) -> str:
    """A part of a whole as a percentage of three digits; a dash where there is no whole."""
    return share_text(part / whole, digits=3) if whole else DASH


def change_text(change: float) -> str:
    """By how much something is more or less than another: +2.5 %."""
    return f"{100.0 * change:+.3g} %"


def tenth_text(share: float) -> str:
    """A share to a tenth of a percent: 0.4 %, 62.3 %."""
    return f"{100.0 * share:.1f} %"


def coarse_text(share: float) -> str:
    """A share of what was sampled or clocked: to a tenth of a percent below ten percent, whole above."""
    return tenth_text(share) if share < 0.0995 else f"{100.0 * share:.0f} %"


def half_text(width: float) -> str:
    """Half an interval's width, no finer than a tenth where it is small beside what it belongs to."""
    if width >= 9.95:
        return f"{width:,.0f}"
    return f"{width:.1f}" if width >= 0.05 else "<0.1"


def hundredths_text(ratio: float) -> str:
    """A ratio with 1 written as 100: 102.8, 49.0, 1,204."""
    value = ratio * 100
    if value >= 1e6:
        return "∞"
    return f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def rough_share_text(share: float) -> str:
    """A share that is itself an estimate, to two digits: 2.1 %, 14 %, 0.35 %."""
    percent = 100.0 * share
    return f"{percent:,.0f} %" if percent >= 10.0 else f"{percent:.2g} %"


def times_text(value: float) -> str:
    """A multiple that is itself an estimate: 0.94, 1.8, 23."""
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.2g}"


def percentile_text(above: float) -> str:
    """The percentile that a share of operations lies above: 99.9 % for 0.001."""
    return f"{100.0 * (1.0 - above):.6g} %"


def value_text(metric: str, value: float) -> str:
    """A metric's value in the format of its registry, without unit."""
    return metrics.find(metric).format(value)


def stage_seconds_text(seconds: float) -> str:
    """Seconds to a hundredth: 0.42, 1,204.10."""
    return f"{seconds:,.2f}"


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


def about_text(seconds: float) -> str:
    """A duration that is itself an estimate: 45 s, 12 min, 3 h 5 min."""
    return seconds_text(round(seconds) if seconds < 90 else 60 * round(seconds / 60))


def plural(count: int, noun: str, nouns: str = "") -> str:
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


def functions_text(code: CodeBeside) -> str:
    """How many functions differ, of how many: `3 of 12,431`."""
    return f"{code.changed:,} of {code.functions.equal + code.changed:,}"


def timestamp(unix_s: float) -> str:
    """As machines read it, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(unix_s))


def moment_text(unix_s: float) -> str:
    """To the minute: 2026-01-31 12:05 UTC."""
    return f"{minute_text(unix_s)} UTC"


def minute_text(unix_s: float) -> str:
    """The same where UTC is named once for several: 2026-01-31 12:05."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M}"


def second_text(unix_s: float) -> str:
    """To the second, for what follows one another within a minute: 2026-01-31 12:05:43 UTC."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def day_text(unix_s: float) -> str:
    """The day in UTC: 2026-01-31."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d}"


def clock_text(unix_s: float) -> str:
    """Of today or tomorrow, by this host's clock: 12:05."""
    return time.strftime("%H:%M", time.localtime(unix_s))
