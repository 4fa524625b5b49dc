"""Variants as arguments: by name, or by the number that the list of them shows."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.errors import UserError


def chosen(names: Sequence[str], given: str, whose: str = "the run") -> str:
    """The name that was given, or that of the variant with this number; the baseline has number 0.

    Raises UserError with every name, one a line, where there is none such.
    """
    if given in names:
        return given
    if given.isdecimal() and int(given) < len(names):
        return names[int(given)]
    width = len(str(len(names) - 1))
    listed = "\n".join(f"    {number:>{width}}  {name}" for number, name in enumerate(names))
    raise UserError(f"{whose} has no variant {given!r}", f"give one of these, or its number:\n{listed}")
