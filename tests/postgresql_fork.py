"""A fork of PostgreSQL that is built in a moment: the host's server, with the record of one compiled file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines.postgresql.server import SERVER
from tests.needs import on_machine

RECIPE = """
engine   = "postgresql"
program  = "bin/postgres"
seconds  = 2
room_mib = 30

[[steps]]
name    = "compile"
needs   = {{ objcopy = "binutils", mkdir = "coreutils" }}
command = ["{{cc}}", "{{cflags}}", "-c", "-o", "fork.o", "{{source}}/fork.c"]

[[steps]]
name    = "read what was recorded"
command = ["objcopy", "--dump-section", ".GCC.command.line=recorded", "fork.o"]

[[steps]]
name    = "make the folder"
command = ["mkdir", "{{prefix}}/bin"]

[[steps]]
name    = "link"
command = [
    "objcopy", "--add-section", ".GCC.command.line=recorded", "{host}/postgres", "{{prefix}}/bin/postgres",
]

[[steps]]
name    = "install"
command = ["cp", "{host}/initdb", "{{prefix}}/bin"]

[[steps]]
name    = "find its libraries"
command = ["ln", "-s", "{host}/../lib", "{{prefix}}/lib"]
"""


def make_fork(folder: Path) -> Path:
    """Writes the source `fork` and `recipe.toml` into a folder, and returns the host's server; skips where
    this machine cannot build it."""
    servers = SERVER.on_host()
    if not servers or not on_machine("gcc") or not on_machine("objcopy"):
        pytest.skip("needs gcc, binutils and the host's PostgreSQL: apt install gcc libc6-dev postgresql")
    (folder / "fork").mkdir(parents=True)
    (folder / "fork" / "fork.c").write_text("int fork_of_postgresql;\n")
    (folder / "recipe.toml").write_text(RECIPE.format(host=servers[0].parent))
    return servers[0]
