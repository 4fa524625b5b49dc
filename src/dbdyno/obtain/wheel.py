"""An engine that comes inside an installed Python wheel."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from dbdyno.errors import EngineMissing


def file(wheel: str, ending: str) -> tuple[str, Path]:
    """The wheel's version, and the path of its file whose name ends so.

    Raises EngineMissing when the wheel is not installed beside Dyno, or holds no such file on this platform.
    """
    try:
        installed = distribution(wheel)
    except PackageNotFoundError:
        raise EngineMissing(f"the wheel {wheel} is not installed", f"`pip install {wheel}`") from None
    for entry in installed.files or []:
        path = Path(str(installed.locate_file(entry)))
        if str(entry).endswith(ending) and path.is_file():
            return installed.version, path.resolve()
    raise EngineMissing(
        f"{wheel} {installed.version} holds no {ending} for this platform",
        f"`pip install --force-reinstall {wheel}` on x86-64 or ARM Linux",
    )
