"""The tracer that holds a plan against what a run writes sees each way to write."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.host.written import undeclared, watched
from tests.needs import on_machine

pytestmark = pytest.mark.skipif(on_machine("strace") is None, reason="strace is not installed")

WAYS = """
import os, subprocess
open("opened", "w").close()
os.mkdir("made")
os.rename("opened", "renamed")
os.symlink("/etc/passwd", "link")
os.chdir("made")
child = os.fork()
if child == 0:
    open("of a child", "a").close()
    os._exit(0)
os.waitpid(child, 0)
subprocess.run(["sh", "-c", "cd .. && echo x >by-a-program"], check=True)
os.unlink("of a child")
try:
    open("/nowhere/refused", "w")
except OSError:
    pass
open("../renamed").close()
"""


def test_each_way_to_write_is_seen_and_reading_is_not(tmp_path: Path) -> None:
    done, paths = watched([sys.executable, "-I", "-c", WAYS], {"cwd": tmp_path, "env": dict(os.environ)})
    assert done.returncode == 0, done.stderr
    names = ["opened", "renamed", "link", "made", "made/of a child", "by-a-program"]
    assert sorted(path for path in paths if not path.startswith("/dev")) == sorted(
        f"{tmp_path}/{name}" for name in names
    )


def test_what_no_place_holds_is_told() -> None:
    places = ["/srv/me/cache", "/dev/loop*", "/sys/block/*/queue/scheduler"]
    within = ["/srv/me/cache/a", "/srv/me", "/dev/loop7", "/sys/block/sda/queue/scheduler", "/dev/null"]
    outside = ["/srv/me/cached", "/etc/passwd", "/srv/me/other", "/sys/block/sda/queue/nr_requests"]
    assert undeclared([*within, *outside], places) == sorted(outside)
