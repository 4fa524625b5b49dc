"""The studies that come with Dyno, and the files that they refer to.

A wheel carries them within the package; a clone of the repository has them at its root.
"""

from __future__ import annotations

import re
from pathlib import Path

import dbdyno
from dbdyno.errors import UserError
from dbdyno.frozen import ENGINE_FACTOR, Frozen
from dbdyno.study.document import values_of
from dbdyno.study.values import nearest

STUDIES = "studies"
DEMO = "quickstart"
_OUTSIDE = re.compile(r"(?<=[\s\"'])\.\./([\w./-]+)")
"""A file that a study refers to, which lies beside the folder of the studies."""


class Example(Frozen):
    """A study that comes with Dyno: what it is called, what it asks, and of which engine or engines."""

    name: str
    title: str
    engine: str


def root() -> Path:
    """The folder that holds the studies, and all that they refer to below it."""
    package = Path(dbdyno.__file__).parent
    tree = package.parent.parent
    # Of a clone its own files, because what its last build carried may be older.
    return tree if (tree / "pyproject.toml").is_file() else package / "examples"


def examples() -> list[Example]:
    """Each study that comes with Dyno, by name. Raises UserError where none came along."""
    return [_example(path) for path in _paths().values()]


def study_of(name: str) -> Path:
    """The file of the study of this name. Raises UserError where there is none."""
    paths = _paths()
    if (found := paths.get(name.removesuffix(".toml"))) is None:
        raise UserError(f"no study that comes with Dyno is called {name!r}", nearest(name, paths))
    return found


def files(name: str) -> dict[str, str]:
    """The text of the study of this name and of each file that it refers to, by the path from the folder that
    they are written into. Raises UserError where there is no such study."""
    path = study_of(name)
    text = path.read_text(encoding="utf-8")
    referred = {
        within: (root() / within).read_text(encoding="utf-8")
        for within in sorted(set(_OUTSIDE.findall(text)))
    }
    return {path.name: _OUTSIDE.sub(r"\1", text)} | referred


def _paths() -> dict[str, Path]:
    """The files of the studies by name. Raises UserError where there are none."""
    folder = root() / STUDIES
    found = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    if not found:
        raise UserError(
            f"no studies came with this Dyno: {folder} holds none",
            "install the wheel again, or run Dyno from a clone of its repository",
        )
    return found


def _example(path: Path) -> Example:
    asked = values_of(path.read_text(encoding="utf-8"))
    # Engines that are compared stand among the factors.
    engines = asked.get("factors", {}).get(ENGINE_FACTOR) or [asked["engine"]]
    named = [engine["name"] if isinstance(engine, dict) else engine for engine in engines]
    return Example(name=path.stem, title=asked["title"], engine=", ".join(named))
