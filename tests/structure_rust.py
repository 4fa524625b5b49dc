"""The rooms, arrows and circles of the driver's Rust modules, read off its `use` statements and paths.

A module is a file. The rooms are the files and folders right below `crates/driver/src`. An arrow goes from a
module to the module that defines what it names: a re-export is followed to its source. A folder and its
`mod.rs` are one, so there is no arrow between a module and the folder that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "crates" / "driver" / "src"

Arrows = Mapping[str, frozenset[str]]
"""From each module to those that it names."""

_COMMENT = re.compile(r"//[^\n]*")
_TEXT = re.compile(r'r#".*?"#|b?"(?:\\.|[^"\\])*"', re.DOTALL)
_TESTS = re.compile(r"\n#\[cfg\(test\)\]\s*mod \w+ \{.*\Z", re.DOTALL)
_USE = re.compile(r"(?P<public>\bpub(?:\([^)]*\))? )?\buse (?P<tree>[^;]+);")
_PATH = re.compile(r"(?<![\w:])(?:crate|super|self)(?:::\w+)+")
_LEADING = re.compile(r"(?<![\w:.])([a-z]\w*)::")


def rust_arrows(source: Path = SOURCE) -> Arrows:
    """Every module of the crate at `source`, by its path (`run::client`; the crate's root is `crate`)."""
    files = {_module(path, source): _code(path) for path in sorted(source.rglob("*.rs"))}
    passed_on = {name: dict(_passed_on(name, code, files)) for name, code in files.items()}
    arrows = {}
    for name, code in files.items():
        named = (_definer(path, files, passed_on) for path in _named(name, code, files))
        arrows[name] = frozenset(found for found in named if found and not _one_holds_the_other(found, name))
    return arrows


def rooms(arrows: Arrows) -> Arrows:
    """The same between rooms: `run::client` stands in the room `run`."""
    between: dict[str, set[str]] = {}
    for name, targets in arrows.items():
        room = name.split("::")[0]
        between.setdefault(room, set()).update({target.split("::")[0] for target in targets} - {room})
    return {room: frozenset(targets) for room, targets in between.items()}


def circles(arrows: Arrows) -> list[list[str]]:
    """Groups of modules of which each leads to all others, sorted; none where there is no circle."""
    reach = {name: _reachable(name, arrows) for name in arrows}
    groups = {tuple(sorted(other for other in reach[name] if name in reach[other])) for name in arrows}
    return sorted(list(group) for group in groups if group)


def _reachable(name: str, arrows: Arrows) -> set[str]:
    seen: set[str] = set()
    ahead = list(arrows[name])
    while ahead:
        one = ahead.pop()
        if one not in seen:
            seen.add(one)
            ahead += arrows.get(one, ())
    return seen


def _module(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    parts = parts[:-1] if parts[-1] in {"mod", "lib"} else parts
    return "::".join(parts) or "crate"


def _code(path: Path) -> str:
    """Without comments, texts and the module's own tests, in which names prove nothing."""
    text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
    return _TESTS.sub("", _TEXT.sub('""', text))


def _passed_on(name: str, code: str, files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What a module re-exports: the name, and the path that it stands for."""
    for use in _USE.finditer(code):
        if use["public"]:
            for path, alias in _leaves(use["tree"]):
                yield alias, _absolute(path, name, files)


def _named(name: str, code: str, files: Mapping[str, str]) -> Iterator[str]:
    """The absolute paths that a module names."""
    for use in _USE.finditer(code):
        for path, _ in _leaves(use["tree"]):
            yield _absolute(path, name, files)
    rest = _USE.sub("", code)
    for found in _PATH.finditer(rest):
        yield _absolute(found[0], name, files)
    for leading in set(_LEADING.findall(rest)):
        yield _absolute(f"{leading}::", name, files).removesuffix("::")


def _one_holds_the_other(left: str, right: str) -> bool:
    return f"{left}::".startswith(f"{right}::") or f"{right}::".startswith(f"{left}::")


def _leaves(tree: str) -> Iterator[tuple[str, str]]:
    """`a::{b, c as d}` -> (`a::b`, `b`), (`a::c`, `d`)"""
    tree = tree.strip()
    head, brace, tail = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        path = path.strip().removesuffix("::self")
        yield path, alias.strip() or path.rsplit("::", 1)[-1]
        return
    for part in _split(tail.rsplit("}", 1)[0]):
        yield from _leaves(head + part)


def _split(parts: str) -> Iterator[str]:
    depth, begin = 0, 0
    for index, character in enumerate(parts):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield parts[begin:index].strip()
            begin = index + 1
    if last := parts[begin:].strip():
        yield last


def _absolute(path: str, name: str, files: Mapping[str, str]) -> str:
    """A path from the crate's root, with `crate` in front; one of another crate stays as it is."""
    own = ["crate"] if name == "crate" else ["crate", *name.split("::")]
    parts = path.split("::")
    if parts[0] == "self":
        return "::".join(own + parts[1:])
    if parts[0] == "super":
        while parts and parts[0] == "super":
            own, parts = own[:-1], parts[1:]
        return "::".join(own + parts)
    child = "::".join([*own[1:], parts[0]])
    return "::".join(own + parts) if child in files else path


def _definer(path: str, files: Mapping[str, str], passed_on: Mapping[str, Mapping[str, str]]) -> str | None:
    """The module that defines what `path` names; None where that is no module of this crate."""
    if not path.startswith("crate::"):
        return None
    parts = path.split("::")[1:]
    length = next(n for n in range(len(parts), -1, -1) if n == 0 or "::".join(parts[:n]) in files)
    module = "::".join(parts[:length]) or "crate"
    source = passed_on[module].get(parts[length]) if length < len(parts) else None
    return _definer(source, files, passed_on) if source and source != path else module
