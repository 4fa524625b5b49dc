"""An engine built from its source: from what a study asks to an installation that can be started."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked, BuildFailed, DynoError, StudyError, UserError
from dbdyno.host.cache import Tell, silently
from dbdyno.obtain.architecture import ARCHITECTURES, of_this_machine
from dbdyno.obtain.installation import Installation
from dbdyno.obtain.source import making, package, profile
from dbdyno.obtain.source.bolt import proved_bolt
from dbdyno.obtain.source.build import (
    DEBIAN,
    DEFAULT,
    GUIDED,
    INSTRUMENTING,
    NONE,
    BuildAccount,
    BuildSpecification,
    Foreseen,
    Target,
    Trainer,
    all_flags,
    target,
    target_here,
)
from dbdyno.obtain.source.making import Materials
from dbdyno.obtain.source.profile import Untrained
from dbdyno.obtain.source.recipe import Recipe, SourcePackage, read_recipe
from dbdyno.obtain.source.toolchain import (
    RecordedCommands,
    Toolchain,
    recorded,
    require_needs,
    toolchain,
    tried_flags,
)
from dbdyno.obtain.source.tree import Patch, SourceTree, git_revision, local_tree, read_patch
from dbdyno.records.binary import CodeBeside
from dbdyno.study.nouns import Reference


@dataclass(frozen=True)
class Built:
    """A build that is whole, with its `name` on the shelf. `program` is the file that the server runs, or the
    load process holds; `recorded` is what that file tells of itself, and `warnings` what the compiler says of
    the flags."""

    name: str
    installation: Installation
    wish: BuildSpecification
    toolchain: Toolchain
    account: BuildAccount
    program: Path
    recorded: RecordedCommands
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Instrumented:
    """An engine that writes a profile when it ends. `environment` leads its profiles to the folder `raw`, and
    `trainer` is the load that is to train it."""

    installation: Installation
    recipe: Recipe
    trainer: Trainer
    raw: Path
    environment: Mapping[str, str]

    def forget(self) -> None:
        """Drops what it wrote before its training, such as while it made data."""
        shutil.rmtree(self.raw)
        self.raw.mkdir()


Train = Callable[[Instrumented], int]
"""Trains an instrumented engine, and stops it cleanly; returns the transactions that it did. Raises
BuildFailed where that fails."""


def built(
    engine: Engine, wish: BuildSpecification, folder: Path, tell: Tell = silently, train: Train | None = None
) -> Built:
    """The build that a study in a folder asks for, made where it is not there yet. One with trainers is made
    only with a way to `train` it. Raises BuildFailed, Blocked where this machine lacks what it takes, and
    UserError for a source that is none."""
    materials = materials_of(engine, wish, folder, tell)
    made = making.made(materials, tell, train and partial(_train, engine, materials, train))
    prefix, account = made / making.PREFIX, making.account_of(made)
    origin = f"built from {account.source}: {account.words}"
    if materials.target is None:
        program = _program(materials.recipe, prefix)
        installation = _installed(engine, materials.recipe, prefix, origin)
    else:
        installation = _installed_for(engine, materials.recipe, prefix, origin, materials.target)
        program = Path(installation.command[-1])
    return Built(
        name=made.name,
        installation=installation,
        wish=wish,
        toolchain=materials.toolchain,
        account=account,
        program=program,
        recorded=recorded(program),
        warnings=tried_flags(materials.toolchain, all_flags(wish, materials.toolchain.family)).warnings,
    )


def _train(engine: Engine, materials: Materials, train: Train, untrained: Untrained) -> int:
    origin = f"instrumented from {materials.source.title}"
    try:
        installation = _installed(engine, materials.recipe, untrained.prefix, origin)
    except UserError as error:
        raise BuildFailed(f"the instrumented build does not run: {error.message}", error.hint) from None
    # Nothing that it does before its training, such as making data, must write into another folder.
    environment = {**installation.environment, **untrained.environment}
    return train(
        Instrumented(
            installation=replace(installation, environment=environment, writes=(untrained.raw,)),
            recipe=materials.recipe,
            trainer=untrained.trainer,
            raw=untrained.raw,
            environment=untrained.environment,
        )
    )


def _installed(engine: Engine, recipe: Recipe, prefix: Path, origin: str) -> Installation:
    """What a recipe's commands installed in a prefix."""
    found = engine.obtaining.locate(Reference(engine.name, path=str(_program(recipe, prefix))))
    return replace(found, origin=origin, environment=recipe.environment_in(prefix))


def _installed_for(engine: Engine, recipe: Recipe, prefix: Path, origin: str, target: Target) -> Installation:
    """The same of what was built for an architecture of a study of platforms."""
    assert engine.platforms is not None, "a study names no other engine"
    root = replace(target.root, libraries=recipe.libraries(prefix))
    found = engine.platforms.of_build(_program(recipe, prefix), root)
    return replace(found, origin=origin, environment=recipe.environment_in(prefix))


def _program(recipe: Recipe, prefix: Path) -> Path:
    return (prefix / recipe.program).resolve()


def code_beside(
    engine: Engine, wish: BuildSpecification, against: BuildSpecification, folder: Path, tell: Tell = silently
) -> CodeBeside | None:
    """How the code of one build differs from that of another. None where the other one cannot be made, or one
    of them cannot be read: it tells why. Raises like `built`."""
    # Here, because a study without builds needs nothing that judges them.
    from dbdyno.obtain.source import compared

    if wish.architecture != against.architecture:
        # Their instructions are of two machines.
        return None
    own = materials_of(engine, wish, folder, tell)
    made = making.made(own, tell)
    try:
        other = materials_of(engine, against, folder, tell)
        return compared.code_beside(made, own.recipe, making.made(other, tell), other.recipe)
    except DynoError as error:
        tell(f"{wish.words}: not compared with {against.words}: {error.message}")
        return None


def materials_of(engine: Engine, wish: BuildSpecification, folder: Path, tell: Tell = silently) -> Materials:
    """What a build is made of. Each source, recipe and patch is looked at once in a process, so that all
    variants of a run are built from the same. Raises like `built`."""
    recipe = recipe_of(engine, wish, folder)
    of_source = _compiled(engine, recipe, wish, folder)
    source = _source_here(wish, recipe, folder) or _fetched(wish, recipe, folder, tell)
    against = target(recipe, wish.architecture, tell) if wish.architecture else None
    return of_source(source=source, target=against)


def prepare_source(engine: Engine, wish: BuildSpecification, folder: Path, tell: Tell = silently) -> None:
    """Fetches and patches what a build is made of, where it is not here yet. Raises like `built`."""
    making.prepared(materials_of(engine, wish, folder, tell), tell)


_Asked = tuple[Path, str, str, SourcePackage | None]
"""What decides on a source."""


@dataclass(frozen=True)
class _Looks:
    """What this process has looked at already: files by their path, sources by what was asked, and why one
    cannot be had: each build of a study would ask the mirror again."""

    recipes: dict[Path, Recipe] = field(default_factory=dict)
    patches: dict[Path, Patch] = field(default_factory=dict)
    sources: dict[_Asked, SourceTree] = field(default_factory=dict)
    refused: dict[_Asked, DynoError] = field(default_factory=dict)


_looks = _Looks()


def forget_failures() -> None:
    """Has the next one who asks for a build try again what failed, because something may have been mended."""
    making.forget_failures()
    _looks.refused.clear()


def foreseen(engine: Engine, wish: BuildSpecification, folder: Path, variants: tuple[str, ...]) -> Foreseen:
    """Looks at the compiler and at sources on this machine. Fetches nothing, and makes nothing. A build is
    then made of what was seen here."""
    trainer = " and ".join(dict.fromkeys(one.words for one in wish.trainers))
    found = Foreseen(words=wish.words, trainer=trainer, variants=variants)
    try:
        recipe = recipe_of(engine, wish, folder)
        of_source = _compiled(engine, recipe, wish, folder)
        source = _source_here(wish, recipe, folder)
        root = target_here(recipe, wish.architecture) if wish.architecture else None
    except DynoError as error:
        return found.but(problem=error.message, remedy=error.hint)
    if source is not None and (root is not None or not wish.architecture):
        build = of_source(source=source, target=root).build
        found = found.but(name=build.name, there=making.is_made(build))
    if found.there:
        return found
    expected_s = making.build_expected_s(
        recipe,
        is_trained=wish.trainer is not None,
        is_bolted=wish.bolt_trainer is not None,
        is_placebo=wish.seed is not None,
    )
    return found.but(expected_s=expected_s)


def _compiled(engine: Engine, recipe: Recipe, wish: BuildSpecification, folder: Path) -> partial[Materials]:
    """All that a build is made of but its source. Raises BuildFailed for flags that the compiler rejects, and
    Blocked where this machine lacks what it takes."""
    compiler = toolchain(wish.compiler, wish.linker, wish.architecture)
    if recipe.cxx and not compiler.cxx:
        reason = f"{engine.title} needs a C++ compiler, and there is none beside {compiler.cc}"
        wanted = ARCHITECTURES.get(wish.architecture)
        remedy = "apt-get install g++, or clang"
        if wanted is not None and wanted != of_this_machine():
            remedy = f"apt-get install g++-{wanted.packaged}"
        raise Blocked("build.compiler", reason, remedy)
    flags, instrumented = all_flags(wish, compiler.family), None
    # A flag that is rejected, and a tool that is missing, show here and not after minutes.
    tried_flags(compiler, flags)
    # Headers for an architecture come with its root.
    headers = not wish.architecture
    require_needs(recipe.certain_steps, [compiler.cc, *flags.compile], headers)
    bolt = None if wish.bolt_trainer is None else proved_bolt(compiler, flags)
    if wish.trainer is not None:
        instrumented = all_flags(wish, compiler.family, INSTRUMENTING[compiler.family])
        profile.require_profiles(compiler, instrumented)
        flags = all_flags(wish, compiler.family, GUIDED[compiler.family])
    return partial(
        Materials,
        recipe=recipe,
        patches=patches_of(wish, folder),
        toolchain=compiler,
        flags=flags,
        words=wish.words,
        trainer=wish.trainer,
        instrumented=instrumented,
        seed=wish.seed,
        bolt=bolt,
        bolt_trainer=wish.bolt_trainer,
    )


def kept_key(engine: Engine, wish: BuildSpecification, folder: Path, tell: Tell = silently) -> str:
    """The key of a build as it is kept, or as it would be made; of one that is not trained yet, without its
    profile. Fetches a source that is not here, but makes no build. Raises like `built`."""
    build = materials_of(engine, wish, folder, tell).build
    kept = making.kept(build)
    return kept.key if kept else build.key


def recipe_of(engine: Engine, wish: BuildSpecification, folder: Path) -> Recipe:
    """The study's own recipe, or else the engine's, as it is carried out for the wish. Raises UserError where
    there is none, and with all the mistakes of one that has some."""
    path = recipe_file(engine, wish, folder)
    try:
        if path not in _looks.recipes:
            _looks.recipes[path] = read_recipe(path)
    except StudyError as wrong:
        told = [f"line {one.line}: " * bool(one.line) + one.message for one in wrong.mistakes]
        hints = dict.fromkeys(one.hint for one in wrong.mistakes if one.hint)
        raise UserError(f"{path}: {'; '.join(told)}", "; ".join(hints) or "mend the recipe") from None
    return _looks.recipes[path].on(wish.architecture)


def recipe_file(engine: Engine, wish: BuildSpecification, folder: Path) -> Path:
    """Where that recipe stands. Raises UserError where there is none."""
    path = engine.recipe if wish.recipe == DEFAULT else _beside(folder, wish.recipe)
    if path is None:
        raise UserError(
            f"Dyno has no recipe to build {engine.title}",
            'write one and name it: source.recipe = "recipe.toml"',
        )
    return path


def shares_data(recipe: Recipe, one: Installation, other: Installation) -> bool:
    """Whether two versions of an engine read each other's data."""
    parts = [version.version.split(".")[: recipe.format_parts] for version in (one, other)]
    return parts[0] == parts[1]


def _source_here(wish: BuildSpecification, recipe: Recipe, folder: Path) -> SourceTree | None:
    """The source that a study names, if it is on this machine. Raises UserError where it can be nowhere."""
    asked = _asked(wish, recipe, folder)
    if asked not in _looks.sources and (found := _look_for(wish, recipe, folder)) is not None:
        _looks.sources[asked] = found
    return _looks.sources.get(asked)


def _asked(wish: BuildSpecification, recipe: Recipe, folder: Path) -> _Asked:
    return folder, wish.origin, wish.revision, recipe.debian


def _look_for(wish: BuildSpecification, recipe: Recipe, folder: Path) -> SourceTree | None:
    if wish.origin.partition(":")[0] == DEBIAN:
        if wish.revision != NONE:
            raise UserError(
                "a source package has no revisions",
                "name a git repository as source.origin, or another suite",
            )
        return package.kept(_package(wish, recipe))
    place = _beside(folder, wish.origin)
    return local_tree(place) if wish.revision == NONE else git_revision(place, wish.revision)


def _fetched(wish: BuildSpecification, recipe: Recipe, folder: Path, tell: Tell) -> SourceTree:
    asked = _asked(wish, recipe, folder)
    if (earlier := _looks.refused.get(asked)) is not None:
        raise earlier
    try:
        return _looks.sources.setdefault(asked, package.fetched(_package(wish, recipe), tell=tell))
    except DynoError as refused:
        _looks.refused[asked] = refused
        raise


def _package(wish: BuildSpecification, recipe: Recipe) -> SourcePackage:
    if recipe.debian is None:
        raise UserError(
            f"the recipe of {recipe.engine} names no source package", "name a folder as source.origin"
        )
    suite, _, version = wish.origin.partition(":")[2].partition("=")
    return recipe.debian.of(suite, version) if suite else recipe.debian


def patches_of(wish: BuildSpecification, folder: Path) -> tuple[Patch, ...]:
    """The patches that a study in a folder names. Raises UserError for one that cannot be read."""
    names = [] if wish.patches == NONE else wish.patches.split()
    paths = [_beside(folder, name) for name in names]
    for path in paths:
        if path not in _looks.patches:
            _looks.patches[path] = read_patch(path)
    return tuple(_looks.patches[path] for path in paths)


def _beside(folder: Path, name: str) -> Path:
    """A path as a study writes it: it counts from the study's folder."""
    return folder / Path(name).expanduser()
