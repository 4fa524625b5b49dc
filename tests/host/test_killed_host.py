"""kill -9 anywhere: afterwards no mount, loop device, group, process, huge page or value differs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import IS_ROOT

STRIDE = 2
"""Every point takes a second, so the points are shared by two tests, each within the time of one."""


@pytest.mark.skipif(not IS_ROOT, reason="only root can change the host")
@pytest.mark.parametrize("first", range(1, STRIDE + 1))
def test_a_run_killed_at_any_fault_point_leaves_the_host_as_it_was(first: int, homes: Path) -> None:
    arguments = ["-m", "tests.host.killed_host", str(STRIDE), str(first)]
    print("again with: python", *arguments)
    ended = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=250, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    counted = json.loads(ended.stdout.splitlines()[-1])
    assert counted["points"] >= 40
    assert counted["first"] == first
    assert counted["tried"] >= counted["points"] // STRIDE
