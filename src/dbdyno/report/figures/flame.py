"""The boxes of flame graphs (B. Gregg, The Flame Graph, Communications of the ACM 59(6), 2016, 48-57).

A box is a function, on top of its caller; its width is the CPU time per operation with all that it calls.
With two variants, boxes are coloured by what they gained or lost against the other one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dbdyno.analyse.profile import KERNEL_MARK, Profile
from dbdyno.records.metrics import number_text
from dbdyno.report.words import numbers, safe

WIDTH, ROW = 1200.0, 17.0
NARROWEST = 0.0004
"""Boxes narrower than this share of the whole are left out: half a pixel."""
LETTER = 6.7
"""Pixels of a letter of the boxes' font."""


@dataclass
class CallNode:
    """One function in one place of the tree of calls."""

    us: float = 0.0
    children: dict[str, CallNode] = field(default_factory=dict)


@dataclass(frozen=True)
class Box:
    """One box to draw: shares of the width, depth from the root, its tooltip and its colour."""

    name: str
    left: float
    width: float
    depth: int
    tip: str
    kind: str
    strength: float

    @property
    def label(self) -> str:
        """As much of the name as the box has room for."""
        letters = int((self.width * WIDTH - 6.0) / LETTER)
        if letters >= len(self.name):
            return self.name
        return f"{self.name[: letters - 1]}…" if letters > 3 else ""


def graphs(profiles: Sequence[Profile]) -> list[tuple[Profile, list[Box]]]:
    """Each profile with its boxes; of two, coloured by their difference."""
    return [
        (each, _boxes(each, profiles[1 - index] if len(profiles) == 2 else None))
        for index, each in enumerate(profiles)
    ]


def tree(profile: Profile) -> CallNode:
    """All stacks of a profile, put together from the root."""
    root = CallNode()
    for stack in profile.stacks:
        node = root
        node.us += stack.us
        for name in stack.frames:
            node = node.children.setdefault(name, CallNode())
            node.us += stack.us
    return root


def _boxes(profile: Profile, other: Profile | None) -> list[Box]:
    root = tree(profile)
    opposite = tree(other) if other else None
    # Colours are strongest where the difference is a quarter of the larger variant's whole.
    full = 0.25 * max(profile.cpu_us_per_op, other.cpu_us_per_op if other else 0.0)
    return list(_laid_out("all", root, opposite, 0.0, 0, root.us, full if other else 0.0))


def _laid_out(
    name: str, node: CallNode, opposite: CallNode | None, left: float, depth: int, whole: float, full: float
) -> Iterable[Box]:
    width = node.us / whole
    if width < NARROWEST:
        return
    kind, strength = _colour(name, node, opposite, full)
    tip = f"{name}: {number_text(node.us)} us per operation, {numbers.share_text(width, digits=3)}"
    if full:
        tip += f"; the other variant {number_text(opposite.us if opposite else 0.0)} us"
    yield Box(safe.clean(name), left, width, depth, safe.clean(tip), kind, strength)
    for child_name in sorted(node.children):
        child = node.children[child_name]
        across = opposite.children.get(child_name) if opposite else None
        yield from _laid_out(child_name, child, across, left, depth + 1, whole, full)
        left += child.us / whole


def _colour(name: str, node: CallNode, opposite: CallNode | None, full: float) -> tuple[str, float]:
    """What the box is painted with, and how strongly: the difference, else who the function belongs to."""
    if full:
        more = node.us - (opposite.us if opposite else 0.0)
        return ("more" if more > 0.0 else "less"), 0.7 * min(1.0, abs(more) / full)
    shade = zlib.crc32(name.encode()) % 40 / 100.0
    kind = "kernel" if name.endswith(KERNEL_MARK) else "unknown" if name.startswith("[") else "user"
    return kind, 0.45 + shade
