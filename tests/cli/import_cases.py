"""What the tests of import share with others."""

from __future__ import annotations

from pathlib import Path

import pytest

REPETITIONS = 6


@pytest.fixture
def logs(homes: Path) -> Path:
    """Six logs of each of two sides; `new` does half as much again in the same time."""
    for side, rate in (("old", 100), ("new", 150)):
        (homes / side).mkdir()
        for repetition in range(REPETITIONS):
            _log(homes / side / f"pgbench_log.{repetition + 10}", repetition, rate + repetition % 3)
    return homes


def _log(path: Path, repetition: int, per_s: int) -> None:
    """Eight seconds of one client."""
    start, step = 1_700_000_000 + 100 * repetition, 1_000_000 // per_s
    ends = [number * step for number in range(1, 8 * per_s)]
    lines = [
        f"0 {number} {step - number % 7} 0 {start + end // 1_000_000} {end % 1_000_000}"
        for number, end in enumerate(ends, 1)
    ]
    path.write_text("\n".join(lines) + "\n")
