"""Compilers of this machine, and files that pretend to be one; what a binary says of how it was built."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import Blocked, BuildFailed, UserError
from dbdyno.obtain.architecture import ARCHITECTURES, emulator, of_this_machine
from dbdyno.obtain.source import toolchain as toolchains
from dbdyno.obtain.source.build import Flags
from dbdyno.obtain.source.recipe import BuildStep
from dbdyno.obtain.source.toolchain import (
    RecordedCommands,
    first_error,
    in_force,
    machine_options,
    native_target,
    parsed,
    require_needs,
    toolchain,
    traces,
    tried_flags,
    version_in,
)
from tests.needs import IS_ROOT, needs_any_gcc, needs_gcc, on_machine


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No compiler is known from another test."""
    toolchain.cache_clear()
    yield
    toolchain.cache_clear()


def pretender(folder: Path, script: str) -> str:
    path = folder / "gcc-pretender"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@needs_any_gcc
def test_a_compiler_is_proved_and_says_what_it_is() -> None:
    found = toolchain("gcc")
    assert found.family == "gcc" and found.version.startswith("gcc ")
    assert Path(found.cc).is_absolute() and len(found.digest) == 64
    assert toolchain("gcc", "bfd").digest == toolchain("gcc", "bfd").digest


@needs_any_gcc
def test_a_compiler_of_the_same_name_with_other_bytes_has_another_digest(tmp_path: Path) -> None:
    real = on_machine("gcc")
    first = toolchain(pretender(tmp_path, f'exec {real} "$@"')).digest
    toolchain.cache_clear()
    assert toolchain(pretender(tmp_path, f'exec {real}  "$@"')).digest != first


@needs_any_gcc
def test_a_file_of_the_working_folder_is_no_part_of_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f'case "$1" in -print-prog-name=*) echo "${{1#*=}}";; *) exec {on_machine("gcc")} "$@";; esac'
    compiler = pretender(tmp_path, script)
    monkeypatch.chdir(tmp_path)
    digests = set()
    for text in ("one", "other"):
        (tmp_path / "ld").write_text(text)
        toolchain.cache_clear()
        digests.add(toolchain(compiler).digest)
    assert len(digests) == 1


def test_a_compiler_that_is_not_here_is_blocked_with_the_remedy() -> None:
    with pytest.raises(Blocked, match="there is no compiler gcc-99 here") as refused:
        toolchain("gcc-99")
    assert (refused.value.factor, refused.value.hint) == ("build.compiler", "apt-get install gcc-99")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo 'cannot find crt1.o: error: no linker' >&2; exit 1",
            "cannot make a program: cannot find crt1.o",
        ),
        ("printf '#!/bin/sh\\nexit 7\\n' >program; chmod +x program", "does not run here: it ended with 7"),
        ("echo nothing >program; chmod +x program", "does not run here"),
    ],
    ids=["cannot-link", "wrong-answer", "wrong-format"],
)
def test_a_compiler_that_makes_no_program_is_blocked(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(Blocked, match=said):
        toolchain(pretender(tmp_path, script))


def test_a_disk_that_is_full_is_not_the_compilers_fault(tmp_path: Path) -> None:
    with pytest.raises(Blocked, match="No space left on device") as refused:
        toolchain(pretender(tmp_path, "echo 'ld: final link failed: No space left on device' >&2; exit 1"))
    assert refused.value.hint == "make room on that disk"


@needs_any_gcc
@pytest.mark.skipif(not IS_ROOT, reason="only root can mount")
def test_a_folder_whose_programs_may_not_run_is_not_the_compilers_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["-t", "tmpfs", "-o", "noexec,size=8m", "none", str(tmp_path)]
    if subprocess.run(["mount", *options], capture_output=True).returncode:
        pytest.skip("this host does not permit mounts")
    try:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        with pytest.raises(Blocked, match="may not run in") as refused:
            toolchain("gcc")
        assert "noexec" in refused.value.hint
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@needs_any_gcc
@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            'case "$1" in --version) exec sleep 600;; *) exec {gcc} "$@";; esac',
            "pretender --version` does not",
        ),
        ("printf '#!/bin/sh\\nexec sleep 600\\n' >program; chmod +x program", "`program` does not end"),
        # The shell starts it, as a compiler starts its parts, and it holds the pipes.
        ("sleep 600; exit 1", "pretender -o program program.c` does not end"),
    ],
    ids=["compiler", "program", "compilation"],
)
def test_what_does_not_end_is_blocked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    monkeypatch.setattr("dbdyno.obtain.source.toolchain.ANSWER_MOST_S", 10.0)
    with pytest.raises(Blocked, match=said):
        toolchain(pretender(tmp_path, script.replace("{gcc}", str(on_machine("gcc")))))


@needs_any_gcc
def test_a_compiler_that_hides_its_version_is_blocked(tmp_path: Path) -> None:
    script = f'case "$1" in --version) ;; *) exec {on_machine("gcc")} "$@";; esac'
    with pytest.raises(Blocked, match="gcc-pretender does not say its version") as refused:
        toolchain(pretender(tmp_path, script))
    assert refused.value.factor == "build.compiler"


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0", "12.2.0"),
        ("gcc (GCC) 15.0.1 20250101 (experimental)", "15.0.1"),
        ("Debian clang version 14.0.6", "14.0.6"),
        ("clang version 17.0.1 (https://github.com/llvm/llvm-project 2a2c8f0)", "17.0.1"),
        ("clang version 20.0git", "20.0"),
        ("a wrapper (of 1.2)", ""),
        ("", ""),
    ],
)
def test_the_version_is_the_compilers_and_not_its_packagers(told: str, version: str) -> None:
    assert version_in(told) == version


@needs_any_gcc
def test_a_linker_that_is_not_here_is_the_linkers_fault(tmp_path: Path) -> None:
    real = on_machine("gcc")
    script = (
        f'case "$*" in *lld*) echo "collect2: error: cannot find ld.lld" >&2; exit 1;; esac; exec {real} "$@"'
    )
    with pytest.raises(Blocked, match="with the linker lld") as refused:
        toolchain(pretender(tmp_path, script), "lld")
    assert refused.value.factor == "build.linker"


@needs_any_gcc
def test_a_flag_that_is_rejected_fails_with_the_compilers_words() -> None:
    with pytest.raises(BuildFailed, match="gcc rejects a flag: gcc: error: unrecognized"):
        tried_flags(toolchain("gcc"), Flags(compile=("-fno-such-thing",)))


@needs_any_gcc
def test_a_flag_that_is_ignored_is_told() -> None:
    found = tried_flags(toolchain("gcc"), Flags(compile=("-fno-rtti",)))
    assert any("-fno-rtti" in warning for warning in found.warnings)
    assert tried_flags(toolchain("gcc"), Flags(compile=("-O2",))).warnings == ()


@needs_any_gcc
@pytest.mark.parametrize(
    ("flags", "trace"), [(("-O3",), {"-O3"}), (("-fno-plt",), {"-fno-plt"}), (("-Wall",), set()), ((), set())]
)
def test_flags_leave_traces_in_a_binary(flags: tuple[str, ...], trace: set[str]) -> None:
    assert traces(toolchain("gcc"), Flags(compile=flags)) == trace


@needs_any_gcc
def test_native_is_told_as_what_it_means_on_this_cpu(tmp_path: Path) -> None:
    gcc = toolchain("gcc")
    found = native_target(gcc, Flags(compile=("-O2", "-march=native")))
    assert any(option.startswith("-march=") for option in found) and "-march=native" not in found
    assert native_target(gcc, Flags(compile=("-O2", "-march=x86-64-v3"))) == ()
    silent = gcc.but(cc=pretender(tmp_path, "exit 0"))
    with pytest.raises(Blocked, match="does not tell what `native` means"):
        native_target(silent, Flags(compile=("-mtune=native",)))


@pytest.mark.parametrize(
    ("told", "options"),
    [
        (
            "Configured with: ../src/configure -v --with-multilib-list=m32,m64 --with-tune=generic\n"
            ' /usr/lib/gcc/x86_64-linux-gnu/12/cc1 -E -quiet /dev/null "-march=skylake" -mavx2 -mno-sgx '
            '--param "l1-cache-size=32" "--param=l2-cache-size=512" "-mtune=skylake" -dumpbase null\n',
            (
                "-march=skylake",
                "-mavx2",
                "-mno-sgx",
                "--param l1-cache-size=32",
                "--param=l2-cache-size=512",
                "-mtune=skylake",
            ),
        ),
        (
            "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n (in-process)\n"
            ' "/usr/lib/llvm-14/bin/clang" "-cc1" "-E" "-target-cpu" "znver3" "-target-feature" "+avx2" '
            '"-tune-cpu" "znver3" "-fdebug-compilation-dir=/tmp"\n',
            ("-target-cpu znver3", "-target-feature +avx2", "-tune-cpu znver3"),
        ),
        ("", ()),
    ],
    ids=["gcc", "clang", "nothing"],
)
def test_options_of_the_machine_are_found_among_all(told: str, options: tuple[str, ...]) -> None:
    assert machine_options(told) == options


@pytest.mark.parametrize(
    ("said", "first"),
    [
        (
            "a.c: In function 'f':\na.c:3:1: error: expected ';'\na.c:9:1: error: x\nmake: *** [a.o] Error 1",
            "a.c:3:1: error: expected ';'",
        ),
        ("ok\n/usr/bin/ld: cannot find -lfoo\ncollect2: x", "/usr/bin/ld: cannot find -lfoo"),
        (
            "ok\nCMake Error at a.txt:3 (message):\n\n  no ncurses\n  x",
            "CMake Error at a.txt:3 (message): no ncurses",
        ),
        ("CMake Error: no such folder\nCall Stack", "CMake Error: no such folder"),
        ("cc1: write: No space left on device\na.c:1: error: x", "cc1: write: No space left on device"),
        ("nothing of note\nbye", "bye"),
        (
            "[Warning] failed to retrieve it\nCollecting\nrun: *** ERROR: Could not find 'x' in 'main'",
            "run: *** ERROR: Could not find 'x' in 'main'",
        ),
        (
            "/usr/bin/ld: a.o: undefined reference to `f'\ncollect2: error: ld returned 1 exit status",
            "/usr/bin/ld: a.o: undefined reference to `f'",
        ),
        ("", "it said nothing"),
    ],
)
def test_the_first_error_is_the_one_that_says_what_is_wrong(said: str, first: str) -> None:
    assert first_error(said) == first


def test_another_architecture_needs_its_cross_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = next(one for one in ARCHITECTURES.values() if one != of_this_machine())
    monkeypatch.setattr(toolchains, "emulator", lambda _: ("emulator",))
    with pytest.raises(Blocked) as missing:
        toolchain("gcc-99", architecture=foreign.name)
    package = f"gcc-99-{foreign.packaged} libc6-dev-{foreign.name}-cross"
    assert missing.value.hint == f"apt-get install {package}"
    with pytest.raises(Blocked, match=f"a build for {foreign.name} is made by a cross compiler") as refused:
        toolchain("clang", architecture=foreign.name)
    assert refused.value.hint == "take gcc, or a version of it such as gcc-12"


def test_an_architecture_without_an_emulator_is_the_users_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = next(one for one in ARCHITECTURES.values() if one != of_this_machine())
    monkeypatch.setenv("PATH", "")
    emulator.cache_clear()
    toolchain.cache_clear()
    with pytest.raises(UserError, match=f"nothing here runs programs of {foreign.name}"):
        toolchain("gcc", architecture=foreign.name)


GCC = ("gcc",)


def step(**needs: str) -> BuildStep:
    return BuildStep(name="configure", command=("true",), needs=needs)


def test_all_missing_programs_are_named_with_one_command() -> None:
    steps = [step(sh="dash", nobison="bison"), step(noflex="flex", nolex="flex")]
    with pytest.raises(Blocked) as refused:
        require_needs(steps, GCC)
    assert refused.value.factor == "source.recipe"
    assert (
        refused.value.message == "a build needs nobison, noflex and nolex, which this machine does not have"
    )
    assert refused.value.hint == "apt-get install bison flex"


def test_what_is_here_is_not_missed() -> None:
    require_needs([step(sh="dash"), step()], GCC)


@needs_gcc
def test_a_header_that_the_compiler_does_not_find_is_named() -> None:
    headers = {"stdio.h": "libc6-dev", "no/such/linux.h": "liblinux-dev"}
    with pytest.raises(Blocked) as refused:
        require_needs([step(**headers)], GCC)
    assert refused.value.message == "a build needs no/such/linux.h, which this machine does not have"
    assert refused.value.hint == "apt-get install liblinux-dev"


@needs_gcc
def test_headers_are_looked_for_where_the_flags_say(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    # Only that it is there counts: this one is C++.
    (tmp_path / "toy" / "toy.h").write_text("#include <vector>\nclass Toy {};\n")
    require_needs([step(**{"toy/toy.h": "libtoy-dev"})], (*GCC, f"-I{tmp_path}"))
    with pytest.raises(Blocked):
        require_needs([step(**{"toy/toy.h": "libtoy-dev"})], GCC)


def test_a_process_asks_the_compiler_once(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\necho asked >> {tmp_path}/log\n")
    compiler.chmod(0o755)
    for _ in range(2):
        require_needs([step(**{"stdio.h": "libc6-dev"})], [str(compiler)])
    assert (tmp_path / "log").read_text() == "asked\n"


def test_a_compiler_that_does_not_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "cc"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    monkeypatch.setattr("dbdyno.obtain.source.toolchain.ANSWER_MOST_S", 0.2)
    with pytest.raises(Blocked, match=r"does not end within 0\.2 s"):
        require_needs([step(**{"stdio.h": "libc6-dev"})], (str(silent),))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("#!/bin/sh\necho 'cc: error: no such flag' >&2\nexit 1\n", "no such flag"),
        ("no program", "cannot be run"),
    ],
)
def test_a_compiler_that_cannot_look_for_headers_is_told(tmp_path: Path, text: str, cause: str) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text(text)
    compiler.chmod(0o755)
    with pytest.raises(Blocked, match=cause) as refused:
        require_needs([step(**{"stdio.h": "libc6-dev"})], (str(compiler),))
    assert refused.value.factor == "build.compiler"


PRINTED = """
String dump of section '.GCC.command.line':
  [     0]  GNU C17 12.2.0 -mtune=generic -march=x86-64 -O2 -fPIC
  [    3a]  GNU C17 12.2.0 -mtune=generic -march=x86-64 -O3 -fPIC

String dump of section '.comment':
  [     0]  GCC: (Debian 12.2.0-14+deb12u1) 12.2.0

Program Headers:
  GNU_RELRO      0x002df0 0x0000000000003df0
 0x000000006ffffffb (FLAGS_1)            Flags: NOW PIE

Displaying notes found in: .note.gnu.build-id
  GNU                  0x00000014\tNT_GNU_BUILD_ID (unique build ID bitstring)\t    Build ID: 17a3c9
"""


def test_a_binary_tells_its_command_lines_and_its_name() -> None:
    found = parsed(PRINTED)
    assert found.build_id == "17a3c9"
    assert [line.split()[-2] for line in found.command_lines] == ["-O2", "-O3"]
    assert (found.bind_now, found.relro, found.linker) == (True, True, "bfd")


def test_a_binary_that_tells_nothing_is_read_as_that() -> None:
    assert parsed("readelf: Warning: nothing\n") == RecordedCommands(linker="bfd")
    assert not parsed("(FLAGS_1)            Flags: PIE\n").bind_now


def test_bolt_leaves_the_command_by_which_it_wrote_a_file() -> None:
    note = (
        "String dump of section '.note.bolt_info':\n  [     c]  GNU\n"
        "  [    10]  BOLT revision: <unknown>, command line: /llvm/llvm-bolt original -o laid-out\n\n"
    )
    assert parsed(note).bolt == "/llvm/llvm-bolt original -o laid-out"
    assert parsed(PRINTED).bolt == ""


def test_linkers_leave_their_mark() -> None:
    dump = "String dump of section '.comment':\n  [     0]  Linker: LLD 14.0.6\n\n"
    assert parsed(dump).linker == "lld"
    assert parsed(dump.replace("Linker: LLD", "mold")).linker == "mold"
    assert (
        parsed("  GNU   0x00000009  NT_GNU_GOLD_VERSION (gold version)  Version: gold 1.16\n").linker
        == "gold"
    )


def test_options_count_by_the_command_lines_that_hold_them() -> None:
    found = parsed(PRINTED)
    assert found.holding(frozenset(("-O3", "-fPIC"))) == 1
    assert found.holding(frozenset(("-fPIC",))) == 2
    assert found.holding(frozenset(("-O1",))) == 0


@given(st.lists(st.sampled_from(["-O1", "-O2", "-O3", "-march=a", "-march=b", "-fx", "word"]), max_size=8))
def test_of_levels_of_one_kind_the_last_is_in_force(words: list[str]) -> None:
    found = in_force(" ".join(words))
    for prefix in ("-O", "-march="):
        of_kind = [word for word in words if word.startswith(prefix)]
        assert {word for word in found if word.startswith(prefix)} == set(of_kind[-1:])
    assert ("-fx" in found) == ("-fx" in words)
    assert "word" not in found
