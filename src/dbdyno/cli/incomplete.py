"""An installation of Dyno that cannot be loaded: what is wrong with it, and what to install instead."""

from __future__ import annotations

import platform
import sysconfig

from dbdyno.errors import DynoError

DRIVER = "_driver"
GLIBC = "2.28"
"""The oldest that wheels are linked for, as `.ci/wheels` builds them."""


def incomplete(error: ImportError, libc: str) -> DynoError | None:
    """What to tell of an import that failed on a machine with that C library; None where the fault is
    Dyno's own."""
    package = (error.name or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package and package != "dbdyno":
        return DynoError(
            f"the Python package {package}, which Dyno needs, is not installed",
            "install Dyno again: `pip install --force-reinstall` with its wheel, or `make setup` in a clone",
        )
    if DRIVER not in str(error) and DRIVER not in (error.name or ""):
        return None
    what = f"Dyno's driver cannot be loaded: {error.msg}"
    if libc.startswith("musl"):
        return DynoError(
            f"{what}; this Linux has musl, and Dyno's wheels are linked for glibc",
            f"use a Linux with glibc {GLIBC} or newer, such as Debian or Ubuntu, or an image of one",
        )
    if "GLIBC_" in error.msg:
        return DynoError(
            f"{what}; this Linux has {libc}",
            f"wheels of `make wheels` need glibc {GLIBC} or newer; or compile it in a clone: `make setup`",
        )
    return DynoError(
        what, f"install the wheel for {platform.machine()}, or compile it in a clone: `make setup`"
    )


def c_library() -> str:
    """The C library that this Python was built for, such as `glibc 2.36` or `musl`."""
    if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or ""):
        return "musl"
    return " ".join(platform.libc_ver()).strip() or "an unknown C library"
