"""An engine built from source is an installation like any other, and is looked at before it is built."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbdyno.engines import built as engines_built
from dbdyno.engines.built import Instrumented, built, code_beside, foreseen, materials_of, shares_data
from dbdyno.engines.registry import ENGINES
from dbdyno.engines.sqlite import SQLITE
from dbdyno.errors import Blocked, BuildFailed, DynoError, UserError
from dbdyno.host import cache, paths
from dbdyno.host.cache import Tell
from dbdyno.obtain.source import compared, making, package
from dbdyno.obtain.source.build import BuildSpecification, Trainer
from dbdyno.obtain.source.profile import Untrained
from dbdyno.obtain.source.recipe import Recipe, SourcePackage
from dbdyno.obtain.source.tree import SourceTree
from tests.fakes import INSTALLATION
from tests.sqlite_fork import fork_wish, make_fork

pytestmark = pytest.mark.usefixtures("homes")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study's folder with a fork of SQLite."""
    monkeypatch.setattr(engines_built, "_looks", engines_built._Looks())
    make_fork(tmp_path / "study")
    return tmp_path / "study"


@pytest.mark.engine
def test_a_build_is_an_installation_that_says_what_it_was_built_from(folder: Path) -> None:
    found = built(SQLITE, fork_wish(optimisation="-O1"), folder)
    assert found.installation.library == found.program and found.program.is_file()
    assert found.installation.version.startswith("3.")
    assert found.installation.origin == f"built from {folder / 'fork'}: gcc -O1"
    assert len(found.recorded.build_id) == 40
    assert any("-O1" in line for line in found.recorded.command_lines)
    other = built(SQLITE, fork_wish(optimisation="-O3"), folder)
    assert other.installation.digest != found.installation.digest


@pytest.mark.engine
@pytest.mark.parametrize("flags", ["none", "-Wall"])
def test_where_and_with_which_silent_flag_it_was_built_does_not_show(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    """Neither in the code nor in any other byte."""
    first = built(SQLITE, fork_wish(), folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a longer name of a cache"))
    again = built(SQLITE, fork_wish(flags=flags), folder)
    assert again.program != first.program
    assert again.program.read_bytes() == first.program.read_bytes()


@pytest.mark.engine
def test_a_source_that_changes_during_a_run_changes_nothing_in_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = materials_of(SQLITE, fork_wish(), folder).build.key
    code = folder / "fork" / "fork.c"
    code.write_text(code.read_text() + "int more;\n")
    assert materials_of(SQLITE, fork_wish(), folder).build.key == first
    # The next run sees it.
    monkeypatch.setattr(engines_built, "_looks", engines_built._Looks())
    assert materials_of(SQLITE, fork_wish(), folder).build.key != first


@pytest.mark.engine
def test_all_variants_of_a_run_are_built_from_one_look(folder: Path) -> None:
    change = "--- a/fork.c\n+++ b/fork.c\n@@ -0,0 +1 @@\n+int patched;\n"
    (folder / "one.patch").write_text(change)
    one, other = (fork_wish(patches="one.patch", optimisation=level) for level in ("-O1", "-O2"))
    first = materials_of(SQLITE, one, folder).build
    for name in ("fork/fork.c", "recipe.toml", "one.patch"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("patched", "changed").replace("compile", "link") + "\n")
    second = materials_of(SQLITE, other, folder).build
    assert second.flags != first.flags
    assert second.model_copy(update={"flags": first.flags}) == first


@pytest.mark.engine
def test_a_build_is_foreseen_without_being_made(folder: Path) -> None:
    before = foreseen(SQLITE, fork_wish(), folder, ("baseline",))
    assert (before.there, before.expected_s, before.problem) == (False, 2.0, "")
    assert making.all_made() == []
    built(SQLITE, fork_wish(), folder)
    after = foreseen(SQLITE, fork_wish(), folder, ("baseline",))
    assert (after.there, after.expected_s) == (True, 0.0)


@pytest.mark.parametrize(
    ("levels", "problem"),
    [
        ({"compiler": "gcc-99"}, "there is no compiler gcc-99 here"),
        ({"flags": "-fno-such-thing"}, "gcc rejects"),
        ({"patches": "no.patch"}, "cannot be read"),
        ({"origin": "nowhere"}, "there is no source at"),
        ({"recipe": "no.toml"}, "no.toml"),
        ({"origin": "debian"}, "names no source package"),
        ({"origin": "debian", "revision": "main", "recipe": "default"}, "has no revisions"),
        ({"lto": "thin"}, "GCC has no thin LTO"),
    ],
    ids=str,
)
def test_what_cannot_be_built_is_foreseen_with_the_reason(
    folder: Path, levels: dict[str, str], problem: str
) -> None:
    found = foreseen(SQLITE, fork_wish(**levels), folder, ("other",))
    assert problem in found.problem and not found.there
    with pytest.raises((Blocked, BuildFailed, UserError)) as refused:
        built(SQLITE, fork_wish(**levels), folder)
    assert refused.value.message == found.problem


NEEDY = """
engine = "sqlite"
program = "bin/toy"
[[steps]]
name    = "configure"
needs   = { nobison = "bison", noflex = "flex" }
command = ["nobison"]
"""


def test_tools_that_are_missing_are_told_before_anything_is_built(folder: Path) -> None:
    (folder / "needy.toml").write_text(NEEDY)
    wish = fork_wish(recipe="needy.toml")
    found = foreseen(SQLITE, wish, folder, ("baseline",))
    assert found.problem == "a build needs nobison and noflex, which this machine does not have"
    assert found.remedy == "apt-get install bison flex"
    with pytest.raises(Blocked, match="nobison and noflex"):
        built(SQLITE, wish, folder)
    assert not (paths.cache() / "sources").exists()


def test_all_mistakes_of_a_recipe_are_told_at_once(folder: Path) -> None:
    (folder / "wrong.toml").write_text(NEEDY.replace("bin/toy", "/toy") + "folder = '/tmp'\nfast = 1\n")
    with pytest.raises(UserError) as refused:
        built(SQLITE, fork_wish(recipe="wrong.toml"), folder)
    place, *told = refused.value.message.split("; ")
    assert place.startswith(f"{folder / 'wrong.toml'}: line 3: `program`")
    assert [line.partition(":")[0] for line in told] == ["line 8", "line 9"]


def test_a_source_package_that_is_not_here_is_not_fetched_by_looking(folder: Path) -> None:
    found = foreseen(SQLITE, BuildSpecification(), folder, ("baseline",))
    assert not found.there and found.expected_s > 0 and not found.problem


def test_an_engine_without_a_recipe_says_how_to_give_one(folder: Path) -> None:
    without = next(engine for engine in ENGINES.values() if engine.recipe is None)
    with pytest.raises(UserError, match="has no recipe to build") as refused:
        built(without, BuildSpecification(), folder)
    assert "source.recipe" in refused.value.hint


@pytest.mark.parametrize(("parts", "shared"), [(1, True), (2, True), (3, False)])
def test_versions_share_data_by_their_leading_parts(parts: int, shared: bool) -> None:
    recipe = Recipe.model_validate(
        {
            "engine": "toy",
            "program": "toy",
            "format_parts": parts,
            "steps": [{"name": "x", "command": ["true"]}],
        }
    )
    one, other = (replace(INSTALLATION, version=version) for version in ("3.40.1", "3.40.2"))
    assert shares_data(recipe, one, other) is shared


@pytest.mark.engine
def test_two_builds_are_compared_once_and_the_comparison_goes_with_the_build(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = fork_wish(), fork_wish(optimisation="-O0")
    found = code_beside(SQLITE, other, first, folder)
    assert found is not None and found.functions.differing == 1 and not found.same
    silent = code_beside(SQLITE, fork_wish(flags="-Wall"), first, folder)
    assert silent is not None and silent.same and silent.moved == 0
    against = materials_of(SQLITE, first, folder).build.key
    kept = list(cache.shelf("builds").folder.glob(f"*/beside-{against}.json"))
    assert len(kept) == 2
    with monkeypatch.context() as patched:
        patched.setattr(compared, "compare_code", None)
        assert code_beside(SQLITE, other, first, folder) == found
    # What another method found, or what is torn, is no comparison.
    kept[0].write_text("{")
    kept[1].write_text(kept[1].read_text().replace('"method": 2', '"method": 1'))
    assert code_beside(SQLITE, other, first, folder) == found


def test_a_build_beside_one_that_cannot_be_made_is_not_compared(folder: Path) -> None:
    told: list[str] = []
    assert code_beside(SQLITE, fork_wish(), fork_wish(compiler="gcc-99"), folder, told.append) is None
    assert any("not compared with" in line and "there is no compiler gcc-99 here" in line for line in told)


INSTALLING = """
[[steps]]
name    = "install what another build reads"
command = ["sh", "-c", "date +%N > {prefix}/fork.a; echo {cflags} > {prefix}/%s"]
"""


@pytest.mark.engine
@pytest.mark.parametrize(("file", "others"), [("functions.sql", 1), ("Makefile.global", 0)])
def test_a_build_with_another_file_to_load_is_not_the_same(folder: Path, file: str, others: int) -> None:
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe.read_text() + INSTALLING.replace("%s", file))
    found = code_beside(SQLITE, fork_wish(flags="-Wall"), fork_wish(), folder)
    assert found is not None and found.same_program
    assert (found.other_files, found.same) == (others, not others)


@pytest.mark.engine
def test_a_build_that_runs_in_another_environment_is_not_the_same(folder: Path) -> None:
    recipe = (folder / "recipe.toml").read_text()
    (folder / "other.toml").write_text(recipe + '[run_environment]\nTUNED = "1"\n')
    found = code_beside(SQLITE, fork_wish(recipe="other.toml"), fork_wish(), folder)
    assert found is not None and found.same_program and not found.same and found.other_environment


@pytest.mark.engine
def test_a_comparison_that_cannot_be_kept_is_made_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    wishes = fork_wish(flags="-Wall"), fork_wish()
    for wish in wishes:
        built(SQLITE, wish, folder)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        found = code_beside(SQLITE, *wishes, folder)
    assert found is not None and found.same
    assert not list(cache.shelf("builds").folder.glob("*/beside-*"))


@pytest.mark.engine
def test_a_stripped_build_is_not_told_to_be_the_same(folder: Path) -> None:
    bare = code_beside(SQLITE, fork_wish(flags="-s"), fork_wish(), folder)
    assert bare is not None and not bare.named and not bare.same


def test_what_an_instrumented_engine_writes_before_its_training_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    materials: Any = SimpleNamespace(recipe=None, source=SimpleNamespace(title="a fork"))
    own = replace(INSTALLATION, environment={"OWN": "kept"})
    monkeypatch.setattr(engines_built, "_installed", lambda *_: own)
    raw, seen = tmp_path / "raw", list[Instrumented]()
    raw.mkdir()

    def train(instrumented: Instrumented) -> int:
        seen.append(instrumented)
        return 1

    trainer = Trainer(workload="tpcb", transactions=1)
    untrained = Untrained(tmp_path / "prefix", trainer, raw, {"GCOV_PREFIX": str(raw)})
    engines_built._train(SQLITE, materials, train, untrained)
    [instrumented] = seen
    assert instrumented.installation.environment == {"OWN": "kept", "GCOV_PREFIX": str(raw)}
    assert (instrumented.environment, instrumented.trainer) == (untrained.environment, trainer)
    (raw / "build").mkdir()
    (raw / "build" / "a.gcda").touch()
    instrumented.forget()
    assert list(raw.iterdir()) == []


def test_a_source_that_cannot_be_had_is_asked_for_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def refuse(wanted: SourcePackage, *, tell: Tell) -> SourceTree:
        asked.append(wanted.package)
        raise DynoError("the mirror lacks it")

    monkeypatch.setattr(package, "kept", lambda _: None)
    monkeypatch.setattr(package, "fetched", refuse)
    for level in ("-O1", "-O2"):
        with pytest.raises(DynoError, match="the mirror lacks it"):
            materials_of(SQLITE, BuildSpecification(optimisation=level), folder)
    assert len(asked) == 1
    engines_built.forget_failures()
    with pytest.raises(DynoError, match="the mirror lacks it"):
        materials_of(SQLITE, BuildSpecification(), folder)
    assert len(asked) == 2, "something may have been mended"
