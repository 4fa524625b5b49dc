"""Reports of the same records stay the same, byte for byte.

A digest says that a form changed. `python -m tests.report.forms --since HEAD` prints what changed in it. When
words change on purpose, read that, and renew the digests with `--snapshot-update`.
"""

from __future__ import annotations

import hashlib

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.report.cases import masked
from tests.report.forms import ALL, forms_of


@pytest.mark.parametrize("case", ALL)
def test_every_form_is_what_it_was(case: str, snapshot: SnapshotAssertion) -> None:
    digests = {
        ending: hashlib.sha256(masked(text).encode()).hexdigest()[:16]
        for ending, text in forms_of(case).items()
    }
    assert digests == snapshot, "python -m tests.report.forms --since HEAD prints what changed"
