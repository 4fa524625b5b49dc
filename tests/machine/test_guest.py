"""An archive is read back as the kernel's documentation lays newc out."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from dbdyno.machine.guest import LAST, ImageEntry, archive, programs

FIELDS = 13
NAMES = st.text("abcé€-._ ", min_size=1, max_size=20)


def entries_of(content: bytes) -> Iterator[ImageEntry]:
    """Every entry, the last one included, by the offsets that the format prescribes."""
    at = 0
    while at < len(content):
        assert at % 4 == 0 and content[at : at + 6] == b"070701"
        digits = content[at + 6 : at + 6 + 8 * FIELDS]
        numbers = [int(digits[8 * field : 8 * field + 8], 16) for field in range(FIELDS)]
        name_at = at + 6 + 8 * FIELDS
        name = content[name_at : name_at + numbers[11]]
        assert name.endswith(b"\0")
        data_at = (name_at + numbers[11] + 3) // 4 * 4
        data = content[data_at : data_at + numbers[6]]
        yield ImageEntry(name[:-1].decode(), numbers[1], data, (numbers[9], numbers[10]))
        at = (data_at + numbers[6] + 3) // 4 * 4


@given(st.lists(st.tuples(NAMES, st.binary(max_size=50), st.integers(0, 0o777)), max_size=6))
def test_files_come_back_with_names_modes_and_contents(files: list[tuple[str, bytes, int]]) -> None:
    given_ = [ImageEntry(name, stat.S_IFREG | mode, content) for name, content, mode in files]
    assert list(entries_of(archive(given_))) == [*given_, ImageEntry(LAST, 0)]


def test_devices_have_their_numbers() -> None:
    console = ImageEntry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    assert next(entries_of(archive([console]))) == console


def test_folders_come_before_what_lies_in_them() -> None:
    made = programs({"usr/lib/a.so": b"a", "init": b"b"})
    assert [entry.name for entry in made] == ["usr", "usr/lib", "usr/lib/a.so", "init"]
    assert [stat.S_ISDIR(entry.mode) for entry in made] == [True, True, False, False]
