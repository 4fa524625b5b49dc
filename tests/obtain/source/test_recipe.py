"""Recipes: those of Dyno can be read, those of users tell their mistakes by the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dbdyno.engines.registry import ENGINES
from dbdyno.errors import StudyError
from dbdyno.obtain.source.recipe import Recipe, expanded, read_recipe

GOOD = 'engine = "toy"\nprogram = "bin/toy"\n[[steps]]\nname = "make"\ncommand = ["make", "-j{jobs}"]\n'
RECIPES = {name: engine.recipe for name, engine in ENGINES.items() if engine.recipe}


def read(text: str, folder: Path) -> Recipe:
    (folder / "recipe.toml").write_text(text)
    return read_recipe(folder / "recipe.toml")


def mistakes(text: str, folder: Path) -> list[tuple[int, str]]:
    with pytest.raises(StudyError) as wrong:
        read(text, folder)
    return [(one.line, one.message) for one in wrong.value.mistakes]


@pytest.mark.parametrize("engine", RECIPES)
def test_a_recipe_of_dynos_can_be_read(engine: str) -> None:
    path = RECIPES[engine]
    assert path is not None
    recipe = read_recipe(path)
    assert recipe.engine == engine and recipe.debian is not None
    assert "{prefix}" in recipe.model_dump_json()


def test_a_package_may_have_another_name_in_another_suite() -> None:
    path = RECIPES["postgresql"]
    assert path is not None
    package = read_recipe(path).debian
    assert package is not None
    found = [package.of(suite, "1.2") for suite in ("trixie", "bookworm", "sid")]
    assert [(one.package, one.suite, one.version) for one in found] == [
        ("postgresql-17", "trixie", "1.2"),
        ("postgresql-15", "bookworm", "1.2"),
        ("postgresql-17", "sid", "1.2"),
    ]


def test_sqlite_and_two_servers_can_be_built() -> None:
    assert RECIPES.keys() == {"sqlite", "postgresql", "mariadb"}


@pytest.mark.parametrize("engine", RECIPES)
def test_a_recipe_of_dynos_names_the_package_of_every_program(engine: str) -> None:
    path = RECIPES[engine]
    assert path is not None
    recipe = read_recipe(path)
    needs = {name for step in (*recipe.generate, *recipe.steps) for name in step.needs}
    run = {step.command[0] for step in (*recipe.generate, *recipe.steps)}
    assert {program for program in run if not program.startswith("{")} <= needs
    assert all(
        re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", step.needs[name])
        for step in recipe.steps
        for name in step.needs
    )


@pytest.mark.parametrize(("engine", "parallel"), [("sqlite", False), ("mariadb", True), ("postgresql", True)])
def test_a_recipe_that_takes_all_cpus_tells_so(engine: str, parallel: bool) -> None:
    path = RECIPES[engine]
    assert path is not None and read_recipe(path).is_parallel is parallel


def test_steps_whose_file_may_be_there_are_not_certain(tmp_path: Path) -> None:
    maybe = '[[generate]]\nname = "lemon"\nmakes = "toy.c"\ncommand = ["lemon"]\n'
    recipe = read(GOOD + maybe, tmp_path)
    assert [step.name for step in recipe.certain_steps] == ["make"]


def test_every_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    text = GOOD.replace('program = "bin/toy"\n', 'speed = "fast"\n').replace("{jobs}", "{cores}")
    found = mistakes(text, tmp_path)
    assert (2, "unknown key `speed`") in found
    assert (0, "`program` is missing") in found
    [place] = [message for line, message in found if line == 5]
    assert "{cores} is no place; there are: build, cc, cflags" in place


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("engine = \n", "not valid TOML"),
        (GOOD + 'command = ["again"]\n', "command"),
        (GOOD.replace('["make", "-j{jobs}"]', "[]"), "steps.0.command"),
        (GOOD.partition("[[")[0], "`steps` is missing"),
    ],
)
def test_what_is_no_recipe_is_refused(text: str, said: str, tmp_path: Path) -> None:
    assert any(said in message for _, message in mistakes(text, tmp_path))


@pytest.mark.parametrize("program", ["/usr/bin/toy", "../toy", "bin/../../toy", "", "."])
def test_a_program_lies_below_the_prefix(program: str, tmp_path: Path) -> None:
    [(line, message)] = mistakes(GOOD.replace("bin/toy", program), tmp_path)
    assert line == 2 and "`program`: name a file below the prefix" in message


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ('folder = "{biuld}"', "a folder begins with {build}, {source}, {prefix}"),
        ('folder = "{build}/{cores}"', "{cores} is no place"),
        ('folder = "/tmp"', "a folder begins with"),
        ('folder = ""', "a folder begins with"),
        ('folder = "{source}/../other"', "does not lead out of it"),
    ],
)
def test_a_step_is_run_in_a_place_of_the_build(key: str, said: str, tmp_path: Path) -> None:
    [message] = [message for line, message in mistakes(f"{GOOD}{key}\n", tmp_path) if line == 6]
    assert said in message


HEAD = GOOD.partition("[[")[0]
SHARED = '[[steps]]\nname = "compile"\nshared = true\ncommand = ["make"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + SHARED.replace('"make"', '"make", "LDFLAGS={ldflags}"'), "{ldflags} is a build's own"),
        (HEAD + SHARED + 'folder = "{prefix}"\n', "{prefix} is a build's own"),
        (GOOD + SHARED, "come before all others"),
        (GOOD + SHARED.replace("steps", "generate"), "[[steps]] alone can be `shared`"),
        (GOOD + SHARED.replace("steps", "tests"), "[[steps]] alone can be `shared`"),
    ],
)
def test_a_step_that_builds_share_is_the_same_for_all_of_them(text: str, said: str, tmp_path: Path) -> None:
    assert any(said in message for _, message in mistakes(text, tmp_path))


def test_a_recipe_without_shared_steps_has_the_digest_that_it_had(tmp_path: Path) -> None:
    """Else all kept builds would be made again."""
    assert "shared" not in read(GOOD, tmp_path).model_dump_json()
    assert read(HEAD + SHARED, tmp_path).steps[0].shared


def test_an_environment_names_known_places(tmp_path: Path) -> None:
    [(_, message)] = mistakes(GOOD + '[environment]\nDESTDIR = "{perfix}"\n', tmp_path)
    assert "{perfix} is no place; there are: build, cc, cflags" in message


TEST = '[[tests]]\nname = "all"\ncommand = ["make", "check"]\n'


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("failing = '^not ok'", "one group names the test"),
        ("failing = '(a)(b)'", "one group names the test"),
        ("unknown = 'no such test'", "one group names the test"),
        ("failing = '('", "not a regular expression"),
        ('carried = "../tests"', "name a file or a folder below the source"),
        ('carried = "/tests"', "name a file or a folder below the source"),
        ('differences = "{biuld}/diffs"', "{biuld} is no place"),
    ],
)
def test_what_a_test_says_of_itself_is_checked(key: str, said: str, tmp_path: Path) -> None:
    [message] = [message for line, message in mistakes(f"{GOOD}{TEST}{key}\n", tmp_path) if line == 9]
    assert said in message


def test_how_tests_tell_what_failed_makes_no_other_build(tmp_path: Path) -> None:
    plain = read(GOOD + TEST, tmp_path)
    said = "failing = '^not ok (.*)'\nunknown = '^no test (.*)'\ndifferences = \"{build}/diffs\"\n"
    telling = read(f"{GOOD}{TEST}{said}", tmp_path)
    assert plain.digest == telling.digest
    assert plain.digest != read(f'{GOOD}{TEST}carried = "tests"\n', tmp_path).digest


def test_what_tests_need_is_asked_for_before_a_build(tmp_path: Path) -> None:
    recipe = read(f'{GOOD}{TEST}needs = {{ prove = "perl" }}\n', tmp_path)
    assert {name for step in recipe.certain_steps for name in step.needs} == {"prove"}


def test_a_recipe_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"nothing\.toml"):
        read_recipe(tmp_path / "nothing.toml")


def test_what_does_not_shape_a_build_does_not_change_the_digest(tmp_path: Path) -> None:
    first = read(GOOD, tmp_path).digest
    assert read("# a comment\nseconds = 5\n" + GOOD, tmp_path).digest == first
    assert read(GOOD.replace("-j{jobs}", "-j1"), tmp_path).digest != first
    assert read(GOOD.replace("bin/toy", "toy"), tmp_path).digest != first


def test_places_are_filled_in() -> None:
    places: dict[str, str | tuple[str, ...]] = {
        "cc": "gcc",
        "cflags": ("-O2", "-g"),
        "prefix": "/p",
        "ldflags": (),
    }
    command = ["{cc}", "{cflags}", "{ldflags}", "-DFLAGS={cflags}", "-o", "{prefix}/x{cc}", "{}"]
    told = ["gcc", "-O2", "-g", "-DFLAGS=-O2 -g", "-o", "/p/xgcc", "{}"]
    assert expanded(command, places) == told


CROSS = """
engine  = "toy"
program = "libtoy.so"
shell   = "toy"
[[steps]]
name    = "configure"
command = ["./configure"]
cross   = ["--host={triplet}"]
needs   = { make = "make", "zlib.h" = "zlib1g-dev" }
[[steps]]
name    = "shell"
command = ["make", "toy"]
only    = "cross"
[[tests]]
name    = "all"
command = ["make", "check"]
only    = "here"
[[tests]]
name    = "some"
command = ["make", "check-some"]
only    = "cross"
"""


def test_a_build_of_a_study_of_platforms_has_commands_of_its_own(tmp_path: Path) -> None:
    recipe = read(CROSS, tmp_path)
    here, there = recipe.on(""), recipe.on("s390x")
    assert [step.command for step in here.steps] == [("./configure",)]
    assert [step.command for step in there.steps] == [("./configure", "--host={triplet}"), ("make", "toy")]
    assert ([one.name for one in here.tests], [one.name for one in there.tests]) == (["all"], ["some"])
    assert (here.program, there.program) == ("libtoy.so", "toy")
    assert recipe.headers == {"zlib.h": "zlib1g-dev"}


def test_what_other_architectures_need_changes_no_key_of_this_machines_builds(tmp_path: Path) -> None:
    recipe = read(CROSS, tmp_path)
    [first, _] = recipe.steps
    without = recipe.but(shell="", steps=[first.but(cross=())], tests=recipe.tests[:1])
    assert recipe.on("").digest == without.on("").digest
    assert recipe.on("s390x").digest != without.on("s390x").digest


def test_a_shell_lies_below_the_prefix(tmp_path: Path) -> None:
    [(line, told)] = mistakes(GOOD.replace("[[steps]]", 'shell = "/bin/sh"\n[[steps]]'), tmp_path)
    assert line == 3 and told.startswith("`shell`: name a file below the prefix")
