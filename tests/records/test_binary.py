"""Names without what compilers and linkers add."""

from __future__ import annotations

import pytest

from dbdyno.records.binary import base_name


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
        ("THD::reset(int) [clone .part.0] [clone .cold]", "THD::reset(int)"),
    ],
)
def test_the_name_that_the_source_gave(name: str, base: str) -> None:
    assert base_name(name) == base
