"""A user namespace for a program that refuses to run as root. Files stay root's on the host."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from dbdyno.errors import Blocked
from dbdyno.host.namespaces import CLONE_NEWUSER, map_user, unshare
from dbdyno.host.process import refusal

ACCOUNTS = Path("/etc/passwd")


def step_down(factor: str, program: str) -> tuple[Callable[[], None], ...]:
    """Steps for `before_exec` after which `program` is not root; none when Dyno is not root itself.

    In the namespace Dyno's user has the number of another account of this machine. A change to that account
    would take the right to Dyno's files away. Raises Blocked, for `factor`, where this cannot be done.
    """
    if os.getuid() != 0:
        return ()
    user = _another_user()
    if user is None:
        raise Blocked(
            factor,
            f"{program} refuses to run as root, and {ACCOUNTS} holds no other account",
            "run Dyno as an ordinary user, or add an account: useradd --system dyno",
        )
    step = _entering(user)
    refused = refusal(step)
    if refused:
        reason, hint = _explained(refused)
        raise Blocked(factor, f"{program} refuses to run as root, and {reason}", hint)
    return (step,)


def _another_user() -> int | None:
    """The smallest number above root's of an account. A program may look up its account by the number."""
    try:
        lines = ACCOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    numbers = [fields[2] for line in lines if len(fields := line.split(":")) == 7]
    return min((int(one) for one in numbers if one.isdecimal() and int(one) > 0), default=None)


def _entering(user: int) -> Callable[[], None]:
    def enter() -> None:
        unshare(CLONE_NEWUSER)
        map_user(user, 0, user, 0)

    return enter


def _explained(refused: int) -> tuple[str, str]:
    """Why the kernel refuses a user namespace, and what would allow it (unshare(2))."""
    if refused in (errno.ENOSPC, errno.EUSERS):
        return (
            "this machine has reached its limit of user namespaces",
            "raise it: sysctl user.max_user_namespaces=1000; or run Dyno as an ordinary user",
        )
    if refused == errno.EPERM:
        return (
            "the kernel refuses user namespaces here, as it does in a chroot",
            "run Dyno as an ordinary user, or in a container or after pivot_root instead of in a chroot",
        )
    return f"the kernel offers no user namespace: {os.strerror(refused)}", "run Dyno as an ordinary user"
