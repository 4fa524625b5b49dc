"""The build of a recipe, from one that is kept: a copy of a program that needs no compiler."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from dbdyno.deploy.built import build_of
from dbdyno.engines.built import recipe_of
from dbdyno.engines.sqlite import SQLITE
from dbdyno.errors import UserError
from dbdyno.frozen import Level
from dbdyno.host import cache
from dbdyno.obtain.source.build import Made, Training
from dbdyno.obtain.source.wish import BuildWish, Flags, Trainer

KEY = "0123456789abcdef"
PATCH = """\
--- a/src/btree.c
+++ b/src/btree.c
@@ -1 +1 @@
-one
+two
"""
BY_COMPILER = Training(
    trainer=Trainer(workload="tpcb", transactions=9),
    transactions=9,
    took_s=1.0,
    files=1,
    functions=8,
    executed=4,
    profile="a" * 64,
)
BY_BOLT = BY_COMPILER.but(profile="b" * 64, moved=2)
LEVELS: dict[str, Level] = {"build.optimisation": "-O3", "source.patches": "one.patch"}


@pytest.fixture
def study(homes: Path) -> Path:
    """The folder of a study, whose build is kept."""
    folder = homes / "study"
    folder.mkdir()
    (folder / "one.patch").write_text(PATCH)
    digest = hashlib.sha256(PATCH.encode()).hexdigest()
    account = Made(
        key=KEY,
        engine="sqlite",
        words="gcc -O3 patches one.patch",
        source=f"{folder}/sqlite at v1 (abc)",
        patches=(f"one.patch {digest[:12]}",),
        toolchain="gcc 12.2.0",
        flags=Flags(compile=("-O3",)),
        recipe=recipe_of(SQLITE, BuildWish(), folder).digest,
        program="bin/program",
        took_s=1.0,
        training=BY_COMPILER,
        bolt=BY_BOLT,
    )

    def make(making: Path) -> tuple[str, str]:
        (making / "prefix/bin").mkdir(parents=True)
        shutil.copy("/bin/true", making / "prefix/bin/program")
        (making / "profile/src").mkdir(parents=True)
        (making / "profile/src/btree.gcda").write_bytes(b"\x00profile")
        (making / "bolt/profile").mkdir(parents=True)
        (making / "bolt/profile/merged.fdata").write_bytes(b"1 main 0 1 often 0 0 9")
        (making / "build.json").write_text(account.model_dump_json())
        return "a build", "tests"

    cache.shelf("builds").once(f"sqlite-{KEY}", make)
    return folder


def test_a_build_comes_with_all_that_makes_it_again(study: Path) -> None:
    found = build_of(SQLITE, LEVELS, KEY, study)
    assert found is not None
    build, files = found
    assert build.source == "sqlite at v1 (abc)"
    assert build.flags.compile == ("-O3",)
    assert files["build/patches/one.patch"] == PATCH.encode()
    assert files["build/profile/src/btree.gcda"] == b"\x00profile"
    assert files["build/bolt/merged.fdata"].endswith(b" 9")
    assert build.trained == f"{BY_COMPILER.words}; {BY_BOLT.words}" and "2 laid out anew" in build.trained
    assert SQLITE.recipe is not None
    assert files["build/recipe.toml"] == SQLITE.recipe.read_bytes()
    assert all(str(study) not in text.decode(errors="replace") for text in files.values())


def test_levels_without_a_build_have_none(study: Path) -> None:
    assert build_of(SQLITE, {"config.synchronous": "off"}, "", study) is None


def test_a_build_that_is_gone_is_told(study: Path) -> None:
    with pytest.raises(UserError, match="is not kept any more"):
        build_of(SQLITE, LEVELS, "f" * 16, study)


def test_a_patch_that_has_changed_is_refused(study: Path) -> None:
    (study / "one.patch").write_text(PATCH.replace("two", "three"))
    with pytest.raises(UserError, match=r"one\.patch is not what the build was made of"):
        build_of(SQLITE, LEVELS, KEY, study)


def test_a_recipe_that_has_changed_is_refused(study: Path) -> None:
    assert SQLITE.recipe is not None
    (study / "own.toml").write_text(f"{SQLITE.recipe.read_text()}\n[environment]\nA = 'b'\n")
    with pytest.raises(UserError, match=r"own\.toml is not what the build was made of"):
        build_of(SQLITE, {**LEVELS, "source.recipe": "own.toml"}, KEY, study)
