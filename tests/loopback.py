"""Addresses for servers of the tests, which listen on the port that clients expect."""

from __future__ import annotations

import secrets


def drawn_address() -> str:
    """One of the sixteen million addresses of the loopback interface, so that two runs of the tests do not
    meet."""
    return ".".join(["127", *(str(1 + secrets.randbelow(254)) for _ in range(3))])
