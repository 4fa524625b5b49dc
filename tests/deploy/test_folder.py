"""A recipe's folder is whole or not there, and is read as it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.deploy.files import (
    RecipeFile,
    files_beside,
    files_for_host,
    read_recipe_folder,
    write_recipe_folder,
)
from dbdyno.deploy.made import production_of
from dbdyno.engines.mariadb import MARIADB
from dbdyno.errors import UserError
from tests.deploy.recipes import recipe

MADE = recipe(MARIADB, {"config.innodb_io_capacity": (200, 2000), "config.innodb_doublewrite": ("ON", "OFF")})


def files() -> list[RecipeFile]:
    production = production_of(MARIADB)
    for_host = files_for_host(MADE, production)
    return [*for_host, *files_beside(MADE, production, for_host)]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "recipe"
    write_recipe_folder(folder, files())
    assert read_recipe_folder(folder) == MADE
    assert read_recipe_folder(folder / "recipe.json") == MADE
    assert (folder / "apply").stat().st_mode & 0o111
    assert not (folder / "recipe.tsv").stat().st_mode & 0o111


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "recipe"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    with pytest.raises(UserError, match="is there already") as refused:
        write_recipe_folder(folder, files())
    assert "--output" in refused.value.hint
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    below = tmp_path / "a file"
    below.write_text("")
    with pytest.raises(UserError, match="cannot write"):
        write_recipe_folder(below / "recipe", files())
    too_long = RecipeFile("x" * 300, b"")
    with pytest.raises(UserError, match="cannot write"):
        write_recipe_folder(tmp_path / "recipe", [*files(), too_long])
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "is no recipe"), ("{}", "is no recipe"), ('{"format": 2, "run": 3}', "is no recipe")],
)
def test_what_is_no_recipe_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "recipe.json").write_text(text)
    with pytest.raises(UserError, match=said):
        read_recipe_folder(tmp_path)


def test_a_recipe_of_another_format_is_refused(tmp_path: Path) -> None:
    later = MADE.but(format=99)
    (tmp_path / "recipe.json").write_text(later.model_dump_json())
    with pytest.raises(UserError, match="has format 99"):
        read_recipe_folder(tmp_path)


@pytest.mark.parametrize(
    ("factor", "level", "said"),
    [
        ("nosuch.thing", 1, "does not know nosuch.thing"),
        ("memory.nosuch", 1, "does not know memory.nosuch"),
        ("config", 1, "does not know config"),
        ("cpu.server", "many", "'many' is no level of it"),
    ],
)
def test_a_level_that_no_layer_proves_is_refused(
    tmp_path: Path, factor: str, level: str | int, said: str
) -> None:
    change = MADE.changes[0].but(factor=factor, level=level)
    other = MADE.but(changes=(change,))
    (tmp_path / "recipe.json").write_text(other.model_dump_json())
    with pytest.raises(UserError, match=said):
        read_recipe_folder(tmp_path)


def test_where_there_is_none_the_message_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no recipe in"):
        read_recipe_folder(tmp_path)
