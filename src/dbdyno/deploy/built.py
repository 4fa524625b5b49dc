"""The build of a recipe: what it was made of, so that it can be made again on another host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from dbdyno.deploy.deployment import DeployedBuild, without_folders
from dbdyno.engines.built import patches_of, recipe_file, recipe_of
from dbdyno.engines.engine import Engine
from dbdyno.errors import Blocked, UserError
from dbdyno.frozen import Level
from dbdyno.host import cache
from dbdyno.layers.layer import ask, by_layer
from dbdyno.layers.registry import LAYERS
from dbdyno.layers.source import wish_among
from dbdyno.obtain.source import making
from dbdyno.obtain.source.build import Made
from dbdyno.obtain.source.recorded import recorded
from dbdyno.obtain.source.training import PROFILE
from dbdyno.obtain.source.wish import BuildWish

Contents = dict[str, bytes]
"""Files by their path in the recipe's folder."""


def build_of(
    engine: Engine, levels: Mapping[str, Level], key: str, folder: Path
) -> tuple[DeployedBuild, Contents] | None:
    """The build of these levels that has a key, and the files that make it again: its recipe, its patches and
    the profiles that guided it. None where the levels ask for no build. `folder` is the study's. Raises
    UserError where the build is not kept, or where a file of it has changed since."""
    wish = wish_among(ask(by_layer(levels), LAYERS, engine))
    if wish is None:
        return None
    made, account = _kept(key)
    return _facts(made, account), dict(_files(engine, wish, account, made, folder))


def _kept(key: str) -> tuple[Path, Made]:
    """The folder of the build, which nobody frees until this process ends, and its account."""
    shelf = cache.shelf("builds")
    for name in shelf.names():
        account = making.readable_account(shelf.folder / name)
        if account is not None and account.key == key and (made := shelf.take(name)) is not None:
            return made, account
    raise UserError(
        f"the build {key or 'of this variant'} is not kept any more", "run the study again, which makes it"
    )


def _facts(made: Path, account: Made) -> DeployedBuild:
    build_id = ""
    with suppress(Blocked):
        build_id = recorded((made / making.PREFIX / account.program).resolve()).build_id
    return DeployedBuild(
        key=account.key,
        words=without_folders(account.words),
        source=without_folders(account.source),
        patches=account.patches,
        toolchain=account.toolchain,
        flags=account.flags,
        trained="; ".join(one.words for one in (account.training, account.bolt) if one),
        build_id=build_id,
    )


def _files(
    engine: Engine, wish: BuildWish, account: Made, made: Path, folder: Path
) -> Iterator[tuple[str, bytes]]:
    path = recipe_file(engine, wish, folder)
    if recipe_of(engine, wish, folder).digest != account.recipe:
        raise _changed(path)
    yield "build/recipe.toml", path.read_bytes()
    for patch in patches_of(wish, folder):
        if f"{patch.name} {patch.digest[:12]}" not in account.patches:
            raise _changed(folder / patch.name)
        yield f"build/patches/{patch.name}", patch.content
    for name, profile in {"profile": made / PROFILE, "bolt": made / making.BOLT / PROFILE}.items():
        for file in sorted(one for one in profile.rglob("*") if one.is_file()):
            yield f"build/{name}/{file.relative_to(profile)}", file.read_bytes()


def _changed(file: Path) -> UserError:
    return UserError(
        f"{file.name} is not what the build was made of", "put it back as it was, or run the study again"
    )
