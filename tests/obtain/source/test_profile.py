"""What tools of compilers tell of profiles is understood, and what is no profile is told.
So are the instructions that a build may use, and what this CPU knows of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import Blocked, BuildFailed, UserError
from dbdyno.obtain.source import profile
from dbdyno.obtain.source.build import Flags
from dbdyno.obtain.source.profile import (
    collected,
    executions,
    known_here,
    may_use,
    mismatched,
    mismatches,
    reader,
    require_instructions,
    require_profiles,
)
from dbdyno.obtain.source.toolchain import Toolchain, toolchain
from tests.needs import needs_gcc

GCC = Toolchain(name="gcc", family="gcc", version="gcc 12.2.0", cc="/usr/bin/gcc", cxx="", digest="0")
CLANG = GCC.but(name="clang", family="clang", cc="/usr/bin/clang")

TOLD = """
a.gcda:data:magic `gcda':version `B22*'
a.gcda:stamp 123
a.gcda: 01000000:  12:FUNCTION ident=1, lineno_checksum=0x1, cfg_checksum=0x2
a.gcda:  01a10000:  16:COUNTERS arcs 2 counts
a.gcda:                  0: 0 7
a.gcda: 01000000:  12:FUNCTION ident=2, lineno_checksum=0x1, cfg_checksum=0x2
a.gcda:  01a10000: -16:COUNTERS arcs 2 counts (all zero)
a.gcda:  01a30000:   8:COUNTERS time_profiler 1 counts
a.gcda:                  0: 5
a.gcda: 01000000:   0:FUNCTION placeholder
a.gcda: 01000000:  12:FUNCTION ident=3, lineno_checksum=0x1, cfg_checksum=0x2
a.gcda:  01a10000:  80:COUNTERS arcs 10 counts
a.gcda:                  0: 0 0 0 0 0 0 0 0
a.gcda:                  8: 0 1
"""


def test_a_function_was_executed_where_one_of_its_arcs_was() -> None:
    assert list(executions(TOLD.splitlines())) == [True, False, True]
    assert list(executions([])) == []


def test_functions_that_a_profile_does_not_fit_are_found_in_what_the_compiler_says() -> None:
    gcc = (
        "a.c:3:5: warning: control flow of function 'one' does not match its profile data (counter 'arcs') "
        "[-Wcoverage-mismatch]\n"
        "a.c:3:5: warning: control flow of function 'one' does not match its profile data "
        "(counter 'interval') [-Wcoverage-mismatch]\n"
        "a.c:9:1: error: number of counters in profile data for function 'two' does not match its profile "
        "data (counter 'arcs', expected 3 and have 2) [-Werror=coverage-mismatch]\n"
    )
    assert mismatched(gcc) == ["one", "two"]
    clang = (
        "warning: profile data may be out of date: of 9 functions, 2 have mismatched data that will be "
        "ignored [-Wprofile-instr-out-of-date]\n"
    )
    assert (mismatched(clang), mismatches(2 * clang)) == ([], 4)
    assert mismatches(gcc) == 0
    assert mismatched("warning: 'missing.gcda' profile count data file not found [-Wmissing-profile]") == []


@pytest.mark.parametrize("toolchain", [GCC, CLANG], ids=["gcc", "clang"])
def test_a_training_that_wrote_nothing_is_told(tmp_path: Path, toolchain: Toolchain) -> None:
    (tmp_path / "raw").mkdir()
    with pytest.raises(BuildFailed, match="the training wrote no profile") as failed:
        collected(tmp_path / "raw", tmp_path, tmp_path / "profile", toolchain)
    assert "exit()" in failed.value.hint


def test_the_reader_of_profiles_is_the_compilers_own(tmp_path: Path) -> None:
    for name in ("gcc-12", "gcov-dump-12", "gcov-dump", "clang-14", "llvm-profdata"):
        (tmp_path / name).touch()
    (tmp_path / "bin").mkdir()
    for link, leads_to in (("gcc", "gcc-12"), ("clang", "clang-14")):
        (tmp_path / "bin" / link).symlink_to(tmp_path / leads_to)
    found = [reader(one.but(cc=str(tmp_path / "bin" / one.family))) for one in (GCC, CLANG)]
    assert found == [str(tmp_path / "gcov-dump-12"), str(tmp_path / "llvm-profdata")]


@pytest.mark.parametrize("toolchain", [GCC, CLANG], ids=["gcc", "clang"])
def test_without_a_reader_nothing_is_built(tmp_path: Path, toolchain: Toolchain) -> None:
    version, package = ("gcc 12.2.0", "gcc-12") if toolchain is GCC else ("clang 14.0.6", "llvm-14")
    alone = toolchain.but(cc=str(tmp_path / toolchain.name), version=version)
    with pytest.raises(Blocked, match="which reads the profiles of") as refused:
        reader(alone)
    assert refused.value.factor == "build.pgo" and refused.value.hint == f"apt-get install {package}"


@pytest.mark.parametrize(
    ("toolchain", "package"), [(GCC, "libgcc-12-dev"), (CLANG, "libclang-rt-14-dev")], ids=["gcc", "clang"]
)
def test_a_compiler_without_its_profiling_runtime_is_blocked(
    tmp_path: Path, toolchain: Toolchain, package: str
) -> None:
    compiler = tmp_path / toolchain.name
    compiler.write_text(
        "#!/bin/sh\necho '/usr/bin/ld: cannot find /lib/libprofile.a: No such file or directory' >&2\n"
        "echo 'clang: error: linker command failed with exit code 1' >&2\nexit 1\n"
    )
    compiler.chmod(0o755)
    for name in ("gcov-dump", "llvm-profdata"):
        (tmp_path / name).touch()
    version = "gcc 12.2.0" if toolchain is GCC else "clang 14.0.6"
    without = toolchain.but(cc=str(compiler), version=version)
    with pytest.raises(Blocked, match=r"makes no program that writes a profile: .*cannot find /lib") as found:
        require_profiles(without, Flags(compile=("-fwrite-it",)))
    assert found.value.factor == "build.pgo" and found.value.hint == f"apt-get install {package}"
    compiler.write_text("#!/bin/sh\necho 'as: fatal error: x.o: No space left on device' >&2; exit 1\n")
    full = without.but(version=f"{version} on a full disk")
    with pytest.raises(Blocked, match="No space left") as refused:
        require_profiles(full, Flags(compile=("-fwrite-it",)))
    assert refused.value.hint == "make room on that disk"


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
