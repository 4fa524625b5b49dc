"""The rooms of the project in both languages, the arrows between them and their circles.

`python -m tests.structure [ROOT]` prints the figures of the tree at ROOT, this one if it is left out. A room
is a folder or file right below `src/dbdyno` or `crates/driver/src`. An arrow is an import, wherever it stands
in the file: one inside a function or under `TYPE_CHECKING` is one too, and so is what a registry imports when
it is asked, written as "dbdyno.module:attribute".
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dbdyno.host.paths import code_files
from tests.structure_rust import Arrows, circles, rust_arrows
from tests.structure_rust import rooms as rust_rooms

ROOT = Path(__file__).parents[1]
PACKAGE = "dbdyno"
PLACE = re.compile(rf"{PACKAGE}(\.\w+)+:\w+")


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module by its name below the package: `trial.observe.window`. A folder has its own name."""
    package = root / "src" / PACKAGE
    return {name_of(path, package): path for path in code_files(package)}


def name_of(path: Path, package: Path) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    return module.split(".", 1)[0]


@cache
def python_arrows(root: Path = ROOT) -> Arrows:
    """From each module of the package to the modules that it imports."""
    known = modules(root)
    arrows = {}
    for name, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        arrows[name] = frozenset(imported(tree, frozenset(known))) - {name, ""}
    return arrows


def imported(tree: ast.AST, known: frozenset[str]) -> Iterator[str]:
    """The modules among `known` that a file imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and PLACE.fullmatch(str(node.value)):
            names = [str(node.value).replace(":", ".")]
        else:
            continue
        for name in names:
            if name.split(".")[0] == PACKAGE:
                yield _nearest(name.removeprefix(PACKAGE).lstrip("."), known)


IMPORT_IN_TEXT = re.compile(rf"from ({PACKAGE}[\w.]*) import (\w+(?:, \w+)*)")


def absent_imports(text: str, root: Path = ROOT) -> list[str]:
    """What a text imports of the package, in code that no linter reads, though it is not there."""
    found = IMPORT_IN_TEXT.findall(text)
    known = _with_stubs(root) if found else {}
    absent = []
    for module, names in found:
        inside = module.removeprefix(PACKAGE).lstrip(".")
        held = _bound(known[inside]) if inside in known else set()
        wanted = [f"{inside}.{name}".lstrip(".") for name in names.split(", ") if name not in held]
        absent += [f"{PACKAGE}.{name}" for name in wanted if name not in known]
    return absent


@cache
def _with_stubs(root: Path) -> dict[str, Path]:
    package = root / "src" / PACKAGE
    return modules(root) | {name_of(path, package): path for path in package.rglob("*.pyi")}


@cache
def _bound(path: Path) -> frozenset[str]:
    """The names that a module has, whatever binds them."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    return frozenset(found)


def _nearest(name: str, known: frozenset[str]) -> str:
    """The module that holds `name`: `errors.UserError` is held by `errors`."""
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return name if name in known else ""


def python_rooms(arrows: Arrows) -> Arrows:
    """The same between rooms."""
    between: dict[str, set[str]] = {}
    for name, targets in arrows.items():
        room = room_of(name)
        if room:
            between.setdefault(room, set()).update({room_of(target) for target in targets} - {room})
    return {room: frozenset(targets) for room, targets in between.items()}


def figures(language: str, files: Arrows, rooms: Arrows) -> str:
    """Rooms, arrows and circles in lines of text."""
    lines = [
        f"{language}: {len(rooms)} rooms, {sum(map(len, rooms.values()))} arrows between them, "
        f"{len(circles(rooms))} circles; {len(files)} files, {sum(map(len, files.values()))} arrows, "
        f"{len(circles(files))} circles"
    ]
    lines += [f"  {room} -> {', '.join(sorted(targets))}" for room, targets in sorted(rooms.items())]
    lines += [f"  circle of rooms: {', '.join(circle)}" for circle in circles(rooms)]
    lines += [f"  circle of files: {', '.join(circle)}" for circle in circles(files)]
    return "\n".join(lines)


def main(root: Path) -> None:
    python = python_arrows(root)
    print(figures("Python", python, python_rooms(python)))
    rust = rust_arrows(root / "crates" / "driver" / "src")
    print(figures("Rust", rust, rust_rooms(rust)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
