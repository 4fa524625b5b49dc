"""Names as a programmer writes them."""

from __future__ import annotations

import ctypes

import pytest

from dbdyno.obtain.binary.names import LIBRARY, source_name


def test_a_name_of_another_language_is_written_as_there() -> None:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        pytest.skip(f"needs {LIBRARY}: apt install libstdc++6")
    assert source_name("_ZN3THD5resetEv.part.0") == "THD::reset()"
    assert source_name("_ZN3THDC1Eb") == source_name("_ZN3THDC2Eb"), "two copies of one constructor"
    assert source_name("_Zno name") == "_Zno name"
    assert source_name("scan.cold") == "scan"
