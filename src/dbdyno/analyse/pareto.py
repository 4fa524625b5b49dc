"""What is beaten in two things at once: Pareto's order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Kept = TypeVar("Kept", float, tuple[int, ...])


def is_beaten(own: tuple[float, Kept], others: Iterable[tuple[float, Kept]]) -> bool:
    """Whether another point is as good in both and better in one. More is better. The point itself may be
    among the others."""
    return any(other != own and other[0] >= own[0] and other[1] >= own[1] for other in others)
