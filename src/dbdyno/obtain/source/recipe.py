"""Recipes: how an engine is built from its source, in a TOML file that also a user can write."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from dbdyno.errors import Mistake, StudyError
from dbdyno.frozen import Frozen, absent
from dbdyno.study.document import StudyDocument, UnreadableStudy, parse_document, read_bytes

TARGET_PLACES = frozenset(("triplet", "kernel", "sysroot", "emulator"))
"""What a command may name in `cross`: they are of the architecture that a build is for."""
PLACES = frozenset(("source", "build", "prefix", "cc", "cxx", "cflags", "ldflags", "jobs")) | TARGET_PLACES
"""What a command may name in braces. `cflags` and `ldflags` alone in an argument become several."""
OWN_PLACES = frozenset(("prefix", "ldflags"))
"""What may differ between builds that share their objects."""
LIBRARIES = "LD_LIBRARY_PATH"
HEADER = (".h", ".hpp")
"""How the name of a header ends, among what a step needs."""
PLACE = re.compile(r"\{(\w+)\}")
FOLDERS = ("{build}", "{source}", "{prefix}")
"""Where a step may be run."""


class BuildStep(Frozen):
    """One command, which no shell sees, in a folder. A step whose file `makes` is there already is left out.
    `needs` are programs beside the compiler and headers of libraries (`zlib.h`), with the Debian package that
    holds each. What a `shared` one makes does not depend on the linker's flags, so builds that differ in
    those alone share it. A build of a study of platforms adds `cross` to the command. A step that is
    `only` for "cross" is of such builds, and one for "here" is of all others."""

    name: str
    command: tuple[str, ...] = Field(min_length=1)
    makes: str = ""
    folder: str = "{build}"
    needs: dict[str, str] = Field(default_factory=dict)
    shared: bool = absent(False)
    cross: tuple[str, ...] = absent(())
    only: Literal["", "here", "cross"] = absent("")

    @field_validator("command", "cross")
    @classmethod
    def _known_places(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        _require_known_places(command)
        return command

    @field_validator("folder")
    @classmethod
    def _within_a_place(cls, folder: str) -> str:
        first, *deeper = PurePosixPath(folder).parts or ("",)
        if first not in FOLDERS or ".." in deeper:
            raise ValueError(f"a folder begins with {', '.join(FOLDERS)}, and does not lead out of it")
        _require_known_places(deeper)
        return folder


class SourceTest(BuildStep):
    """Tests that the source carries, in the file or folder `carried`; without that they are left out. Each
    match of `failing` in what they print tells a test that did not pass, by its group, and one of `unknown` a
    test that the source has not. What a test answered in place of what it should is printed as a unified
    difference, or stands in the file `differences`."""

    carried: str = absent("")
    failing: str = absent("")
    unknown: str = absent("")
    differences: str = absent("")

    @field_validator("carried")
    @classmethod
    def _below_the_source(cls, carried: str) -> str:
        if PurePosixPath(carried).is_absolute() or ".." in PurePosixPath(carried).parts:
            raise ValueError("name a file or a folder below the source, such as tests/main")
        return carried

    @field_validator("failing", "unknown")
    @classmethod
    def _names_a_test(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern, re.MULTILINE).groups
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        if pattern and groups != 1:
            raise ValueError("one group names the test, such as '^not ok [0-9]+ - (.*)'")
        return pattern

    @field_validator("differences")
    @classmethod
    def _in_a_known_place(cls, differences: str) -> str:
        _require_known_places([differences])
        return differences


class SourcePackage(Frozen):
    """The distribution's source package, and the Debian suite that it is taken from. An empty version means
    the copy that is here already, else the latest that the suite's indexes list. `others` are those of suites
    in which it has another name."""

    package: str
    suite: str
    version: str = ""
    others: tuple[SourcePackage, ...] = absent(())

    def of(self, suite: str, version: str) -> SourcePackage:
        """The one of a suite."""
        package = next((one.package for one in self.others if one.suite == suite), self.package)
        return SourcePackage(package=package, suite=suite, version=version)


class Recipe(Frozen):
    """How an engine is built.

    `program` is what Dyno starts or loads, below the prefix; of a library `shell` is the program that stands
    for it in a study of platforms. `generate` are commands that make files of the
    source itself, once for all builds; `steps` make a build, those that are shared first, and `cxx` says that
    they compile C++. `tests` are the source's own that a build must pass; they run in its folder. Builds read
    each other's data where `format_parts` leading parts of their versions agree.
    `seconds` is about how long a build takes on two CPUs, `room_mib` what it needs on disk.
    `run_environment` is what the built engine needs in its environment, and `instrumented_environment` what
    the commands need besides while they make a build that the compiler instruments.
    """

    engine: str
    program: str
    shell: str = absent("")
    format_parts: int = Field(default=1, ge=1)
    seconds: float = Field(default=600.0, gt=0)
    room_mib: int = Field(default=2000, gt=0)
    cxx: bool = False
    debian: SourcePackage | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    run_environment: dict[str, str] = Field(default_factory=dict)
    instrumented_environment: dict[str, str] = Field(default_factory=dict)
    generate: tuple[BuildStep, ...] = ()
    steps: tuple[BuildStep, ...] = Field(min_length=1)
    tests: tuple[SourceTest, ...] = absent(())

    @field_validator("generate", "tests")
    @classmethod
    def _shared_by_all(cls, steps: tuple[BuildStep, ...]) -> tuple[BuildStep, ...]:
        if any(step.shared for step in steps):
            raise ValueError("[[steps]] alone can be `shared`: leave it out")
        return steps

    @field_validator("steps")
    @classmethod
    def _shared_ones_first(cls, steps: tuple[BuildStep, ...]) -> tuple[BuildStep, ...]:
        shared = tuple(step for step in steps if step.shared)
        if shared != steps[: len(shared)]:
            raise ValueError("steps that are `shared` come before all others")
        texts = [text for step in shared for text in (*step.command, step.folder)]
        if own := sorted({place for text in texts for place in PLACE.findall(text)} & OWN_PLACES):
            raise ValueError(f"{{{own[0]}}} is a build's own, so no step that names it is `shared`")
        return steps

    @field_validator("program", "shell")
    @classmethod
    def _below_the_prefix(cls, program: str, field: ValidationInfo) -> str:
        path = PurePosixPath(program)
        if field.field_name == "shell" and not program:
            return program
        if not path.name or path.is_absolute() or ".." in path.parts:
            raise ValueError("name a file below the prefix, such as bin/server")
        return program

    @field_validator("environment", "instrumented_environment")
    @classmethod
    def _known_places(cls, environment: dict[str, str]) -> dict[str, str]:
        _require_known_places(environment.values())
        return environment

    def on(self, architecture: str) -> Recipe:
        """As it is carried out for an architecture of a study of platforms, or for this machine where that is
        empty. What concerns the other of the two is left out, so that it changes no build's key."""
        return self.but(
            program=(self.shell if architecture else "") or self.program,
            generate=_on(self.generate, architecture),
            steps=_on(self.steps, architecture),
            tests=_on(self.tests, architecture),
        )

    def environment_in(self, prefix: Path) -> dict[str, str]:
        """What the engine needs in its environment that was built in a prefix."""
        return {name: value.replace("{prefix}", str(prefix)) for name, value in self.run_environment.items()}

    def libraries(self, prefix: Path) -> tuple[Path, ...]:
        """The folders in a prefix where the engine finds libraries of its own."""
        told = self.environment_in(prefix).get(LIBRARIES, "")
        return tuple(Path(one) for one in told.split(":") if one)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of libraries that its steps need, each with its package."""
        needs = [step.needs for step in (*self.steps, *self.tests)]
        return {name: one[name] for one in needs for name in one if name.endswith(HEADER)}

    @property
    def certain_steps(self) -> tuple[BuildStep, ...]:
        """What runs whatever the source holds. Tests are among it, because a build that cannot be tested was
        made in vain."""
        return tuple(step for step in (*self.generate, *self.steps, *self.tests) if not step.makes)

    @property
    def is_parallel(self) -> bool:
        """Whether a command of it takes as many CPUs as there are."""
        commands = (step.command for step in (*self.generate, *self.steps))
        return any("{jobs}" in part for command in commands for part in command)

    @property
    def digest(self) -> str:
        """Of all that shapes a build; how long it takes, where its source comes from and how its tests tell
        what failed do not, and a build names by itself how it was instrumented."""
        shaping = self.model_dump_json(
            exclude={
                "seconds": True,
                "room_mib": True,
                "debian": True,
                "instrumented_environment": True,
                "format_parts": True,
                "shell": True,
                "tests": {"__all__": {"failing", "unknown", "differences"}},
            }
        )
        return hashlib.sha256(shaping.encode()).hexdigest()


StepOrTest = TypeVar("StepOrTest", bound=BuildStep)


def _on(steps: Iterable[StepOrTest], architecture: str) -> tuple[StepOrTest, ...]:
    left_out = "here" if architecture else "cross"
    return tuple(
        step.but(command=(*step.command, *(step.cross if architecture else ())), cross=(), only="")
        for step in steps
        if step.only != left_out
    )


def _require_known_places(texts: Iterable[str]) -> None:
    unknown = sorted({name for text in texts for name in PLACE.findall(text)} - PLACES)
    if unknown:
        known = ", ".join(sorted(PLACES))
        raise ValueError(f"{{{unknown[0]}}} is no place; there are: {known}")


def read_recipe(path: Path) -> Recipe:
    """The recipe in a file. Raises StudyError with all its mistakes, each with its line."""
    try:
        document = parse_document(read_bytes(path))
    except UnreadableStudy as error:
        raise StudyError(str(path), error.mistakes) from None
    try:
        recipe = Recipe.model_validate(document.values)
    except ValidationError as error:
        raise StudyError(str(path), [*document.mistakes, *_mistakes(error, document)]) from None
    if document.mistakes:
        raise StudyError(str(path), document.mistakes)
    return recipe


def _mistakes(error: ValidationError, document: StudyDocument) -> list[Mistake]:
    found = []
    errors = error.errors(include_url=False)
    for one in errors:
        # What is wrong within a list makes pydantic count its items wrongly.
        if any(other["loc"][:-1][: len(one["loc"])] == one["loc"] for other in errors):
            continue
        name = ".".join(map(str, one["loc"]))
        said = {"missing": f"`{name}` is missing", "extra_forbidden": f"unknown key `{name}`"}
        message = said.get(one["type"], f"`{name}`: {one['msg'].removeprefix('Value error, ')}")
        found.append(Mistake(document.line(tuple(one["loc"])), message))
    return found


def expanded(command: Sequence[str], places: Mapping[str, str | tuple[str, ...]]) -> list[str]:
    """A command with its places filled in."""
    arguments: list[str] = []
    for part in command:
        whole = PLACE.fullmatch(part)
        value = places[whole[1]] if whole else PLACE.sub(lambda found: _text(places[found[1]]), part)
        arguments += [value] if isinstance(value, str) else value
    return arguments


def _text(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else " ".join(value)
