"""Names without what compilers and linkers add."""

from __future__ import annotations

import ctypes

import pytest

from dbdyno.obtain.binary.names import LIBRARY, base_name, source_name


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("scan", "scan"),
        ("scan.cold", "scan"),
        ("scan.part.0", "scan"),
        ("scan.constprop.1.isra.0.cold", "scan"),
        ("scan.lto_priv.12", "scan"),
        ("scan.llvm.8031932801", "scan"),
        ("scan.cold.1", "scan"),
        ("buffer.3", "buffer"),
        ("scan.avx2", "scan.avx2"),
        ("crc32.avx2.0", "crc32.avx2"),
        (".L.str", ".L.str"),
        ("_ZN3THD5resetEv.part.0", "_ZN3THD5resetEv"),
        (".3", ".3"),
    ],
)
def test_the_name_that_the_source_gave(name: str, base: str) -> None:
    assert base_name(name) == base


def test_a_name_of_another_language_is_written_as_there() -> None:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        pytest.skip(f"needs {LIBRARY}: apt install libstdc++6")
    assert source_name("_ZN3THD5resetEv.part.0") == "THD::reset()"
    assert source_name("_ZN3THDC1Eb") == source_name("_ZN3THDC2Eb"), "two copies of one constructor"
    assert source_name("_Zno name") == "_Zno name"
    assert source_name("scan.cold") == "scan"
