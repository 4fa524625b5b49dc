"""A build beside another one: their code, and all else that a server can load. Each pair is compared once,
and what was found is kept with the build."""

from __future__ import annotations

from filecmp import cmp
from pathlib import Path

from pydantic import ValidationError

from dbdyno.analyse.code import compare_code
from dbdyno.frozen import Frozen
from dbdyno.host.cache import keep_beside
from dbdyno.obtain.source.making import PREFIX, account_of
from dbdyno.obtain.source.recipe import Recipe
from dbdyno.records.binary import CodeBeside

METHOD = 3
"""Rises when builds are compared in another way: what was kept is then compared again."""
NOT_LOADED = ("*.a", "*.h", "*.la", "*.o", "*.pc", "Makefile*")
"""Files of a prefix that other builds read, and no server. They hold flags and times."""


class _Kept(Frozen):
    method: int
    code: CodeBeside


def code_beside(build: Path, recipe: Recipe, against: Path, recipe_against: Recipe) -> CodeBeside:
    """How the program in the folder of a build, and the files beside it, differ from those of another build.
    Raises UserError where one of the two programs cannot be read."""
    place = build / f"beside-{account_of(against).key}.json"
    kept = _kept(place)
    if kept is None:
        # Here, because a run without builds needs no disassembler.
        from dbdyno.obtain.binary import read_pair

        ours, theirs = build / PREFIX, against / PREFIX
        programs = (theirs / recipe_against.program).resolve(), (ours / recipe.program).resolve()
        found = compare_code(*read_pair(*programs)).beside
        kept = found.but(
            other_files=_differing(_loadable(ours, programs[1]), _loadable(theirs, programs[0])),
            other_environment=recipe.run_environment != recipe_against.run_environment,
        )
        keep_beside(place, _Kept(method=METHOD, code=kept).model_dump_json(indent=1) + "\n")
    return kept


def _loadable(prefix: Path, program: Path) -> dict[Path, Path]:
    """The files of a prefix beside its program that a server can load, by their place below the prefix."""
    return {
        file.relative_to(prefix): file
        for file in prefix.rglob("*")
        if (file.is_file() or file.is_symlink()) and not any(map(file.match, NOT_LOADED))
        if file.resolve() != program
    }


def _differing(ours: dict[Path, Path], theirs: dict[Path, Path]) -> int:
    """How many files are not the same on both sides, byte for byte, or are on one side alone."""
    both = ours.keys() & theirs.keys()
    alone = len(ours) + len(theirs) - 2 * len(both)
    return alone + sum(not _equal(ours[place], theirs[place]) for place in both)


def _equal(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return cmp(one, other, shallow=False)


def _kept(place: Path) -> CodeBeside | None:
    """What was kept; None where nothing was, or where another method found it."""
    try:
        found = _Kept.model_validate_json(place.read_text())
    except (OSError, ValidationError):
        return None
    return found.code if found.method == METHOD else None
