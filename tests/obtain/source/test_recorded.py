"""What `readelf` prints of a binary, as proof of how it was built."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.obtain.source.toolchain import RecordedCommands, in_force, parsed

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
