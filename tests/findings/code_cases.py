"""What the tests of code share with others."""

from __future__ import annotations

from functools import cache

from dbdyno.analyse.code import CodeDifference, compare_code
from dbdyno.records.binary import Code, Datum, Extension
from tests.analyse.code_cases import a_build, a_function


def fact(build: Code, **facts: object) -> Code:
    return build._replace(binary=build.binary.model_copy(update=facts))


@cache
def found() -> CodeDifference:
    same = [a_function(f"same_{index}") for index in range(40)]
    changed = [a_function(f"changed_{index:02}", "left", size=100) for index in range(30)]
    grown = [a_function(f"changed_{index:02}", "right", size=100 + 10 * index) for index in range(30)]
    wide = Extension(name="AVX2", instructions=1234, functions=7, examples=("scan", "sum"))
    left = a_build(*same, *changed, a_function("gone", size=64), data=(Datum("sizes", 20, b"1"),))
    right = a_build(*same, *grown, data=(Datum("sizes", 20, b"2"),))
    return compare_code(
        fact(left, path="O2/server", build_id="1f", producers=("GNU C17 12.2.0 -O2",)),
        fact(right, path="O3/server", build_id="2e", extensions=(wide,), libraries=("libc.so.6",)),
    )
