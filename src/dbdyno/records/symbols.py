"""The names of functions and objects without what compilers add."""

from __future__ import annotations

import re
from functools import cache

MADE_BY_COMPILER = re.compile(
    r"((\.(part|cold|constprop|isra|lto_priv|localalias|llvm|warm|clone|__uniq)\b(\.\d+)*|\.\d+)+"
    r"|( \[clone [^\]]*\])+)$"
)
"""The ends of names by which compilers tell the parts and copies of a function or an object apart, as they
stand in a symbol, and as a name of C++ is written."""


@cache
def base_name(name: str) -> str:
    """A symbol without what the compiler added: `scan` for `scan.constprop.0.cold`."""
    return MADE_BY_COMPILER.sub("", name) or name
