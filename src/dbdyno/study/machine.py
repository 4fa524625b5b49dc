"""What a study must say of a machine that it resets."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from dbdyno.frozen import level_text
from dbdyno.study.nouns import MACHINE_FACTOR as FACTOR
from dbdyno.study.nouns import PLATFORM_FACTOR, Factor, Restarts
from dbdyno.study.section import SectionReader

MACHINES = ("ppc64el",)
"""Architectures of which a whole machine is emulated here."""
LIKE_THIS = f'write "{PLATFORM_FACTOR}" = "{MACHINES[0]}" under [settings]'
PLACES = (("factors", FACTOR), ("factors", *FACTOR.split(".")), ("settings", FACTOR))
BESIDE = ("kills", "stops")
"""Acts on a server, which the guest has not."""


def require_machine(
    reader: SectionReader,
    restarts: Restarts | None,
    factors: Iterable[Factor],
    settings: dict[str, Any],
) -> None:
    """Notes resets without a machine, a machine without resets, and what does not go with them."""
    levels = {factor.name: factor.levels for factor in factors}
    levels.update({name: (level,) for name, level in settings.items()})
    if FACTOR not in levels:
        # A factor whose levels are wrong is told already.
        named = any(reader.at(place) is not None for place in PLACES)
        if restarts is not None and restarts.resets and not named:
            hint = f'write "{FACTOR}" = ["full", "kexec"] under [factors]'
            reader.note(("restarts", "resets"), "`resets` resets a machine, and there is none", hint)
        return
    _require_architecture(reader, [level_text(level) for level in levels.get(PLATFORM_FACTOR, ())])
    if restarts is not None and not restarts.resets:
        reader.note(("restarts",), f"without `resets`, `{FACTOR}` does nothing", "write resets = 5")
    for key in BESIDE:
        if restarts is not None and getattr(restarts, key):
            hint = "leave it out, or ask it of `platform.architecture` in a study of its own"
            reader.note(("restarts", key), f"`{key}` does not go with `{FACTOR}`", hint)


def _require_architecture(reader: SectionReader, asked: Collection[str]) -> None:
    if not asked:
        reader.note((), f"`{FACTOR}` resets a machine, and the study names none", LIKE_THIS)
    elif not set(asked) <= set(MACHINES):
        reader.note(
            ("settings", PLATFORM_FACTOR),
            f"only a machine of {', '.join(MACHINES)} is emulated whole here",
            LIKE_THIS,
        )
