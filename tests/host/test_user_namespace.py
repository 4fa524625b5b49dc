"""A program that refuses root runs as another account, and its files stay root's."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from dbdyno.errors import Blocked
from dbdyno.host import namespaces
from dbdyno.host.namespaces import step_down
from dbdyno.host.process import confine
from tests.needs import IS_ROOT, skip_blocked

pytestmark = pytest.mark.skipif(not IS_ROOT, reason="an ordinary user is not root already")

WHO = """
import os, pathlib, pwd, sys
pathlib.Path(sys.argv[1]).touch()
print(pwd.getpwuid(os.getuid()).pw_name)
"""


def test_it_runs_as_an_account_that_exists_and_writes_as_root(tmp_path: Path) -> None:
    written = tmp_path / "written"
    try:
        steps = step_down("engine", "PostgreSQL")
    except Blocked as blocked:
        skip_blocked(blocked.message, blocked.hint)
    done = subprocess.run(
        [sys.executable, "-c", WHO, str(written)],
        preexec_fn=confine(before_exec=steps),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() not in ("", "root")
    assert written.stat().st_uid == 0


@pytest.mark.parametrize(
    ("accounts", "user"),
    [
        ("root:x:0:0::/root:/bin/sh\nbin:x:2:2::/bin:\ndaemon:x:1:1::/:\n", 1),
        ("root:x:0:0::/root:/bin/sh\n", None),
        ("+::::::\n# a remark\n\nnobody:x:65534:65534::/:\n", 65534),
    ],
)
def test_the_account_is_one_of_the_machine(
    accounts: str, user: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "ACCOUNTS", tmp_path / "passwd")
    assert namespaces._another_user() is None
    (tmp_path / "passwd").write_text(accounts)
    assert namespaces._another_user() == user


def test_without_another_account_it_is_blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "ACCOUNTS", tmp_path / "nothing")
    with pytest.raises(Blocked, match="no other account") as blocked:
        step_down("engine", "PostgreSQL")
    assert "useradd" in blocked.value.hint


@pytest.mark.parametrize(
    ("refused", "cause", "remedy"),
    [
        (errno.EPERM, "as it does in a chroot", "pivot_root"),
        (errno.ENOSPC, "limit of user namespaces", "sysctl user.max_user_namespaces"),
        (errno.EINVAL, "offers no user namespace", "ordinary user"),
    ],
)
def test_a_refusal_of_the_kernel_is_blocked_with_its_cause(
    refused: int, cause: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "refusal", lambda _step: refused)
    with pytest.raises(Blocked, match=cause) as blocked:
        step_down("engine", "PostgreSQL")
    assert remedy in blocked.value.hint


IN_CHROOT = """
import os, sys
from dbdyno.errors import Blocked
from dbdyno.host.namespaces import step_down
os.chroot(sys.argv[1])
try:
    step_down("engine", "PostgreSQL")
except Blocked as blocked:
    print(blocked.message)
"""


def test_a_chroot_is_named_as_the_cause(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_text("daemon:x:1:1::/:\n")
    command = [sys.executable, "-c", IN_CHROOT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "in a chroot" in done.stdout
