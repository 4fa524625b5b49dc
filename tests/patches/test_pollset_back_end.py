"""The thread pool's pollset back end over the shim: as it is, and made wrong."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from dbdyno.obtain.source import tree
from tests.patches.mariadb import PATCHES_TO_10_11, PATCHES_TO_11_8
from tests.patches.programs import COMPILER, PROGRAMS, SHIM, compiled, needs_compiler, started

pytestmark = needs_compiler

BACK_END = "sql/threadpool_pollset.h"
THREADS, CLIENTS, REQUESTS = 4, 8, 2000


def new_file(patch_name: str, name: str, patches: Path = PATCHES_TO_11_8) -> str:
    """The text of a file that a patch creates."""
    text = (patches / patch_name).read_text()
    body = text.split(f"\n+++ b/{name}\n", 1)[1].split("\ndiff --git", 1)[0]
    return "".join(line[1:] + "\n" for line in body.splitlines() if line.startswith("+"))


def stress(folder: Path, back_end: str, *options: str) -> Path:
    (folder / Path(BACK_END).name).write_text(back_end)
    return compiled(PROGRAMS / "pollset_stress.cc", folder, *options)


def pressed(
    program: Path, requests: int = REQUESTS, clients: int = CLIENTS, **surroundings: str
) -> subprocess.CompletedProcess[str]:
    arguments = (str(THREADS), str(clients), str(requests))
    return started(program, *arguments, POLLSET_SHIM_ONE_SHOT="1", **surroundings)


@pytest.mark.parametrize(
    ("patch_name", "name"),
    [
        ("pollset-back-end.patch", BACK_END),
        ("pollset-shim.patch", "sql/pollset_shim/pollset.cc"),
        ("pollset-shim.patch", "sql/pollset_shim/sys/pollset.h"),
    ],
)
def test_both_versions_get_the_same_files(patch_name: str, name: str) -> None:
    """So that what the tests say of one holds for the other."""
    assert new_file(patch_name, name) == new_file(patch_name, name, PATCHES_TO_10_11) != ""


ALL_WELL = f"answered {CLIENTS * REQUESTS}, delivered twice 0, not readable 0, refused 0, lost 0\n"


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With -O3, because the published race showed only there."""
    text = new_file("pollset-back-end.patch", BACK_END)
    return stress(tmp_path_factory.mktemp("right"), text, "-O3", "-DNDEBUG")


@pytest.mark.parametrize("changes", ["wait", "unseen", "seen"])
def test_every_request_is_delivered_once_whatever_a_blocked_poller_sees(right: Path, changes: str) -> None:
    done = pressed(right, POLLSET_SHIM_CHANGES=changes)
    assert (done.returncode, done.stdout) == (0, ALL_WELL), done.stderr


def test_the_back_end_has_no_data_race(tmp_path: Path) -> None:
    (tmp_path / "empty.cc").write_text("int main() { return 0; }\n")
    tried = subprocess.run(
        [COMPILER, "-fsanitize=thread", "empty.cc", "-o", "empty"], cwd=tmp_path, capture_output=True
    )
    if tried.returncode != 0 or started(tmp_path / "empty").returncode != 0:
        pytest.skip("needs a compiler with ThreadSanitizer that runs here")
    text = new_file("pollset-back-end.patch", BACK_END)
    done = pressed(stress(tmp_path, text, "-O1", "-g", "-fsanitize=thread"))
    assert (done.returncode, done.stdout, done.stderr) == (0, ALL_WELL, "")


MUTATIONS = {
    "wakes nobody": ("if (!blocked || woken)\n      return;", "return;", "lost [1-9]|hangs"),
    "deletes nothing": ("    change(deletions, deleted);\n", "", "one-shot is broken"),
    "forgets what it armed": ("additions.push_back(control(PS_ADD, fd));", "", "lost [1-9]"),
    "polls with two threads": (
        "while (inside || disarming)",
        "while (disarming)",
        "one-shot|twice [1-9]|hangs",
    ),
    "changes beside a poller": (
        "    wake();\n    return 0;",
        "    return change(additions.data(), (int) additions.size());",
        "hangs",
    ),
    "takes more than it has room for": (
        "most < MOST ? most :",
        "most < MOST ? most + 1 :",
        "more events than",
    ),
    "closes the set as a descriptor": (
        "pollset_destroy(pollset)",
        "close(pollset)",
        "as if it were a descriptor",
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_back_end_that_is_made_wrong_is_caught(tmp_path: Path, name: str) -> None:
    right, wrong, said = MUTATIONS[name]
    text = new_file("pollset-back-end.patch", BACK_END)
    assert text.count(right) == 1
    program = stress(tmp_path, text.replace(right, wrong), "-O2")
    # Of several clients, the request of another one wakes the thread too, unless all wait at once.
    clients = 1 if name == "wakes nobody" else CLIENTS
    done = pressed(program, clients=clients, POLLSET_SHIM_PATIENCE="5")
    assert done.returncode != 0
    assert re.search(said, done.stdout + done.stderr), done.stdout + done.stderr


def test_the_shims_patch_carries_the_shim() -> None:
    for name in ("pollset.cc", "sys/pollset.h"):
        assert new_file("pollset-shim.patch", f"sql/pollset_shim/{name}") == (SHIM / name).read_text()


def test_the_patches_can_be_read() -> None:
    for name in ("pollset-back-end.patch", "pollset-shim.patch"):
        for patches in (PATCHES_TO_11_8, PATCHES_TO_10_11):
            assert tree.read_patch(patches / name).digest
