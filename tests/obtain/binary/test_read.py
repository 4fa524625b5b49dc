"""Builds that differ in one thing are found to differ in that one alone: gcc builds them, real tools strip
them."""

from __future__ import annotations

import ctypes
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbdyno.analyse.code import CodeDifference, compare_code
from dbdyno.errors import DynoError, UserError
from dbdyno.obtain.binary import read_code, read_pair
from dbdyno.obtain.binary.read import LIBRARY, needed_libraries, source_name
from dbdyno.records.binary import ElfKind, Likeness, Relro
from tests.needs import needs_gcc
from tests.obtain.binary import EARLIER, MAIN, STORE, built, stripped

pytestmark = needs_gcc


def difference(left: Path, right: Path) -> CodeDifference:
    return compare_code(*read_pair(left, right))


def changed(found: CodeDifference) -> list[str]:
    return sorted(change.name for change in found.changes)


@pytest.mark.parametrize("flag", ["-O2", "-Wall", "-g", "-Wl,--build-id=none"])
def test_a_flag_that_changes_no_code_is_inert(tmp_path: Path, flag: str) -> None:
    found = difference(built(tmp_path, "left"), built(tmp_path, "right", flag))
    assert found.likeness is Likeness.INERT, (changed(found), found.changed_data)
    assert found.functions.equal >= 3 and found.data.equal >= 4


@pytest.mark.parametrize(
    "flags", [("-fPIE", "-pie"), ("-fno-pie", "-no-pie"), ("-fno-plt",), ("-static",)], ids=" ".join
)
def test_code_that_only_moved_is_the_same(tmp_path: Path, flags: tuple[str, ...]) -> None:
    left = built(tmp_path, "left", *flags, program=True, main=MAIN, store=STORE)
    right = built(tmp_path, "right", *flags, program=True, earlier=EARLIER, main=MAIN, store=STORE)
    found = difference(left, right)
    assert changed(found) == ["bits", "earlier"]
    assert found.functions.differing == found.data.differing == 0
    assert found.changed_data == ("banner", "weights")
    assert found.left.kind is ElfKind.PROGRAM


def test_packed_relocations_are_inert(tmp_path: Path) -> None:
    right = built(tmp_path, "right", "-Wl,-z,pack-relative-relocs")
    found = difference(built(tmp_path, "left"), right)
    assert found.likeness is Likeness.INERT and ".relr.dyn" in found.right.sections


def test_the_order_of_linking_is_inert(tmp_path: Path) -> None:
    left = built(tmp_path, "left", store=STORE, earlier=EARLIER)
    right = built(tmp_path, "right", earlier=EARLIER, store=STORE)
    assert difference(left, right).likeness is Likeness.INERT


def test_one_changed_instruction_is_found_where_it_is(tmp_path: Path) -> None:
    right = built(tmp_path, "right", store=STORE.replace("sum * 31", "sum * 33"))
    found = difference(built(tmp_path, "left"), right)
    assert (found.likeness, changed(found)) == (Likeness.DIFFERENT, ["hashed"])
    assert found.functions.differing == 1 and found.data.all_equal


@pytest.mark.parametrize(
    ("was", "becomes", "function"), [("%s at %f", "%s to %f", "step"), ("1.0625", "1.0635", "scaled")]
)
def test_a_nameless_constant_is_no_difference_of_code(
    tmp_path: Path, was: str, becomes: str, function: str
) -> None:
    found = difference(built(tmp_path, "left"), built(tmp_path, "right", store=STORE.replace(was, becomes)))
    assert found.likeness is Likeness.CONSTANTS
    assert changed(found) == [function] and found.changes[0].constants_alone


def test_a_text_that_is_copied_by_instructions_is_code(tmp_path: Path) -> None:
    """gcc puts so short a text into the instructions that copy it."""
    right = built(tmp_path, "right", store=STORE.replace("the transaction", "the transactioN"))
    found = difference(built(tmp_path, "left"), right)
    assert (found.likeness, changed(found)) == (Likeness.DIFFERENT, ["step"])


@pytest.mark.parametrize(
    ("was", "becomes", "name"), [("16384", "16385", "sizes"), ("commit", "comfit", "names")]
)
def test_a_named_constant_is_found_by_its_name(tmp_path: Path, was: str, becomes: str, name: str) -> None:
    found = difference(built(tmp_path, "left"), built(tmp_path, "right", store=STORE.replace(was, becomes)))
    assert (found.likeness, found.changed_data, changed(found)) == (Likeness.CONSTANTS, (name,), [])


def test_another_case_of_a_switch_is_found_in_its_table(tmp_path: Path) -> None:
    swapped = STORE.replace("case 2: counters", "case X: counters").replace("case 4:", "case 2:")
    right = built(tmp_path, "right", store=swapped.replace("case X:", "case 4:"))
    assert changed(difference(built(tmp_path, "left"), right)) == ["step"]


def test_another_thread_local_variable_is_another_code(tmp_path: Path) -> None:
    other, further = STORE.replace("depth++", "width++"), STORE.replace("int depth", "int first, depth")
    left = built(tmp_path, "left", program=True, main=MAIN, store=STORE)
    right = built(tmp_path, "right", program=True, main=MAIN, store=other)
    moved = built(tmp_path, "moved", program=True, main=MAIN, store=further)
    assert changed(difference(left, right)) == ["step"]
    assert changed(difference(left, moved)) == []


def test_the_first_value_of_a_thread_local_variable_is_compared(tmp_path: Path) -> None:
    texts = [
        STORE.replace("int depth, width;", f"int depth = {value}; __thread const char *said = {text};")
        .replace("width", "depth")
        for value, text in ((1, '"yes"'), (2, '"yes"'), (1, '"no"'))
    ]  # fmt: skip
    first, other, said = (
        built(tmp_path, name, store=text)
        for name, text in zip(("first", "other", "said"), texts, strict=True)
    )
    for changed_build, name in ((other, "depth"), (said, "said")):
        found = difference(first, changed_build)
        assert (found.likeness, found.changed_data) == (Likeness.CONSTANTS, (name,)), changed(found)


BARE = r"""
asm(".text\n.p2align 4\n%smovl $%d, %%eax\nret\n");
int after(int number) { return number * 3; }
"""
LABEL = r".globl bare\n.type bare, @function\nbare:\n"


@pytest.mark.parametrize("label", ["", LABEL], ids=["nameless", "without a size"])
def test_code_that_no_function_holds_is_compared(tmp_path: Path, label: str) -> None:
    left, right = (built(tmp_path, f"of {number}", bare=BARE % (label, number)) for number in (1, 2))
    found = difference(left, right)
    assert found.functions.equal >= 1
    # What has no label goes with the one before it, which is one of the C library's start code.
    [name] = changed(found)
    assert name == "bare" if label else name not in {"bare", "after"}


def test_a_label_is_found_wherever_it_is_linked(tmp_path: Path) -> None:
    bare = BARE % (LABEL, 1)
    left = built(tmp_path, "left", store=STORE, bare=bare)
    found = difference(left, built(tmp_path, "right", bare=bare, store=STORE))
    assert found.likeness is Likeness.INERT, (changed(found), found.functions)
    assert found.moved >= 3


def test_what_did_not_move_is_told_from_what_did(tmp_path: Path) -> None:
    left = built(tmp_path, "left")
    assert difference(left, built(tmp_path, "same", "-Wall")).moved == 0
    assert difference(left, built(tmp_path, "moved", "-falign-functions=256")).moved >= 2


def test_other_protections_are_not_inert(tmp_path: Path) -> None:
    left = built(tmp_path, "left", "-Wl,-z,relro,-z,now")
    found = difference(left, built(tmp_path, "right", "-Wl,-z,norelro,-z,lazy"))
    assert found.likeness is Likeness.CONSTANTS and changed(found) == [] and found.data.all_equal


def test_another_optimisation_changes_functions_and_their_size(tmp_path: Path) -> None:
    found = difference(built(tmp_path, "left", "-Os"), built(tmp_path, "right", "-O3"))
    assert found.likeness is Likeness.DIFFERENT and "hashed" in changed(found)
    assert found.right.code_bytes > found.left.code_bytes


def test_parts_and_copies_stand_under_the_name_of_the_source(tmp_path: Path) -> None:
    source = STORE.replace(
        "int step(", "__attribute__((cold)) void gone(void) { __builtin_trap(); }\nint step("
    )
    source = source.replace("default: return -1;", "default: gone(); return -1;")
    found = difference(
        built(tmp_path, "left", "-fno-reorder-blocks-and-partition", store=source),
        built(tmp_path, "right", "-flto", store=source),
    )
    names = {function.name for side in (found.changes,) for function in side}
    assert not any("." in name for name in names)
    assert found.functions.only_left == found.functions.only_right == 0


def test_a_stripped_build_is_compared_by_the_ranges_of_its_unwinder(tmp_path: Path) -> None:
    left = stripped(built(tmp_path, "left", "-fvisibility=hidden"))
    right = built(tmp_path, "right", "-fvisibility=hidden", earlier=EARLIER, store=STORE)
    found = difference(left, right)
    assert not found.left.named and not found.right.named, "the names of one side alone would tell nothing"
    assert found.functions.equal >= 3 and found.functions.only_left == 0
    assert found.functions.only_right == 2
    assert difference(left, left).likeness is Likeness.INERT


def test_a_build_tells_of_its_instruction_set(tmp_path: Path) -> None:
    generic = read_code(built(tmp_path, "generic", earlier=EARLIER)).binary
    assert generic.extensions == (), "gcc writes `rep bsf` for every CPU, which one with BMI1 reads as tzcnt"
    wide = read_code(built(tmp_path, "wide", "-O3", "-march=x86-64-v3", store=STORE, earlier=EARLIER)).binary
    used = {extension.name: extension for extension in wide.extensions}
    assert used["AVX"].instructions >= used["AVX"].functions >= 1
    assert set(used["AVX"].examples) <= {"scaled", "hashed", "step", "bits", "earlier"}


def test_a_build_tells_of_its_compiler_flags_and_hardening(tmp_path: Path) -> None:
    hard = ("-fstack-protector-all", "-fcf-protection=full", "-Wl,-z,relro,-z,now", "-grecord-gcc-switches")
    # Without the start code, because a protection counts only where all parts of a build have it.
    first = read_code(built(tmp_path, "hard", *hard, "-g", "-nostartfiles", "-Wl,--build-id")).binary
    assert first.build_id and any("GCC" in compiler for compiler in first.compilers)
    assert any("-fstack-protector-all" in producer and "-O2" in producer for producer in first.producers)
    assert first.kind is ElfKind.LIBRARY and "libc.so.6" in first.libraries
    assert first.hardening.relro is Relro.FULL and first.hardening.stack_protector
    assert first.hardening.branch_tracking and first.hardening.shadow_stack
    assert first.hardening.position_independent and not first.hardening.executable_stack

    soft = ("-fno-stack-protector", "-fcf-protection=none", "-Wl,-z,norelro", "-z", "execstack")
    second = read_code(built(tmp_path, "soft", *soft, "-Wl,--build-id=none")).binary
    assert second.build_id == "" and second.producers == ()
    assert second.hardening.relro is Relro.NONE and not second.hardening.stack_protector
    assert second.hardening.executable_stack and not second.hardening.shadow_stack


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"#!/bin/sh\n", "no whole ELF file"),
        (b"", "no whole ELF file"),
        (b"\x7fELF\x02\x01", "no whole ELF file"),
    ],
)
def test_what_is_no_build_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_code(path)


def test_an_object_file_a_folder_and_another_machine_are_refused(tmp_path: Path) -> None:
    path = built(tmp_path, "build")
    with pytest.raises(UserError, match="cannot be read"):
        read_code(tmp_path)
    with pytest.raises(UserError, match="cannot be read"):
        read_code(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is not linked"):
        read_code(built(tmp_path, "object", "-c", program=True))
    content = bytearray(path.read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    path.write_bytes(content)
    with pytest.raises(UserError, match="is built for AArch64, and Dyno reads code for x86-64 alone"):
        read_code(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("whole"), "build", "-g")


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), cut=st.booleans())
def test_a_damaged_file_gives_an_error_and_no_fault(whole: Path, seed: int, cut: bool) -> None:
    chance = random.Random(seed)
    content = bytearray(whole.read_bytes())
    if cut:
        del content[chance.randrange(len(content)) :]
    for _ in range(chance.randrange(1, 9) if content else 0):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path = whole.with_name("damaged")
    path.write_bytes(content)
    try:
        read_code(path)
    except UserError as refused:
        assert refused.hint


def test_a_program_names_its_c_library() -> None:
    assert "libc.so.6" in needed_libraries(Path(sys.executable))


def test_a_file_that_is_no_program_is_told(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    with pytest.raises(DynoError, match="is no program"):
        needed_libraries(text)


def test_a_name_of_another_language_is_written_as_there() -> None:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        pytest.skip(f"needs {LIBRARY}: apt install libstdc++6")
    assert source_name("_ZN3THD5resetEv.part.0") == "THD::reset()"
    assert source_name("_ZN3THDC1Eb") == source_name("_ZN3THDC2Eb"), "two copies of one constructor"
    assert source_name("_Zno name") == "_Zno name"
    assert source_name("scan.cold") == "scan"
