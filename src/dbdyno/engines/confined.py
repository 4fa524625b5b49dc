"""Which settings let a server reach beyond the folders that Dyno gives it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from dbdyno.engines.values import as_text
from dbdyno.frozen import Level

_WORD = re.compile(r"""[^\s,;:='"()|<>]+""")
"""A word of a level: of a list of files, of a statement, of `NAME=PATH`."""
NO_PROGRAM = (
    "leave the setting out, because no option allows a program: nobody knows what it writes. "
    "To measure with it, start the server yourself and drive it with `dyno load`"
)


@dataclass(frozen=True)
class Reach:
    """Where a level leads, and what the study's user can do."""

    reason: str
    remedy: str


def reach(
    name: str, level: Level, confined: Mapping[str, Collection[str]], allowed: Collection[Path] = ()
) -> Reach | None:
    """What a level makes the server write, read or run outside of its own folders; None where it does not.

    `confined` names the settings that do so without naming a path, with the levels that do not. Files and
    folders in `allowed`, and all below those, are as good as the server's own.
    """
    text = as_text(level)
    kept = confined.get(name)
    if kept is not None and text.lower() not in {one.lower() for one in kept}:
        named = " or ".join(repr(one) for one in kept)
        told = f"{text!r} lets the server run a program or open files of the host; allowed is {named}"
        return Reach(told, NO_PROGRAM)
    if "$(" in text or "${" in text:
        told = f"{text!r} has a variable that can lead outside of the server's own folder"
        return Reach(told, "write the file's name without a variable, or leave the setting out")
    for word in _WORD.finditer(text):
        if _is_outside(word[0]) and not _is_allowed(text, word.start(), allowed):
            return Reach(f"{word[0]!r} leads outside of the server's own folder", _remedy(word[0], allowed))
    return None


def _is_outside(word: str) -> bool:
    """A path from the root or a home, or one that climbs. A slash alone is a sign and no path."""
    return re.match(r"/.|~\w*(/|$)", word) is not None or _climbs(word)


def _climbs(word: str) -> bool:
    return ".." in word.split("/")


def _is_allowed(text: str, begin: int, allowed: Collection[Path]) -> bool:
    """Whether the path that begins there is allowed wherever it ends: only the server knows whether `/a b:c`
    is one path or three words."""
    paths = [text[begin : word.end()] for word in _WORD.finditer(text, begin)]
    return all(_is_below(path, allowed) for path in paths)


def _is_below(path: str, allowed: Collection[Path]) -> bool:
    # A link that lies in an allowed folder may lead anywhere.
    return (
        path.startswith("/")
        and not _climbs(path)
        and any(Path(os.path.realpath(path)).is_relative_to(one) for one in allowed)
    )


def _remedy(word: str, allowed: Collection[Path]) -> str:
    within = "name a file within the server's own folder, or leave the setting out"
    if not word.startswith("/") or _climbs(word):
        return f"{within}; --allow-path can allow a path that is written from the root, without `..`"
    if _is_below(word, allowed):
        folder = Path(word).parent
        return f"more follows the path, which may belong to its name: allow its folder, --allow-path {folder}"
    return f"{within}; to let the server write and read there: --allow-path {word}"
