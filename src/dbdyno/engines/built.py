"""An engine built from its source: from what a study asks to an installation that can be started."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked, DynoError, StudyError, UserError
from dbdyno.frozen import Frozen
from dbdyno.host.once import Tell, silently
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.source import making, package
from dbdyno.obtain.source.build import Made
from dbdyno.obtain.source.making import Materials
from dbdyno.obtain.source.patch import Patch, read_patch
from dbdyno.obtain.source.recipe import Recipe, SourcePackage, read_recipe
from dbdyno.obtain.source.recorded import Recorded, recorded
from dbdyno.obtain.source.toolchain import Toolchain, toolchain, tried
from dbdyno.obtain.source.tree import Source, git_revision, local_tree
from dbdyno.obtain.source.wish import DEBIAN, DEFAULT, NONE, BuildWish, Flags, all_flags
from dbdyno.study.reference import Reference


@dataclass(frozen=True)
class Built:
    """A build that is whole. `program` is the file that the server runs, or the load process holds;
    `recorded` is what that file tells of itself, and `warnings` what the compiler says of the flags."""

    installation: Installation
    wish: BuildWish
    toolchain: Toolchain
    account: Made
    program: Path
    recorded: Recorded
    warnings: tuple[str, ...]


def built(engine: Engine, wish: BuildWish, folder: Path, tell: Tell = silently) -> Built:
    """The build that a study in a folder asks for, made where it is not there yet. Raises BuildFailed,
    Blocked where this machine lacks what it takes, and UserError for a source that is none."""
    materials = materials_of(engine, wish, folder, tell)
    made = making.made(materials, tell)
    prefix = made / making.PREFIX
    program = (prefix / materials.recipe.program).resolve()
    account = making.account_of(made)
    found = engine.obtaining.locate(Reference(engine.name, path=str(program)))
    environment = {
        name: value.replace("{prefix}", str(prefix))
        for name, value in materials.recipe.run_environment.items()
    }
    return Built(
        installation=replace(
            found, origin=f"built from {account.source}: {account.words}", environment=environment
        ),
        wish=wish,
        toolchain=materials.toolchain,
        account=account,
        program=program,
        recorded=recorded(program),
        warnings=tried(materials.toolchain, materials.flags).warnings,
    )


def materials_of(engine: Engine, wish: BuildWish, folder: Path, tell: Tell = silently) -> Materials:
    """What a build is made of. Each source, recipe and patch is looked at once in a process, so that all
    variants of a run are built from the same. Raises like `built`."""
    compiled = _compiled(engine, wish, folder)
    source = _source_here(wish, compiled.recipe, folder) or _fetched(wish, compiled.recipe, folder, tell)
    return compiled.of(source)


_Asked = tuple[Path, str, str, SourcePackage | None]
"""What decides on a source."""


@dataclass(frozen=True)
class _Looks:
    """What this process has looked at already: files by their path, sources by what was asked."""

    recipes: dict[Path, Recipe] = field(default_factory=dict)
    patches: dict[Path, Patch] = field(default_factory=dict)
    sources: dict[_Asked, Source] = field(default_factory=dict)


_looks = _Looks()


class Foreseen(Frozen):
    """What is known of a build before a run. It is `there`, takes about `expected_s`, or cannot be made here
    because of `problem`, which `remedy` would mend."""

    words: str
    variants: tuple[str, ...]
    there: bool = False
    expected_s: float = 0.0
    problem: str = ""
    remedy: str = ""


def foreseen(engine: Engine, wish: BuildWish, folder: Path, variants: tuple[str, ...]) -> Foreseen:
    """Looks at the compiler and at sources on this machine. Fetches nothing, and makes nothing. A build is
    then made of what was seen here."""
    found = Foreseen(words=wish.words, variants=variants)
    try:
        compiled = _compiled(engine, wish, folder)
        source = _source_here(wish, compiled.recipe, folder)
    except DynoError as error:
        return found.model_copy(update={"problem": error.message, "remedy": error.hint})
    if source is not None and making.is_made(compiled.of(source).build):
        return found.model_copy(update={"there": True})
    return found.model_copy(update={"expected_s": making.expected_s(compiled.recipe)})


@dataclass(frozen=True)
class _Compiled:
    """All that makes a build beside its source."""

    recipe: Recipe
    patches: tuple[Patch, ...]
    toolchain: Toolchain
    flags: Flags
    words: str

    def of(self, source: Source) -> Materials:
        return Materials(self.recipe, source, self.patches, self.toolchain, self.flags, self.words)


def _compiled(engine: Engine, wish: BuildWish, folder: Path) -> _Compiled:
    recipe = recipe_of(engine, wish, folder)
    compiler = toolchain(wish.compiler, wish.linker)
    if recipe.cxx and not compiler.cxx:
        reason = f"{engine.title} needs a C++ compiler, and there is none beside {compiler.cc}"
        raise Blocked("build.compiler", reason, "apt-get install g++, or clang")
    flags = all_flags(wish, compiler.family)
    # A flag that is rejected shows here, and not after minutes.
    tried(compiler, flags)
    return _Compiled(recipe, _patches(wish, folder), compiler, flags, wish.words)


def recipe_of(engine: Engine, wish: BuildWish, folder: Path) -> Recipe:
    """The study's own recipe, or else the engine's. Raises UserError where there is none."""
    path = engine.recipe if wish.recipe == DEFAULT else _beside(folder, wish.recipe)
    if path is None:
        raise UserError(
            f"Dyno has no recipe to build {engine.title}",
            'write one and name it: source.recipe = "recipe.toml"',
        )
    try:
        if path not in _looks.recipes:
            _looks.recipes[path] = read_recipe(path)
    except StudyError as wrong:
        first = wrong.mistakes[0]
        raise UserError(f"{path}:{first.line}: {first.message}", first.hint or "mend the recipe") from None
    return _looks.recipes[path]


def shares_data(recipe: Recipe, one: Installation, other: Installation) -> bool:
    """Whether two versions of an engine read each other's data."""
    parts = [version.version.split(".")[: recipe.format_parts] for version in (one, other)]
    return parts[0] == parts[1]


def _source_here(wish: BuildWish, recipe: Recipe, folder: Path) -> Source | None:
    """The source that a study names, if it is on this machine. Raises UserError where it can be nowhere."""
    asked = _asked(wish, recipe, folder)
    if asked not in _looks.sources and (found := _look_for(wish, recipe, folder)) is not None:
        _looks.sources[asked] = found
    return _looks.sources.get(asked)


def _asked(wish: BuildWish, recipe: Recipe, folder: Path) -> _Asked:
    return folder, wish.origin, wish.revision, recipe.debian


def _look_for(wish: BuildWish, recipe: Recipe, folder: Path) -> Source | None:
    if wish.origin.partition(":")[0] == DEBIAN:
        if wish.revision != NONE:
            raise UserError(
                "a source package has no revisions",
                "name a git repository as source.origin, or another suite",
            )
        return package.kept(_package(wish, recipe))
    place = _beside(folder, wish.origin)
    return local_tree(place) if wish.revision == NONE else git_revision(place, wish.revision)


def _fetched(wish: BuildWish, recipe: Recipe, folder: Path, tell: Tell) -> Source:
    asked = _asked(wish, recipe, folder)
    return _looks.sources.setdefault(asked, package.fetched(_package(wish, recipe), tell=tell))


def _package(wish: BuildWish, recipe: Recipe) -> SourcePackage:
    if recipe.debian is None:
        raise UserError(
            f"the recipe of {recipe.engine} names no source package", "name a folder as source.origin"
        )
    suite = wish.origin.partition(":")[2]
    return recipe.debian.model_copy(update={"suite": suite}) if suite else recipe.debian


def _patches(wish: BuildWish, folder: Path) -> tuple[Patch, ...]:
    names = [] if wish.patches == NONE else wish.patches.split()
    paths = [_beside(folder, name) for name in names]
    for path in paths:
        if path not in _looks.patches:
            _looks.patches[path] = read_patch(path)
    return tuple(_looks.patches[path] for path in paths)


def _beside(folder: Path, name: str) -> Path:
    """A path as a study writes it: it counts from the study's folder."""
    return folder / Path(name).expanduser()
