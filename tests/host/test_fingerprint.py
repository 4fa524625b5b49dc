"""The fingerprint: plain, stable, and without side effects."""

from __future__ import annotations

import json
import os
from pathlib import Path

from dbdyno.host.fingerprint import core_count, fingerprint


def test_the_fingerprint_is_json_and_names_what_was_measured(homes: Path) -> None:
    found = fingerprint()
    assert json.loads(json.dumps(found)) == found
    assert found["cpu"]["usable_cores"] == core_count() >= 1
    assert found["memory"]["total_bytes"] > 1 << 20
    assert found["kernel"] == os.uname().release
    assert found["data"]["filesystem"]


def test_the_fingerprint_is_the_same_a_moment_later(homes: Path) -> None:
    first, second = fingerprint(), fingerprint()
    for found in (first, second):
        found["data"].pop("free_bytes")
        found["cpu"].pop("frequency_mhz")
    assert first == second
