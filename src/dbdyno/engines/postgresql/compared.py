"""What PostgreSQL is asked where it is compared with another engine."""

from __future__ import annotations

import re

from dbdyno.engines.compared import OF_INFORMATION_SCHEMA, ComparedBy

IN_UNITS = re.compile(r"(-?\d+(?:\.\d+)?) (\d*)([A-Za-z]+)")
"""A default in the unit of its setting: `16 8kB` are sixteen of these."""


def level(default: str) -> str:
    """A default as a study writes it: with the unit beside the number, and without one where it means off."""
    found = IN_UNITS.fullmatch(default)
    if found is None:
        return default
    amount, times, unit = float(found[1]), int(found[2] or 1), found[3]
    return f"{amount:g}" if amount <= 0 else f"{amount * times:.15g}{unit}"


COMPARED_BY = ComparedBy(
    columns=OF_INFORMATION_SCHEMA.format(schema="'public'"),
    defaults="SELECT name, boot_val || COALESCE(' ' || unit, '') FROM pg_settings",
    level=level,
)
