"""The names of functions and objects as a programmer writes them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

from dbdyno.records.symbols import base_name

MANGLED = "_Z"
LIBRARY = "libstdc++.so.6"


@cache
def source_name(name: str) -> str:
    """The name as a programmer writes it: `THD::reset()` for `_ZN3THD5resetEv.part.0`. A name of C++ stays as
    it is on a machine without its library."""
    base = base_name(name)
    demangle = _demangler() if base.startswith(MANGLED) else None
    return (demangle(base) if demangle else "") or base


@cache
def _demangler() -> Callable[[str], str] | None:
    """Asks the library of C++, which gives a text that the caller frees, or nothing."""
    try:
        function = ctypes.CDLL(LIBRARY).__cxa_demangle
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]

    def demangle(name: str) -> str:
        told = function(name.encode(), None, None, None)
        text = ctypes.string_at(told).decode(errors="replace") if told else ""
        free(told)
        return text

    return demangle
