"""The base of every noun."""

from __future__ import annotations

import subprocess
import sys


def test_a_noun_that_nobody_uses_is_not_built() -> None:
    """Building its validation takes longer than reading its class, and a command uses few of the nouns."""
    code = (
        "from dbdyno.records.record import Check, Record\n"
        "Check(name='balances', holds=True)\n"
        "print(Check.__pydantic_complete__, Record.__pydantic_complete__)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "False"]
