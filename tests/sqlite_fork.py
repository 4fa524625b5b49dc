"""A fork of SQLite that is built in a moment: a library of one function, which leads to the host's SQLite."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dbdyno.engines.sqlite.obtaining import LIBRARY
from dbdyno.host import libraries
from dbdyno.obtain.source.wish import BuildWish

CODE = """
static const char *remark = "of a fork";

const char *fork_remark(int count) {
    int sum = 0;
    for (int number = 0; number < count; number++) sum += number * count;
    return sum < 0 ? "" : remark;
}
"""

STEPPING = """
#include <dlfcn.h>

int rows, ends;
static int (*host_step)(void *);

static __attribute__((noinline)) int row(int code) { rows++; return code; }
static __attribute__((noinline)) int end(int code) { ends++; return code; }

int sqlite3_step(void *statement) {
    if (!host_step) host_step = (int (*)(void *))dlsym(dlopen("{host}", RTLD_LAZY), "sqlite3_step");
    int code = host_step(statement);
    return code == 100 ? row(code) : end(code);
}
"""
"""A fork through which each step of a statement goes, so that a load shows in its profile."""

RECIPE = """
engine   = "sqlite"
program  = "{library}"
seconds  = 2
room_mib = 1

[[generate]]
name    = "generated"
makes   = "generated.h"
command = ["cp", "fork.c", "generated.h"]

[[steps]]
name    = "compile"
command = [
    "{{cc}}", "{{cflags}}", "-shared", "-fPIC", "-o", "{{prefix}}/{library}", "{{source}}/fork.c",
    "{{ldflags}}", "-Wl,--no-as-needed", "{host}",
]
"""


def make_fork(folder: Path, code: str = CODE) -> None:
    """Writes the source `fork` and `recipe.toml` into a folder; skips where this machine cannot build it."""
    host = libraries.find(LIBRARY)
    if host is None or shutil.which("gcc") is None:
        pytest.skip("needs gcc and the host's libsqlite3")
    (folder / "fork").mkdir(parents=True)
    (folder / "fork" / "fork.c").write_text(code.replace("{host}", str(host)))
    (folder / "recipe.toml").write_text(RECIPE.format(library=LIBRARY, host=host))


def fork_wish(**levels: str) -> BuildWish:
    return BuildWish.model_validate({"origin": "fork", "recipe": "recipe.toml", **levels})
