"""Which instructions a compiler may use under the flags of a build, and whether this CPU knows them.

A compiler defines a macro for each set of instructions that its flags allow. What a build may use and the CPU
lacks ends it by an illegal instruction, at some moment.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.host import kernel_files
from dbdyno.obtain.source.toolchain import NATIVE, Toolchain, ran
from dbdyno.obtain.source.wish import Flags

CPUS = Path("/proc/cpuinfo")
KNOWN_TO_ALL = "name a CPU that all hosts know, such as build.march = x86-64-v2"
OTHER_NAMES = {
    "__BMI__": "bmi1",
    "__LZCNT__": "abm",
    "__SSE3__": "pni",
    "__SSE4_1__": "sse4_1",
    "__SSE4_2__": "sse4_2",
    "__AVX512VNNI__": "avx512_vnni",
    "__AVX512BF16__": "avx512_bf16",
    "__AVX512FP16__": "avx512_fp16",
    "__RDRND__": "rdrand",
}
"""Of sets whose macro has another name than the kernel's flag."""
SAME_NAMES = frozenset((
    "sse", "sse2", "ssse3", "sse4a", "avx", "avx2", "fma", "fma4", "f16c", "bmi2", "movbe", "popcnt", "aes",
    "adx", "rdseed", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512ifma",
))  # fmt: skip
MACRO = re.compile(r"#define (__[A-Z0-9_]+__) 1$", re.MULTILINE)


def require_instructions(toolchain: Toolchain, flags: Flags, words: str) -> None:
    """Raises UserError where a build with these flags may use instructions that this CPU does not know. Says
    nothing of a CPU whose flags the kernel does not list by these names."""
    known = known_here()
    lacking = sorted(may_use(toolchain, flags) - known) if known else []
    if lacking:
        raise UserError(
            f"{words}: the CPU of this host does not know {', '.join(lacking)}, which the build may use",
            KNOWN_TO_ALL,
        )


@cache
def may_use(toolchain: Toolchain, flags: Flags) -> frozenset[str]:
    """The sets of instructions that a compiler may use under the flags and not without them, by the kernel's
    names."""
    options = [flag for flag in flags.compile if flag.startswith("-m")]
    if not options or all(map(NATIVE.fullmatch, options)):
        return frozenset()
    with_flags, without = (_sets(toolchain.cc, tuple(given)) for given in (options, ()))
    return with_flags - without


def _sets(compiler: str, options: tuple[str, ...]) -> frozenset[str]:
    told = ran([compiler, *options, "-dM", "-E", "-x", "c", "/dev/null"]).stdout
    names = (OTHER_NAMES.get(macro, macro.strip("_").lower()) for macro in MACRO.findall(told))
    return frozenset(name for name in names if name in SAME_NAMES or name in OTHER_NAMES.values())


@cache
def known_here() -> frozenset[str]:
    """The flags of this CPU; empty on one whose kernel lists none."""
    found = re.search(r"^flags\s*: (.*)$", kernel_files.text_or_none(CPUS) or "", re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()
