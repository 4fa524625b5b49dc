"""Layouts: a linker script by which GNU ld puts the functions of a build in an order that a seed draws.

A script may not name functions, because they are known only when all is compiled. So it sorts them by the
last three characters of their names: a seed deals out the alphabet into classes, and draws an order of all
triples of classes. With `INSERT` the linker keeps its own script beside this one, whatever it links. What it
puts first for a reason (cold, hot and starting code) stays first. All other code comes last, so that the
linker's own `.text` holds nothing: of a file with two, Valgrind reads no symbols.
"""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterable
from itertools import product

ALPHABET = f"{string.ascii_letters}{string.digits}_."
"""The characters of a function's section. A name with another one comes last."""
CLASSES = 8
FIRST = (
    "*(.text.unlikely .text.*_unlikely .text.unlikely.*)",
    "*(.text.exit .text.exit.*)",
    "*(.text.startup .text.startup.*)",
    "*(.text.hot .text.hot.*)",
    "*(SORT(.text.sorted.*))",
)
"""In the order of GNU ld's own script."""
LAST = ("*(.text .stub .text.* .gnu.linkonce.t.*)", "*(.gnu.warning)")
"""All that GNU ld's own script holds beside."""


def script(seed: int) -> str:
    """The script of a seed: the same on every machine."""
    dealt = [_classes(seed, position) for position in range(3)]
    patterns = (f"*(.text.*[{one}][{two}][{three}])" for one, two, three in product(*dealt))
    lines = "\n".join(f"    {line}" for line in (*FIRST, *_shuffled(patterns, f"{seed}"), *LAST))
    return f"SECTIONS\n{{\n  .text :\n  {{\n{lines}\n  }}\n}}\nINSERT BEFORE .fini;\n"


def _classes(seed: int, position: int) -> list[str]:
    """The alphabet in classes of one size."""
    drawn = _shuffled(ALPHABET, f"{seed} {position}")
    return ["".join(drawn[start::CLASSES]) for start in range(CLASSES)]


def _shuffled(things: Iterable[str], seed: str) -> list[str]:
    """An order that no version of Python changes."""
    return sorted(things, key=lambda thing: hashlib.sha256(f"{seed} {thing}".encode()).digest())
