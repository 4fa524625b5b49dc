"""Which instructions a build may use, and what this CPU knows of them."""

from __future__ import annotations

import pytest

from dbdyno.errors import UserError
from dbdyno.obtain.source import profile
from dbdyno.obtain.source.build import Flags
from dbdyno.obtain.source.profile import known_here, may_use, require_instructions
from dbdyno.obtain.source.toolchain import toolchain
from tests.needs import needs_gcc

pytestmark = needs_gcc


def test_the_compiler_tells_what_flags_allow() -> None:
    gcc = toolchain("gcc")
    assert may_use(gcc, Flags(compile=("-O2", "-march=native"))) == frozenset()
    assert may_use(gcc, Flags(compile=("-O2",))) == frozenset()
    assert {"avx2", "bmi1", "bmi2", "fma", "abm"} <= may_use(gcc, Flags(compile=("-march=x86-64-v3",)))
    assert "avx512f" in may_use(gcc, Flags(compile=("-march=x86-64-v4",)))
    assert may_use(gcc, Flags(compile=("-mavx2",))) >= {"avx2", "avx"}


def test_a_cpu_that_lacks_some_of_them_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    gcc, flags = toolchain("gcc"), Flags(compile=("-march=x86-64-v3",))
    monkeypatch.setattr(profile, "known_here", lambda: may_use(gcc, flags))
    require_instructions(gcc, flags, "gcc -O2")
    monkeypatch.setattr(profile, "known_here", lambda: may_use(gcc, flags) - {"bmi2"})
    with pytest.raises(UserError, match="gcc -O2: the CPU of this host does not know bmi2"):
        require_instructions(gcc, flags, "gcc -O2")
    monkeypatch.setattr(profile, "known_here", frozenset)
    require_instructions(gcc, flags, "gcc -O2")


def test_the_kernel_lists_what_this_cpu_knows() -> None:
    assert "sse2" in known_here()
