"""What an analysis holds of luck of layout; `layout.py` finds it."""

from __future__ import annotations

from dbdyno.frozen import Frozen


class LayoutSpread(Frozen):
    """How far the baseline's code at other addresses differs from the baseline: by up to the share
    `difference`, over so many `placebos`. One more layout differs by a ratio from `low` to `high`, as far as
    the placebos can say, and two of them by up to `apart`. The limits hold for all `builds` of the run
    together, with the study's confidence."""

    placebos: int
    difference: float
    builds: int
    low: float
    high: float
    apart: float
