"""The pollset shim keeps its claims, and aborts on each misuse."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.patches.programs import PROGRAMS, compiled, needs_compiler, started

pytestmark = needs_compiler

CLAIMS = re.findall(r"CLAIM\((\w+)\)", (PROGRAMS / "pollset_semantics.cc").read_text().split("claims[]")[1])
MISUSES = {
    "misuse_control_of_a_closed_descriptor": "a control block names descriptor [0-9]+, which is closed",
    "misuse_reuse_of_a_member": "was closed and opened again while it was in a pollset",
    "misuse_destroy_with_a_closed_member": "was closed while it was in pollset 0",
    "misuse_destroy_while_polling": "pollset 0 is destroyed while a thread is inside pollset_poll",
    "misuse_use_after_destroy": "pollset 0 was destroyed and is used again",
    "misuse_a_second_report": "reports descriptor [0-9]+ a second time",
    "misuse_a_change_that_waits_for_ever": "has waited 1 s for a thread that is blocked",
}
SURROUNDINGS = {
    "a_closed_member_is_reported_until_it_is_deleted": {"POLLSET_SHIM_STRICT": "0"},
    "a_blocked_poller_does_not_see_a_change": {"POLLSET_SHIM_CHANGES": "unseen"},
    "a_blocked_poller_sees_a_change": {"POLLSET_SHIM_CHANGES": "seen"},
    "misuse_a_second_report": {"POLLSET_SHIM_ONE_SHOT": "1"},
    "misuse_a_change_that_waits_for_ever": {"POLLSET_SHIM_PATIENCE": "1"},
}


@pytest.fixture(scope="module")
def semantics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(PROGRAMS / "pollset_semantics.cc", tmp_path_factory.mktemp("semantics"), "-O2")


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim not in MISUSES])
def test_the_shim_keeps_its_claims(semantics: Path, claim: str) -> None:
    done = started(semantics, claim, **SURROUNDINGS.get(claim, {}))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("misuse", "said"), MISUSES.items())
def test_the_shim_aborts_on_misuse(semantics: Path, misuse: str, said: str) -> None:
    done = started(semantics, misuse, **SURROUNDINGS.get(misuse, {}))
    assert done.returncode < 0
    assert re.search(f"pollset shim: .*{said}", done.stderr), done.stdout + done.stderr
