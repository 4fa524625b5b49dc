"""What a recipe needs of this machine beside the compiler: programs, and headers of libraries."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Sequence
from functools import cache

from dbdyno.errors import Blocked
from dbdyno.frozen import listed
from dbdyno.obtain.source.recipe import HEADER, Step
from dbdyno.obtain.source.toolchain import first_error, ran


def require_needs(steps: Iterable[Step], compiler: Sequence[str], headers: bool = True) -> None:
    """Raises Blocked with all that is missing, and one command that installs it. `compiler` is the C
    compiler, with the flags that say where it looks for headers. Without `headers` programs alone are looked
    for."""
    every = {name: package for step in steps for name, package in step.needs.items()}
    needs = {name: package for name, package in every.items() if headers or not name.endswith(HEADER)}
    missing = _missing(list(needs), compiler)
    if missing:
        names = listed(missing)
        packages = dict.fromkeys(needs[name] for name in missing)
        raise Blocked(
            "source.recipe",
            f"a build needs {names}, which this machine does not have",
            shlex.join(["apt-get", "install", *packages]),
        )


def _missing(names: Sequence[str], compiler: Sequence[str]) -> list[str]:
    headers = [name for name in names if name.endswith(HEADER)]
    absent = _missing_headers(tuple(headers), tuple(compiler)) if headers else frozenset()
    return [name for name in names if name in absent or (name not in headers and not shutil.which(name))]


@cache
def _missing_headers(names: tuple[str, ...], compiler: tuple[str, ...]) -> frozenset[str]:
    """Those that the preprocessor does not find. A process asks once, because each trial needs the answer.
    Each stands quoted, because it may hold a macro's name."""
    asked = "".join(f'#if !__has_include(<{name}>)\n"{name}"\n#endif\n' for name in names)
    try:
        done = ran([*compiler, "-E", "-P", "-x", "c", "-"], given=asked)
    except OSError as error:
        raise _cannot_look(f"{compiler[0]} cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        raise _cannot_look(first_error(done.stderr))
    return frozenset(line.strip().strip('"') for line in done.stdout.splitlines() if line.startswith('"'))


def _cannot_look(cause: str) -> Blocked:
    reason = f"the compiler cannot look for headers: {cause}"
    return Blocked("build.compiler", reason, "take another compiler, or leave the flag out")
