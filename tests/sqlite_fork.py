"""A fork of SQLite that is built in a moment: a library of one function, which leads to the host's SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.engines.sqlite.server import LIBRARY
from dbdyno.host import fingerprint
from dbdyno.obtain.source.build import BuildSpecification
from tests.needs import on_machine

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


HOST = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
const char *sqlite3_sql(sqlite3_stmt *);
sqlite3 *sqlite3_db_handle(sqlite3_stmt *);
int sqlite3_get_autocommit(sqlite3 *);
int sqlite3_exec(sqlite3 *, const char *, void *, void *, void *);

static void *host(const char *name) {
    return dlsym(dlopen("{host}", RTLD_NOW), name);
}
static int is(sqlite3_stmt *statement, const char *word) {
    const char *sql = sqlite3_sql(statement);
    return sql && strstr(sql, word);
}
"""
"""What wrong forks share: the way to the host's functions, in whose place they put their own."""

LOSES_ROWS = """
static _Thread_local long long lost;
int sqlite3_step(sqlite3_stmt *statement) {
    static int rows;
    int (*step)(sqlite3_stmt *) = host("sqlite3_step");
    if (is(statement, "INSERT INTO pgbench_history") && ++rows % 1000 == 0) {
        lost++;
        return 101;
    }
    return step(statement);
}
long long sqlite3_total_changes64(sqlite3 *database) {
    long long (*changes)(sqlite3 *) = host("sqlite3_total_changes64");
    return changes(database) + lost;
}
"""
"""Drops one row of the history in a thousand, and says that it was written."""

COMMITS_LATE = """
static _Thread_local int closing;
int sqlite3_step(sqlite3_stmt *statement) {
    int (*step)(sqlite3_stmt *) = host("sqlite3_step");
    int open = !sqlite3_get_autocommit(sqlite3_db_handle(statement));
    if (!closing && open && (is(statement, "COMMIT") || is(statement, "BEGIN"))) return 101;
    return step(statement);
}
int sqlite3_close(sqlite3 *database) {
    int (*close)(sqlite3 *) = host("sqlite3_close");
    closing = 1;
    if (!sqlite3_get_autocommit(database)) sqlite3_exec(database, "COMMIT", 0, 0, 0);
    closing = 0;
    return close(database);
}
"""
"""Keeps what was committed in the memory of the process until the connection is closed."""

ROUNDS = """
double sqlite3_column_double(sqlite3_stmt *statement, int column) {
    double (*read)(sqlite3_stmt *, int) = host("sqlite3_column_double");
    return (float)read(statement, column);
}
"""
"""Answers in single precision."""

DIES = """
int sqlite3_step(sqlite3_stmt *statement) {
    static int rows;
    int (*step)(sqlite3_stmt *) = host("sqlite3_step");
    if (is(statement, "INSERT INTO pgbench_history") && ++rows == 2000) abort();
    return step(statement);
}
"""
"""Aborts in the midst of a load."""


def make_fork(folder: Path, code: str = CODE) -> None:
    """Writes the source `fork` and `recipe.toml` into a folder; skips where this machine cannot build it."""
    host = fingerprint.find(LIBRARY)
    if host is None or on_machine("gcc") is None:
        pytest.skip("needs gcc and the host's libsqlite3")
    (folder / "fork").mkdir(parents=True)
    (folder / "fork" / "fork.c").write_text(code.replace("{host}", str(host)))
    (folder / "recipe.toml").write_text(RECIPE.format(library=LIBRARY, host=host))


def wrong_code(wrong: str) -> str:
    """What a fork of that fault has beside its own code: functions that take the place of the host's."""
    return HOST.replace("{host}", str(fingerprint.find(LIBRARY))) + wrong


def write_patch(path: Path, added: str) -> None:
    """A patch that adds code to the fork beside it; skips where this machine cannot apply one."""
    if on_machine("patch") is None:
        pytest.skip("needs patch: apt install patch")
    lines, more = (path.parent / "fork" / "fork.c").read_text().splitlines(), added.splitlines()
    hunk = f"@@ -{len(lines)} +{len(lines)},{len(more) + 1} @@\n {lines[-1]}\n"
    path.write_text("--- a/fork.c\n+++ b/fork.c\n" + hunk + "".join(f"+{line}\n" for line in more))


def fork_wish(**levels: str) -> BuildSpecification:
    return BuildSpecification.model_validate({"origin": "fork", "recipe": "recipe.toml", **levels})
