"""kill -9 anywhere: afterwards no mount, loop device, group, process, huge page or value differs."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

STRIDE = 6
"""Every point takes a second; all of them: `python -m tests.host.killed_host` in a home of your own."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the host")
def test_a_run_killed_at_any_fault_point_leaves_the_host_as_it_was(homes: Path) -> None:
    # Each time another first point, so that runs of this test come to all of them.
    first = random.SystemRandom().randint(1, STRIDE)
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
