"""What the tests of making share with others."""

from __future__ import annotations

from pathlib import Path

from dbdyno.obtain.source.build import Flags
from dbdyno.obtain.source.making import Materials
from dbdyno.obtain.source.recipe import BuildStep, Recipe
from dbdyno.obtain.source.toolchain import toolchain
from dbdyno.obtain.source.tree import local_tree

COMPILE = ("{cc}", "{cflags}", "-o", "{prefix}/toy", "{source}/toy.c", "{ldflags}")


def materials(folder: Path, *steps: tuple[str, ...], code: str = "", **more: object) -> Materials:
    source = folder / "toy" / "toy.c"
    source.parent.mkdir(exist_ok=True)
    # Once, because another process may be reading it.
    if not source.exists():
        source.write_text(code or "int main(void) { return 3; }\n")
    made_of = [
        BuildStep(name=f"step {number}", command=step) for number, step in enumerate(steps or (COMPILE,), 1)
    ]
    recipe = Recipe.model_validate(
        {"engine": "toy", "program": "toy", "room_mib": 1, "steps": made_of, **more}
    )
    flags = Flags(compile=("-O1", "-frecord-gcc-switches"))
    return Materials(recipe, local_tree(source.parent), (), toolchain("gcc"), flags, "gcc -O1")
