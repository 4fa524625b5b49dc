"""What a level can give up."""

from __future__ import annotations

from enum import StrEnum


class Promise(StrEnum):
    """What a level can give up for its speed."""

    DURABILITY = "durability"
    INTEGRITY = "integrity"
    SECURITY = "security"
